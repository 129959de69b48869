"""The progress file: the state as Markdown for people (requirement S2)."""

from __future__ import annotations

from unicodedata import category

from ctxctl.facts.todos import folded
from ctxctl.model.state import AgentState, Subtask
from ctxctl.model.text import clean

TITLE = "# Agent Progress"
"""What the file begins with, by which it is known."""
UNKNOWN = "(not known: ctxctl checkpoint --set goal=...)"
_BREAKS = ("Cc", "Zl", "Zp")
"""Categories of characters that end a line or steer a terminal."""
MOST_FILES = 30
"""Changed files that are listed; the state has all."""


def render(state: AgentState) -> str:
    """The file's text. It follows from the state alone, so that it can be told whether it is out of date. Whatever
    the state's texts hold, they make no line of their own, and control characters stand as escapes."""
    lines = [f"{TITLE} - Window {state.window_id}", ""]
    goal = [_visible(line.rstrip()) for line in (state.task_goal.strip() or UNKNOWN).split("\n")]
    lines.append(f"**Goal:** {goal[0]}")
    lines += [f"> {line}".rstrip() for line in goal[1:]]
    lines += ["", f"**Saved:** {_one(state.saved_at)}", ""]
    if state.subtasks:
        lines += [f"**Done:** {len(state.completed_subtasks)} of {len(state.subtasks)}", ""]
    if state.transcript.skipped:
        lines += [f"**Not read:** the first {state.transcript.skipped:,} bytes of the transcript", ""]
    lines.append("## Completed")
    lines += [f"- [x] {_line(subtask)}" for subtask in state.completed_subtasks]
    current = state.current_subtask
    lines += ["", f"## Current: {_line(current) if current is not None else '(none)'}"]
    if current is not None and current.evidence:
        lines.append(f"- {_one(current.evidence)}")
    lines += ["", "## Remaining"]
    lines += [
        f"- [ ] {_line(subtask)}{' (in work)' if subtask.status == 'doing' else ''}"
        for subtask in state.remaining_subtasks
    ]
    lines += ["", "## Open Issues"]
    lines += [f"- [!] {_one(issue)}" for issue in state.open_issues]
    failed = [run for run in state.tests if run.outcome == "failed"]
    lines += [f"- [!] `{_one(run.command)}` failed{f': {_one(run.detail)}' if run.detail else ''}" for run in failed]
    if state.decisions:
        lines += ["", "## Decisions"]
        lines += [f"- {_one(d.what)}{f' (why: {_one(d.why)})' if d.why else ''}" for d in state.decisions]
    changed = [file for file in state.environment.files if file.role == "modified"]
    if changed:
        lines += ["", "## Changed Files"]
        for file in changed[-MOST_FILES:]:
            lines.append(f"- {_visible(file.path)}" + (f" ({_one(', '.join(file.actions))})" if file.actions else ""))
        if len(changed) > MOST_FILES:
            lines.append(f"- ({len(changed) - MOST_FILES} more)")
    if state.commits:
        lines += ["", "## Commits"]
        lines += [f"- {_one(commit.id or '(no id)')} {_one(commit.message)}" for commit in state.commits]
    return "\n".join(lines) + "\n"


def _line(subtask: Subtask) -> str:
    agent = f" [{_one(subtask.agent)}]" if subtask.agent != "main" else ""
    return f"{_one(subtask.text)} ({_one(subtask.id)}){agent}"


def _one(text: str) -> str:
    return _visible(folded(text))


def _visible(text: str) -> str:
    """A text on one line: what breaks one and other control characters as escapes, but for tabs."""
    text = clean(text)
    if text.isprintable():
        return text
    breaks = {c for c in set(text) if category(c) in _BREAKS} - {"\t"}
    return "".join(c.encode("unicode_escape").decode() if c in breaks else c for c in text)

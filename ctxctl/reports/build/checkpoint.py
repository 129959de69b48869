"""The report and the JSON of `checkpoint`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ctxctl.facts.todos import folded
from ctxctl.model.state import AgentState
from ctxctl.model.text import shortened
from ctxctl.reports.document import Column, Fact, Finding, Report, Table
from ctxctl.reports.plot import plural
from ctxctl.state.clean import Unclean
from ctxctl.state.record import as_json
from ctxctl.state.saving import Saved

WIDTH = 100
SHOWN = 12
"""Subtasks in the text; the files have all."""


def checkpoint_data(saved: Saved, unclean: Sequence[Unclean] | None) -> dict[str, Any]:
    """`result`: the state, the files that were written, and what is not clean where that was asked."""
    data = as_json(saved.state)
    data["written"] = list(saved.written)
    data["told"] = list(saved.told)
    if unclean is not None:
        data["unclean"] = [{"code": u.code, "what": u.what, "hint": u.hint} for u in unclean]
    return data


def checkpoint_report(saved: Saved, unclean: Sequence[Unclean] | None) -> Report:
    """What people read."""
    state = saved.state
    facts = [
        Fact("goal", _line(state.task_goal) or "not known", "" if state.task_goal else "--set goal=... tells it"),
        Fact("state", f"version {state.state_version}, window {state.window_id}", _where(saved)),
        Fact("progress", _progress(state), _reading(saved)),
    ]
    current = state.current_subtask
    if current is not None:
        facts.append(Fact("current", f"{_line(current.text)} ({current.id})", current.evidence))
    following = next((s for s in state.remaining_subtasks if s.status == "planned"), None)
    if following is not None:
        facts.append(Fact("next", f"{_line(following.text)} ({following.id})"))
    environment = state.environment
    changed = [file for file in environment.files if file.role == "modified"]
    here = sum(1 for file in changed if file.sha256 is not None)
    read = len(environment.files) - len(changed)
    if environment.files:
        facts.append(Fact("files", f"{len(changed)} changed, {read} read", f"{here} of the changed ones are on disk"))
    if environment.git_head is not None:
        facts.append(
            Fact(
                "git",
                f"{environment.git_head[:12]} {environment.git_branch or '(detached)'}",
                f"{len(environment.dirty)} dirty",
            )
        )
    if state.tests:
        run = state.tests[-1]
        facts.append(Fact("tests", run.outcome, _line(run.command), "red" if run.outcome == "failed" else None))
    told = [plural(len(items), name) for name, items in _counts(state) if items]
    if told:
        facts.append(Fact("also", ", ".join(told)))
    findings = [Finding("warning", u.code, u.what, hint=u.hint) for u in unclean or ()]
    steps = () if not saved.written else (f"ctxctl resume {shlex.quote(str(saved.path))}",)
    return Report(
        "checkpoint", str(saved.path), "", tuple(facts), _tables(state), findings=tuple(findings), next_steps=steps
    )


def _counts(state: AgentState) -> list[tuple[str, Sequence[Any]]]:
    return [
        ("decision", state.decisions),
        ("open issue", state.open_issues),
        ("learning", state.learnings),
        ("constraint", state.constraints),
        ("commit", state.commits),
        ("note", state.memory_index),
    ]


def _tables(state: AgentState) -> tuple[Table, ...]:
    order = [s for s in state.subtasks if s.status == "doing"]
    order += [s for s in state.subtasks if s.status == "planned"]
    order += list(reversed(state.completed_subtasks))
    if not order:
        return ()
    signs = {"done": "[x]", "doing": "[>]", "planned": "[ ]"}
    shown = order[:SHOWN]
    columns = [Column("id"), Column(""), Column("subtask", flexible=True, prose=True)]
    evident = any(s.evidence for s in shown)
    if evident:
        columns.append(Column("evidence", flexible=True, prose=True))
    rows = tuple((s.id, signs[s.status], folded(s.text), *((folded(s.evidence),) if evident else ())) for s in shown)
    more = f"{len(order) - SHOWN} more in the progress file" if len(order) > SHOWN else ""
    return (Table("Subtasks", tuple(columns), rows, more),)


def _where(saved: Saved) -> str:
    return str(saved.path) if saved.written else f"nothing was written to {saved.path}"


def _progress(state: AgentState) -> str:
    total = len(state.subtasks)
    return f"{len(state.completed_subtasks)} of {total} subtasks done" if total else "no list of subtasks"


def _reading(saved: Saved) -> str:
    if saved.read is None:
        return ""
    position = saved.state.transcript
    text = f"{position.turn:,} turns, {position.offset:,} bytes of the transcript"
    return f"{text}; the first {position.skipped:,} were never read" if position.skipped else text


def _line(text: str) -> str:
    line = folded(text)
    return line if len(line) <= WIDTH else shortened(line, WIDTH - 1) + "…"

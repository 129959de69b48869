"""What a transcript says, merged into the state that is known (requirements S1, S3)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ctxctl.facts.files import digest
from ctxctl.facts.prompts import request
from ctxctl.facts.session import SessionFacts
from ctxctl.facts.summary import merge
from ctxctl.facts.todos import folded
from ctxctl.model.block import Block
from ctxctl.model.state import AgentState, FileState, Subtask, TailBlock
from ctxctl.model.summary import FileFact, SessionSummary
from ctxctl.model.text import shortened
from ctxctl.model.unit import ANSWER_KINDS
from ctxctl.state.files import sanitized
from ctxctl.state.subtasks import BY_HAND, NOW, arranged, merged
from ctxctl.trace.grown import Grown

T = TypeVar("T")

MOST = {
    "constraints": 100,
    "success_criteria": 50,
    "learnings": 200,
    "requests": 50,
    "tests": 50,
    "commits": 500,
    "dead_ends": 50,
    "artifacts": 100,
    "decisions": 200,
    "open_issues": 50,
}
"""Entries of a list that a state keeps; the oldest go first. Subtasks and changed files are all kept."""


def known(state: AgentState | None, *, same: bool) -> SessionSummary:
    """A state as the summary that the facts of a transcript go on from. same: in the transcript that it came from last;
    in another one the ids of tasks begin anew."""
    if state is None:
        return SessionSummary()
    return SessionSummary(
        turns=(1, state.transcript.turn) if same and state.transcript.turn else (0, 0),
        goal=state.task_goal,
        success_criteria=state.success_criteria,
        constraints=state.constraints,
        requests=state.requests,
        decisions=state.decisions,
        files=tuple(FileFact(f.path, f.role, f.actions, f.written) for f in state.environment.files),
        todos=state.todos if same else tuple(replace(todo, id=None) for todo in state.todos),
        tests=state.tests,
        commits=state.commits,
        open_issues=state.open_issues,
        dead_ends=state.dead_ends,
        errors=state.errors,
        learnings=state.learnings,
        next_steps=state.next_steps,
        artifacts=state.artifacts,
        earlier=tuple(state.compaction_summary.split("\n")) if state.compaction_summary else (),
    )


SEEN = 8
"""Transcripts of earlier windows that a state remembers."""
REQUEST = 4000
"""Characters of the newest request that a state keeps."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the newest turns a state holds."""

    turns: int
    characters: int


def taken(
    before: AgentState, grown: Grown, facts: SessionFacts, base: SessionSummary, limits: Limits, *, same: bool
) -> AgentState:
    """The state with what was read: everything but the environment. base: what the facts were seeded with; same: the
    transcript is the one that `before` came from last."""
    told = _clean(facts.summary(grown.gone))
    told = replace(told, files=once_each(told.files, grown.transcript.cwd or before.environment.cwd))
    since = grown.position.compactions - (before.transcript.compactions if same else 0)
    window = max(1, before.window_id) + max(0, since) + int(not same and before.transcript.path != "")
    asked = facts.first_prompt(grown.gone)
    began = before.transcript.window if same else window - max(0, since)
    rewound = grown.why == "rewound" and grown.whole
    # what only an earlier window had on its list is not called off by a list that leaves it out
    seen = {(s.agent, folded(s.text)): s.window for s in before.subtasks}
    now = same and all(seen.get((todo.agent, folded(todo.text))) == before.window_id for todo in base.todos)
    plan = facts.plan(grown.gone, base.todos, told_now=now, clean=_said)
    plan = replace(plan, items=tuple(replace(p, todo=replace(p.todo, text=_said(p.todo.text))) for p in plan.items))
    subtasks, next_id = merged(
        before.subtasks,
        plan,
        window=window,
        next_id=before.next_id,
        same=same,
        began=began if rewound else None,
        closed=before.closed_by_hand,
    )
    state = replace(
        told_to(before, told),
        window_id=window,
        inherited=before.inherited if same else known(before, same=False),
        todos=told.todos,
        open_issues=_open(before, told),
        next_steps=_ahead(told.next_steps, subtasks),
        newest_request=_asked(facts.asked(grown.gone), told.goal) or ("" if rewound else before.newest_request),
        compaction_summary="\n".join(told.earlier),
        tail=tail(before.tail if same and not grown.whole else (), _unseen(grown), limits, on=not grown.why),
        transcript=replace(
            grown.position,
            carry=facts.carry(grown.gone),
            window=began,
            first=(before.transcript.first if same else "") or (digest(asked) if asked else ""),
        ),
        seen=before.seen if same else _seen(before, grown.position.path),
        next_id=next_id,
        environment=replace(before.environment, files=as_state(told.files)),
    )
    return with_current(arranged(state, subtasks), before, grown, told)


def _asked(text: str, goal: str) -> str:
    """The newest prompt, without credentials and up to a limit. A file that is read anew tells the goal once more."""
    clean = sanitized(text, tool_output=False).strip()
    if folded(clean) == folded(goal):
        return ""
    return clean if len(clean) <= REQUEST else shortened(clean, REQUEST) + "…"


def told_to(state: AgentState, told: SessionSummary) -> AgentState:
    """The state with the facts of a summary that has its own in it already. What was set by hand stays."""
    goal = state.task_goal if "goal" in state.set_by_hand and state.task_goal else told.goal
    return replace(
        state,
        task_goal=goal,
        success_criteria=_standing(state, told.success_criteria)[-MOST["success_criteria"] :],
        constraints=_standing(state, told.constraints)[-MOST["constraints"] :],
        requests=told.requests[-MOST["requests"] :],
        decisions=told.decisions[-MOST["decisions"] :],
        tests=told.tests[-MOST["tests"] :],
        commits=told.commits[-MOST["commits"] :],
        dead_ends=told.dead_ends[-MOST["dead_ends"] :],
        errors=told.errors,
        learnings=_standing(state, told.learnings)[-MOST["learnings"] :],
        artifacts=told.artifacts[-MOST["artifacts"] :],
    )


def noted(state: AgentState, notes: SessionSummary) -> AgentState:
    """The state with the facts of notes: a plan or something done is a subtask like one added by hand."""
    told = _clean(merge(known(state, same=True), notes))
    subtasks = list(state.subtasks)
    next_id = state.next_id
    for todo in notes.todos:
        text = folded(_said(todo.text))
        at = next((n for n, s in enumerate(subtasks) if folded(s.text) == text and s.agent == todo.agent), None)
        if at is None and text not in state.closed_by_hand:
            subtasks.append(Subtask(f"s{next_id}", text, todo.status, todo.agent, "note", window=state.window_id))
            next_id += 1
        elif at is not None and todo.status == "done" and subtasks[at].status != "done":
            was = subtasks[at]
            if was.evidence != BY_HAND:  # what a hand set after the note was written holds
                over = was.status if was.by == "transcript" else None
                subtasks[at] = replace(was, status="done", over=over, evidence="noted as done")
    state = replace(
        told_to(state, told),
        open_issues=_open(state, told),
        inherited=merge(state.inherited, replace(_clean(notes), todos=())),
        next_id=next_id,
    )
    return arranged(state, subtasks)


def with_current(state: AgentState, before: AgentState, grown: Grown, told: SessionSummary) -> AgentState:
    """The state whose current step says why it is not done: a call without its result, an interruption. Where no list
    says what is in work, an unfinished request does."""
    if not grown.tail:  # nothing new was said
        was = before.current_subtask
        return replace(state, current_subtask=was) if was is not None and was.id == NOW else state
    evidence = interrupted(grown)
    current = state.current_subtask
    if current is not None:
        if current.by == "transcript" and current.over is None:
            return replace(state, current_subtask=replace(current, evidence=evidence))
        return state
    if not evidence or any(s.agent == "main" for s in state.remaining_subtasks):
        return state
    line = request(state.newest_request or told.goal)
    if not line:
        return state
    return replace(state, current_subtask=Subtask(NOW, line, "doing", window=state.window_id, evidence=evidence))


SUBMITTED = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""What mini-swe-agent prints when its work is done."""
STOPPED = "[Request interrupted by user"


def interrupted(grown: Grown) -> str:
    """What shows that the newest turn was not finished, empty when it was."""
    if grown.pending:
        calls = [f"{block.tool_name or 'call'} {block.target or ''}".strip() for block in grown.pending]
        return sanitized("no result yet of: " + "; ".join(folded(shortened(call, 120)) for call in calls[:3]))
    said = [b for b in grown.tail if b.kind not in ("thinking", "memory_injection", "system")]
    if not said or any(sign in b.text for b in said[-2:] for sign in SUBMITTED):
        return ""
    last = said[-1]
    if last.kind == "user_message" and last.text.startswith(STOPPED):
        return "the user interrupted it"
    if last.kind == "tool_result":
        return f"the result of {last.tool_name or 'a tool'} has not been answered"
    if last.kind in ("user_message", "image", "document"):
        return "not answered yet"
    return ""


def _unseen(grown: Grown) -> Sequence[Block]:
    """The newest blocks that the state does not have yet; after a rewind all of them, since it may have others."""
    return grown.tail if grown.why else grown.tail[grown.again :]


def tail(
    before: Sequence[TailBlock], new: Sequence[Block], limits: Limits, *, on: bool = False
) -> tuple[TailBlock, ...]:
    """The newest turns as they are, without credentials: at most so many characters, of which no block takes more than
    half. on: the new blocks follow those before, be it within a turn; otherwise they replace what was of their turns.
    """
    if not limits.turns:
        return ()
    blocks = [
        TailBlock(b.turn, b.kind, b.role, b.text, b.tool_name, b.target)
        for b in new
        if b.kind not in ("thinking", "system", "tool_definitions", "memory_injection", "summary") and b.text.strip()
    ]
    first = min((b.turn for b in blocks), default=0)
    blocks = [b for b in before if on or not blocks or b.turn < first] + blocks
    answers = sorted({b.turn for b in blocks})[-limits.turns :]
    blocks = [b for b in blocks if answers and b.turn >= answers[0]]
    found: list[TailBlock] = []
    room = limits.characters
    for block in reversed(blocks):
        text = sanitized(block.text, tool_output=block.kind not in ANSWER_KINDS and block.kind != "user_message")
        target = sanitized(block.target) if block.target is not None else None
        most = max(0, min(room, limits.characters // 2))
        if len(text.removesuffix("…")) > most:
            text = shortened(text.removesuffix("…"), most) + "…" if most else ""
        if not text:
            break
        room -= len(text)
        found.append(replace(block, text=text, target=target))
    return tuple(reversed(found))


def _ahead(steps: Sequence[str], subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    """The next steps that are not done: what was one may have been finished since."""
    done = {folded(s.text) for s in subtasks if s.status == "done"}
    return tuple(step for step in steps if folded(step) not in done)


def _said(text: str) -> str:
    """What a person or an agent said, without credentials."""
    return sanitized(text, tool_output=False)


def _standing(state: AgentState, texts: Sequence[str]) -> tuple[str, ...]:
    """Those that were not closed by hand."""
    return tuple(text for text in texts if folded(text) not in state.closed_by_hand)


def _seen(before: AgentState, now: str) -> dict[str, str]:
    """The transcripts of earlier windows, the newest ones. now: path of the one that was read."""
    position = before.transcript
    found = {path: when for path, when in before.seen.items() if path != position.path}
    if position.path and position.newest:
        found[position.path] = position.newest
    found.pop(now, None)
    return dict(list(found.items())[-SEEN:])


def kept(before: AgentState, state: AgentState) -> AgentState:
    """The state of a transcript that was read anew, with what the one before held and it does not tell: a hand may have
    written that into the file."""

    def both(name: str, key: Callable[[Any], object]) -> tuple[Any, ...]:
        new = getattr(state, name)
        known_ = {key(item) for item in new}
        return (*(item for item in getattr(before, name) if key(item) not in known_), *new)[-MOST[name] :]

    texts = ("success_criteria", "constraints", "requests", "learnings", "dead_ends", "artifacts")
    changes: dict[str, Any] = {name: both(name, folded) for name in texts}
    changes["decisions"] = both("decisions", lambda fact: folded(fact.what))
    changes["tests"] = both("tests", lambda run: run.command)
    changes["commits"] = both("commits", lambda commit: commit.id or folded(commit.message))
    paths = {file.path for file in state.environment.files}
    files = (*(file for file in before.environment.files if file.path not in paths), *state.environment.files)
    return replace(
        state,
        **changes,
        compaction_summary=state.compaction_summary or before.compaction_summary,
        environment=replace(state.environment, files=files),
    )


def _open(state: AgentState, told: SessionSummary) -> tuple[str, ...]:
    """The issues that are open: one that was closed by hand stays closed."""
    found = [issue for issue in told.open_issues if folded(issue) not in state.closed_by_hand]
    return tuple(found[-MOST["open_issues"] :])


def _clean(told: SessionSummary) -> SessionSummary:
    """A summary without credentials; what is the same afterwards stands once."""
    out = sanitized

    def one(text: str) -> str:
        return sanitized(text, tool_output=False)

    return replace(
        told,
        goal=one(told.goal),
        success_criteria=_once([one(text) for text in told.success_criteria]),
        constraints=_once([one(text) for text in told.constraints]),
        requests=_once([one(text) for text in told.requests]),
        decisions=_once([replace(d, what=one(d.what), why=one(d.why)) for d in told.decisions]),
        todos=tuple(replace(todo, text=one(todo.text)) for todo in told.todos),
        tests=_once([replace(run, command=one(run.command), detail=out(run.detail)) for run in told.tests]),
        commits=_once([replace(commit, message=one(commit.message)) for commit in told.commits]),
        open_issues=_once([one(text) for text in told.open_issues]),
        dead_ends=_once([one(text) for text in told.dead_ends]),
        errors=_once([out(text) for text in told.errors]),
        learnings=_once([one(text) for text in told.learnings]),
        next_steps=_once([one(text) for text in told.next_steps]),
        artifacts=_once([one(text) for text in told.artifacts]),
        earlier=tuple(one(text) for text in told.earlier),
    )


def _once(items: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def once_each(files: Sequence[FileFact], cwd: str | None) -> tuple[FileFact, ...]:
    """Files of which one may stand under its relative and its absolute path, each once, under the first. cwd: where
    relative paths start."""
    if not cwd or not posixpath.isabs(cwd):
        return tuple(files)
    found: dict[str, FileFact] = {}
    for fact in files:
        where = posixpath.normpath(posixpath.join(cwd, fact.path))
        known = found.get(where)
        if known is None:
            found[where] = fact
            continue
        newest = fact if fact.role == "modified" or known.role == "read" else known
        told = [f for f in (known, fact) if f.role == newest.role]
        actions = tuple(dict.fromkeys(action for f in told for action in f.actions))
        found[where] = replace(newest, path=known.path, actions=actions)
    return tuple(found.values())


def as_state(facts: Sequence[FileFact]) -> tuple[FileState, ...]:
    """Files that were not looked at on disk."""
    return tuple(FileState(f.path, f.role, f.actions, written=f.hash) for f in facts)

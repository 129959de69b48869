"""Changes that a user makes to a state on the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ctxctl.errors import UsageError
from ctxctl.facts.prose import decision
from ctxctl.facts.summary import merge
from ctxctl.facts.todos import folded
from ctxctl.model.state import AgentState, Service
from ctxctl.model.summary import SessionSummary
from ctxctl.registry import closest
from ctxctl.state.checkpoint import known
from ctxctl.state.files import sanitized
from ctxctl.state.subtasks import added, arranged, marked, position

KEYS = ("goal", "current", "criterion", "constraint", "decision", "issue", "learning", "summary", "cwd")
"""What `--set KEY=VALUE` takes. Lists grow by the value; the others are replaced by it."""
LISTS = {
    "criterion": "success_criteria",
    "constraint": "constraints",
    "issue": "open_issues",
    "learning": "learnings",
}
CLOSED = 200
"""Texts closed by hand that are remembered."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """sets: pairs of a key and a value. done, doing, planned, drop: subtasks by id or text. todos: planned ones to add.
    close: open issues that are settled, by number (from 1), and what else no longer holds, by text. services: what
    must run."""

    sets: tuple[tuple[str, str], ...] = ()
    done: tuple[str, ...] = ()
    doing: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()

    def __bool__(self) -> bool:
        return any((self.sets, self.done, self.doing, self.planned, self.drop, self.todos, self.close, self.services))


def pair_of(text: str) -> tuple[str, str]:
    """KEY=VALUE of the command line. Raises UsageError for a key that there is not."""
    key, equals, value = text.partition("=")
    key = key.strip().lower().removeprefix("task_")
    if not equals:
        raise UsageError(f"--set {text!r} has no `=`", hint=f"--set KEY=VALUE, with KEY one of {', '.join(KEYS)}")
    if key not in KEYS:
        near = closest(key, list(KEYS))
        raise UsageError(
            f"--set: unknown key {key!r}", hint=f"did you mean {near!r}?" if near else f"known: {', '.join(KEYS)}"
        )
    if not value.strip():
        raise UsageError(f"--set {key}: the value is empty")
    return key, value.strip()


def service_of(text: str) -> Service:
    """NAME=PORT or NAME=COMMAND of the command line."""
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        raise UsageError(f"--service {text!r} is not NAME=PORT or NAME=COMMAND", hint="such as --service web=8080")
    port = value.removeprefix("tcp:")
    if port.isascii() and port.isdigit():
        if not 1 <= int(port) <= 65535:
            raise UsageError(f"--service {name}: {port} is no TCP port (1 to 65535)")
        return Service(name, port=int(port))
    command = value.removeprefix("cmd:")
    if sanitized(command) != command:
        raise UsageError(
            f"--service {name}: a credential stands in the command", hint="let the command read it from the environment"
        )
    return Service(name, command=command)


def changed(state: AgentState, by_hand: ByHand) -> AgentState:
    """The state with the changes. Raises UsageError for a subtask or an issue that there is not, and for changes that
    say nothing or contradict each other."""
    if any(not text.strip() for text in by_hand.todos):
        raise UsageError("--add-todo: the text is empty")
    marks = [
        name for names in (by_hand.done, by_hand.doing, by_hand.planned, by_hand.drop) for name in dict.fromkeys(names)
    ]
    for name in marks:
        if marks.count(name) > 1:
            raise UsageError(f"{name!r} can't be two things at once", hint="one of --done, --doing, --planned, --drop")
    texts = [sanitized(text, tool_output=False) for text in by_hand.todos]
    subtasks, next_id = added(state.subtasks, texts, state.window_id, state.next_id)
    for key, value in by_hand.sets:
        if key == "current":
            subtasks, next_id = added(subtasks, [sanitized(value, tool_output=False)], state.window_id, next_id)
            subtasks = marked(subtasks, sanitized(value, tool_output=False), "doing", state.window_id)
    closed = list(state.closed_by_hand)
    for name in by_hand.drop:
        closed.append(folded(subtasks.pop(position(subtasks, name)).text))
    for names, status in ((by_hand.planned, "planned"), (by_hand.doing, "doing"), (by_hand.done, "done")):
        for name in names:
            subtasks = marked(subtasks, name, status, state.window_id)  # type: ignore[arg-type]
    state = arranged(replace(state, next_id=next_id), subtasks)
    for key, value in by_hand.sets:
        state = _set(state, key, sanitized(value, tool_output=False))
    for name in by_hand.close:
        state, text = _close(state, name)
        closed.append(text)
    state = replace(state, closed_by_hand=tuple(dict.fromkeys(closed))[-CLOSED:])
    if by_hand.services:
        services = {service.name: service for service in (*state.environment.services, *by_hand.services)}
        state = replace(state, environment=replace(state.environment, services=tuple(services.values())))
    return state


def _set(state: AgentState, key: str, value: str) -> AgentState:
    if key in ("goal", "cwd"):
        state = replace(state, set_by_hand=tuple(dict.fromkeys((*state.set_by_hand, key))))
    if key == "goal":
        return replace(state, task_goal=value)
    if key == "summary":
        return replace(state, compaction_summary=value)
    if key == "cwd":
        return replace(state, environment=replace(state.environment, cwd=value))
    if key == "decision":
        return _added(state, SessionSummary(decisions=(decision(value, least=1),)))
    if key in LISTS:
        return _added(state, SessionSummary(**{LISTS[key]: (value,)}))  # type: ignore[arg-type]
    return state


def _added(state: AgentState, facts: SessionSummary) -> AgentState:
    """The state with facts that no transcript tells."""
    told = merge(known(state, same=True), facts)
    return replace(
        state,
        success_criteria=told.success_criteria,
        constraints=told.constraints,
        decisions=told.decisions,
        open_issues=told.open_issues,
        learnings=told.learnings,
        inherited=merge(state.inherited, facts),
    )


def _close(state: AgentState, name: str) -> tuple[AgentState, str]:
    """The state without an issue, constraint, criterion, learning or service, and the text of it. name: the text, a
    service's name, or the number of an open issue."""
    if name.isascii() and name.isdigit() and 1 <= int(name) <= len(state.open_issues):
        name = state.open_issues[int(name) - 1]
    wanted = folded(name).casefold()
    for key in LISTS.values():
        texts = getattr(state, key)
        found = [text for text in texts if folded(text).casefold() == wanted]
        if found:
            kept: dict[str, Any] = {key: tuple(text for text in texts if text not in found)}
            told: dict[str, Any] = {key: tuple(t for t in getattr(state.inherited, key) if t not in found)}
            return replace(state, **kept, inherited=replace(state.inherited, **told)), folded(found[0])
    services = [service for service in state.environment.services if service.name.casefold() != wanted]
    if len(services) < len(state.environment.services):
        return replace(state, environment=replace(state.environment, services=tuple(services))), folded(name)
    known = [text for key in LISTS.values() for text in getattr(state, key)]
    near = closest(name, known)
    issues = len(state.open_issues)
    hint = f"open issues are 1 to {issues}; all else by its text" if known else "nothing of the kind is open"
    raise UsageError(f"nothing to close: {name!r}", hint=f"did you mean {near!r}?" if near else hint)

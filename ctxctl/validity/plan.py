"""What to do about the messages of one conversation: decided on the view, carried out on the messages themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ctxctl.formats.base import Json
from ctxctl.formats.call_ids import FreshIds
from ctxctl.model.text import NO_RESULT
from ctxctl.validity.content import bare_thinking, is_blank, unsigned
from ctxctl.validity.findings import Repair
from ctxctl.validity.pairing import At, Call, Pairing, pair
from ctxctl.validity.parts import RESULT, SELF, Place, block_at, renamed, with_results, without, without_blanks
from ctxctl.validity.view import View

BEGINNING = "[the beginning of this conversation is missing]"

Source = int | Call
"""Where a result comes from: the index of the message that moves, or the call that gets one in its stead."""


@dataclass(slots=True)
class Plan:
    """Changes by index of the message. gone: parts that leave. names: new ids. hollow: results that lose blank texts.
    puts: results that move into a user's message, and calls that get one there. after: results that follow as messages
    of their own. opening: index of the message in front of which the user speaks, None when they do anyway."""

    gone: dict[int, set[Place]] = field(default_factory=dict)
    names: dict[int, list[tuple[Place, str]]] = field(default_factory=dict)
    hollow: dict[int, list[Place]] = field(default_factory=dict)
    puts: dict[int, list[At | Call]] = field(default_factory=dict)
    after: dict[int, list[Source]] = field(default_factory=dict)
    opening: int | None = None
    repairs: list[Repair] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.repairs)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a conversation. edited: new messages by index, None for one that leaves; after: what follows a
    message, new ones or the index of one that moved there; opening: a message in front of that index."""

    edited: dict[int, dict[str, Json] | None]
    after: dict[int, list[dict[str, Json] | int]]
    opening: int | None


def plan_for(view: View) -> Plan:
    """The repairs of one conversation."""
    return _Planner(view).go()


class _Planner:
    def __init__(self, view: View) -> None:
        self.view = view
        self.messages = view.messages
        self.plan = Plan()
        self.fresh = FreshIds(p.id for m in view.messages for p in m.parts if p.id is not None)

    def go(self) -> Plan:
        found = pair(self.view)
        for at in found.orphans:
            self._drop(at, "orphan_result", "the result was taken out: its call is missing")
        for at, _ in found.extra:
            self._drop(at, "duplicate_result", "the second result of a call was taken out")
        twice = self._written_twice(found)
        kept: set[str | None] = set()
        for call in found.calls:
            if id(call) in twice:
                for at in call.places:
                    self.plan.gone.setdefault(at[0], set()).add(at[1].place)
                self._tell(call.at, "duplicate_call_id", "the call was taken out: it was written twice", call.id)
                continue
            if call.id in kept:
                self._rename(call)
            kept.add(call.id)
        for call in found.calls:
            if call.answer is not None and call.late:
                self._move(call, call.answer)
        for call in found.unanswered():
            if id(call) not in twice:
                self._answer(call)
        self._content(found)
        first = next((i for i, m in enumerate(self.messages) if m.role != "system"), None)
        if first is None or self.messages[first].role == "user" or self.messages[first].fixed:
            return self.plan
        if self.view.rules.begins == "error" and not self.plan:  # after everything else: the first message may go
            self.plan.opening = first
            self._tell(first, "first_not_user", "a message of the user was put in front")
        return self.plan

    def _written_twice(self, found: Pairing) -> set[int]:
        """Calls without a result that stand beside one of the same id that has it, with answers alone between them:
        the agent wrote one call twice."""
        by_id: dict[str | None, list[Call]] = {}
        for call in found.calls:
            by_id.setdefault(call.id, []).append(call)
        twice = set()
        for calls in by_id.values():
            for one, two in pairwise(calls):
                between = self.messages[one.at : two.at + 1]
                if (one.answer is None) != (two.answer is None) and all(m.role == "assistant" for m in between):
                    lost = one if one.answer is None else two
                    if not self.messages[lost.at].fixed:
                        twice.add(id(lost))
        return twice

    def _tell(self, index: int, code: str, action: str, id_: str | None = None) -> None:
        message = self.messages[index]
        self.plan.repairs.append(Repair(code, message.line, action, id_ or message.uuid, message.number))

    def _drop(self, at: At, code: str, action: str) -> None:
        index, part = at
        if not self.messages[index].fixed:
            self.plan.gone.setdefault(index, set()).add(part.place)
            self._tell(index, code, action, part.id)

    def _rename(self, call: Call) -> None:
        places = [*call.places, *([call.answer] if call.answer is not None else [])]
        if any(self.messages[index].fixed for index, _ in places):
            return
        new = self.fresh.of(call.id or "")
        for index, part in places:
            self.plan.names.setdefault(index, []).append((part.place, new))
        self._tell(call.at, "duplicate_call_id", f"the second call and its result were renamed to {new}", call.id)

    def _target(self, call: Call) -> int | None:
        """The user's message that has to hold the results of a call; None when there is none."""
        index = call.places[-1][0] + 1
        while index < len(self.messages) and self.messages[index].role == "assistant":
            index += 1
        found = index < len(self.messages) and self.messages[index].role == "user" and not self.messages[index].fixed
        return index if found else None

    def _behind(self, call: Call) -> int:
        """The message behind which a result of a call follows: the call's, or the last result that stands there."""
        index = call.at
        while index + 1 < len(self.messages) and self.messages[index + 1].role == "tool":
            index += 1
        return index

    def _move(self, call: Call, at: At) -> None:
        index, part = at
        if self.messages[index].fixed:
            return
        if part.place == SELF:
            self.plan.after.setdefault(self._behind(call), []).append(index)
        else:
            target = self._target(call)
            if target is None:  # it stands in front of the newest call, which may still get its own
                self._drop(at, "result_not_adjacent", "the result was taken out: it stood before its call")
                return
            self.plan.puts.setdefault(target, []).append(at)
            if index != target:
                self.plan.gone.setdefault(index, set()).add(part.place)
        where = self.messages[call.at]
        name = f"line {where.line}" if where.number is None else f"message {where.number}"
        self._tell(index, "result_not_adjacent", f"the result was moved behind its call on {name}", call.id)

    def _answer(self, call: Call) -> None:
        index, part = call.places[0]
        if self.messages[index].fixed:
            return
        if part.place[0] in ("", "tool_calls", "output"):
            self.plan.after.setdefault(self._behind(call), []).append(call)
        elif (target := self._target(call)) is not None:
            self.plan.puts.setdefault(target, []).append(call)
        else:
            for at in call.places:
                self.plan.gone.setdefault(at[0], set()).add(at[1].place)
            self._tell(index, "orphan_call", "the call was taken out: it has no result", call.id)
            return
        self._tell(index, "orphan_call", "the call got an error result that says that none was recorded", call.id)

    def _content(self, found: Pairing) -> None:
        lacking = unsigned(self.view)
        bare = set(bare_thinking(self.view))
        for i, message in enumerate(self.messages):
            if message.fixed:
                continue
            for k, part in enumerate(message.parts):
                if is_blank(message, part, self.view):
                    if part.kind == RESULT:
                        self.plan.hollow.setdefault(i, []).append(part.place)
                        self._tell(i, "blank_text", "a blank text within a result was taken out", part.id)
                    else:
                        self._drop((i, part), "blank_text", "a blank text was taken out")
                elif (i, k) in lacking:
                    self._drop((i, part), "unsigned_thinking", "thinking without its signature was taken out")
                elif i in bare:
                    self._drop((i, part), "thinking_only", "an answer that was nothing but thinking was taken out")
            if not message.parts and message.role != "system":
                self.plan.gone.setdefault(i, set()).add(SELF)
                self._tell(i, "empty_message", "a message without content was taken out")


def carry_out(plan: Plan, raw: Callable[[int], dict[str, Json]]) -> Outcome:
    """The messages that a plan changes. raw: gives one as it stands in the file."""
    edited: dict[int, dict[str, Json] | None] = {}

    def now(index: int) -> dict[str, Json]:
        found = edited.get(index)
        return found if found is not None else raw(index)

    for index, renames in plan.names.items():
        for place, id_ in renames:
            edited[index] = renamed(now(index), place, id_)
    for index, places in plan.hollow.items():
        for place in places:
            edited[index] = without_blanks(now(index), place)
    new_ids = {(index, place): id_ for index, renames in plan.names.items() for place, id_ in renames}

    def id_of(call: Call) -> str:
        index, part = call.places[0]
        return new_ids.get((index, part.place), part.id or "")

    puts: dict[int, list[Json]] = {}
    moved: dict[int, set[Place]] = {}
    for index, sources in plan.puts.items():
        for source in sources:
            if isinstance(source, Call):
                block: Any = {
                    "type": "tool_result",
                    "tool_use_id": id_of(source),
                    "content": NO_RESULT,
                    "is_error": True,
                }
            else:
                block = block_at(now(source[0]), source[1].place)
                if source[0] == index:
                    moved.setdefault(index, set()).add(source[1].place)
            puts.setdefault(index, []).append(block)
    after: dict[int, list[dict[str, Json] | int]] = {}
    for index, follow in plan.after.items():
        for item in follow:
            made = item if isinstance(item, int) else _result_for(now(item.at), item, id_of(item))
            after.setdefault(index, []).append(made)
    for index in sorted(plan.gone.keys() | puts.keys()):
        leaving = plan.gone.get(index, set()) | moved.get(index, set())
        message: dict[str, Json] | None = now(index)
        if leaving:
            message = without(now(index), leaving)
        if index in puts:
            message = with_results(message if message is not None else {**now(index), "content": []}, puts[index])
        edited[index] = message
    return Outcome(edited, after, plan.opening)


def _result_for(message: dict[str, Json], call: Call, id_: str) -> dict[str, Json]:
    """A result that says that there is none, in the shape of the call."""
    field, index = call.places[0][1].place
    if field == "tool_calls":
        return {"role": "tool", "tool_call_id": id_, "content": NO_RESULT}
    item = message if field == "" else message["output"][index]
    kind = "custom_tool_call_output" if item.get("type") == "custom_tool_call" else "function_call_output"
    return {"type": kind, "call_id": id_, "output": NO_RESULT}

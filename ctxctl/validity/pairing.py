"""Which result answers which call, and where that goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxctl.validity.findings import Counts, Finding, Report
from ctxctl.validity.parts import CALL, OTHER, RESULT, Part
from ctxctl.validity.view import Message, View

At = tuple[int, Part]
"""A part, and the index of its message in the conversation."""


@dataclass(slots=True)
class Call:
    """One call. places: it may stand several times in one response. answer: its result; late: that does not stand right
    behind it. first: the call that had its id before. pending: nothing came after it yet."""

    places: list[At]
    answer: At | None = None
    late: bool = False
    first: Call | None = None
    pending: bool = False

    @property
    def at(self) -> int:
        """Index of its message."""
        return self.places[0][0]

    @property
    def id(self) -> str | None:
        """As the model gave it."""
        return self.places[0][1].id


@dataclass(slots=True)
class Turn:
    """Neighbouring answers, and what came in behind them. closed: something else than results did."""

    response: str | None
    calls: dict[str, Call] = field(default_factory=dict)
    closed: bool = False
    answered: bool = False


@dataclass(slots=True)
class Pairing:
    """calls: all, in order. orphans: results without a call. extra: further results of answered calls."""

    calls: list[Call] = field(default_factory=list)
    orphans: list[At] = field(default_factory=list)
    extra: list[tuple[At, Call]] = field(default_factory=list)
    nameless: list[At] = field(default_factory=list)

    def unanswered(self) -> list[Call]:
        """Calls that should have a result by now."""
        return [call for call in self.calls if call.answer is None and not call.pending]


def pair(view: View) -> Pairing:
    """Walk a conversation once, each result going to the newest call of its id that has none."""
    return _Walk(view).go()


class _Walk:
    def __init__(self, view: View) -> None:
        self.rules = view.rules
        self.messages = view.messages
        self.found = Pairing()
        self.by_id: dict[str, list[Call]] = {}
        self.waiting: dict[str, list[Call]] = {}
        self.turn: Turn | None = None

    def go(self) -> Pairing:
        for index, message in enumerate(self.messages):
            if message.role == "assistant":
                self._answer(index, message)
            else:
                self._input(index, message)
        if self.turn is not None and not self.turn.closed:
            for call in self.turn.calls.values():
                call.pending = call.answer is None
        self._early()
        return self.found

    def _answer(self, index: int, message: Message) -> None:
        turn = self.turn
        same = turn is not None and message.response is not None and turn.response == message.response
        neighbour = turn is not None and self.rules.merged and not turn.answered and not turn.closed
        if turn is None or not (same or neighbour):
            turn = self.turn = Turn(message.response)
        turn.response = message.response
        for part in message.parts:
            if part.kind != CALL or part.id is None:
                continue
            known = self.by_id.setdefault(part.id, [])
            if known and message.response is not None and self._repeats(known[-1], message):
                known[-1].places.append((index, part))
                continue
            call = Call([(index, part)], first=known[0] if known else None)
            known.append(call)
            self.waiting.setdefault(part.id, []).append(call)
            turn.calls[part.id] = call
            self.found.calls.append(call)

    def _repeats(self, call: Call, message: Message) -> bool:
        """Whether a response shows a call again that stands on an earlier line of it."""
        earlier = self.messages[call.places[-1][0]]
        return earlier.response == message.response and earlier is not message

    def _input(self, index: int, message: Message) -> None:
        turn = self.turn
        behind_text = False
        for part in message.parts:
            if part.kind == RESULT:
                self._result((index, part), turn, behind_text)
            else:
                behind_text = behind_text or part.kind != OTHER or message.role != "tool"
        if turn is not None and (behind_text or not message.parts):
            turn.closed = True

    def _result(self, at: At, turn: Turn | None, behind_text: bool) -> None:
        id_ = at[1].id
        if id_ is None:
            (self.found.orphans if self.rules.signatures else self.found.nameless).append(at)
            return
        call = turn.calls.get(id_) if turn is not None else None
        late = turn is not None and (turn.closed or behind_text)
        if call is None or call.answer is not None:
            waiting = self._waiting(id_)
            if waiting is not None:
                call, late = waiting, True
            elif call is None and id_ in self.by_id:
                call = self.by_id[id_][-1]
        if call is None:
            self.found.orphans.append(at)
        elif call.answer is None:
            call.answer, call.late = at, late
            if turn is not None and not late:
                turn.answered = True
        elif call.answer[1].error and not at[1].error:
            # what a repair or an interruption put in place of a result that came later after all
            self.found.extra.append((call.answer, call))
            call.answer, call.late = at, late or turn is None or turn.calls.get(id_) is not call
        else:
            self.found.extra.append((at, call))

    def _waiting(self, id_: str | None) -> Call | None:
        """The newest call of an id that has no result; answered ones are struck off as they come up."""
        calls = self.waiting.get(id_ or "", [])
        while calls and calls[-1].answer is not None:
            calls.pop()
        return calls[-1] if calls else None

    def _early(self) -> None:
        """Results in front of their calls."""
        left = []
        for at in self.found.orphans:
            call = self._waiting(at[1].id)
            if call is None:
                left.append(at)
            else:
                call.answer, call.late, call.pending = at, True, False
        self.found.orphans = left


def judge_pairs(view: View, found: Pairing, report: Report, counts: Counts) -> None:
    """Name what is wrong with the pairs of a conversation."""
    messages = view.messages

    def tell(code: str, level: str, at: At, text: str, other: int | None = None) -> None:
        m = messages[at[0]]
        where = messages[other] if other is not None else None
        beside = None if where is None else where.line if m.number is None else where.number
        fixable = not m.fixed and code not in ("pending_call", "missing_id")
        report(Finding(code, level, m.line, text, at[1].id, m.number, beside, fixable))  # type: ignore[arg-type]

    for call in found.calls:
        at = call.places[0]
        if call.first is not None:
            counts.duplicates += 1
            text = f"a second call with the id of {_where(messages[call.first.at])}"
            tell("duplicate_call_id", "error", at, text, call.first.at)
        if call.answer is None and call.pending:
            counts.pending_calls += 1
            tell("pending_call", "info", at, "the newest call waits for its result")
        elif call.answer is None:
            counts.orphan_calls += 1
            tell("orphan_call", "error", at, "no result for this call, and the conversation went on")
        elif call.late:
            text = f"the result does not stand right behind its call on {_where(messages[call.at])}"
            tell("result_not_adjacent", view.rules.late, call.answer, text, call.at)
    for at in found.orphans:
        counts.orphan_results += 1
        tell("orphan_result", "error", at, "a result of a call that is not in the conversation")
    for at, call in found.extra:
        counts.duplicates += 1
        assert call.answer is not None
        tell("duplicate_result", "error", at, "a second result for one call", call.answer[0])
    for at in found.nameless:
        if messages[at[0]].role == "tool" and not view.rules.merged:
            tell("missing_id", "warning", at, "a tool message that names no call")


def _where(message: Message) -> str:
    return f"line {message.line}" if message.number is None else f"message {message.number}"

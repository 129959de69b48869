"""The resume prompt: what the next window starts from, most needed first, within a budget (requirement S4).

Its form is fixed, see `ctxctl.facts.resumed`, which also reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from ctxctl.errors import TargetError
from ctxctl.facts import resumed
from ctxctl.model.state import AgentState
from ctxctl.model.text import RESUME, RESUME_END
from ctxctl.state.checks import Check
from ctxctl.state.resume_parts import Draft, drafts, next_step, one_line, transcript_of
from ctxctl.state.validate import StateWarning

Count = Callable[[str], int]

MISSES = 20
"""After so many items in a row that do not fit, the rest of a part is not tried."""
HEADING = 8
"""Tokens that a heading may grow by when it has to tell how many items are left out."""
REFILLS = 3
"""Times that the room which is left is tried to be filled."""
WHOLE = (resumed.FOUND, resumed.ASKED, resumed.ISSUES)
"""Parts that may take all the room there is: the others get half of what is left at first, so that none starves."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt. source: where it comes from. tokens: of the part alone. cut: items that are left out, 0 for
    a part that is whole."""

    name: str
    source: str
    tokens: int
    cut: int


@dataclass(frozen=True, slots=True)
class Resume:
    """A resume prompt. text: ends with the line that closes it. tokens: of the text. parts: all that the state has,
    those with no place in the text with 0 tokens. next_step: None where nothing is planned."""

    text: str
    tokens: int
    parts: tuple[Part, ...]
    next_step: str | None


def prompt(
    state: AgentState,
    *,
    count: Count,
    budget: int,
    checks: Iterable[Check] = (),
    stale: Collection[str] = (),
    warnings: Iterable[StateWarning] = (),
    where: str = "",
) -> Resume:
    """The prompt of at most `budget` tokens by `count`.

    Goal, success criteria, constraints and the current step are never cut. Of the others each is cut by whole items,
    and its heading tells how many there are. checks, stale, warnings: what was found to be otherwise than the state
    says. where: the file that holds the whole state, which the prompt names. Raises TargetError with the least budget
    when that is above the one given.
    """
    made = list(drafts(state, checks, stale, warnings))
    head = _head(state, where)
    least = count(_written(head, made, brief=True))
    if least > budget:
        raise _too_small(made, least, budget, count)
    room = budget - count(_written(head, made))
    costs = {id(draft): _Costs(draft, count) for draft in made}
    loose = [draft for draft in made if not draft.fixed]
    for draft in loose:
        if draft.title != resumed.TAIL:
            room -= costs[id(draft)].fill(room if draft.title in WHOLE else room // 2)
    for draft in loose:
        room -= costs[id(draft)].fill(room)
    text = _written(head, made)
    for _ in range(REFILLS):  # what was set aside for the count of parts that are there now
        room = budget - count(text)
        used = 0
        for draft in loose:
            used += costs[id(draft)].fill(room - used)
        if not used:
            break
        text = _written(head, made)
    while (over := count(text) - budget) > 0:
        dropped = False
        while over > 0 and (taken := _last(loose)) is not None:
            over -= costs[id(taken)].drop()
            dropped = True
        text = _written(head, made, brief=not dropped)
        if not dropped:
            break
    parts = tuple(Part(d.title, d.source, count(d.text()), 0 if d.fixed else d.missing) for d in made)
    return Resume(text, count(text), parts, next_step(state) or None)


def _head(state: AgentState, where: str) -> str:
    saved = f", saved {one_line(state.saved_at)}" if state.saved_at.strip() else ""
    name = transcript_of(state)
    read = f", transcript {name}" if name else ""
    whole = f", all of it in {one_line(where)}" if where else ""
    return (
        f"{RESUME}\n"
        f"Background from window {state.window_id}{read}{saved}, state version {state.state_version}{whole}. "
        "Confirm the next step before acting; if the user asks for something else, that holds.\n"
    )


def _written(head: str, made: Iterable[Draft], *, brief: bool = False) -> str:
    """The prompt as it stands now. brief: one number for all that is left out of parts that are not there."""
    texts = [head]
    absent: list[tuple[str, int]] = []
    for draft in made:
        texts.append(draft.text())
        if not draft.taken:
            absent.append((draft.title.lower(), draft.missing))
    if absent:
        told = ", ".join(f"{title} {missing}" for title, missing in absent)
        texts.append(f"(left out: {sum(missing for _, missing in absent) if brief else told})\n")
    return "".join(texts) + f"{RESUME_END}\n"


def _last(loose: list[Draft]) -> Draft | None:
    return next((draft for draft in reversed(loose) if draft.taken), None)


def _too_small(made: Iterable[Draft], least: int, budget: int, count: Count) -> TargetError:
    sizes = ", ".join(f"{draft.title.lower()} {count(draft.text()):,}" for draft in made if draft.fixed)
    return TargetError(
        f"what is never cut takes {least:,} tokens ({sizes}), and the limit is {budget:,}",
        hint=f"--budget {least} is the least; cross_window.resume_budget in the settings sets it for good",
    )


class _Costs:
    """What the items of a part cost, each counted once, and the choice among them."""

    def __init__(self, draft: Draft, count: Count) -> None:
        self.draft, self.count = draft, count
        self._tokens: dict[str, int] = {}
        self._head = 0

    def _of(self, text: str) -> int:
        if text not in self._tokens:
            self._tokens[text] = self.count(text)
        return self._tokens[text]

    def fill(self, room: int) -> int:
        """Take as many items as fit into so many tokens; the tokens used."""
        draft = self.draft
        used = 0
        if not draft.taken:
            self._head = used = self._of(f"## {draft.title} (from: {draft.source})\n") + HEADING
        before = len(draft.taken)
        missed = 0
        for at in draft.order:
            if at in draft.taken:
                continue
            line = draft.lines[at]
            if at in draft.brief and used + self._of(line) > room:
                line = draft.brief[at]
            if used + self._of(line) <= room:
                draft.taken[at] = line
                used += self._of(line)
                missed = 0
            elif (missed := missed + 1) > MISSES:
                break
        return used if len(draft.taken) > before else 0

    def drop(self) -> int:
        """Leave out what matters least of what was taken; the tokens that are free."""
        at = max(self.draft.taken, key=self.draft.order.index)
        freed = self._of(self.draft.taken.pop(at))
        return freed if self.draft.taken else freed + self._head

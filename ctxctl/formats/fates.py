"""What becomes of the blocks of a message, and in which order messages are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from ctxctl.formats.base import Json
from ctxctl.formats.call_ids import new_ids, with_ids
from ctxctl.formats.content import Piece
from ctxctl.formats.draft import Draft
from ctxctl.formats.lines import note
from ctxctl.model.text import MARK, clean

Fate = bool | str
"""Of a block: True stays, False leaves, a text takes its place."""

Item = TypeVar("Item")

LEFT_OUT = f"{MARK} Earlier messages were left out."
"""Said in the user's name where a conversation would begin with an answer, which providers refuse."""


class Fates:
    """The fates of all blocks of a draft's window by where they lie.

    summaries: of the last message that was asked for, the texts that become messages of their own, and whether what the
    message keeps lies in front of them.
    """

    def __init__(self, draft: Draft) -> None:
        outcome = draft.outcome
        live = set(outcome.live)
        self.summaries: list[str] = []
        self.behind = False
        self._fates: dict[tuple[int, int], Fate] = {}
        self._made: dict[tuple[int, int], str] = {}
        self._lines: dict[int, bool] = {}
        for number, block in draft.blocks.items():
            line = block.source.line
            at = (line, block.source.index)
            self._lines.setdefault(line, False)
            change = outcome.changed.get(number)
            fate: Fate = number in live
            if fate and change is not None:
                text = clean(change.text)
                if change.summary:
                    self._made[at] = text
                fate = False if change.summary else text
                if fate == "" and block.kind != "tool_result":
                    fate = False
            if fate is True and not block.text.strip() and block.kind in ("user_message", "assistant", "summary"):
                fate = block.media is not None  # a blank text is refused by providers
            self._fates[at] = fate
            if fate is not True:
                self._lines[line] = True
        self._names = new_ids(draft) if outcome else {}
        self._lines.update((line, True) for line, _ in self._names)

    def touched(self, line: int) -> bool | None:
        """Whether a line must change; None when it holds nothing of the window."""
        return self._lines.get(line)

    def renames(self, line: int, first: int, count: int) -> bool:
        """Whether one of so many blocks of a line from index `first` on gets a new id."""
        return bool(self._names) and any((line, first + i) in self._names for i in range(count))

    def named(self, message: dict[str, Json], line: int, first: int, found: Sequence[Piece]) -> dict[str, Json]:
        """A message whose pieces are those of a line from index `first` on, with new ids where its calls need them;
        itself where none does."""
        if not self.renames(line, first, len(found)):
            return message
        return with_ids(message, found, [self._names.get((line, first + i)) for i in range(len(found))])

    def take(self, line: int, first: int, kinds: Sequence[str]) -> list[Fate]:
        """The fates of a message's blocks: those of a line from index `first` on."""
        if not self._lines.get(line):
            self.summaries, self.behind = [], False
            return [True] * len(kinds)
        fates = [self._fates.get((line, first + i), True) for i in range(len(kinds))]
        made = [i for i in range(len(kinds)) if (line, first + i) in self._made]
        self.summaries = [self._made[line, first + i] for i in made]
        calls = any(fate is not False and kind == "tool_call" for fate, kind in zip(fates, kinds, strict=True))
        self.behind = bool(made) and not calls and any(fate is not False for fate in fates[: made[0]])
        return fates


class Arranger(Generic[Item]):
    """Puts summaries between messages, never between a call and its results, and a user's message in front.

    make: a message of the user's role with a text.
    """

    def __init__(self, draft: Draft, make: Callable[[str], Item]) -> None:
        self._draft = draft
        self._make = make
        self._held: list[str] = []
        self._began: bool | None = None
        self._first: str | None = None

    def add(
        self,
        item: Item | None,
        was: str,
        fates: Fates | None = None,
        *,
        results: bool = False,
    ) -> Iterator[Item]:
        """The next message of the input, None for one that leaves; gives what is to be written now.

        was: its role: `system`, `user`, `assistant`, or anything else. fates: its summaries. results: whether it
        answers the calls of the message in front of it.
        """
        if self._first is None and was != "system":
            self._first = was
        summaries = fates.summaries if fates is not None else []
        behind = fates is not None and fates.behind
        if not behind:
            self._held += summaries
        if item is not None:
            if not results:
                yield from self.flush()
            yield from self._opening(was)
            yield item
        if behind:
            self._held += summaries

    def flush(self) -> Iterator[Item]:
        """The summaries that wait for their place."""
        held, self._held = self._held, []
        for text in held:
            yield from self._opening("user")
            yield self._make(text)

    def _opening(self, role: str) -> Iterator[Item]:
        """V6: providers want the user to speak first, and the input kept to it."""
        if self._began is None and role != "system":
            self._began = True
            if role != "user" and self._first == "user":
                note(self._draft, "first_message", "the user's first message left: a line says so in its place")
                yield self._make(LEFT_OUT)

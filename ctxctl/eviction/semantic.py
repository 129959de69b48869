"""semantic: near duplicates become one, then hybrid (requirement E5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.eviction.hybrid import Hybrid
from ctxctl.facts.condense import SAME, is_placeholder
from ctxctl.model.edits import Drop, Edits, Replace
from ctxctl.model.window import Window
from ctxctl.trace.similarity import NearDuplicates, plain_lines

NEAR = frozenset(("tool_result", "document", "memory_injection", "assistant"))
"""Kinds of which near duplicates merge too: lines that the newer one lacks are put at its end."""
AS_IT_IS = frozenset(("user_message", "thinking", "summary"))
"""Kinds that merge only when one is the same as the other: nothing is added to what a person said, to reasoning or to a
summary. A call goes with its result, and pictures have no text to tell them by."""
CALL_SHARE = 4
"""A call goes with its merged result when it has at most one part in so many of the tokens of that."""


@dataclass(frozen=True, slots=True)
class SemanticParameters:
    """similarity: containment of lines from which on two blocks merge; unset: that of the settings."""

    similarity: Annotated[float, Meta(gt=0, le=1)] | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """A line that was carried over. source: the block that it comes from; plain: as lines are compared."""

    source: int
    line: str
    plain: str


class _Merging:
    """What merging has made of a window so far.

    plain: lines of blocks that were looked at. added: per block that grew, what was carried over; sizes: its tokens.
    gone: block -> the one that it went into. drops, pointers: how they go.
    """

    def __init__(self) -> None:
        self.plain: dict[int, set[str]] = {}
        self.added: dict[int, list[_Part]] = {}
        self.sizes: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.drops: list[Drop] = []
        self.pointers: dict[int, tuple[int, str]] = {}

    def into(self, number: int) -> int:
        """Where the content of a block is now."""
        while number in self.gone:
            number = self.gone[number]
        return number


@POLICIES.register("semantic")
class Semantic(Policy):
    """Near duplicates merge into the newest of them; what that does not free goes by hybrid.

    Complexity: O(lines) per block that comes in, O(pairs) to merge, then as hybrid.
    Strength: what was read or polled again and again stands once, and no line of it is lost.
    Weakness: sees equal lines, not equal meaning; each merge breaks the cached prefix at the older block.
    Fit: polling, and files that are read anew.
    """

    name = "semantic"
    reason = "hybrid"
    Parameters = SemanticParameters

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        told = self.parameters.similarity
        self._hybrid = Hybrid(setting)
        self._near = NearDuplicates(setting.options.similarity if told is None else told)
        self._exact: dict[tuple[str, str], int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._gone: dict[int, int] = {}

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        return self._hybrid.score(window, units)

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        return self._hybrid.parts(window, unit)

    def record(self, window: Window, block: int) -> Replace | None:
        found = window.blocks[block]
        kind, text = found.kind, found.text
        self._gone.pop(block, None)
        if not text or (kind not in NEAR and kind not in AS_IT_IS) or is_placeholder(text):
            return None
        near: list[int] = []
        if kind in NEAR:  # across kinds nothing merges: tool output must not end up in what a person said
            near = [b for b in self._near.add(block, text, window.entries) if window.blocks[b].kind == kind]
            self._pairs += [(older, block) for older in near]
        older = self._exact.get((kind, text), block)
        if older == block or older not in window.entries or window.unit_of[older] not in window.fixed:
            self._exact[kind, text] = block  # a pinned one is there for good
        if older != block and older not in near:
            self._pairs.append((older, block))
        return None

    def merge(self, window: Window, protected: set[int]) -> Edits:
        done = _Merging()
        left: list[tuple[int, int]] = []
        entries = window.entries
        for older, second in self._pairs:
            there = self._now(window, second)
            newer = done.into(there)
            if older not in entries or newer not in entries or there == older:
                continue
            if older in done.gone or newer == older:
                left.append((older, there))  # this is not carried out yet
                continue
            first, last = older, newer
            if window.place(first) > window.place(last):  # it came in again in between
                first, last = last, first
            if not self._merge(window, protected, first, last, done) or first in done.gone or last in done.gone:
                left.append((older, there))
        self._pairs = left
        self._gone.update(done.gone)
        changes = [
            Replace(number, _pointer(window, done.into(number)), tokens, reason)
            for number, (tokens, reason) in done.pointers.items()
        ]
        for number, parts in done.added.items():
            counts = Counter(part.source for part in parts)
            came = ", ".join(f"{window.block(source).id} ({n})" for source, n in counts.items())
            text = window.text(number) + _appended(window, parts)
            changes.append(Replace(number, text, done.sizes[number], f"merged: lines from {came}"))
        return Edits(done.drops, changes, reason="near duplicates merged")

    def _now(self, window: Window, number: int) -> int:
        """Where the content of a block has gone by merges that were carried out; the block itself while it is there."""
        seen: set[int] = set()
        while number in self._gone and number not in seen:
            entry = window.entries.get(number)
            if entry is not None and not (entry.replaced and is_placeholder(entry.text or "")):
                break
            seen.add(number)
            number = self._gone[number]
        return number

    def _merge(self, window: Window, protected: set[int], older: int, newer: int, done: _Merging) -> bool:
        """Merge a pair; False when it may be possible later."""
        home, into = window.unit_of[older], window.unit_of[newer]
        if home in window.fixed and into not in window.fixed and window.text(older) == window.text(newer):
            older, newer, home, into = newer, older, into, home  # the same again as what is pinned
        if home in window.fixed or home == into:
            return True
        if home in protected:
            return False
        missing = _missing(window, older, newer, done)
        if missing is None or (missing and into in window.fixed):
            return True
        kind = window.blocks[older].kind
        if kind in AS_IT_IS and (missing or not _same(window, older, newer)):
            return True
        if missing and into in protected:
            return False
        have = done.added.get(newer, [])
        grown = self.setting.count(_appended(window, [*have, *missing]), kind) if missing else 0
        size = window.entries[newer].tokens + grown if missing else done.sizes.get(newer, 0)
        more = size - done.sizes.get(newer, window.entries[newer].tokens) if missing else 0
        whole = _whole(window, older, newer)
        if not whole and kind == "thinking":  # it is signed: it goes as a whole, once nothing is bound to it
            return len(window.together(home)) == 1
        kept = 0 if whole else self.setting.count(_pointer(window, newer), window.blocks[older].kind)
        freed = window.resident[home] if whole else window.entries[older].tokens
        if freed - kept - more <= 0:
            return True
        done.gone[older] = newer
        done.added.pop(older, None)
        reason = f"merged into {window.block(newer).id}, {len(missing)} lines carried over"
        if whole:
            done.drops.append(Drop(home, tuple(window.present(home)), freed, reason))
        else:
            done.pointers[older] = kept, reason
        if missing:
            done.added[newer] = [*have, *missing]
            done.sizes[newer] = size
            done.plain[newer].update(part.plain for part in missing)
        return True


def _missing(window: Window, older: int, newer: int, done: _Merging) -> list[_Part] | None:
    """The lines of a block that a newer one lacks; None when the text of one is not known."""
    text, other = window.text(older), window.text(newer)
    if not text or not other or is_placeholder(text) or is_placeholder(other):
        return None
    if newer not in done.plain:
        done.plain[newer] = set(plain_lines(other))
    parts = [_Part(older, line, plain) for line, plain in zip(text.split("\n"), plain_lines(text), strict=True)]
    seen = set(done.plain[newer])
    found: list[_Part] = []
    for part in (*parts, *done.added.get(older, ())):
        if part.plain and part.plain not in seen:
            seen.add(part.plain)
            found.append(part)
    return found


def _same(window: Window, older: int, newer: int) -> bool:
    """Whether two blocks are the same, and where people wrote them the messages that they are from: an answer to
    another question, or to a picture, is not."""
    if window.text(older) != window.text(newer):
        return False
    if window.blocks[older].kind != "user_message":
        return True
    one, other = _message(window, older), _message(window, newer)
    return one[0] != other[0] and one[1] == other[1] and not any(media for _, _, media in one[1])


def _message(window: Window, number: int) -> tuple[int, list[tuple[str, str, bool]]]:
    """The first block of the message that holds a block, and what each of its blocks is: kind, text, whether media."""
    blocks = window.blocks
    message, first, last = blocks[number].message, number, number + 1
    while first > 0 and blocks[first - 1].message == message:
        first -= 1
    while last < len(blocks) and blocks[last].message == message:
        last += 1
    media = ("image", "document")
    return first, [(b.kind, b.text, b.kind in media or b.media is not None) for b in blocks[first:last]]


def _whole(window: Window, older: int, newer: int) -> bool:
    """Whether the unit of a merged block leaves, and not just its text: nothing is bound to it, and its call is the
    same as the other's or small."""
    unit = window.unit_of[older]
    if len(window.together(unit)) > 1:
        return False
    rest = [b for b in window.present(unit) if b != older]
    others = {window.blocks[b].text for b in window.present(window.unit_of[newer])}
    size = window.entries[older].tokens
    return all(
        window.blocks[b].kind == "tool_call"
        and (window.blocks[b].text in others or window.entries[b].tokens * CALL_SHARE <= size)
        for b in rest
    )


def _pointer(window: Window, number: int) -> str:
    return f"{SAME}{window.block(number).id}]"


def _appended(window: Window, parts: Sequence[_Part]) -> str:
    """What is put at the end of a block: lines under the id of the block that they come from."""
    rows: list[str] = []
    last: int | None = None
    for part in parts:
        if part.source != last:
            rows.append(f"[from {window.block(part.source).id}]")
            last = part.source
        rows.append(part.line)
    return "".join(f"\n{row}" for row in rows)

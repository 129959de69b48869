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

SHORT_TOO = frozenset(("tool_result", "document", "memory_injection"))
"""Kinds of which exact duplicates merge however short they are."""
LONG_ONLY = frozenset(("user_message", "assistant"))
"""Kinds of which only texts of some lines are compared: `yes` twice answers two questions."""
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

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        return self._hybrid.score(window, units)

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        return self._hybrid.parts(window, unit)

    def record(self, window: Window, block: int) -> Replace | None:
        found = window.blocks[block]
        kind, text = found.kind, found.text
        if not text or (kind not in SHORT_TOO and kind not in LONG_ONLY) or is_placeholder(text):
            return None
        # across kinds nothing merges: tool output must not end up in what a person said
        near = [b for b in self._near.add(block, text, window.entries) if window.blocks[b].kind == kind]
        self._pairs += [(older, block) for older in near]
        if kind in SHORT_TOO:
            older = self._exact.get((kind, text), block)
            self._exact[kind, text] = block
            if older != block and older not in near:
                self._pairs.append((older, block))
        return None

    def merge(self, window: Window, protected: set[int]) -> Edits:
        done = _Merging()
        waiting: list[tuple[int, int]] = []
        entries = window.entries
        for older, second in self._pairs:
            newer = done.into(second)
            if older in done.gone or newer == older or older not in entries or newer not in entries:
                continue
            if window.place(older) > window.place(newer):  # it came in again in between
                older, newer = newer, older
            if not self._merge(window, protected, older, newer, done):
                waiting.append((older, newer))
        self._pairs = waiting
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

    def _merge(self, window: Window, protected: set[int], older: int, newer: int, done: _Merging) -> bool:
        """Merge a pair; False when it may be possible later."""
        home, into = window.unit_of[older], window.unit_of[newer]
        if home in window.fixed or home == into:
            return True
        if home in protected:
            return False
        missing = _missing(window, older, newer, done)
        if missing is None or (missing and into in window.fixed):
            return True
        if missing and into in protected:
            return False
        have = done.added.get(newer, [])
        kind = window.blocks[newer].kind
        grown = self.setting.count(_appended(window, [*have, *missing]), kind) if missing else 0
        size = window.entries[newer].tokens + grown if missing else done.sizes.get(newer, 0)
        more = size - done.sizes.get(newer, window.entries[newer].tokens) if missing else 0
        whole = _whole(window, older, newer)
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

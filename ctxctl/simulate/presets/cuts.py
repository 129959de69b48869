"""Where a runtime cuts: which part of the list is old."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ctxctl.eviction.base import Setting
from ctxctl.simulate.presets.amounts import Cut, Limit
from ctxctl.simulate.presets.estimate import Estimate
from ctxctl.simulate.presets.limits import limit_tokens
from ctxctl.simulate.presets.messages import Group, head_of
from ctxctl.simulate.presets.pairs import inward, snap
from ctxctl.simulate.presets.schema import Preset


@dataclass(frozen=True, slots=True)
class Part:
    """What is old: the groups from `head` to before `start`; groups in `spared` stay all the same."""

    head: int
    start: int
    spared: frozenset[int] = frozenset()


class Cutter:
    """Finds the old part of a list for one preset. last_usage: tokens of the last request and its answer."""

    def __init__(self, preset: Preset, setting: Setting, estimate: Estimate) -> None:
        self.preset = preset
        self.setting = setting
        self.estimate = estimate
        self.last_usage = 0

    def tokens(self, limit: Limit | None) -> float:
        """A limit in tokens."""
        assert limit is not None
        return float(limit_tokens(limit, self.setting.window, self.setting.output, self.setting.model))

    def tail(self, cut: Cut) -> int:
        """Tokens that a cut always leaves in a session that is longer, as far as it says."""
        return int(self.tokens(cut.limit)) if cut.kind in ("tokens", "blocks") else 0

    def part(self, cut: Cut, groups: Sequence[Group], overhead: int = 0) -> Part | None:
        """The old part; None when there is none."""
        end = len(groups)
        system = head_of(groups) if cut.system else 0
        head = max(system, cut.head)
        if cut.head_prompt:
            head = max(head, next((n + 1 for n, g in enumerate(groups) if g.prompt), head))
        rule = self.preset.pair
        if cut.kind == "everything":
            return Part(system, end) if system < end else None
        if cut.kind == "essential":
            return self._essential(groups)
        if cut.kind == "characters":
            start = self._characters(cut, groups, head)
        else:
            start = max(head, self._start(cut, groups, head, overhead))
            if cut.kind == "newest" and cut.fits_half is not None and self._over(cut, groups, overhead):
                start = max(start, self._half_of_limit(cut, groups, head, overhead))
            start = snap(groups, start, head, rule)
        head, start = min(head, end), min(start, end)
        if rule == "atomic_units":
            head = inward(groups, head)
        if start <= head or start - head < cut.minimum_share * end:
            return None
        hidden = frozenset(n for n in range(head, start) if groups[n].side == "notice") if cut.kind == "front" else ()
        return Part(head, start, frozenset(hidden))

    def _start(self, cut: Cut, groups: Sequence[Group], head: int, overhead: int) -> int:
        end, kind = len(groups), cut.kind
        if kind == "newest":
            return end - cut.count
        if kind == "share":
            return head + int((end - head) * (1 - cut.share))  # in floating point, as the runtime does
        if kind == "front":
            visible = [n for n in range(head, end) if groups[n].side != "notice"]
            gone = int(len(visible) * cut.share)
            gone -= gone % 2
            return visible[gone] if gone < len(visible) else end
        if kind == "tokens":
            return self._tokens(cut, groups, head)
        if kind == "blocks":
            return self._blocks(cut, groups, head)
        if kind == "half":
            return self._half(cut, groups, head, overhead)
        if kind == "middle":
            return self._middle(cut, groups, head)
        if kind == "progressive":
            return self._progressive(cut, groups, head, overhead)
        if kind == "chat":
            return self._chat(cut, groups, head)
        raise ValueError(f"{self.preset.id}: a cut of kind {kind!r} has no boundary")

    def _tokens(self, cut: Cut, groups: Sequence[Group], head: int) -> int:
        limit, total = self.tokens(cut.limit), 0.0
        start = len(groups)
        while start > head:
            size = self.estimate.group(groups[start - 1])
            kept = len(groups) - start
            if not cut.reach and total + size > limit and kept >= cut.count:
                break
            total += size
            start -= 1
            if cut.reach and total >= limit:
                break
        if cut.latest_exchange:
            start = min(start, next((n for n in range(len(groups) - 1, -1, -1) if groups[n].prompt), start))
        return start

    def _blocks(self, cut: Cut, groups: Sequence[Group], head: int) -> int:
        limit, total, texts = self.tokens(cut.limit), 0.0, 0
        start = len(groups)
        while start > head:
            size = self.estimate.group(groups[start - 1])
            if (total >= limit and texts >= cut.count) or (cut.most is not None and total + size > cut.most):
                break
            total += size
            texts += any(i.kind in ("user_message", "assistant") for i in groups[start - 1].items)
            start -= 1
        return start

    def _half(self, cut: Cut, groups: Sequence[Group], head: int, overhead: int) -> int:
        """octos: from the `count`-th newest message on, stop when system and tail would exceed half of the budget."""
        half = self.tokens(cut.limit) / 2
        total = overhead + self.estimate.groups(groups[:head])
        start = len(groups)
        while start > head:
            size = self.estimate.group(groups[start - 1])
            if len(groups) - start + 1 >= cut.count and total + size > half:
                break
            total += size
            start -= 1
        return start

    def _middle(self, cut: Cut, groups: Sequence[Group], head: int) -> int:
        """Cline: half of what follows the first pair, in pairs; three quarters when half of the tokens is too many."""
        limit = self.tokens(cut.limit)
        rest = len(groups) - head
        quarter = self.last_usage / 2 > limit
        gone = rest * 3 // 4 // 2 * 2 if quarter else rest // 4 * 2
        start = head + gone
        if gone and groups[start - 1].side not in ("assistant", "summary"):
            start -= 1
        return start

    def _progressive(self, cut: Cut, groups: Sequence[Group], head: int, overhead: int) -> int:
        """Letta: the oldest share goes, then a step more, until what stays is within the target."""
        limit = self.tokens(cut.limit)
        fraction, margin = cut.share, self.preset.estimator.margin
        fixed = overhead + self.estimate.groups(groups[:head])
        while fraction < 1:
            start = snap(groups, head + round((len(groups) - head) * fraction), head, self.preset.pair)
            if (fixed + self.estimate.groups(groups[start:])) * margin <= limit:
                return start
            fraction += cut.step
        return len(groups)

    def _chat(self, cut: Cut, groups: Sequence[Group], head: int) -> int:
        """aider: the newest messages with less than half of the limit; all when that leaves too few to summarise."""
        half, total = self.tokens(cut.limit) / 2, 0.0
        start = len(groups)
        while start > head:
            size = self.estimate.group(groups[start - 1])
            if total + size >= half:
                break
            total += size
            start -= 1
        start = snap(groups, start, head, self.preset.pair)
        if len(groups) - head <= cut.count or start - head <= cut.count:
            return len(groups)
        return start

    def _characters(self, cut: Cut, groups: Sequence[Group], head: int) -> int:
        """gemini-cli: the first user message at or after a share of the characters."""
        sizes = [sum(len(json.dumps(i.text, ensure_ascii=False)) for i in g.items) for g in groups]
        goal = sum(sizes[head:]) * (1 - cut.share)
        before, last = 0, head
        for place in range(head, len(groups)):
            if groups[place].prompt:
                if before >= goal:
                    return place
                last = place
            before += sizes[place]
        if groups and groups[-1].side == "assistant" and not groups[-1].calls:
            return len(groups)
        return last

    def _essential(self, groups: Sequence[Group]) -> Part | None:
        """OpenHands: system, the first user message and what was recalled for it stay, and the newer half of the rest;
        observations at its start leave."""
        first = next((n for n, g in enumerate(groups) if g.prompt), None)
        spared = {n for n, g in enumerate(groups) if g.side == "system"}
        if first is not None:
            spared.add(first)
            after = first + 1
            if after < len(groups) and any(i.kind == "memory_injection" for i in groups[after].items):
                spared.add(after)
        rest = [n for n in range(len(groups)) if n not in spared]
        if len(rest) < 2:
            return None
        start = rest[len(rest) - max(1, len(rest) // 2)]
        start = snap(groups, start, 0, "snap_forward_non_observation")
        head = rest[0]
        return Part(head, start, frozenset(spared)) if start > head else None

    def _over(self, cut: Cut, groups: Sequence[Group], overhead: int) -> bool:
        return overhead + self.estimate.groups(groups) > self.tokens(cut.fits_half)

    def _half_of_limit(self, cut: Cut, groups: Sequence[Group], head: int, overhead: int) -> int:
        """OpenHands SDK: what stays, head and all, is within half of the limit."""
        room = self.tokens(cut.fits_half) // 2 - overhead - self.estimate.groups(groups[:head])
        start = len(groups)
        while start > head and (room := room - self.estimate.group(groups[start - 1])) >= 0:
            start -= 1
        return start

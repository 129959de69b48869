"""Which units leave to reach a target, in which order, and what holds the rest (requirements E9 to E11)."""

from __future__ import annotations

from ctxctl.eviction.base import Policy
from ctxctl.model.decision import Outlook
from ctxctl.model.edits import Drop, Edits, joined
from ctxctl.model.window import Window

NOTHING = Edits()


class Evictor:
    """Ranks and evicts in one window, by one policy. size: tokens of the model's window; explain: whether drops carry
    the parts of their score; reason: why units go, that of the policy where it is not told."""

    def __init__(self, window: Window, policy: Policy, size: int, *, explain: bool, reason: str = "") -> None:
        self._window = window
        self._policy = policy
        self._size = size
        self._explain = explain
        self._reason = reason or policy.reason or policy.name
        self._floor_said = 0

    def ranking(self) -> list[Drop]:
        """Every unit that may leave now, the first to go first, with its score and the parts of it; nothing changes."""
        window = self._window
        return [drop for group in self.ranked(window) for drop in self._drops(window, group, explain=True)]

    def ranked(self, window: Window) -> list[tuple[float, tuple[int, ...]]]:
        """Groups of units that leave together with their score, the lowest first; ties by age, then by number."""
        policy, protected = self._policy, window.protected()
        units = [u for u in window.resident if u not in protected] if protected else list(window.resident)
        scores, ties = policy.score(window, units), policy.ties(window, units)
        groups = [g for g in window.bound() if protected.isdisjoint(g)]
        if not groups:
            return [(s, (u,)) for s, _, u in sorted(zip(scores, ties, units, strict=True))]
        of = dict(zip(units, zip(scores, ties, strict=True), strict=True))
        rows: list[tuple[float, int, tuple[int, ...]]] = []
        for group in groups:
            marks = [of.pop(u) for u in group]
            rows.append((max(s for s, _ in marks), max(t for _, t in marks), group))
        rows += [(s, t, (u,)) for u, (s, t) in of.items()]
        return [(s, group) for s, _, group in sorted(rows)]

    def _drops(self, window: Window, ranked: tuple[float, tuple[int, ...]], *, explain: bool) -> list[Drop]:
        policy = self._policy
        score, group = ranked
        parts = None
        if explain:  # of the member whose score is the group's
            parts = max((policy.parts(window, unit) for unit in group), key=lambda p: sum(p.values()))
        return [
            Drop(
                unit,
                tuple(window.present(unit)),
                window.resident[unit],
                self._reason,
                score,
                parts,
            )
            for unit in group
        ]

    def outlook(self, target: int, prompt: int) -> Outlook:
        """What evicting to a target would do, what merges before it included. prompt: tokens of the last request, of
        which a prefix is cached."""
        window = self._window.copy()
        before = window.tokens
        done = self._carry_out(window, target, explain=True)
        rest = [drop for group in self.ranked(window) for drop in self._drops(window, group, explain=True)]
        kept = window.stable_prefix(prompt)
        behind = max(0, window.tokens - kept) if done else 0
        return Outlook((*done.drops, *rest), len(done.drops), before - window.tokens, kept, behind)

    def evict(self, target: int) -> tuple[Edits, int | None, tuple[tuple[str, int], ...]]:
        """Merge what loses nothing, then evict from the lowest score up until the window holds no more than the
        target."""
        if self._window.tokens <= target:
            return NOTHING, None, ()
        return (self._carry_out(self._window, target, explain=self._explain), *self.floor(target))

    def _carry_out(self, window: Window, target: int, *, explain: bool) -> Edits:
        if window.tokens <= target:
            return NOTHING
        merged = self._policy.merge(window, window.protected())
        if merged:
            window.apply(merged)
        drops = window.spare(window.tokens - target)
        left = window.tokens - target - sum(drop.tokens for drop in drops)
        if left > 0:
            for ranked in self.ranked(window):
                for drop in self._drops(window, ranked, explain=explain):
                    drops.append(drop)
                    left -= drop.tokens
                if left <= 0:
                    break
        window.apply(Edits(drops))
        return joined(merged, Edits(drops))

    def floor(self, target: float) -> tuple[int | None, tuple[tuple[str, int], ...]]:
        """What stays above a target and what holds it. It is said once, and once more when it passes the window."""
        tokens = self._window.tokens
        missed = 0 if tokens <= target else 1 if tokens <= self._size else 2
        said, self._floor_said = self._floor_said, max(missed, self._floor_said if missed else 0)
        return (tokens, self.causes()) if missed > said else (None, ())

    def too_large(self, limit: float) -> list[str]:
        """Units that stay although nothing else would fit beside them."""
        window = self._window
        sizes = [(u, window.resident.get(u, 0)) for u in sorted(window.protected())] + list(window.fixed.items())
        return [
            f"block {window.units[u].id} of {tokens:,} tokens is larger than the limit of {limit:,.0f}"
            for u, tokens in sizes
            if tokens > limit
        ]

    def causes(self) -> tuple[tuple[str, int], ...]:
        """What can't leave now, and its tokens, the largest first."""
        window = self._window
        found: dict[str, int] = {
            "system prompt and tools (not in the file)": window.overhead,
            "growth that no block explains": window.hidden,
        }
        for unit, tokens in window.fixed.items():
            reason = window.units[unit].pinned or ""
            found[reason] = found.get(reason, 0) + tokens
        for unit in window.protected():
            if unit in window.resident:
                reason = (
                    "calls without a result"
                    if unit in window.pending
                    else "results not answered yet"
                    if unit in window.fresh
                    else "summaries"
                    if unit in window.summaries
                    else "turns to keep"
                    if unit in window.kept
                    else "current exchange"
                )
                found[reason] = found.get(reason, 0) + window.resident[unit]
        found["summaries and stand-ins"] = sum(e.tokens for number, e in window.entries.items() if number < 0)
        return tuple(sorted(((k, v) for k, v in found.items() if v), key=lambda item: -item[1]))

"""The cumulative token counter of a Codex rollout, taken apart into model calls.

The same token_count is written again for rate-limit refreshes, some events carry no totals, a fork starts with its
parent's counts, and a damaged one states more than the window holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxctl.formats.base import Diagnostics, Json
from ctxctl.formats.session import LARGEST_COUNT, Call, tokens_of

FIELDS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)
INPUT, CACHED, WRITTEN, OUTPUT, REASONING, TOTAL = range(6)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one call cost: counts in the order of FIELDS, and its context (prompt and answer)."""

    counts: tuple[int, ...]
    context: int | None
    overflow: bool = False

    def fill(self, call: Call, line: int) -> None:
        """Put the figures into a call; input excludes what the cache served or stored."""
        n = self.counts
        call.cache_read = min(n[CACHED], n[INPUT])
        call.cache_write = min(n[WRITTEN], n[INPUT] - call.cache_read)
        call.input = n[INPUT] - call.cache_read - call.cache_write
        call.output = n[OUTPUT]
        call.reasoning = n[REASONING]
        call.context = self.context
        call.damaged = self.context is None
        call.reported = not self.overflow
        call.line = line


class CodexUsage:
    """Follows the counter. window: context window as the rollout states it; context: after the newest call;
    inherited: tokens that were copied from a fork's parent."""

    def __init__(self) -> None:
        self._total: tuple[int, ...] | None = None
        self.window: int | None = None
        self.context: int | None = None
        self.inherited = 0

    def state(self) -> list[Any]:
        """What following it on needs: totals, window and context."""
        return [list(self._total) if self._total is not None else None, self.window, self.context]

    def go_on(self, state: list[Any]) -> None:
        """Follow the counter on from a state."""
        total, self.window, self.context = state
        self._total = tuple(total) if total is not None else None

    def window_of(self, holder: dict[str, Json]) -> None:
        """Take over `model_context_window`, where stated."""
        value = holder.get("model_context_window")
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_COUNT:
            self.window = value

    def step(self, info: dict[str, Json], line: int, diagnostics: Diagnostics, *, inherited: bool) -> Spent | None:
        """The call that a token_count event closes, None when it only repeats or carries no counts."""
        self.window_of(info)
        total = _counts(info.get("total_token_usage"), line, diagnostics)
        last = _counts(info.get("last_token_usage"), line, diagnostics)
        if total is None and last is None:
            return None
        if total is not None and total == self._total:
            return None
        before, self._total = self._total, total if total is not None else self._total
        spent = self._difference(before, total, last)
        if inherited:
            self.inherited += spent[INPUT] + spent[OUTPUT]
            self.context = last[TOTAL] if last else self.context
            return None
        stated = last if last is not None else spent
        if self.window is not None and last is not None and last[TOTAL] > self.window:
            diagnostics.add(
                "warning",
                "impossible_usage",
                f"{last[TOTAL]:,} tokens in one request, more than the window of {self.window:,}: left out",
                line,
            )
            return None
        # codex-rs `fill_to_context_window`: the counter is set to the window, its parts to zero
        overflow = total is not None and total[TOTAL] == self.window and not total[INPUT] and not total[OUTPUT]
        self.context = self.window if overflow else stated[TOTAL] or stated[INPUT] + stated[OUTPUT]
        return Spent(spent, self.context, overflow)

    @staticmethod
    def _difference(
        before: tuple[int, ...] | None, total: tuple[int, ...] | None, last: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """What was added since the last event; a counter that started anew counts from zero."""
        if total is None:
            return last or (0,) * len(FIELDS)
        if before is None:
            # the first event of a session may already sum up calls that were not written
            return total
        added = tuple(new - old for new, old in zip(total, before, strict=True))
        return added if min(added) >= 0 else (last or total)


def _counts(usage: Json, line: int, diagnostics: Diagnostics) -> tuple[int, ...] | None:
    if not isinstance(usage, dict):
        return None
    return tuple(max(tokens_of(usage.get(name), name, line, diagnostics) or 0, 0) for name in FIELDS)

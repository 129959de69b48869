"""priority-tiers: temporary content goes first, then results, then tasks, the system prompt never (requirement E12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from ctxctl.eviction.base import POLICIES, Setting
from ctxctl.eviction.retention import Retention
from ctxctl.eviction.tiers import SYSTEM, tier_of
from ctxctl.model.edits import Drop, Replace
from ctxctl.model.window import Window


@dataclass(frozen=True, slots=True)
class PriorityTiersParameters:
    """reserve: share of the window that stays free. last_resort: whether tier 0 goes, as a whole and oldest first, when
    nothing else may. Unset ones are those of the settings."""

    reserve: Annotated[float, Meta(ge=0, lt=1)] | None = None
    last_resort: bool | None = None


@POLICIES.register("priority-tiers")
class PriorityTiers(Retention):
    """The least important tier goes first, the oldest of it before others, at each block that comes in.

    Complexity: O(log n) per block.
    Strength: what was asked for outlives what came of it, and both outlive reasoning.
    Weakness: four tiers tell little apart, and the tier of a kind says nothing of use.
    Fit: agents of a few steps whose tools return much.
    """

    name = "priority-tiers"
    Parameters = PriorityTiersParameters

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        told = self.parameters.last_resort
        self._last_resort = setting.options.last_resort if told is None else told
        self._system: dict[int, None] = {}

    def rank(self, window: Window, unit: int) -> int:
        return -self.tier(window, unit)

    def why(self, window: Window, unit: int) -> str:
        return f"tier {self.tier(window, unit)}, oldest"

    def record(self, window: Window, block: int) -> Replace | None:
        unit = window.unit_of[block]
        if tier_of(window.units[unit].kind) == SYSTEM:
            self._system[unit] = None
        return super().record(window, block)

    def last_resort(self, window: Window, over: float) -> list[Drop]:
        drops: list[Drop] = []
        if not self._last_resort:
            return drops
        for unit in list(self._system):
            if over <= 0:
                break
            del self._system[unit]
            blocks = tuple(window.present(unit))
            tokens = sum(window.entries[b].tokens for b in blocks)
            if blocks:
                drops.append(Drop(unit, blocks, tokens, "critical: tier 0, nothing else may leave"))
                over -= tokens
        return drops

"""hybrid: freshness, priority, time to live and use together (requirement E7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any, ClassVar

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.eviction.lru import COLD, FULL
from ctxctl.eviction.priority import Weigher
from ctxctl.eviction.type_ttl import life
from ctxctl.model.window import Window


@dataclass(frozen=True, slots=True)
class HybridParameters:
    """Weights of the four parts, together 1; unset ones are those of the settings."""

    freshness: float | None = None
    priority: float | None = None
    type_ttl: float | None = None
    reference: float | None = None


@POLICIES.register("hybrid")
class Hybrid(Policy):
    """Freshness, priority, time to live and references, weighted.

    Complexity: O(n log n) per eviction, a counter per unit.
    Strength: no single blind spot decides; each eviction can be explained by its parts.
    Weakness: four weights to set; `ctxctl tune` finds them from your own sessions.
    Fit: production.
    """

    name = "hybrid"
    Parameters: ClassVar[type[Any]] = HybridParameters

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        own, told = setting.options.weights, self.parameters
        names = ("freshness", "priority", "type_ttl", "reference")
        self.weights = [getattr(own, n) if getattr(told, n) is None else float(getattr(told, n)) for n in names]
        if not all(isfinite(w) and w >= 0 for w in self.weights) or abs(fsum(self.weights) - 1) > 1e-6:
            shown = ", ".join(f"{n}={w:g}" for n, w in zip(names, self.weights, strict=True))
            raise ValueError(f"the weights must be 0 or more and add up to 1: {shown}")
        self._weigher = Weigher(setting)

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        fresh, prior, ttl, refer = self.weights
        now, entered, known, references = window.turn, window.entered, window.units, window.references
        times = self.setting.options.type_ttl
        scores = []
        for u, priority in zip(units, self._weigher.priorities(window, units), strict=True):
            age = now - entered[u]
            if age < 0:
                age = 0
            limit = times.get(known[u].kind)
            alive = 0.5 if limit is None else (1.0 - age / limit if age < limit else 0.0)
            count = references.get(u, 0)
            use = COLD if not count else (count / FULL if count < FULL else 1.0)
            scores.append(fresh / (1 + age) + prior * priority + ttl * alive + refer * use)
        return scores

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        fresh, prior, ttl, refer = self.weights
        age = max(0, window.turn - window.entered[unit])
        count = window.references.get(unit, 0)
        return {
            "freshness": fresh / (1 + age),
            "priority": prior * self._weigher.priorities(window, [unit])[0],
            "type_ttl": ttl * life(window.units[unit].kind, age, self.setting.options.type_ttl),
            "reference": refer * (min(1.0, count / FULL) if count else COLD),
        }

"""random: a control; whatever is worse than chance has the wrong idea."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ctxctl.eviction.base import POLICIES, Policy, Setting
from ctxctl.model.window import Window


@dataclass(frozen=True, slots=True)
class RandomParameters:
    """seed: equal seeds evict the same."""

    seed: int = 0


@POLICIES.register("random")
class RandomChoice(Policy):
    """Any unit goes, by a seeded generator.

    Complexity: O(n log n) per eviction.
    Strength: none: it is what a policy has to beat.
    Weakness: all.
    Fit: a control.
    """

    name = "random"
    group = "control"
    Parameters = RandomParameters

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        super().__init__(setting, parameters)
        self._random = Random(self.parameters.seed)

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        return [self._random.random() for _ in units]

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        return {}

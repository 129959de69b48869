"""The cascade, and each strategy of it, as policies: what an agent loop's manager runs, and what `simulate` replays.

They stand in pyproject as entry points of the group that the registry of policies looks through, since eviction must
not know of compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from ctxctl.compaction.base import Scene, Writes, own_target
from ctxctl.compaction.cascade import Cascade, allowed_steps
from ctxctl.compaction.clean import Cleaner, keyless
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.base import Setting
from ctxctl.eviction.hybrid import Hybrid, HybridParameters
from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import Block
from ctxctl.model.edits import Edits, Replace, joined
from ctxctl.model.window import Window

FIRST = 0.75
"""Utilization at which a single strategy acts where the cascade of the settings, whose first step it follows, has
none: orange."""


@dataclass(frozen=True, slots=True)
class CompactionParameters:
    """at: utilization from which on it acts; to: utilization that it compacts down to; unset ones are those of the
    settings, for `extractive` its own budget."""

    at: Annotated[float, Meta(gt=0, le=1)] | None = None
    to: Annotated[float, Meta(gt=0, le=1)] | None = None


class CascadePolicy(Hybrid):
    """Compaction before eviction: long outputs, then older detail, then the old part; hybrid evicts what is missing.

    Complexity: O(n log n) whenever it acts, and the text that it shortens.
    Strength: what leaves stays visible in a few words, with the facts of the task.
    Weakness: each step breaks the cached prefix; a summary without a model keeps words, not meaning.
    Fit: production, long sessions with a goal.
    """

    name = "cascade"
    Parameters: ClassVar[type[Any]] = CompactionParameters
    steps: ClassVar[tuple[str, ...]] = ()
    """Steps of a single strategy; empty: those that the utilization allows."""

    def __init__(
        self,
        setting: Setting,
        parameters: Any = None,
        *,
        options: CompactionOptions | None = None,
        helper: Writes | None = None,
        cleaner: Cleaner | None = None,
    ) -> None:
        told = parameters or CompactionParameters()
        super().__init__(setting, HybridParameters())
        self.parameters = told
        given = setting.compaction
        self.options = options or (given if isinstance(given, CompactionOptions) else CompactionOptions())
        self._helper = setting.helper if helper is None else helper
        self._clean = cleaner or Cleaner()
        self._cascade = Cascade(self.options, self._clean)
        self._facts = SessionFacts()
        self._keyless: dict[int, Block] = {}
        least = min(self.options.cascade, default=FIRST if self.steps else 1.0)
        self._least = least if told.at is None else told.at
        self._target = floor((setting.options.target if told.to is None else told.to) * setting.window)
        own = own_target(self.steps, setting.window)
        if own is not None and told.at is None and told.to is None:
            self._least, self._target = (own + 1) / setting.window, own
        self._futile = 0

    def record(self, window: Window, block: int) -> Replace | None:
        if block >= 0 and block not in self._keyless:  # what comes in again was seen before
            self._keyless[block] = told = keyless(window.block(block), self._clean)
            self._facts.see(told, block)
        return None

    def rule(self, window: Window) -> Edits:
        size = self.setting.window
        utilization = window.tokens / size
        if utilization < self._least or window.tokens == self._futile:
            return Edits()
        steps = self.steps or self._allowed(utilization)
        apart = window.copy()
        target = min(self._target, window.tokens)
        scene = Scene(
            apart,
            target,
            size,
            self.setting.count,
            self._facts.summary,
            self.options,
            self._helper,
            self._clean,
            utilization=utilization,
            keyless=self._keyless,
        )
        done = self._cascade.run(steps, scene, minimum=self.options.minimum_saving)
        # with nothing to compact it is not tried again until something comes in
        self._futile = 0 if done else window.tokens
        edits = Edits()
        for step in done:
            edits = joined(edits, step.edits)
        return edits

    def _allowed(self, utilization: float) -> Sequence[str]:
        if self.parameters.at is None:
            return allowed_steps(self.options, utilization)
        # with a trigger of its own the steps follow each other from there up, as far apart as they are in the settings
        shift = min(self.options.cascade, default=1.0) - self.parameters.at
        return allowed_steps(self.options, utilization + shift)


class ToolResultsPolicy(CascadePolicy):
    """Long outputs that were answered shrink to their key findings; hybrid evicts what is missing.

    Complexity: O(n) whenever it acts, and the text that it shortens.
    Strength: most of a window is outputs that were read once.
    Weakness: lines that no sign marks are gone.
    Fit: tool-heavy sessions.
    """

    name = "tool-results"
    steps = ("tool-results",)


class ProgressivePolicy(CascadePolicy):
    """What is older is told in less detail; hybrid evicts what is missing.

    Complexity: O(n) whenever it acts, and the text that it shortens.
    Strength: nothing vanishes at once.
    Weakness: changes old text again and again, each time at the price of the cached prefix.
    Fit: long sessions in which the recent past matters most.
    """

    name = "progressive"
    steps = ("progressive",)


class ConversationPolicy(CascadePolicy):
    """The old part becomes one summary with the facts of the task; hybrid evicts what is missing.

    Complexity: O(n) whenever it acts, and the text that it replaces.
    Strength: frees most at once, and keeps goal, plan, files and decisions.
    Weakness: details of the old part are lines at best.
    Fit: windows that are full of what is settled.
    """

    name = "conversation"
    steps = ("conversation",)


class ExtractivePolicy(CascadePolicy):
    """The old part becomes lines of its own words, within a fixed budget; hybrid evicts what is missing.

    Complexity: O(n) whenever it acts.
    Strength: can't fail, and costs nothing.
    Weakness: first lines only.
    Fit: chats; the fallback where a model fails.
    """

    name = "extractive"
    steps = ("extractive",)

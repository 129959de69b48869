"""Whether a runtime acts before the next call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ctxctl.eviction.base import Setting
from ctxctl.model.window import Window
from ctxctl.simulate.presets.estimate import Estimate
from ctxctl.simulate.presets.items import Item
from ctxctl.simulate.presets.limits import limit_tokens
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.schema import Preset, Trigger


class Situation(Protocol):
    """What a trigger looks at."""

    preset: Preset
    setting: Setting
    estimate: Estimate
    new_exchange: bool
    compacted: bool

    @property
    def apart(self) -> Sequence[Item]:
        """What is sent and in no group."""

    def groups(self, window: Window) -> list[Group]:
        """What the preset counts, now."""

    def finished(self, window: Window) -> list[Group]:
        """What came before the current exchange."""


def fires(trigger: Trigger, now: Situation, window: Window) -> bool:
    """Whether the trigger holds."""
    return _one(trigger, now, window) or any(fires(part, now, window) for part in trigger.any_of)


def _one(trigger: Trigger, now: Situation, window: Window) -> bool:
    kind = trigger.kind
    if kind == "tokens":
        if trigger.not_twice and now.compacted:
            return False
        if trigger.finished and not now.new_exchange:
            return False
        assert trigger.limit is not None
        limit = float(limit_tokens(trigger.limit, now.setting.window, now.setting.output, now.setting.model))
        total = (
            now.estimate.groups(now.finished(window))
            if trigger.finished
            else now.estimate.prompt(window, now.groups(window), now.apart)
        )
        if not (total > limit if trigger.above else total >= limit):
            return False
        return not trigger.min_messages or len(now.groups(window)) >= trigger.min_messages
    if kind in ("messages", "events"):
        count = len(now.groups(window))
        return count > trigger.count if trigger.above else count >= trigger.count
    if kind == "exchange_end":
        return now.new_exchange
    if kind == "idle":
        if window.time is None or window.last_time is None:
            return False
        return window.time - window.last_time > 60 * trigger.minutes
    if kind == "overflow":
        return window.tokens > now.setting.window
    return kind == "call"

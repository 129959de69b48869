"""What a simulation is to replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.specs import Spec
from ctxctl.manager.options import ManagerOptions
from ctxctl.pressure.options import PressureOptions, PressureThresholds
from ctxctl.simulate.bill import CacheTerms

if TYPE_CHECKING:
    from ctxctl.simulate.presets.schema import Preset


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What to replay. policies and presets, times windows (tokens; none: the model's own), triggers and targets
    (utilization; none: those of the settings). share: instead of windows, a capacity of the protected content and this
    share of all that may leave, evicted to as soon as it is exceeded. summary: `low`, `typ` or `high`, for presets
    whose summary size nobody declares. optimum: whether the exact optimum is computed. steps: keep a row per turn."""

    policies: tuple[Spec, ...] = ()
    presets: tuple[Preset, ...] = ()
    windows: tuple[int, ...] = ()
    triggers: tuple[float, ...] = ()
    targets: tuple[float, ...] = ()
    share: float | None = None
    summary: Literal["low", "typ", "high"] = "typ"
    terms: CacheTerms = field(default_factory=CacheTerms)
    model: str | None = None
    refetch: bool = True
    optimum: bool = True
    steps: bool = False
    eviction: EvictionOptions = field(default_factory=EvictionOptions)
    thresholds: PressureThresholds = field(default_factory=PressureThresholds)
    pressure: PressureOptions = field(default_factory=PressureOptions)
    manager: ManagerOptions = field(default_factory=ManagerOptions)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)

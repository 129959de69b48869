"""sliding-window: the oldest goes whenever the window is over its limit (requirement E12)."""

from __future__ import annotations

from ctxctl.eviction.base import POLICIES
from ctxctl.eviction.retention import Retention


@POLICIES.register("sliding-window")
class SlidingWindow(Retention):
    """The oldest unit that is not the system prompt goes, at each block that comes in.

    Complexity: O(log n) per block.
    Strength: never over its limit, and nothing to set but the reserve.
    Weakness: evicts a little all the time, so that the cached prefix breaks at almost every call.
    Fit: chat without a prompt cache.
    """

    name = "sliding-window"

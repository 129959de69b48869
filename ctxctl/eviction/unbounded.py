"""unbounded: nothing ever leaves; the ceiling of what can be kept."""

from __future__ import annotations

from ctxctl.eviction.base import POLICIES, Policy


@POLICIES.register("unbounded")
class Unbounded(Policy):
    """Nothing ever leaves: no reference is missed, and the window has no end.

    Complexity: O(1) per turn.
    Strength: loses nothing.
    Weakness: no model has such a window, and every call sends all of it.
    Fit: a ceiling.
    """

    name = "unbounded"
    group = "ceiling"
    ranks = False

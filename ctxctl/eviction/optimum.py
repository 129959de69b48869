"""optimum: the least that any eviction could have fetched again; see `ctxctl.simulate.optimum`."""

from __future__ import annotations

from ctxctl.eviction.base import POLICIES, Policy


@POLICIES.register("optimum")
class OptimumCeiling(Policy):
    """The exact optimum of a whole recording at a budget; the simulator computes it, as an integer program.

    Complexity: exponential at worst; runs of some hundred blocks take well under a second.
    Strength: proven: no policy at the same budget fetches less again.
    Weakness: no agent can do it; needs scipy (the extra `optimum`) and at most some 2,000 blocks.
    Fit: a ceiling.
    """

    name = "optimum"
    group = "ceiling"
    ranks = False
    needs_recording = True

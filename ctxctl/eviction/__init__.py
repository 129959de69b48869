"""Which units leave the window: policies, one file each."""

from __future__ import annotations

from ctxctl.eviction.base import POLICIES, Policy
from ctxctl.eviction.specs import policy_of

__all__ = ["POLICIES", "Policy", "policy_of"]

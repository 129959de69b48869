"""The manager that an agent loop calls: hooks, decisions, and the window that they are about."""

from __future__ import annotations

from ctxctl.manager.manager import ContextWindowManager
from ctxctl.manager.options import ManagerOptions

__all__ = ["ContextWindowManager", "ManagerOptions"]

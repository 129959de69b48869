"""ctxctl: measure, simulate and manage the context window of LLM agents.

Public names are loaded when they are first used; importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ctxctl.budgets.manager import TokenBudgetManager
    from ctxctl.errors import BudgetExceeded
    from ctxctl.formats import read, scan, write
    from ctxctl.health.monitor import ContextHealthMonitor
    from ctxctl.manager.manager import ContextWindowManager
    from ctxctl.pressure.analysis import Analysis, AnalysisOptions, analyze
    from ctxctl.pressure.monitor import ContextPressureMonitor
    from ctxctl.settings.load import load_settings
    from ctxctl.settings.models import load_models

_HOMES = {
    "read": "ctxctl.formats",
    "scan": "ctxctl.formats",
    "write": "ctxctl.formats",
    "Analysis": "ctxctl.pressure.analysis",
    "AnalysisOptions": "ctxctl.pressure.analysis",
    "analyze": "ctxctl.pressure.analysis",
    "BudgetExceeded": "ctxctl.errors",
    "ContextHealthMonitor": "ctxctl.health.monitor",
    "ContextPressureMonitor": "ctxctl.pressure.monitor",
    "ContextWindowManager": "ctxctl.manager.manager",
    "TokenBudgetManager": "ctxctl.budgets.manager",
    "load_settings": "ctxctl.settings.load",
    "load_models": "ctxctl.settings.models",
}

__all__ = [
    "Analysis",
    "AnalysisOptions",
    "BudgetExceeded",
    "ContextHealthMonitor",
    "ContextPressureMonitor",
    "ContextWindowManager",
    "TokenBudgetManager",
    "__version__",
    "analyze",
    "load_models",
    "load_settings",
    "read",
    "scan",
    "write",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ctxctl' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

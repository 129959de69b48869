"""Tokens: how many a text has, for which model, and how sure that number is.

The one room that knows tokenizers. `engine(encoding).count(texts)` counts in bulk with the fastest library at hand,
always with tiktoken's numbers; `family_for(model)` says how those numbers become the model's; `calibrate` narrows the
estimate with what the provider reported; `image_tokens` and `document_tokens` are for what isn't text.

Nothing is imported before it is used: neither the tokenizer libraries nor the modules of this room.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctxctl.tokens.calibrated import Calibration, calibrate
    from ctxctl.tokens.engines import AdaptiveEngine, Engine, clean, count, engine
    from ctxctl.tokens.estimate import TEXT_CLASSES, UNKNOWN, Family, counter_for, family_for, text_class
    from ctxctl.tokens.media import document_tokens, image_tokens
    from ctxctl.tokens.vocabulary import ENCODINGS, encoding

__all__ = [
    "ENCODINGS",
    "TEXT_CLASSES",
    "UNKNOWN",
    "AdaptiveEngine",
    "Calibration",
    "Engine",
    "Family",
    "calibrate",
    "clean",
    "count",
    "counter_for",
    "document_tokens",
    "encoding",
    "engine",
    "family_for",
    "image_tokens",
    "text_class",
]

_MODULES = {
    "calibrated": ("Calibration", "calibrate"),
    "engines": ("AdaptiveEngine", "Engine", "clean", "count", "engine"),
    "estimate": ("TEXT_CLASSES", "UNKNOWN", "Family", "counter_for", "family_for", "text_class"),
    "media": ("document_tokens", "image_tokens"),
    "vocabulary": ("ENCODINGS", "encoding"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

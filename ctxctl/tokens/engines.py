"""Counting tokens in bulk: three interchangeable engines and one that picks between them.

All engines give the same numbers: the length of tiktoken's `encode_ordinary`. Text that spells out a special token
(`<|endoftext|>`) is ordinary text here, because in a transcript it is something that somebody wrote. What is counted
never raises: lone surrogates become U+FFFD, as in tiktoken, and a million blanks are just a lot of blanks.

Which one when (o200k_base, two cores, mixed transcript text):

| engine   | ready after | speed         | memory |                                                     |
|----------|-------------|---------------|--------|-----------------------------------------------------|
| splintr  | 0.05 s      | 5 x tiktoken  | 70 MB  | the start: less than 30 MB of text                  |
| toktok   | 0.2-0.5 s   | 9 x tiktoken  | 73 MB  | bulk: from 30 MB on its speed pays for its start    |
| tiktoken | 0.3 s       | 12-18 MB/s    | 92 MB  | the reference; when neither of the others is there  |
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from ctxctl.errors import ConfigError
from ctxctl.model.text import clean
from ctxctl.tokens import vocabulary
from ctxctl.tokens.backends import SplintrEngine, TiktokenEngine, ToktokEngine, is_panic

__all__ = [
    "BULK_CHARACTERS",
    "ENGINES",
    "AdaptiveEngine",
    "Engine",
    "SplintrEngine",
    "TiktokenEngine",
    "ToktokEngine",
    "clean",
    "count",
    "engine",
]

BULK_CHARACTERS = {"o200k_base": 30_000_000, "o200k_harmony": 30_000_000, "cl100k_base": 8_000_000}
"""The text from which toktok's faster counting makes up for its slower start, measured per encoding."""


class Engine(Protocol):
    """Counts the tokens of many texts. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """Which library counts: splintr, toktok or tiktoken."""

    @property
    def encoding(self) -> str:
        """The encoding it counts with, as tiktoken names it."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order, as ordinary text."""


class AdaptiveEngine:
    """Starts with the engine that is ready first and goes over to the one for bulk when there is much text.

    `size_hint` is the text to expect, in bytes: above `BULK_CHARACTERS` it begins with toktok. `prefer` names the
    engine to use throughout. A library that is missing or fails is dropped for the next one, tiktoken last; the numbers
    are the same. Nothing is loaded before the first text is counted.
    """

    def __init__(
        self, encoding: str = "o200k_base", size_hint: int | None = None, *, prefer: str | None = None
    ) -> None:
        vocabulary.check(encoding)
        if prefer is not None and prefer not in ENGINES:
            raise ValueError(f"unknown tokenizer {prefer!r}: valid are {', '.join(ENGINES)}")
        self.encoding = encoding
        self.dropped: dict[str, str] = {}
        """Engines that were tried and given up, with the reason."""
        self._prefer = prefer
        self._seen = 0
        self._bulk = size_hint is not None and size_hint > BULK_CHARACTERS[encoding]
        self._loaded: dict[str, Engine] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Which library counts now."""
        return self._current().name

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order, as ordinary text.

        Raises ImportError when no tokenizer library at all is installed.
        """
        if not texts:
            return []
        # Not locked: two threads at once may lose a part of the sum, which only makes the change come later.
        self._seen += sum(map(len, texts))
        if self._seen > BULK_CHARACTERS[self.encoding]:
            self._bulk = True
        while True:
            current = self._current()
            try:
                return current.count(texts)
            except BaseException as error:
                if not self._drop(current.name, error):
                    raise

    def _order(self) -> list[str]:
        order = ["toktok", "splintr", "tiktoken"] if self._bulk else ["splintr", "toktok", "tiktoken"]
        if self._prefer is not None:
            order.sort(key=lambda name: name != self._prefer)
        return [name for name in order if name not in self.dropped]

    def _current(self) -> Engine:
        with self._lock:
            while True:
                name = self._order()[0]
                if name in self._loaded:
                    return self._loaded[name]
                try:
                    self._loaded[name] = ENGINES[name](self.encoding)
                except BaseException as error:
                    if not self._drop(name, error):
                        raise

    def _drop(self, name: str, error: BaseException) -> bool:
        """Give up an engine because of `error`; False when the error isn't the engine's fault or nothing is left."""
        if name in self.dropped:
            return True  # another thread was faster
        ours = is_panic(error) or (isinstance(error, Exception) and not isinstance(error, MemoryError | TypeError))
        if not ours or len(self._order()) < 2:
            return False
        self.dropped[name] = f"{type(error).__name__}: {error}"
        return True


ENGINES: dict[str, type[SplintrEngine] | type[ToktokEngine] | type[TiktokenEngine]] = {
    "splintr": SplintrEngine,
    "toktok": ToktokEngine,
    "tiktoken": TiktokenEngine,
}
"""The engines by name, as `prefer` and the environment variable CTXCTL_TOKENIZER take them."""


def engine(encoding: str = "o200k_base", *, size_hint: int | None = None, prefer: str | None = None) -> Engine:
    """An engine for `encoding`; `size_hint` is the text to expect, in bytes.

    `prefer` (or else the environment variable CTXCTL_TOKENIZER) names the library to count with: splintr, toktok or
    tiktoken. If that one can't be used the others are, with the same numbers.

    Raises ValueError for an unknown encoding or library name, ConfigError for one in the environment.
    """
    return AdaptiveEngine(encoding, size_hint, prefer=prefer if prefer is not None else _preferred())


def count(text: str, encoding: str = "o200k_base") -> int:
    """The number of tokens of one text as ordinary text. Many texts: `engine(encoding).count(texts)`."""
    return _default_engine(encoding, _preferred()).count([text])[0]


def _preferred() -> str | None:
    """The library that the environment names."""
    name = os.environ.get("CTXCTL_TOKENIZER") or None
    if name is not None and name not in ENGINES:
        raise ConfigError(f"unknown tokenizer {name!r} in CTXCTL_TOKENIZER", hint=f"valid are {', '.join(ENGINES)}")
    return name


@lru_cache(maxsize=16)
def _default_engine(encoding: str, prefer: str | None) -> Engine:
    return engine(encoding, prefer=prefer)

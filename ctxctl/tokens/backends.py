"""The three libraries that count, each behind the same small class.

What they have in common: the numbers are those of tiktoken's `encode_ordinary`, special tokens that are spelled out are
ordinary text, lone surrogates become U+FFFD, and no text makes them raise.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from ctxctl.model.text import clean
from ctxctl.tokens import vocabulary

if TYPE_CHECKING:
    from splintr import AnyTokenizer

_BATCH_CHARACTERS = 2_000_000  # what splintr gets at once: it returns every id, 4 bytes each, to be told how many
_CACHE_CHARACTERS = 16_000_000  # splintr remembers 66,000 pieces of text, however long each is; see SplintrEngine
# tiktoken 0.14 panics where `\s+(?!\S)` meets 1,000,000 blanks, which it doesn't if line ends are among or after them.
_LONG_RUN = 400_000
# (The look-behind keeps the search from trying a run again at each of its blanks.)
_LONG_BLANKS = re.compile(rf"(?<![^\S\r\n])[^\S\r\n]{{{_LONG_RUN},}}+(?![\r\n])")
_RUN_PIECE = 262_144  # a power of two: the merges of a run of one character double, so such a cut falls between tokens


class SplintrEngine:
    """Counts with `splintr-rs`. Raises ImportError when that isn't installed."""

    name: ClassVar[str] = "splintr"

    # The process that started splintr's thread pool. Threads don't survive a fork: in a child of that process a call
    # that needs the pool would wait for ever.
    _pool_process: ClassVar[int | None] = None

    def __init__(self, encoding: str = "o200k_base") -> None:
        vocabulary.check(encoding)
        self.encoding = encoding
        self._tokenizer, self._markers = _load_splintr(vocabulary.ordinary(encoding))
        self._fed = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order, as ordinary text."""
        counts: list[int] = []
        for batch in _batches(texts):
            try:
                counts += self._count_batch(batch)
            except UnicodeEncodeError:
                counts += self._count_batch([clean(text) for text in batch])
            self._bound_cache(batch)
        return counts

    def _count_batch(self, batch: Sequence[str]) -> list[int]:
        # The batch calls of splintr match special tokens; `encode_ordinary` doesn't, but is three times slower. So only
        # texts that may hold one go there. In the first call they are replaced by nothing, to keep the places.
        suspects = [i for i, text in enumerate(batch) if any(marker in text for marker in self._markers)]
        plain = list(batch)
        for i in suspects:
            plain[i] = ""
        counts = self._count_plain(plain)
        for i in suspects:
            counts[i] = len(self._tokenizer.encode_ordinary(batch[i]))
        return counts

    def _count_plain(self, batch: list[str]) -> list[int]:
        process = os.getpid()
        if SplintrEngine._pool_process is None:
            SplintrEngine._pool_process = process
        if SplintrEngine._pool_process != process:
            return [len(self._tokenizer.encode_flat(text)) // 4 for text in batch]
        offsets = array("Q", self._tokenizer.encode_batch_flat(batch)[1])
        return [end - start for start, end in pairwise(offsets)]

    def _bound_cache(self, batch: Sequence[str]) -> None:
        # The cache is bounded in entries but not in bytes: distinct long words (base64, hashes) fill it without limit,
        # with about three times their size. Words that matter are back in it after a megabyte.
        self._fed += sum(map(len, batch))
        if self._fed > _CACHE_CHARACTERS:
            self._fed = 0
            self._tokenizer.clear_cache()


class ToktokEngine:
    """Counts with `toktok-rs`. Raises ImportError when that isn't installed."""

    name: ClassVar[str] = "toktok"

    def __init__(self, encoding: str = "o200k_base") -> None:
        vocabulary.check(encoding)
        import toktok  # type: ignore[import-untyped, unused-ignore]

        self.encoding = encoding
        self._batch_count = toktok.batch_count

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order, as ordinary text."""
        # One thread: the caller reads the next part of the file meanwhile, and it survives a fork.
        try:
            counts: list[int] = self._batch_count(texts, self.encoding, threads=1)
        except UnicodeEncodeError:
            counts = self._batch_count([clean(text) for text in texts], self.encoding, threads=1)
        return counts


class TiktokenEngine:
    """Counts with tiktoken itself, on the embedded vocabulary. Raises ImportError when that isn't installed."""

    name: ClassVar[str] = "tiktoken"

    def __init__(self, encoding: str = "o200k_base") -> None:
        self.encoding = encoding
        self._encoding = vocabulary.encoding(vocabulary.ordinary(encoding))

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order, as ordinary text.

        A run of more than 400,000 blanks is counted in pieces of 262,144: exact when it is all one character, else a
        token or two per piece may be missing or too many.
        """
        return [self._count_one(text) for text in texts]

    def _count_one(self, text: str) -> int:
        try:
            return sum(len(self._encoding.encode_ordinary(piece)) for piece in _split_long_runs(text))
        except BaseException as error:
            # Known panics are kept from happening above; one that isn't known is worth two halves and a token too many.
            if not is_panic(error) or len(text) < 2:
                raise
        middle = len(text) // 2
        return self._count_one(text[:middle]) + self._count_one(text[middle:])


def is_panic(error: BaseException) -> bool:
    """Whether `error` is a panic of a Rust library, which is no `Exception` and has no importable class."""
    return type(error).__name__ == "PanicException"


@lru_cache(maxsize=2)
def _load_splintr(encoding: str) -> tuple[AnyTokenizer, tuple[str, ...]]:
    """The tokenizer, and strings of which a text that holds a special token has at least one (today just "<|")."""
    import splintr

    tokenizer = splintr.Tokenizer.from_pretrained(encoding)
    return tokenizer, tuple(sorted({special[:2] for special in tokenizer.special_tokens()}))


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """`texts` in order, in parts of about `_BATCH_CHARACTERS`; usually all of them at once."""
    start = size = 0
    for i, text in enumerate(texts):
        size += len(text)
        if size > _BATCH_CHARACTERS:
            yield texts[start : i + 1]
            start, size = i + 1, 0
    if start < len(texts):
        yield texts[start:] if start else texts


def _split_long_runs(text: str) -> list[str]:
    """`text` in pieces none of which makes tiktoken panic."""
    if len(text) < _LONG_RUN:
        return [text]
    pieces, start = [], 0
    for run in _LONG_BLANKS.finditer(text):
        for cut in range(run.start() + _RUN_PIECE, run.end(), _RUN_PIECE):
            pieces.append(text[start:cut])
            start = cut
    return [*pieces, text[start:]]

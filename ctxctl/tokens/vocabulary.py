"""The OpenAI vocabularies, carried in the package: `tiktoken.Encoding` objects that never need a network.

tiktoken fetches its vocabularies at first use and deletes a cached file whose hash it doesn't like; a counter must
work on a machine without internet and must not have its own data deleted. So the encodings are built here, directly,
from `data/*.bin` (format: `tests/tools/make_vocabularies.py`); tiktoken's registry, its cache folder and its loader are
never touched. The split patterns and special tokens are those of `tiktoken_ext.openai_public` in tiktoken 0.14.0; a
test holds them to the tiktoken that is installed.
"""

from __future__ import annotations

import pkgutil
import sys
import threading
import zlib
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony")
"""The names that `encoding` knows. `o200k_harmony` (gpt-oss) has the ranks of `o200k_base` and more special tokens."""

_O200K_PATTERN = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)
_CL100K_PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
_O200K_SPECIALS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
_CL100K_SPECIALS = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}
_HARMONY_NAMED = {
    "<|startoftext|>": 199998,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}

_lock = threading.Lock()
_ranks: dict[str, dict[bytes, int]] = {}
_encodings: dict[str, tiktoken.Encoding] = {}


def encoding(name: str) -> tiktoken.Encoding:
    """The tiktoken encoding `name` (one of `ENCODINGS`), built from the embedded vocabulary.

    The first call for a name takes 0.15 to 0.3 s; later ones return the same object. Safe to call from several threads.

    Raises ValueError for a name that isn't in `ENCODINGS` and ImportError when tiktoken isn't installed.
    """
    check(name)
    found = _encodings.get(name)
    if found is not None:
        return found
    import tiktoken

    with _lock:
        if name not in _encodings:
            _encodings[name] = tiktoken.Encoding(
                name,
                pat_str=_CL100K_PATTERN if name == "cl100k_base" else _O200K_PATTERN,
                mergeable_ranks=_load(ordinary(name)),
                special_tokens=special_tokens(name),
            )
        return _encodings[name]


def check(name: str) -> None:
    """Raise ValueError, with the valid names, unless `name` is one of `ENCODINGS`."""
    if name not in ENCODINGS:
        raise ValueError(f"unknown encoding {name!r}: valid are {', '.join(ENCODINGS)}")


def ordinary(name: str) -> str:
    """The encoding that gives the same ids for ordinary text and has a vocabulary file of its own."""
    return "o200k_base" if name == "o200k_harmony" else name


def special_tokens(name: str) -> dict[str, int]:
    """The special tokens of an encoding, as text -> id."""
    check(name)
    if name == "cl100k_base":
        return dict(_CL100K_SPECIALS)
    if name == "o200k_base":
        return dict(_O200K_SPECIALS)
    # As tiktoken has it: every id of the range that has no name of its own is "reserved", and 200018 has two names.
    named = {**_O200K_SPECIALS, **_HARMONY_NAMED}
    taken = {*_HARMONY_NAMED.values(), _O200K_SPECIALS["<|endoftext|>"]}
    return named | {f"<|reserved_{i}|>": i for i in range(200000, 201088) if i not in taken}


def unpack(packed: bytes) -> dict[bytes, int]:
    """Token bytes -> rank, in rank order, from the packed form (see `tests/tools/make_vocabularies.py`).

    Raises ValueError when the data is damaged.
    """
    try:
        raw = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"damaged vocabulary: {error}") from error
    count, rest = divmod(len(raw) - 256, 6)
    if count < 0 or rest:
        raise ValueError(f"damaged vocabulary: {len(raw)} bytes")
    tokens = [raw[i : i + 1] for i in range(256)]
    add = tokens.append
    try:
        for left, right in zip(_column(raw, 0, count), _column(raw, 3, count), strict=True):
            add(tokens[left] + tokens[right])
    except IndexError:
        raise ValueError("damaged vocabulary: a merge of tokens that don't exist yet") from None
    return dict(zip(tokens, range(len(tokens)), strict=True))


def _column(raw: bytes, plane: int, count: int) -> array[int]:
    """One column of 24-bit numbers out of its three planes (low, middle, high byte)."""
    wide = bytearray(4 * count)
    for byte in range(3):
        start = 256 + (plane + byte) * count
        wide[byte::4] = raw[start : start + count]
    # "I" has 4 bytes on every platform that CPython runs on; the planes are put together little-endian.
    column = array("I", bytes(wide))
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _load(name: str) -> dict[bytes, int]:
    """The ranks of a vocabulary file; shared by the encodings built on it. Call with the lock held."""
    if name not in _ranks:
        packed = pkgutil.get_data(__package__, f"data/{name}.bin")
        if packed is None:
            raise FileNotFoundError(f"data/{name}.bin is missing from {__package__}")
        _ranks[name] = unpack(packed)
    return _ranks[name]

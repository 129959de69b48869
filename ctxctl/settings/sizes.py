"""Sizes as users write them: `200k`, `1m`, `200_000`."""

from __future__ import annotations

import re

SIZE = re.compile(r"^\s*(\d[\d_]*(?:\.\d+)?)\s*([kKmM]?)\s*$")
LARGEST = 10**9


def size(text: str) -> int:
    """Tokens of a written size; ValueError with the accepted forms otherwise."""
    match = SIZE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number of tokens; write 200000, 200_000, 200k or 1m")
    factor = {"": 1, "k": 1000, "m": 1_000_000}[match[2].lower()]
    number = float(match[1].replace("_", "")) * factor
    if number != int(number) or not 0 < number <= LARGEST:
        raise ValueError(f"{text!r} must be a whole number of tokens from 1 to 1,000,000,000")
    return int(number)


def share(text: str) -> float:
    """A share of the window, `0.9` or `90%`; ValueError unless it is a finite number above 0 and at most 10."""
    raw = text.strip()
    try:
        number = float(raw[:-1]) / 100 if raw.endswith("%") else float(raw)
    except ValueError:
        raise ValueError(f"{text!r} is not a share; write 0.9 or 90%") from None
    if not 0 < number <= 10:
        raise ValueError(f"{text!r} must be a share above 0 and at most 10 (1000%), such as 0.9 or 90%")
    return number

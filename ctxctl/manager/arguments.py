"""What callers hand to the manager, looked at before anything is done with it."""

from __future__ import annotations

from collections.abc import Callable


def whole(name: str, value: int, least: int = 0) -> int:
    """A whole number of tokens; TypeError for anything else, ValueError below the least."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number of tokens, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more tokens, not {value!r}")
    return value


def share(name: str, value: float | None) -> float | None:
    """A utilization above 0 and up to 1, or None; TypeError for anything else, ValueError outside of these."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"the {name} must be a number, not {value!r}")
    if not 0 < value <= 1:  # so that NaN is refused too
        raise ValueError(f"the {name} must be above 0 and at most 1, not {value!r}")
    return value


def string(name: str, value: str) -> str:
    """A text; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


def counted(count: Callable[[str, str], int]) -> Callable[[str, str], int]:
    """A counter whose counts are whole and not negative; its calls raise ValueError for what is neither."""
    if not callable(count):
        raise TypeError(f"count must be a function of a text and its kind, not {count!r}")

    def checked(text: str, kind: str) -> int:
        tokens = count(text, kind)
        try:
            number = int(tokens)
        except (TypeError, ValueError, OverflowError):  # NaN, infinity, None
            number = -1
        if number < 0:
            raise ValueError(f"count must return a number of tokens, 0 or more, not {tokens!r}")
        return number

    return checked

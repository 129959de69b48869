"""Work on a text that comes up again is done once, and what is kept stays within its bound."""

from __future__ import annotations

from ctxctl.model.remember import LONGEST, MOST, remembered


def test_done_once_until_too_much_is_held() -> None:
    asked: list[str] = []

    @remembered
    def size(text: str) -> int:
        asked.append(text)
        return len(text)

    assert [size(text) for text in ("a", "bb", "a", "", "")] == [1, 2, 1, 0, 0]
    assert asked == ["a", "bb", ""]
    long = "x" * (LONGEST + 1)
    assert size(long) == size(long) == LONGEST + 1 and asked[3:] == [long, long]
    asked.clear()
    for n in range(MOST // LONGEST + 1):
        size(f"{n:09d}" + "y" * (LONGEST - 9))
    size("a")
    assert asked[-1] == "a" and len(asked) == MOST // LONGEST + 2

"""Attention: hand-computed places, visibility and what lies in the weak middle (P7)."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from ctxctl import AnalysisOptions, analyze, load_models
from ctxctl.pressure.attention import Attention, WeakMiddle, expected_visibility, in_middle, positions, relevance
from ctxctl.pressure.options import PressureOptions
from ctxctl.tokens import count


@pytest.mark.parametrize(
    ("position", "age", "likeness", "utilization", "expected"),
    [
        (0.0, 0, 1.0, 1.0, 1.0),
        (1.0, 0, 1.0, 1.0, 1.0),
        (0.5, 0, 1.0, 1.0, 0.5),
        (0.5, 0, 1.0, 0.5, 0.75),
        (0.5, 0, 1.0, 0.0, 1.0),
        (0.5, 0, 1.0, 3.0, 0.5),
        (0.25, 0, 1.0, 1.0, 0.625),
        (0.0, 40, 1.0, 1.0, 0.5),
        (0.0, 80, 1.0, 1.0, 0.25),
        (0.0, 0, 0.0, 1.0, 0.5),
        (0.5, 40, 0.5, 1.0, 0.1875),
    ],
)
def test_visibility(position: float, age: int, likeness: float, utilization: float, expected: float) -> None:
    assert expected_visibility(position, age, likeness, utilization) == pytest.approx(expected)


def test_relevance_is_the_share_of_the_task_s_words() -> None:
    task = "Migrate the service from axios to fetch."  # migrate service from axios fetch
    assert relevance("The axios service is old", task) == pytest.approx(2 / 5)
    assert relevance(task, task) == 1.0
    assert relevance("nothing alike", task) == 0.0
    assert relevance("anything", "") == 0.0


def test_positions() -> None:
    found = positions([2, 0], array("d", [100, 50, 300]), 100)
    assert found == {2: pytest.approx(0.5), 0: pytest.approx(0.9)}
    assert positions([], array("d"), 0) == {}
    assert positions([0], array("d", [0.0]), 0) == {0: 0.0}


def test_the_middle_is_half_of_the_window() -> None:
    places = {0: 0.24, 1: 0.25, 2: 0.5, 3: 0.75, 4: 0.76}
    assert in_middle(places, [(n, 10**n) for n in range(6)]) == 1_110


FILLER = " word" * 400
GOAL = "Fix the login page. You must never touch the tests. <preserve>port 8443</preserve>"


def chat(folder: Path, *messages: tuple[str, str]) -> str:
    record: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": r, "content": c} for r, c in messages]}
    path = folder / "x.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    return str(path)


FRAME = 4  # tokens around one message, as the encoding's makers state them


def attention(path: str, window: int | None, watermark: float = 0.5) -> Attention:
    options = AnalysisOptions(window=window, pressure=PressureOptions(watermark=watermark))
    found = analyze(path, load_models(), options).attention
    assert found is not None
    return found


def test_a_goal_in_the_middle_of_a_full_window_is_weak(tmp_path: Path) -> None:
    path = chat(tmp_path, ("system", FILLER), ("user", GOAL), ("assistant", FILLER))
    used = 2 * count(FILLER) + count(GOAL) + 3 * FRAME
    found = attention(path, 1_000)
    assert found.tokens_beyond == used - 500
    constraint = count("You must never touch the tests.")
    assert found.weak_middle == WeakMiddle(count(GOAL), constraint, count("port 8443"))
    assert found.goal_visibility == pytest.approx(1 - 0.5 * used / 1_000 * 4 * 0.25)


def test_a_goal_at_the_start_is_not(tmp_path: Path) -> None:
    path = chat(tmp_path, ("user", GOAL), ("assistant", FILLER), ("user", FILLER), ("assistant", FILLER))
    found = attention(path, 2_000)
    assert found.tokens_beyond == 3 * count(FILLER) + count(GOAL) + 4 * FRAME - 1_000
    assert found.weak_middle == WeakMiddle(0, 0, 0)


def test_below_the_watermark_nothing_is_weak(tmp_path: Path) -> None:
    path = chat(tmp_path, ("system", FILLER), ("user", GOAL), ("assistant", FILLER))
    found = attention(path, 10_000)
    assert (found.watermark, found.tokens_beyond, found.weak_middle) == (0.5, 0, WeakMiddle(0, 0, 0))


def test_the_watermark_can_be_set(tmp_path: Path) -> None:
    path = chat(tmp_path, ("user", GOAL), ("assistant", FILLER))
    used = count(FILLER) + count(GOAL) + 2 * FRAME
    assert attention(path, 1_000, 0.4).tokens_beyond == used - 400
    assert attention(path, used * 2, 0.5).tokens_beyond == 0


def test_without_a_window_nothing_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"role": "user", "content": GOAL}) + "\n", encoding="utf-8")
    found = attention(str(path), None)
    assert (found.tokens_beyond, found.weak_middle) == (None, WeakMiddle(None, None, None))

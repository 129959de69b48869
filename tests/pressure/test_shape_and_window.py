"""The shape of a curve (O1), and how the size of the window is known."""

from __future__ import annotations

import pytest

from ctxctl.model.limits import ModelRow, ModelTable
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import Usage
from ctxctl.pressure.shape import shape_of
from ctxctl.pressure.window import WindowSize, why_unknown, window_of

TABLE = ModelTable(
    {
        "small": ModelRow("small", window=10_000),
        "claude-two": ModelRow("claude-two", window=200_000, long_window=1_000_000),
        "blank": ModelRow("blank"),
    }
)


@pytest.mark.parametrize(
    ("tokens", "shape"),
    [
        ([], None),
        ([1, 2], None),
        ([100, 100, 100], "flat"),
        ([100, 105, 110, 120], "flat"),
        ([100, 110, 120, 134], "rising"),  # 34 of 134 is more than a quarter
        ([10, 50, 100], "rising"),
        ([50, 100, 76], "rising"),
        ([40, 100, 75], "rising"),  # a fall by a quarter is no tooth yet
        ([50, 100, 74, 90], "sawtooth"),
        ([90, 100, 30, 60, 90, 100, 30], "sawtooth"),
        ([0, 0, 0], "flat"),
    ],
)
def test_shape(tokens: list[int], shape: str | None) -> None:
    assert shape_of(tokens) == shape


def transcript(model: str | None, peak: int = 0, stated: int | None = None) -> Transcript:
    usage = (Usage(1, context=peak), Usage(1, context=10**9, thread="helper")) if peak else ()
    return Transcript("id", "claude-code", "x.jsonl", model=model, usage=usage, window=stated)


@pytest.mark.parametrize(
    ("given", "model", "peak", "stated", "expected"),
    [
        (5_000, "small", 9_000, 7_000, (5_000, "config")),
        (None, "small", 9_000, 7_000, (7_000, "transcript")),
        (None, "small", 9_000, None, (10_000, "model table")),
        (None, "small", 10_000, None, (10_000, "model table")),
        (None, "small", 10_001, None, (None, "unknown")),  # the row is wrong for this session
        (None, "claude-two", 194_000, None, (200_000, "assumed")),
        (None, "claude-two", 200_000, None, (200_000, "assumed")),
        (None, "claude-two", 200_001, None, (1_000_000, "transcript")),
        (None, "claude-two[1m]", 5_000, None, (1_000_000, "transcript")),
        (None, "claude-other[1m]", 5_000, None, (1_000_000, "transcript")),
        (None, "blank", 5_000, None, (None, "unknown")),
        (None, "nobody-knows", 5_000, None, (None, "unknown")),
        (None, None, 0, None, (None, "unknown")),
    ],
)
def test_order_of_sources(
    given: int | None, model: str | None, peak: int, stated: int | None, expected: tuple[int | None, str]
) -> None:
    assert window_of(given, transcript(model, peak, stated), TABLE) == WindowSize(*expected)  # type: ignore[arg-type]


def mixed(*calls: tuple[str | None, int], models: tuple[str, ...] = ()) -> Transcript:
    usage = tuple(Usage(n, context=tokens, model=model) for n, (model, tokens) in enumerate(calls, 1))
    named = {model: 1 for model in (*models, *(m for m, _ in calls if m))}
    return Transcript("id", "claude-code", "x.jsonl", model=calls[0][0], models=named, usage=usage)


@pytest.mark.parametrize(
    ("calls", "models", "expected"),
    [
        # the model that answered last has the window now, whatever most calls went to
        ([("claude-two", 5_000), ("claude-two", 6_000), ("small", 7_000)], (), (10_000, "model table")),
        # a request of another model proves nothing for this one
        ([("claude-two", 150_000), ("small", 7_000)], (), (10_000, "model table")),
        ([("claude-two", 250_000), ("claude-two", 9_000)], (), (1_000_000, "transcript")),
        # the mark stands on one of several spellings only
        ([("claude-two", 5_000)], ("claude-two[1m]",), (1_000_000, "transcript")),
        ([("small", 5_000)], ("claude-two[1m]",), (10_000, "model table")),
    ],
)
def test_windows_of_sessions_with_several_models(
    calls: list[tuple[str | None, int]], models: tuple[str, ...], expected: tuple[int | None, str]
) -> None:
    found = window_of(None, mixed(*calls, models=models), TABLE)
    assert (found.tokens, found.source) == expected


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([(None, 5)], "no model is named"),
        ([("smal", 5)], "'smal' is not in the table (like it: small)"),
        ([("blank", 5)], "the table has no window for model 'blank'"),
        ([("small", 12_345)], "a request of 12,345 tokens was larger than the window of 10,000"),
    ],
)
def test_why_a_window_is_not_known(calls: list[tuple[str | None, int]], words: str) -> None:
    transcript = mixed(*calls)
    assert window_of(None, transcript, TABLE).tokens is None
    assert words in why_unknown(transcript, TABLE)

"""Names of models: what is cut off, what is not, and that nothing is guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.limits import ModelRow, ModelTable, candidates, names_long_window

TABLE = ModelTable(
    {
        name: ModelRow(name, window=window, date=date)
        for name, window, date in (
            ("claude-sonnet-4", 200_000, "2026-01-01"),
            ("claude-sonnet-4-5", 200_000, "2026-01-02"),
            ("claude-opus-4-6", 200_000, None),
            ("claude-3-5-sonnet", 200_000, None),
            ("gpt-4", 8_192, None),
            ("gpt-4o", 128_000, None),
            ("gpt-4o-2024-05-13", 128_000, None),
            ("gpt-5", 272_000, None),
            ("gpt-5.1-codex", 272_000, None),
            ("gpt-5.1-codex-max", 272_000, None),
            ("gpt-5.2-codex", 272_000, None),
            ("gemini-3-pro-preview", 1_048_576, None),
            ("gemini-2.5-pro", 1_048_576, None),
            ("gemini-2.0-flash", 1_048_576, None),
            ("grok-4-fast", 2_000_000, None),
            ("kimi-k2", 131_072, None),
            ("kimi-k2-thinking", 262_144, None),
            ("llama-4-maverick", 1_000_000, None),
            ("mistral-large", 262_144, None),
            ("nova-pro", 300_000, None),
        )
    },
    {"gemini-3-pro": "gemini-3-pro-preview", "claude-sonnet-4-0": "claude-sonnet-4"},
)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4-5", "claude-sonnet-4-5"),
        (" claude-sonnet-4-5 ", "claude-sonnet-4-5"),
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("claude-4-5-sonnet-thinking", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5:beta", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("vertex_ai/claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("litellm_proxy/claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("databricks-claude-sonnet-4", "claude-sonnet-4"),
        ("claude-4-sonnet", "claude-sonnet-4"),
        ("claude-sonnet-4-0", "claude-sonnet-4"),
        ("claude-sonnet-3.5", "claude-3-5-sonnet"),
        ("claude-3.5-sonnet-20241022", "claude-3-5-sonnet"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("claude-opus-4.6-1m", "claude-opus-4-6"),
        ("claude-opus-4-6-20260205[1M]", "claude-opus-4-6"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-5-high", "gpt-5"),
        ("gpt-5.2-codex", "gpt-5.2-codex"),
        ("gpt-5-2-codex-xhigh", "gpt-5.2-codex"),
        ("gpt-5.1-codex-max", "gpt-5.1-codex-max"),
        ("models/gemini-3-pro-preview", "gemini-3-pro-preview"),
        ("google-gla:gemini-3-pro", "gemini-3-pro-preview"),
        ("gemini-2.5-pro-05-06", "gemini-2.5-pro"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("x-ai/grok-4-fast:free", "grok-4-fast"),
        ("grok-4-fast-non-reasoning", "grok-4-fast"),
        ("accounts/fireworks/models/kimi-k2-thinking", "kimi-k2-thinking"),
        ("openai/openrouter-llama-4-maverick", "llama-4-maverick"),
        ("mistral-large-latest", "mistral-large"),
        ("amazon.nova-pro-v1:0", "nova-pro"),
        ("amazon/nova-pro-v1", "nova-pro"),
    ],
)
def test_decorated_names_find_their_model(name: str, model: str) -> None:
    row = TABLE.find(name)
    assert row is not None
    assert row.id == model


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "   ",
        "<synthetic>",
        "default",
        "acme-llm-9",
        "gpt-4-turbo",
        "gpt-4-0125-preview",
        "gpt-4o-mini",
        "gpt-5.3",
        "gpt-4o-audio-preview",
        "claude",
        "claude-sonnet",
        "claude-sonnet-latest",
        "claude-sonnet-4-7",
        "claude-sonnet-45",
        "claude-opus-4-6-fast",
        "ft:gpt-4o-2024-08-06:acme::x1",
        "openai/ft:gpt-4o",
        "gpt-4o:batch",
        "kimi-k2-max",
        "mistral-large-2407",
        "nova",
        "/",
        ":",
        "openai/",
    ],
)
def test_other_names_find_nothing(name: str | None) -> None:
    assert TABLE.find(name) is None


def test_the_most_literal_candidate_comes_first() -> None:
    names = candidates("us.anthropic.claude-sonnet-4-20250514-v1:0")
    assert names[0] == "us.anthropic.claude-sonnet-4-20250514-v1:0"
    assert names.index("claude-sonnet-4-20250514") < names.index("claude-sonnet-4")
    assert candidates("<synthetic>") == candidates(" ") == []


def test_a_huge_name_is_cheap() -> None:
    assert candidates("a:" * 50_000 + "gpt-4o") == ["a:" * 50_000 + "gpt-4o"]


@given(st.text(max_size=60))
def test_any_text_is_a_name(name: str) -> None:
    found = candidates(name)
    assert len(found) == len(set(found))
    assert all(found)
    names_long_window(name)


@given(st.text(alphabet="abcdegilmnoptu0123456789-./:@[]v", max_size=80))
def test_candidates_stay_few(name: str) -> None:
    assert len(candidates(name)) <= 400


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("claude-opus-4-6[1m]", True),
        ("Claude-Sonnet-4-5[1M] ", True),
        ("anthropic/claude-opus-4.6-1m", True),
        ("opus[1m]", True),
        ("claude-opus-4-6", False),
        ("qwen2.5-7b-instruct-1m", False),
        ("", False),
    ],
)
def test_long_window_by_name(name: str, long: bool) -> None:
    assert names_long_window(name) is long


def test_suggestions() -> None:
    assert TABLE.suggest("claude-sonet-4-5")[0] == "claude-sonnet-4-5"
    assert TABLE.suggest("gemini-3-por")[0] == "gemini-3-pro-preview"  # by its alias
    assert "gpt-5.2-codex" in TABLE.suggest("openai/gpt-5.3-codex")
    assert TABLE.suggest("acme-llm-9") == TABLE.suggest("<synthetic>") == []
    assert len(TABLE.suggest("gpt-4")) <= 3


def test_rows_date_and_aliases() -> None:
    ids = [row.id for row in TABLE.rows()]
    assert ids == sorted(ids)
    assert TABLE.date == "2026-01-02"
    assert TABLE.aliases["gemini-3-pro"] == "gemini-3-pro-preview"
    assert ModelTable({}).date is None


def test_aliases_are_checked() -> None:
    rows = {"a": ModelRow("a")}
    with pytest.raises(ValueError, match="'b' names no model: 'c'"):
        ModelTable(rows, {"b": "c"})
    with pytest.raises(ValueError, match="'a' is also a model"):
        ModelTable(rows, {"a": "a"})

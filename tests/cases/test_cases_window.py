"""How large the window is, how that is known, and what a wrong or unknown size must not lead to."""

from __future__ import annotations

from math import isfinite
from typing import Any

import pytest


def session(claude: Any, prompt: int, model: str) -> Any:
    made = claude(model)
    made.user("start")
    made.assistant("ok", usage=(3, 997, prompt - 1000, 20))
    return made


def numbers(value: Any) -> list[float]:
    """Every number of a JSON value."""
    if isinstance(value, dict):
        return [n for v in value.values() for n in numbers(v)]
    if isinstance(value, list):
        return [n for v in value for n in numbers(v)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


BOTH_SIZES = "claude-sonnet-4-5"  # the bare name says nothing about which of its two windows is in use

MODELS = [
    # (model, prompt tokens, window, source, utilization)
    (BOTH_SIZES, 150_000, 200_000, "assumed", 0.75),
    (BOTH_SIZES, 199_000, 200_000, "assumed", 0.995),
    (BOTH_SIZES, 200_000, 200_000, "assumed", 1.0),
    (BOTH_SIZES, 200_001, 1_000_000, "transcript", 0.200001),
    (BOTH_SIZES, 340_000, 1_000_000, "transcript", 0.34),
    ("claude-opus-4-6[1m]", 55_000, 1_000_000, "transcript", 0.055),
    ("claude-sonnet-4-5[1m]", 150_000, 1_000_000, "transcript", 0.15),
    ("claude-sonnet-4-5-20250929[1M]", 150_000, 1_000_000, "transcript", 0.15),
    ("claude-haiku-4-5", 50_000, 200_000, "model table", 0.25),
    ("nobody-knows-me-1", 4000, None, "unknown", None),
]


@pytest.mark.parametrize(("model", "prompt", "window", "source", "share"), MODELS)
def test_the_window_and_its_source(
    model: str, prompt: int, window: Any, source: str, share: Any, claude: Any, analyzed: Any
) -> None:
    result = analyzed(session(claude, prompt, model))
    assert result["window"] == {"tokens": window, "source": source}
    assert result["peak"]["utilization"] == (share if share is None else pytest.approx(share))
    assert result["context"]["reported"] == prompt and result["transcript"]["model"] == model


def test_the_source_is_shown_to_people(claude: Any, save: Any, within: Any) -> None:
    text = within("analyze", save(session(claude, 150_000, BOTH_SIZES))).out.decode()
    assert "200,000" in text and "assumed" in text
    text = within("analyze", "--window", "1m", save(session(claude, 150_000, BOTH_SIZES))).out.decode()
    assert "1,000,000" in text and "assumed" not in text and "(15%)" in text


def test_more_than_the_table_allows_is_not_a_full_window(claude: Any, analyzed: Any) -> None:
    """A model of one size: the row is wrong for this session, and what is right is not known."""
    result = analyzed(session(claude, 260_000, "claude-haiku-4-5"))
    assert result["window"] == {"tokens": None, "source": "unknown"}
    assert result["pressure"][0]["utilization"] is None and result["pressure"][0]["level"] is None


def test_what_is_said_explicitly_beats_what_is_known(
    codex: Any, save: Any, within: Any, folder: Any, monkeypatch: Any
) -> None:
    """A flag, then the environment, the settings file, the transcript, the table of models."""
    rollout = codex()
    rollout.write("turn_context", {"model": "gpt-5-codex"})
    rollout.message("user", "start")
    rollout.tokens((40_000, 0, 500), (40_000, 0, 500), window=None)
    bare = save(rollout, "bare.jsonl")
    rollout.tokens((81_000, 0, 900), (40_600, 0, 400), window=300_000)
    path = save(rollout)

    def window(*options: str, of: Any = path) -> Any:
        done = within("analyze", "--json", *options, of)
        assert done.status == 0, done.err
        return done.result["window"]["tokens"], done.result["window"]["source"]

    assert window(of=bare)[1] == "model table"
    assert window() == (300_000, "transcript")
    (folder / ".ctxctl.yaml").write_text("max_context_tokens: 150k\n")
    assert window() == (150_000, "config")
    monkeypatch.setenv("CTXCTL_MAX_CONTEXT_TOKENS", "120000")
    assert window() == (120_000, "config")
    (folder / "own.yaml").write_text("max_context_tokens: 90_000\n")
    assert window("--config", "own.yaml") == (120_000, "config")
    assert window("--config", "own.yaml", "--window", "64k") == (64_000, "config")


def test_an_own_row_for_a_model(claude: Any, save: Any, within: Any, folder: Any) -> None:
    (folder / ".ctxctl.yaml").write_text("models:\n  nobody-knows-me-1: {window: 50000}\n")
    done = within("analyze", "--json", save(session(claude, 5000, "nobody-knows-me-1")))
    assert done.result["window"] == {"tokens": 50_000, "source": "model table"}
    assert done.result["peak"]["utilization"] == 0.1


def test_an_unknown_model_gives_tokens_without_a_share(claude: Any, save: Any, within: Any) -> None:
    path = save(session(claude, 1500, "nobody-knows-me-1"))
    done = within("analyze", "--json", path)
    assert done.status == 0 and "nobody-knows-me-1" in done.err and "--window" in done.err
    assert done.result["context"]["reported"] == 1500 and done.result["cost"] is None
    row = done.result["pressure"][0]
    assert [row[k] for k in ("utilization", "level", "turns_until_overflow")] == [None] * 3
    assert all(isfinite(n) for n in numbers(done.result))
    text = within("analyze", path).out.decode()
    assert "1,500" in text and "nan" not in text.lower().split() and "inf" not in text.lower().split()
    told = within("analyze", "--json", "--window", "10k", path).result
    assert told["peak"]["utilization"] == 0.15 and told["window"]["source"] == "config"


def test_a_chat_without_model_and_usage(analyzed: Any) -> None:
    result = analyzed([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    assert result["window"] == {"tokens": None, "source": "unknown"}
    assert result["transcript"]["model"] is None and result["context"]["counted"] >= 2
    assert result["pressure"][0]["utilization"] is None and result["peak"]["utilization"] is None
    assert "unknown_window" in [d["code"] for d in result["diagnostics"]]


CHAT = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes?"}]
WRONG_FLAGS = ["0", "-1", "-200k", "0k", "1e6", "nan", "inf", "200kb", "", " ", "0.5", "1.5", "2000m", "200,000", "ten"]


@pytest.mark.parametrize("value", WRONG_FLAGS)
def test_a_wrong_size_as_a_flag(value: str, save: Any, within: Any) -> None:
    done = within("analyze", "--json", f"--window={value}", save(CHAT))
    assert (done.status, done.out) == (2, b"")
    assert "--window" in done.err and value in done.err


WRONG_SETTINGS = {
    "max_context_tokens: 0": "max_context_tokens",
    "max_context_tokens: -5": "max_context_tokens",
    "max_context_tokens: .inf": "max_context_tokens",
    "max_context_tokens: .nan": "max_context_tokens",
    "max_context_tokens: null": "max_context_tokens",
    "max_context_tokens: true": "max_context_tokens",
    "max_context_tokens: [200000]": "max_context_tokens",
    "max_context_tokens: 16384.5": "max_context_tokens",
    "max_context_tokens: many": "max_context_tokens",
    "max_context_tokens: '0'": "max_context_tokens",
    "max_context_token: 200000": "max_context_token",
    "budget: {allocations: {output_reserved: 1.0}}": "budget.allocations",
    "budget: {allocations: {output_reserved: 1.95}}": "output_reserved",
    "budget: {allocations: {message_history: 0.9}}": "allocations",
    "budget: {allocations: {reserve: 0.1}}": "reserve",
    "budget: {soft_limit_pct: 0}": "soft_limit_pct",
    "models: {my-model: {window: 0}}": "my-model",
    "models: {my-model: {window: -1}}": "my-model",
}


@pytest.mark.parametrize("text", WRONG_SETTINGS)
def test_a_window_that_leaves_nothing_is_refused(text: str, save: Any, within: Any, folder: Any) -> None:
    (folder / "own.yaml").write_text(text + "\n")
    done = within("analyze", "--json", "--config", "own.yaml", save(CHAT))
    assert (done.status, done.out) == (4, b""), done.err
    assert WRONG_SETTINGS[text] in done.err and "own.yaml" in done.err


@pytest.mark.parametrize("window", ["1", "2", "7", "1k", "1000m"])
def test_a_tiny_or_huge_window_divides_nothing_by_zero(window: str, save: Any, within: Any) -> None:
    path = save(CHAT)
    for form in ("json", "text", "csv", "markdown"):
        done = within("analyze", "--window", window, "--output-format", form, path)
        assert done.status == 0
        if form == "json":
            assert all(isfinite(n) for n in numbers(done.result))
            assert done.result["transcript"]["compactions"] == 0
            row = done.result["pressure"][0]
            assert row["utilization"] == pytest.approx(row["tokens"] / done.result["window"]["tokens"])
            assert (row["turns_until_overflow"] == -1) == (row["utilization"] >= 1)


def test_utilization_is_not_clamped(claude: Any, analyzed: Any) -> None:
    result = analyzed(session(claude, 30_000, BOTH_SIZES), "--window", "20k")
    assert result["peak"]["utilization"] == 1.5 and result["pressure"][0]["level"] == "red"
    assert result["pressure"][0]["turns_until_overflow"] == -1


def test_after_a_rewind_to_before_a_compaction_the_window_is_the_one_before_it(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    first = session.assistant("one", usage=(5000, 0, 0, 5))
    session.user("more")
    session.assistant("two", usage=(9000, 0, 0, 5))
    session.boundary()
    session.user("summary of it", isCompactSummary=True)
    session.assistant("three", usage=(3000, 0, 0, 5))
    assert analyzed(session)["context"]["reported"] == 3000
    session.user("otherwise", parent=first)
    now = analyzed(session)["context"]
    assert now["reported"] == 5000 and 4900 < now["overhead"] < 5000
    session.assistant("four", usage=(5100, 0, 0, 5))
    result = analyzed(session)
    assert result["context"]["reported"] == 5100 and abs(result["context"]["drift"]) < 0.05
    assert "drift" not in [d["code"] for d in result["diagnostics"]]
    assert result["transcript"]["compactions"] == 1


def test_reasoning_that_a_rollback_took_leaves_once(codex: Any, analyzed: Any) -> None:
    rollout = codex()

    def turn(word: str) -> None:
        rollout.write("event_msg", {"type": "user_message", "message": word})
        rollout.message("user", f"{word} " * 3000)

    turn("one")
    rollout.message("assistant", "first")
    rollout.tokens((4000, 0, 50), (4000, 0, 50))
    turn("two")
    rollout.write("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAA" * 900})
    rollout.message("assistant", "second")
    info = {"input_tokens": 7100, "cached_input_tokens": 0, "output_tokens": 4100, "reasoning_output_tokens": 4000}
    info["total_tokens"] = 11_200
    total = {**info, "input_tokens": 11_100, "output_tokens": 4150, "total_tokens": 15_250}
    usage = {"total_token_usage": total, "last_token_usage": info, "model_context_window": 258_400}
    rollout.write("event_msg", {"type": "token_count", "info": usage})
    rollout.write("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    turn("three")
    rollout.message("assistant", "third")
    waiting = analyzed(rollout)["pressure"][-1]
    assert waiting["source"] == "counted" and 6900 < waiting["tokens"] < 7300
    rollout.tokens((18_200, 0, 4200), (7100, 0, 50))
    result = analyzed(rollout)
    assert abs(result["context"]["drift"]) < 0.1
    assert "drift" not in [d["code"] for d in result["diagnostics"]]

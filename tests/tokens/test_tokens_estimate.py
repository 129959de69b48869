"""Which family a model id belongs to, the factors, and the class of a text."""

from __future__ import annotations

import dataclasses
import json
import textwrap
import time
from pathlib import Path

import pytest

from ctxctl.tokens import estimate, media, vocabulary
from ctxctl.tokens.estimate import TEXT_CLASSES, UNKNOWN, Family, family_for, text_class

MODELS = {
    "gpt-4o": ("openai-o200k", "openai-tile"),
    "gpt-4o-mini-2024-07-18": ("openai-o200k", "openai-tile"),
    "chatgpt-4o-latest": ("openai-o200k", "openai-tile"),
    "openai/gpt-4.1": ("openai-o200k", "openai-tile"),
    "gpt-4.1-mini": ("openai-o200k", "openai-patch-mini"),
    "gpt-4.1-nano": ("openai-o200k", "openai-patch-nano"),
    "gpt-5": ("openai-o200k", "openai-tile-5"),
    "gpt-5.1-codex-max": ("openai-o200k", "openai-tile-5"),
    "gpt-5-codex-mini": ("openai-o200k", "openai-patch-mini"),
    "gpt-5.5": ("openai-o200k", "openai-patch"),
    "azure/gpt-5-mini": ("openai-o200k", "openai-patch-mini"),
    "codex-mini-latest": ("openai-o200k", "openai-patch-mini"),
    "o1": ("openai-o200k", "openai-tile"),
    "openai/o3-pro": ("openai-o200k", "openai-tile"),
    "o4-mini-high": ("openai-o200k", "openai-patch-o4-mini"),
    "openai/gpt-oss-120b": ("openai-o200k", "openai-patch"),
    "gpt-4": ("openai-cl100k", "openai-tile"),
    "gpt-4-turbo-2024-04-09": ("openai-cl100k", "openai-tile"),
    "gpt-3.5-turbo": ("openai-cl100k", "openai-tile"),
    "gpt-35-turbo-16k": ("openai-cl100k", "openai-tile"),
    "text-embedding-3-small": ("openai-cl100k", "openai-tile"),
    "gpt-7-preview": ("openai", "openai-patch"),
    "claude-3-5-sonnet-20241022": ("claude-v3", "anthropic"),
    "claude-3-opus-latest": ("claude-v3", "anthropic"),
    "claude-sonnet-4-20250514": ("claude-v3", "anthropic"),
    "claude-sonnet-4@20250514": ("claude-v3", "anthropic"),
    "anthropic/claude-sonnet-4-5-20250929": ("claude-v3", "anthropic"),
    "us.anthropic.claude-opus-4-1-20250805-v1:0": ("claude-v3", "anthropic"),
    "claude-opus-4-6[1m]": ("claude-v3", "anthropic"),
    "claude-sonnet-4[1m]": ("claude-v3", "anthropic"),
    "claude-haiku-4-5": ("claude-v3", "anthropic"),
    "claude-4.5-sonnet-thinking": ("claude-v3", "anthropic"),
    "Claude-2.1": ("claude-v3", "anthropic"),
    "claude-opus-4-7": ("claude-v4.7", "anthropic-high"),
    "anthropic/claude-opus-4.7": ("claude-v4.7", "anthropic-high"),
    "claude-opus-4-10-20270101": ("claude-v4.7", "anthropic-high"),
    "claude-sonnet-5": ("claude-v4.7", "anthropic-high"),
    "global.anthropic.claude-opus-5-5-20270101-v1:0": ("claude-v4.7", "anthropic-high"),
    "claude-fable-5": ("claude-v4.7", "anthropic-high"),
    "claude-mythos-preview": ("claude-v4.7", "anthropic-high"),
    "sonnet": ("claude", "anthropic"),
    "opus[1m]": ("claude", "anthropic"),
    "google/gemini-3-pro-preview": ("gemini", "gemini-3"),
    "gemini-2.5-flash": ("gemini", "gemini"),
    "models/gemini-1.5-pro-002": ("gemini", "gemini"),
    "gemma-3-27b-it": ("gemini", "gemini"),
    "meta-llama/Llama-3.3-70B-Instruct": ("llama", None),
    "ollama/qwen3:8b": ("qwen", None),
    "ollama/llama3.1": ("llama", None),
    "ollama/phi4": ("unknown", None),
    "Qwen/QwQ-32B": ("qwen", None),
    "deepseek-chat": ("deepseek", None),
    "deepseek/deepseek-r1-distill-llama-70b": ("llama", None),
    "DeepSeek-R1-Distill-Qwen-32B": ("qwen", None),
    "mistralai/mistral-large": ("mistral", None),
    "mixtral-8x7b": ("mistral", None),
    "devstral-small": ("mistral", None),
    "z-ai/glm-4.6": ("glm", None),
    "moonshotai/kimi-k2": ("kimi", None),
    "x-ai/grok-4": ("unknown", None),
    "<synthetic>": ("unknown", None),
    "": ("unknown", None),
}


@pytest.mark.parametrize("model", MODELS)
def test_family_of_a_model(model: str) -> None:
    name, rule = MODELS[model]
    family = family_for(model)
    assert family.name == name
    assert rule in (None, family.image_rule)
    assert family_for(model.upper()) == family


def families() -> list[Family]:
    return list({family_for(model) for model in [*MODELS, None]})


def test_none_is_unknown() -> None:
    assert family_for(None) is UNKNOWN
    assert UNKNOWN.factors == (1.0, 1.0, 1.0)


def test_every_family_is_complete() -> None:
    for family in families():
        assert len(family.factors) == len(TEXT_CLASSES)
        assert family.encoding in vocabulary.ENCODINGS
        assert family.image_rule in media.IMAGE_RULES
        assert family.exact == (family.block_bound == 0)
        assert family.session_bound <= family.block_bound
        assert family.per_message > 0
        with pytest.raises(dataclasses.FrozenInstanceError):
            family.name = "x"  # type: ignore[misc]


def test_the_bounds_of_unknown_reach_every_family() -> None:
    assert max(abs(f - 1) for family in families() for f in family.factors) <= UNKNOWN.block_bound


def test_an_unnamed_claude_reaches_both_generations() -> None:
    between = family_for("claude")
    for generation in (family_for("claude-sonnet-4-5"), family_for("claude-sonnet-5")):
        for mine, theirs in zip(between.factors, generation.factors, strict=True):
            assert abs(mine / theirs - 1) < between.session_bound


def test_factors_of_a_family() -> None:
    assert family_for("gpt-5").factors[estimate.CODE] == 1
    assert family_for("claude-sonnet-4-5").factors[estimate.PROSE] == pytest.approx(1.14, abs=0.01)
    assert family_for("claude-opus-4-7").factors[estimate.PROSE] == pytest.approx(1.50, abs=0.01)
    assert family_for("kimi-k2").factors[estimate.CJK] == pytest.approx(0.87, abs=0.01)


PROSE = "Please compact the history before you go on, and tell me what you left out (if anything). It's long. " * 5


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("user_message", PROSE, "prose"),
        ("assistant", "", "prose"),
        ("assistant", "Fertig. Das Übrige läuft über die Konfiguration; morgen mehr.", "prose"),
        ("user_message", "Это обычный русский текст, не код и не иероглифы.", "prose"),
        ("user_message", "😀👍🏽 nice 🎉🎉🎉", "prose"),
        ("tool_result", PROSE, "code"),
        ("tool_call", "", "code"),
        ("tool_definitions", PROSE, "code"),
        ("user_message", "上下文窗口快满了请先压缩再继续执行任务", "cjk"),
        ("tool_result", "会話の履歴を圧縮してから作業を続けてください", "cjk"),
        ("thinking", "컨텍스트 창이 거의 찼습니다. 먼저 압축하세요", "cjk"),
        ("user_message", "run the tests in 中文 mode and report what fails there, please", "prose"),
        ("user_message", "\ud800 lone surrogates are not Chinese", "prose"),
        ("user_message", json.dumps({"model": "x", "messages": [{"role": "user", "content": "hi"}]}, indent=1), "code"),
        ("user_message", textwrap.dedent(Path(__file__).read_text(encoding="utf-8"))[-1500:], "code"),
    ],
)
def test_text_class(kind: str, text: str, expected: str) -> None:
    assert TEXT_CLASSES[text_class(kind, text)] == expected


def test_text_class_is_cheap() -> None:
    texts = ["word " * 10, PROSE * 5_000, "中文" * 200_000]
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(100):
            for text in texts:
                text_class("user_message", text)
        best = min(best, (time.perf_counter() - start) / 300)
    assert best < 100e-6

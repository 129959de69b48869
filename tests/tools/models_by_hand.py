"""The choices made by hand for make_models.py: which models, whose figures, and what neither source says rightly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

# No agent runs on these: other media, research and safety models, floating names whose figures change, resold variants.
NOT_AGENTS = re.compile(
    r"audio|realtime|-tts|transcribe|image|embed|moderation|search|live|omni|robotics|research|ocr|voxtral|lyria|guard"
    r"|whisper|^ft:|computer|daybreak|rosalind|cyber|-law|babbage|davinci|curie|^ada$|learnlm|exp-\d|medlm"
    r"|labs-|vibe|mistral-code|multi-agent|experimental|beta|gv2|contributor|customtools|mamba|-vl|vision|aya|north"
    r"|saba|voice|safety|distill|-mt2|rumination|seedance|gemini-exp|gpt-3.5-0301|vision-exp|-her$|prime$"
    r"|ultraspeed|-legal|:batch|:free|:thinking|:extended|qwen-coder|^zai-|codestral-embed|mistral-tiny|muse-spark-open"
    r"|^~|aion|-maas|^gpt-5\.3$|gpt-3\.5-turbo-(?:instruct|0613)|mistral-large-3$"
    r"|^gemini-(?:flash|pro|flash-lite)(?:-latest)?$|^chat-latest|gpt-chat-latest|gemma-2|gemma-3n|grok-code-fast$"
)
RENAMED = {
    "claude-sonnet-4-0": "claude-sonnet-4", "claude-opus-4-0": "claude-opus-4", "claude-instant": "claude-instant-1",
    "gemini-pro-1.5": "gemini-1.5-pro", "gemini-flash-1.5": "gemini-1.5-flash", "grok-build-latest": "grok-build",
    "gemini-flash-1.5-8b": "gemini-1.5-flash-8b", "kimi-k2-0711-preview": "kimi-k2",
    "gemini-2.5-flash-preview-09-2025": "gemini-2.5-flash-preview-09-2025",
    "llama-4-maverick-17b-128e-instruct-fp8": "llama-4-maverick", "llama4-maverick-17b-instruct": "llama-4-maverick",
    "llama-4-scout-17b-16e-instruct-fp8": "llama-4-scout", "llama4-scout-17b-instruct": "llama-4-scout",
    "llama3-3-70b-instruct": "llama-3.3-70b-instruct", "llama-3.3-70b": "llama-3.3-70b-instruct",
    "llama-3.1-70b": "llama-3.1-70b-instruct", "llama-3.1-8b": "llama-3.1-8b-instruct",
    "llama3-1-70b-instruct": "llama-3.1-70b-instruct", "llama3-1-8b-instruct": "llama-3.1-8b-instruct",
    "llama3-1-405b-instruct": "llama-3.1-405b-instruct", "grok-4-0709": "grok-4", "claude-4-sonnet": "claude-sonnet-4",
    "claude-4-opus": "claude-opus-4", "open-mistral-nemo": "mistral-nemo", "mixtral-8x7b": "mixtral-8x7b-instruct",
    "qwen3-coder-480b-a35b": "qwen3-coder", "grok-2-1212": "grok-2", "devstral-2512": "devstral",
    "nemotron-3-nano-30b-a3b": "nemotron-3-nano", "nemotron-3-super-120b-a12b": "nemotron-3-super",
    "nemotron-3-ultra-550b-a55b": "nemotron-3-ultra", "mistral-large-4-0": "mistral-large-4",
    "mistral-medium-3.5": "mistral-medium-3-5", "mistral-medium-3.1": "mistral-medium-3-1",
    "ministral-3-3b": "ministral-3b", "ministral-3-8b": "ministral-8b", "ministral-3-14b": "ministral-14b",
}  # fmt: skip
"""Ids that one model has under several makers' or hosts' spellings, after dates and prefixes are gone."""


@dataclass(frozen=True)
class Hand:
    """What neither package says, or says wrongly. because: the reason and where it was looked up.

    values: fields of ModelRow. aliases: names that look-up can't derive.
    """

    because: str
    values: dict[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


_BOTH = {"window": 200_000, "long_window": 1_000_000}
_BETA = "1M by the context-1m beta header; litellm: 200k, and prices above 200k at Bedrock and Vertex"
# Seen in anthropics/claude-code#35127 and #52537 (4.6, 4.7: /context shows 200k for the bare id) and
# indexable-inc/index#796 (4.8: 200k, or 1M by the plan). The 5.x models run with 1M natively: ymichael/bb#866 and
# Claude Code 2.1.197's notes.
_MARKED = "1M at the API (both packages), but Claude Code ran it with 200k unless the plan or a [1m] suffix gave 1M"
_SPLIT = "400k are prompt and answer together; litellm's Azure rows say 272k, as its rows of the sister models do"
_SPLIT_LONG = "1,050k are prompt and answer together; litellm's Azure rows say 922k, as its rows from GPT-5.6 on do"
_ROUNDED = "genai-prices rounds the window; the answer by Google's model page"
_MINIMAX = "genai-prices (MiniMax, OpenRouter): 204,800; litellm: 1M or 200k, and 196k at Bedrock"
HAND: dict[str, Hand] = {
    "claude-sonnet-4": Hand(
        f"{_BETA}; genai-prices lacks the long prices, Bedrock's row has them",
        {**_BOTH, "long_input_price": 6.0, "long_output_price": 22.5, "long_from": 200_000},
        ("claude-sonnet-4-0",),
    ),
    "claude-sonnet-4-5": Hand(f"{_BETA}; the beta ended on 2026-04-30 (genai-prices)", _BOTH),
    "claude-sonnet-4-6": Hand(_MARKED, _BOTH),
    "claude-opus-4-6": Hand(_MARKED, _BOTH),
    "claude-opus-4-6-fast": Hand(f"as claude-opus-4-6: {_MARKED}", {**_BOTH, "output": 128_000}),
    "claude-opus-4-7": Hand(_MARKED, _BOTH),
    "claude-opus-4-7-fast": Hand(f"as claude-opus-4-7: {_MARKED}", {**_BOTH, "output": 128_000}),
    "claude-opus-4-8": Hand(_MARKED, _BOTH),
    "claude-opus-4-8-fast": Hand(f"as claude-opus-4-8: {_MARKED}", {**_BOTH, "output": 128_000}),
    "claude-opus-5-fast": Hand("as claude-opus-5", {"output": 128_000}),
    "claude-fable-5-2": Hand("Anthropic's model page: 1M and 128k", {"output": 128_000}),
    "claude-mythos-5-2": Hand("the same model as claude-fable-5-2 (genai-prices)", {"output": 128_000}),
    "claude-opus-4": Hand("Anthropic's alias", aliases=("claude-opus-4-0",)),
    "claude-2": Hand("2.0 had 100k, genai-prices folds it into 2.1", {"window": 100_000}, ("claude-2.0", "claude-v2")),
    "claude-2.1": Hand(
        "200k since 2.1, prices as claude-2 in genai-prices",
        {"window": 200_000, "input_price": 8.0, "output_price": 24.0},
        ("claude-v2:1",),
    ),
    "claude-instant-1": Hand("names at Anthropic and Bedrock", aliases=("claude-instant-1.2", "claude-instant-v1")),
    "gpt-4-32k": Hand("genai-prices rounds the window; no answer limit of its own", {"window": 32_768}),
    "gpt-4.5-preview": Hand("no package has the limits; OpenAI's model page", {"window": 128_000, "output": 16_384}),
    "gpt-4-turbo": Hand("previews of it at the same price", aliases=(
        "gpt-4-0125-preview", "gpt-4-turbo-preview", "gpt-4-vision-preview")),
    "gpt-3.5-turbo": Hand("Azure's spelling", aliases=("gpt-35-turbo",)),
    "gpt-5.1-codex": Hand(_SPLIT, {"window": 272_000}),
    "gpt-5.1-codex-max": Hand(_SPLIT, {"window": 272_000}),
    "gpt-5.1-codex-mini": Hand(_SPLIT, {"window": 272_000}),
    "gpt-5.4": Hand(_SPLIT_LONG, {"window": 922_000}),
    "gpt-5.4-pro": Hand(_SPLIT_LONG, {"window": 922_000}),
    "gpt-5.5": Hand(_SPLIT_LONG, {"window": 922_000}),
    "gpt-5.5-pro": Hand(_SPLIT_LONG, {"window": 922_000}),
    "gpt-5.3-codex-spark": Hand("litellm's ChatGPT rows; no price is public", {"window": 128_000, "output": 128_000}),
    "gemini-3-pro-preview": Hand("the name without its stage", aliases=("gemini-3-pro",)),
    "gemini-2.5-pro": Hand("its previews cost the same", aliases=("gemini-2.5-pro-preview", "gemini-2.5-pro-exp")),
    "gemini-2.5-flash-preview": Hand("the final model's window", {"window": 1_048_576, "output": 65_536}),
    "gemini-1.5-pro": Hand(
        f"2^21 tokens, {_ROUNDED}", {"window": 2_097_152, "output": 8192}, ("gemini-pro-1.5",)
    ),
    "gemini-1.5-flash": Hand(_ROUNDED, {"window": 1_048_576, "output": 8192}),
    "gemini-1.5-flash-8b": Hand(_ROUNDED, {"window": 1_048_576, "output": 8192}),
    "gemini-2.0-flash": Hand(_ROUNDED, {"window": 1_048_576, "output": 8192}),
    "gemini-2.0-flash-lite": Hand(_ROUNDED, {"window": 1_048_576, "output": 8192}),
    "grok-code-fast-1": Hand(
        "litellm shows the price of the model it was redirected to when it retired; genai-prices has its own",
        {"input_price": 0.2, "output_price": 1.5, "cache_read_price": 0.02, "long_input_price": None,
         "long_output_price": None, "long_from": None},
        ("grok-code-fast", "grok-code"),
    ),
    "grok-2": Hand("litellm's Vercel row; genai-prices has the vision model's", {"window": 131_072}),
    "mistral-medium-3": Hand(
        "genai-prices: figures at OpenRouter; litellm shows those of the model it was redirected to",
        {"window": 131_072, "output": None, "input_price": 0.4, "output_price": 2.0, "cache_read_price": 0.04},
        ("mistral-medium-2505",),
    ),
    "mistral-large": Hand("Mistral Large 3", aliases=("mistral-large-3", "mistral-large-2512")),
    "devstral": Hand("Devstral 2", aliases=("devstral-2512", "devstral-2")),
    "minimax-m2": Hand(_MINIMAX, {"window": 204_800, "output": None}),
    "minimax-m2.1": Hand(_MINIMAX, {"window": 204_800, "output": None}),
    "minimax-m2.1-lightning": Hand(_MINIMAX, {"window": 204_800, "output": None}),
    "minimax-m2.5": Hand(_MINIMAX, {"window": 204_800, "output": None}),
    "minimax-m2.5-lightning": Hand(_MINIMAX, {"window": 204_800, "output": None}),
    "o1-preview": Hand("OpenAI's model page", {"output": 32_768}),
    "deepseek-r1": Hand("the maker's API served it under one name", aliases=("deepseek-r1-0528",)),
    "deepseek-v3": Hand("names at hosts", aliases=("deepseek-v3-0324", "deepseek-chat-v3-0324")),
    "qwen3.8-max": Hand("its dated name", aliases=("qwen3.8-max-0902",)),
    "deepseek-flash": Hand("the API's name of V4.1 Flash (genai-prices)", aliases=("deepseek-v4.1-flash",)),
    "kimi-k2": Hand(
        "genai-prices: figures of kimi-k2-0711-preview; its bare row has a host's prices",
        {"window": 131_072, "input_price": 0.6, "output_price": 2.5, "cache_read_price": 0.15},
        ("kimi-k2-instruct", "kimi-k2-0711", "kimi-k2-0711-preview"),
    ),
    "kimi-k2-0905-preview": Hand("names at hosts", aliases=("kimi-k2-0905", "kimi-k2-instruct-0905")),
    "llama-4-maverick": Hand("Meta's and hosts' names", aliases=(
        "llama-4-maverick-17b-128e-instruct-fp8", "llama-4-maverick-17b-128e-instruct",
        "llama4-maverick-17b-instruct")),
    "llama-4-scout": Hand("Meta's and hosts' names", aliases=(
        "llama-4-scout-17b-16e-instruct", "llama4-scout-17b-instruct")),
    "qwen3-coder": Hand("the weights' name", aliases=("qwen3-coder-480b-a35b-instruct", "qwen3-coder-480b-a35b")),
}  # fmt: skip


@dataclass(frozen=True)
class Maker:
    """Whose price lists name the models (first wins), and who else may state their limits. only: filter of raw ids."""

    prices: tuple[str, ...]
    limits: tuple[str, ...] = ()
    only: str = ""


OPEN = "genai:openrouter"  # open weights have no maker's price: the marketplace's stands for them
MAKERS = (
    Maker(("litellm:anthropic", "genai:anthropic", "litellm:bedrock", OPEN), ("litellm:bedrock_converse",
          "litellm:vertex_ai-anthropic_models", "litellm:vercel_ai_gateway"), r"claude-(?!.*:)(?!v1)"),
    Maker(("litellm:openai", "genai:openai"), ("litellm:azure", "litellm:vercel_ai_gateway"),
          r"(?:^|/)(?:gpt-(?!oss)|o[134]|codex|chatgpt-4o)"),
    Maker((OPEN,), ("litellm:bedrock_converse", "genai:openai"), r"gpt-oss-\d+b$"),
    Maker(("litellm:gemini", "litellm:vertex_ai-language-models", "genai:google", "litellm:vertex_ai"), (OPEN,),
          r"^(?:gemini/|vertex_ai/)?(?:gemini|gemma-[34])-"),
    Maker(("litellm:xai", "genai:x-ai"), ("litellm:vercel_ai_gateway",), "grok"),
    Maker(("litellm:deepseek", "genai:deepseek"), (OPEN,), "deepseek"),
    Maker(("litellm:mistral", "genai:mistral"), (OPEN, "litellm:vercel_ai_gateway"),
          "(?:mistral|codestral|devstral|magistral|ministral|mixtral|pixtral)-?[^/]*$"),
    Maker(("litellm:dashscope", OPEN), ("litellm:bedrock_converse", "litellm:vercel_ai_gateway", "litellm:novita"),
          r"(?:^|/)(?:qwen|qwq)(?!-2-)[^/:]*$"),
    Maker(("litellm:moonshot", "genai:moonshotai"), (OPEN,), r"kimi|moonshot-v1-\d+k$"),
    Maker(("litellm:zai", "genai:zai"), (OPEN, "litellm:novita", "litellm:deepinfra"), "(?i)glm"),
    Maker(("litellm:meta", "genai:meta"), (), "muse"),
    Maker((OPEN,), ("litellm:bedrock_converse", "litellm:bedrock", "litellm:vercel_ai_gateway"),
          r"(?i)llama[-/]?.*(?:3\.[13]-\d+b-instruct|3-3-70b|3-1-\d+b|3\.\d-\d+b$|4-?(?:scout|maverick).*)$"),
    Maker(("litellm:bedrock_converse", "litellm:amazon_nova"), (), r"^amazon[.-].*nova"),
    Maker(("litellm:cohere_chat", "genai:cohere"), (OPEN,), "command"),
    Maker(("litellm:minimax", "genai:minimax"), (OPEN,), "(?i)minimax"),
    Maker(("litellm:xiaomi_mimo", OPEN), ("litellm:novita",), r"mimo-v"),
    Maker((OPEN,), ("litellm:nebius",), r"nemotron-3|stepfun/|poolside/"),
    Maker(("genai:cursor",), (), "composer"),
)  # fmt: skip

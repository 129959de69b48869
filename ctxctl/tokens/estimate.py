"""Which counter for which model, and how far its numbers can be trusted.

Only OpenAI publishes the tokenizers of its models; for all others the tokens are estimated as
`factor x o200k tokens`, with a factor per kind of text. The factors are measured ratios:

- Claude: against `ctok` 1.3.0, which claims to reproduce recorded answers of Anthropic's count_tokens; 30 windows of
  4,000 characters per kind. Code is the mean of source code, JSON and listings, since that is what tool calls and
  their results are. Checked against two public data sets. "v3" is the tokenizer of Claude 3 to Opus 4.6, Sonnet 4.x
  and Haiku 4.5; the newer one came with Opus 4.7 ("approximately 30 percent more tokens",
  platform.claude.com/docs/en/build-with-claude/token-counting).
- Gemini: no tokenizer of it is published; Gemma 3's stands in.
- Llama 3, DeepSeek V3, Qwen 3, GLM 4, Kimi K2, Mistral (Tekken): their own vocabularies, same texts.

The bounds are what a user may be told: relative errors that one block, and the sum over a session, rarely exceed. They
were set once, for Claude on blocks of 500 to 4,000 characters that were held out; nothing here measures them again.
`calibrated.calibrate` narrows them with what the provider reported in the transcript itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

TEXT_CLASSES = ("prose", "code", "cjk")
"""The kinds of text that have a factor of their own, in the order of `Family.factors`."""

PROSE, CODE, CJK = range(3)

_CODE_KINDS = frozenset({"tool_call", "tool_result", "tool_definitions"})
_CODE_CHARACTERS = '{}()=;_"\\'
_CODE_DENSITY = 0.04
_CJK_SHARE = 0.3
_SAMPLE = 4_000  # characters of a text that are looked at
_CJK_LEAD_BYTES = bytes(range(0xE3, 0xEE))  # UTF-8 of U+3000..U+DFFF: kana, ideographs, hangul


@dataclass(frozen=True, slots=True)
class Family:
    """How the tokens of a family of models are counted."""

    name: str
    encoding: str
    """The encoding that is counted with."""
    factors: tuple[float, ...]
    """Tokens of the model per token of the encoding, for each of `TEXT_CLASSES`."""
    exact: bool
    """Whether the encoding is the model's own, so that its text is counted, not estimated."""
    per_message: int
    """Tokens that the frame of one message costs (role, separators)."""
    block_bound: float
    """Relative error that the estimate of one block rarely exceeds."""
    session_bound: float
    """The same for a whole session, where the errors of the blocks partly cancel out."""
    image_rule: str
    """How its images are charged: a rule of `media.image_tokens`."""


# OpenAI: 3 tokens per message and 1 for its role (OpenAI cookbook, "How to count tokens with tiktoken").
_O200K = Family("openai-o200k", "o200k_base", (1.0, 1.0, 1.0), True, 4, 0.0, 0.0, "openai-tile")
_CL100K = replace(_O200K, name="openai-cl100k", encoding="cl100k_base")
# A GPT newer than those whose encoding tiktoken 0.14 states.
_OPENAI_NEW = replace(_O200K, name="openai", exact=False, block_bound=0.3, session_bound=0.2, image_rule="openai-patch")

# The table in the module's docstring, prose / code / CJK, and 4 per message, from the same measurement.
_CLAUDE_V3 = Family("claude-v3", "o200k_base", (1.14, 1.25, 1.42), False, 4, 0.15, 0.05, "anthropic")
_CLAUDE_V47 = Family("claude-v4.7", "o200k_base", (1.50, 1.50, 1.47), False, 4, 0.15, 0.05, "anthropic-high")
# The generation isn't named ("sonnet"): halfway, with bounds that reach both.
_CLAUDE = Family("claude", "o200k_base", (1.32, 1.38, 1.45), False, 4, 0.30, 0.20, "anthropic")

# A stand-in adds an error that nobody could measure: twice the bounds of Claude, rounded.
_GEMINI = Family("gemini", "o200k_base", (1.14, 1.24, 0.87), False, 4, 0.30, 0.15, "gemini")
_GEMINI_3 = replace(_GEMINI, image_rule="gemini-3")


def _own(name: str, prose: float, code: float, cjk: float) -> Family:
    # Their factors come from the vocabularies themselves but were measured for one version of each; the version in use
    # may have another. No image prices are published: OpenAI's tiles stand in.
    return Family(name, "o200k_base", (prose, code, cjk), False, 4, 0.20, 0.10, "openai-tile")


_LLAMA = _own("llama", 0.99, 1.00, 1.00)
_QWEN = _own("qwen", 1.07, 1.07, 0.94)
_DEEPSEEK = _own("deepseek", 1.03, 1.04, 0.87)
_MISTRAL = _own("mistral", 1.10, 1.12, 1.20)
_GLM = _own("glm", 1.01, 1.01, 0.89)
_KIMI = _own("kimi", 0.96, 1.00, 0.87)

UNKNOWN = Family("unknown", "o200k_base", (1.0, 1.0, 1.0), False, 4, 0.60, 0.50, "anthropic")
"""For a model that isn't known: plain o200k, with bounds that reach every family above."""

# Searched in this order anywhere in the lower-cased id, since ids come with the names of providers, regions, dates and
# variants around them. Distilled models have the tokenizer of what they were distilled into, so llama and qwen come
# before deepseek; "ollama" is a provider.
_RULES: tuple[tuple[str, Family], ...] = (
    (r"(?<!o)llama", _LLAMA),
    (r"qwen|qwq|qvq", _QWEN),
    (r"deepseek", _DEEPSEEK),
    (r"mi[sx]tral|codestral|devstral|magistral|pixtral|voxtral", _MISTRAL),
    (r"glm", _GLM),
    (r"kimi|moonshot", _KIMI),
    (r"gemini-?[3-9]", _GEMINI_3),
    (r"gemini|gemma", _GEMINI),
    (r"gpt-?oss", replace(_O200K, image_rule="openai-patch")),
    (r"gpt-?(?:4\.1|5)[^/]*-mini|codex-mini", replace(_O200K, image_rule="openai-patch-mini")),
    (r"gpt-?(?:4\.1|5)[^/]*-nano", replace(_O200K, image_rule="openai-patch-nano")),
    (r"(?<![a-z0-9])o4-mini", replace(_O200K, image_rule="openai-patch-o4-mini")),
    (r"gpt-?5\.[5-9]", replace(_O200K, image_rule="openai-patch")),
    (r"gpt-?5|codex", replace(_O200K, image_rule="openai-tile-5")),
    (r"gpt-?4o|gpt-?4\.[15]|(?<![a-z0-9])o[134](?![a-z0-9])", _O200K),
    (r"gpt-?4|gpt-?3\.?5|text-embedding-(?:ada|3)|(?:davinci|babbage)-002", _CL100K),
    (r"gpt|openai/", _OPENAI_NEW),
)
_CLAUDE_NAME = re.compile(r"(?<![a-z])(?:claude|opus|sonnet|haiku|fable|mythos)(?![a-z])")
# "4-6", "3.5", "5"; not the 1 of "[1m]", nor a part of a date.
_CLAUDE_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[-._](\d{1,2}))?(?![\da-z])")


@lru_cache(maxsize=256)
def family_for(model: str | None) -> Family:
    """The family of a model id such as `claude-opus-4-6[1m]`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0` or
    `google/gemini-3-pro-preview`; `UNKNOWN` when it is None or says nothing."""
    name = (model or "").lower()
    if claude := _CLAUDE_NAME.search(name):
        return _claude(name[claude.start() :])
    for pattern, family in _RULES:
        if re.search(pattern, name):
            return family
    return UNKNOWN


def text_class(kind: str, text: str) -> int:
    """The class of a block's text, as an index into `TEXT_CLASSES`; `kind` is the block's kind.

    Looks at the first 4,000 characters only; a few microseconds. Text is CJK when more than 30 % of its characters are
    kana, ideographs or hangul: from there on they make up most of the tokens. What tools are told and answer is code;
    elsewhere text is code when 4 % of it are braces, quotes and the like, which holds for 83 % of the source and
    JSON files in a Python installation and for 7 % of its licences and readmes.
    """
    sample = text[:_SAMPLE]
    if not text.isascii():
        encoded = sample.encode("utf-8", "surrogatepass")
        cjk = len(encoded) - len(encoded.translate(None, _CJK_LEAD_BYTES))
        if cjk > _CJK_SHARE * len(sample):
            return CJK
    if kind in _CODE_KINDS:
        return CODE
    return CODE if sum(map(sample.count, _CODE_CHARACTERS)) > _CODE_DENSITY * len(sample) else PROSE


def _claude(name: str) -> Family:
    if "fable" in name or "mythos" in name:
        return _CLAUDE_V47
    version = _CLAUDE_VERSION.search(name)
    if version is None:
        return _CLAUDE
    return _CLAUDE_V47 if (int(version[1]), int(version[2] or 0)) >= (4, 7) else _CLAUDE_V3


def counter_for(model: str | None, encoding: str, ratio: float = 1.0) -> Callable[[str, str], int]:
    """Counts single texts of some kind as a whole transcript was: in an encoding, with the factors of a model's family
    and the ratio of a calibration."""
    from ctxctl.tokens.engines import engine

    factors = family_for(model).factors
    counting = engine(encoding)

    def count(text: str, kind: str) -> int:
        if not text:
            return 0
        return max(1, round(counting.count([text])[0] * factors[text_class(kind, text)] * ratio))

    return count

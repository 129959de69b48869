"""What images and documents cost: rules, not text. Base64 is never counted as text."""

from __future__ import annotations

from math import ceil

from ctxctl.model.limits import IMAGE_RULES

PAGE_TOKENS = 2_250
"""One PDF page for Claude, which gets its text and its picture: 2,098 to 2,481 were measured for pages of text and
tables, 1,600 for scans (data set JOHNISKING/pdf-token-cost)."""

DEFAULT_PAGES = 4
"""Assumed pages of a document of which nothing is known. An assumption, without a source."""

_PAGE_BYTES = 3_000  # assumed: a document of unknown pages has at most one for each of these

# Rule -> what an image of unknown size costs: a screenshot that was sent as large as the rule allows
# (Anthropic: the tier's cap of standard, 1080p for high-res; OpenAI: 1080p; Gemini: 1080p, and the data set's mean).
_TYPICAL = {
    "anthropic": 1_568,
    "anthropic-high": 2_691,
    "openai-tile": 1_105,
    "openai-tile-5": 910,
    "openai-patch": 2_448,
    "openai-patch-mini": 2_443,
    "openai-patch-nano": 3_710,
    "openai-patch-o4-mini": 2_594,
    "gemini": 1_548,
    "gemini-3": 1_083,
}


def image_tokens(width: int | None, height: int | None, rule: str = "anthropic") -> int:
    """Tokens that an image of that many pixels costs. Without a size, the cost of a typical picture (85 to 6,000).

    - `anthropic`, `anthropic-high`: one token per patch of 28 x 28 pixels, after scaling down to a long edge of 1,568
      pixels and 1,568 tokens (to Opus 4.6, Sonnet 4.x, Haiku 4.5), or 2,576 and 4,784 (from Opus 4.7 on). Exact on
      all sizes up to 1080p of the data set JOHNISKING/image-token-cost; the older w x h / 750 is retired.
    - `openai-tile` (GPT-4o, 4.1, 4.5, o1, o3), `openai-tile-5` (GPT-5, 5.1): fit into 2,048 x 2,048, short side 768,
      then 85 + 170, or 70 + 140, per tile of 512 x 512. OpenAI's guide to vision.
    - `openai-patch` (GPT-5.5 and later): 1.2 per patch of 32 x 32 pixels, at most 10,000 patches; exact on the data
      set. `-mini` (gpt-4.1-mini, gpt-5-mini) 1.62, `-nano` 2.46, `-o4-mini` 1.72 per patch, at most 1,536 patches;
      these multipliers from OpenAI's guide.
    - `gemini` (to 2.x): 258 up to 384 x 384 pixels, else 258 per tile of 768 x 768. `gemini-3`: the same for each
      image, between 1,065 and 1,101 in the data set.

    Raises ValueError for an unknown rule.
    """
    if rule not in _TYPICAL:
        raise ValueError(f"unknown image rule {rule!r}: valid are {', '.join(IMAGE_RULES)}")
    if not width or not height or width < 0 or height < 0 or rule == "gemini-3":
        return _TYPICAL[rule]
    if rule in _PATCHES:
        side, long_edge, cap, hundredths = _PATCHES[rule]
        return -(-_patches(width, height, side, long_edge, cap) * hundredths // 100)
    if rule == "gemini":
        return 258 if max(width, height) <= 384 else 258 * ceil(width / 768) * ceil(height / 768)
    base, tile = (70, 140) if rule == "openai-tile-5" else (85, 170)
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return base + tile * _tiles(width * scale) * _tiles(height * scale)


def document_tokens(pages: int | None, size_bytes: int | None = None) -> int:
    """Tokens of a document block, at `PAGE_TOKENS` a page. Without pages, `DEFAULT_PAGES`, or fewer when the file of
    `size_bytes` is very small."""
    if pages is None:
        pages = DEFAULT_PAGES if size_bytes is None else min(DEFAULT_PAGES, ceil(size_bytes / _PAGE_BYTES))
    return PAGE_TOKENS * max(1, pages)


_NO_LIMIT = 1 << 32
# Rule -> pixels of a patch's side, longest edge, most patches, hundredths of a token per patch.
_PATCHES: dict[str, tuple[int, int, int, int]] = {
    "anthropic": (28, 1_568, 1_568, 100),
    "anthropic-high": (28, 2_576, 4_784, 100),
    "openai-patch": (32, _NO_LIMIT, 10_000, 120),
    "openai-patch-mini": (32, _NO_LIMIT, 1_536, 162),
    "openai-patch-nano": (32, _NO_LIMIT, 1_536, 246),
    "openai-patch-o4-mini": (32, _NO_LIMIT, 1_536, 172),
}


def _patches(width: int, height: int, side: int, long_edge: int, cap: int) -> int:
    """Patches of an image after the largest reduction that keeps both limits; it is never enlarged."""

    def at(scale: float) -> int:
        # The small amount off keeps 1568.0000000001 from being a patch more.
        return max(1, ceil(width * scale / side - 1e-6)) * max(1, ceil(height * scale / side - 1e-6))

    high = min(1.0, long_edge / max(width, height))
    if at(high) <= cap:
        return at(high)
    low = 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) <= cap else (low, middle)
    return at(low)


def _tiles(pixels: float) -> int:
    return max(1, ceil(pixels / 512 - 1e-6))

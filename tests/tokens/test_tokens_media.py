"""What images and documents cost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ctxctl.tokens import media
from ctxctl.tokens.media import IMAGE_RULES, document_tokens, image_tokens

CASES = Path(__file__).parents[3] / "shared" / "cases"


@pytest.mark.parametrize(
    ("rule", "width", "height", "tokens"),
    [
        # Measured with count_tokens (data set JOHNISKING/image-token-cost, less the frame of the message).
        ("anthropic-high", 256, 256, 100),
        ("anthropic-high", 512, 512, 361),
        ("anthropic-high", 768, 768, 784),
        ("anthropic-high", 1024, 1024, 1369),
        ("anthropic-high", 1280, 720, 1196),
        ("anthropic-high", 1920, 1080, 2691),
        ("anthropic-high", 7680, 4320, 4784),
        ("anthropic", 1920, 1080, 1560),
        ("anthropic", 256, 256, 100),
        ("anthropic", 1568, 28, 56),
        ("anthropic", 100_000, 1, 56),
        ("anthropic", 1, 1, 1),
        ("openai-patch", 256, 256, 77),
        ("openai-patch", 1920, 1080, 2448),
        ("openai-patch", 2560, 1440, 4320),
        ("openai-patch", 3840, 2160, 9792),
        ("openai-patch-mini", 256, 256, 104),
        # The examples of OpenAI's guide.
        ("openai-tile", 1024, 1024, 765),
        ("openai-tile", 2048, 4096, 1105),
        ("openai-tile", 512, 512, 255),
        ("openai-tile-5", 512, 512, 210),
        ("gemini", 384, 384, 258),
        ("gemini", 385, 100, 258),
        ("gemini", 1536, 1536, 1032),
        ("gemini-3", 50, 50, 1083),
    ],
)
def test_image_tokens(rule: str, width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height, rule) == tokens


@pytest.mark.parametrize("rule", IMAGE_RULES)
def test_any_size_has_a_sane_cost(rule: str) -> None:
    typical = image_tokens(None, None, rule)
    assert 85 <= typical <= 6_000
    assert typical == image_tokens(0, 10, rule) == image_tokens(10, None, rule) == image_tokens(-1, 10, rule)
    assert typical == pytest.approx(image_tokens(1920, 1080, rule), rel=0.01)
    rng = random.Random(2)
    for _ in range(200):
        width, height = rng.randrange(1, 9_000), rng.randrange(1, 9_000)
        cost = image_tokens(width, height, rule)
        assert 1 <= cost <= 40_000
        assert cost == image_tokens(height, width, rule)
        assert {"anthropic": cost <= 1_568, "anthropic-high": cost <= 4_784}.get(rule, True)


def test_unknown_rule() -> None:
    with pytest.raises(ValueError, match="unknown image rule 'x': valid are anthropic"):
        image_tokens(1, 1, "x")


def test_document_tokens() -> None:
    page = media.PAGE_TOKENS
    assert document_tokens(7) == 7 * page
    assert document_tokens(0) == page
    assert document_tokens(None) == media.DEFAULT_PAGES * page
    assert document_tokens(None, 2_000_000) == media.DEFAULT_PAGES * page
    assert document_tokens(None, 900) == page
    assert document_tokens(None, 4_000) == 2 * page

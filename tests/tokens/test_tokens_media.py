"""Sizes from image headers, and what images and documents cost."""

from __future__ import annotations

import base64
import json
import random
import struct
from pathlib import Path

import pytest

from ctxctl.tokens import engines, media
from ctxctl.tokens.media import IMAGE_RULES, document_tokens, image_size, image_size_base64, image_tokens, pdf_pages

CASES = Path(__file__).parents[3] / "shared" / "cases"


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0rest"


def gif(width: int, height: int, version: bytes = b"89a") -> bytes:
    return b"GIF" + version + struct.pack("<HH", width, height) + b"\xf7\0\0"


def jpeg(width: int, height: int, frame: int = 0xC0, before: bytes = b"") -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    tables = b"\xff\xc4" + struct.pack(">H", 5) + b"abc"
    return (
        b"\xff\xd8"
        + app
        + before
        + tables
        + b"\xff\xff\xff"
        + struct.pack(">BHBHH", frame, 17, 8, height, width)
        + b"\3"
    )


def bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, width, height)


def os2_bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<IHH", 12, width, height)


def webp(form: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + form + struct.pack("<I", len(body)) + body


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x30\1\0\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height))


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14 | 1 << 28))


def webp_extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", b"\x10\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


MAKERS = (png, gif, jpeg, bmp, os2_bmp, webp_lossy, webp_lossless, webp_extended)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (1920, 1080), (33, 7001)])
def test_image_size(make: object, size: tuple[int, int]) -> None:
    data = make(*size)  # type: ignore[operator]
    assert image_size(data) == size
    text = base64.b64encode(data + bytes(200_000)).decode()
    assert image_size_base64(text) == size
    assert image_size_base64("data:image/x;base64," + text) == size
    assert image_size_base64("\n".join(text[i : i + 76] for i in range(0, 4_000, 76))) == size
    assert image_size_base64(base64.urlsafe_b64encode(data).decode().rstrip("=")) == size


def test_variants() -> None:
    assert image_size(gif(5, 6, b"87a")) == (5, 6)
    assert image_size(bmp(5, -6)) == (5, 6)
    assert image_size(jpeg(5, 6, 0xC2)) == (5, 6)
    assert image_size(jpeg(5, 6, before=b"\xff\x01\xff\xd0\xff\xe1" + struct.pack(">H", 40_000) + bytes(39_998))) == (
        5,
        6,
    )


@pytest.mark.parametrize("make", MAKERS)
def test_cut_or_damaged_headers_never_raise(make: object) -> None:
    data: bytes = make(640, 480)  # type: ignore[operator]
    rng = random.Random(3)
    for end in range(len(data)):
        assert image_size(data[:end]) in (None, (640, 480))
        image_size_base64(base64.b64encode(data).decode()[:end])
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] = rng.randrange(256)
        image_size(bytes(damaged))
        image_size(data[:2] + rng.randbytes(60))


@pytest.mark.parametrize(
    "text",
    ["", "=", "A", "AAAAA", "not base64 at all!", "ünïcode\ud800", "data:", "data:image/png,xyz", "data:;base64,"],
)
def test_text_that_is_no_image(text: str) -> None:
    assert image_size_base64(text) is None


def test_impossible_sizes_are_unknown() -> None:
    for data in (
        png(0, 5),
        png(5, 0),
        png(70_000, 5),
        png(0x4142, 0x43444546),
        bmp(-1, 5),
        b"",
        b"MZ",
        b"\x89PNG\r\n\x1a\n",
    ):
        assert image_size(data) is None


def test_case_077() -> None:
    path = CASES / "077-base64-image" / "input.jsonl"
    if not path.exists():
        pytest.skip("the shared case 077 isn't here")
    images = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if value.get("type") == "image":
                images.append(value["source"]["data"])
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                walk(each)

    for line in path.read_text(encoding="utf-8").splitlines():
        walk(json.loads(line))
    assert len(images) == 2
    for rule in IMAGE_RULES:
        costs = {image_tokens(*(image_size_base64(image) or (None, None)), rule) for image in images}
        assert len(costs) == 1
        assert 85 <= costs.pop() <= 6_000


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


def pdf(pages: int, head: str = "") -> bytes:
    body = "".join(f"{i} 0 obj <</Type /Page /Parent 1 0 R>> endobj\n" for i in range(2, pages + 2))
    return f"%PDF-1.7\n{head}1 0 obj <</Type/Pages /Count {pages}>> endobj\n{body}%%EOF".encode()


def test_pdf_pages() -> None:
    assert pdf_pages(pdf(3)) == 3
    assert pdf_pages(pdf(2, "9 0 obj <</Linearized 1 /L 5000 /H [1 2] /O 3 /E 9 /N 47 /T 5>> endobj\n")) == 47
    assert pdf_pages(b"%PDF-1.7 compressed objects") is None
    assert pdf_pages(b"") is None
    assert pdf_pages(b"/Type /Page") is None


def test_document_tokens() -> None:
    page = media.PAGE_TOKENS
    assert document_tokens(7, None, None) == 7 * page
    assert document_tokens(0, None, None) == page
    assert document_tokens(None, None, None) == media.DEFAULT_PAGES * page
    assert document_tokens(None, None, 2_000_000) == media.DEFAULT_PAGES * page
    assert document_tokens(None, None, 900) == page
    assert document_tokens(None, "", 4_000) == 2 * page
    encoded = base64.b64encode(pdf(5)).decode()
    assert document_tokens(None, encoded, None) == 5 * page
    assert document_tokens(None, "data:application/pdf;base64," + encoded, None) == 5 * page
    assert document_tokens(9, encoded, None) == 9 * page
    compressed = base64.b64encode(b"%PDF-1.7" + bytes(80_000)).decode()
    assert document_tokens(None, compressed, None) == media.DEFAULT_PAGES * page
    assert document_tokens(None, "a plain text document", None) == engines.count("a plain text document")

"""Sizes from image headers, pages of PDFs."""

from __future__ import annotations

import base64
import random
import struct

import pytest

from ctxctl.formats.media import image_size, image_size_base64, media_of, pdf_pages


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


def pdf(pages: int, head: str = "") -> bytes:
    body = "".join(f"{i} 0 obj <</Type /Page /Parent 1 0 R>> endobj\n" for i in range(2, pages + 2))
    return f"%PDF-1.7\n{head}1 0 obj <</Type/Pages /Count {pages}>> endobj\n{body}%%EOF".encode()


def test_pdf_pages() -> None:
    assert pdf_pages(pdf(3)) == 3
    assert pdf_pages(pdf(2, "9 0 obj <</Linearized 1 /L 5000 /H [1 2] /O 3 /E 9 /N 47 /T 5>> endobj\n")) == 47
    assert pdf_pages(b"%PDF-1.7 compressed objects") is None
    assert pdf_pages(b"") is None
    assert pdf_pages(b"/Type /Page") is None


def test_media_of_a_pdf_and_a_picture() -> None:
    found = media_of(base64.b64encode(pdf(5)).decode(), "application/pdf")
    assert (found.mime, found.pages, found.width) == ("application/pdf", 5, None)
    uri = "data:image/png;base64," + base64.b64encode(png(64, 48)).decode()
    found = media_of(uri, None)
    assert (found.mime, found.width, found.height) == ("image/png", 64, 48)
    assert media_of("not base64", "image/png").width is None


@pytest.mark.parametrize(("stated", "pages"), [(b"12", 12), (b"0", None), (b"100000", 100_000), (b"999999", None)])
def test_pages_that_a_damaged_file_states(stated: bytes, pages: int | None) -> None:
    assert pdf_pages(b"%PDF-1.7\n1 0 obj <</Linearized 1/L 9/N " + stated + b"/T 5>>") == pages

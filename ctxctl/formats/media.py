"""What an image or document says of itself in its first bytes, so that it can be charged without being kept.

Header layouts: PNG (RFC 2083, IHDR), GIF89a, JPEG (ITU T.81, SOF markers), WebP (RFC 9649), BMP, PDF page objects.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable

from ctxctl.model.block import Media

_MOST_PAGES = 100_000
"""More than any document that a provider takes; a figure above it is damage."""
_DOCUMENT_BYTES = 32_000_000  # what is searched for pages; more than providers accept in a request
_HEADER_BYTES = 65_536
_MAX_SIDE = 65_535  # the most that JPEG and GIF can say, and above any provider's limit; more is a damaged header

Size = tuple[int, int]
"""Width and height in pixels."""


def media_of(data: str, mime: str | None) -> Media:
    """What base64 data (or a `data:` URI) of an image or PDF says of itself; what it doesn't say is None."""
    if data.startswith("data:"):
        mime = mime or data[5:100].partition(";")[0] or None
    size = len(data) * 3 // 4
    if mime == "application/pdf" or data.startswith("JVBER"):
        return Media(mime, pages=pdf_pages(decode_base64(data, _DOCUMENT_BYTES)), size=size)
    width, height = image_size_base64(data) or (None, None)
    return Media(mime, width, height, size=size)


def image_size(data: bytes) -> Size | None:
    """(width, height) in pixels from the first bytes of a PNG, JPEG, GIF, WebP or BMP file; else None. Never raises."""
    try:
        for magic, read in _READERS:
            if data.startswith(magic):
                size = read(data)
                break
        else:
            return None
    except (IndexError, ValueError):
        return None
    return size if size and all(0 < side <= _MAX_SIDE for side in size) else None


def image_size_base64(data: str) -> Size | None:
    """`image_size` of base64 text, or of a `data:` URI. Only the first 64 KB are decoded. Never raises."""
    return image_size(decode_base64(data, _HEADER_BYTES))


def pdf_pages(data: bytes) -> int | None:
    """The number of pages of a PDF by a scan of its first 32 MB; None when they aren't to be seen (compressed)."""
    head = data[:_DOCUMENT_BYTES]
    if not head.startswith(b"%PDF"):
        return None
    if linearized := re.search(rb"/Linearized\b[^>]{0,200}?/N\s+(\d{1,6})\b", head[:2048]):
        pages = int(linearized[1])
        return pages if 0 < pages <= _MOST_PAGES else None
    return len(re.findall(rb"/Type\s{0,4}/Page\b", head)) or None


def decode_base64(text: str, limit: int) -> bytes:
    """The first `limit` bytes of base64 text or of a base64 `data:` URI; as much as can be had of damaged text."""
    start = 0
    if text.startswith("data:"):
        start = text.find(",", 0, 1_000) + 1
        if not start or ";base64" not in text[:start].lower():
            return b""
    # A tenth more than needed, for line ends; whatever isn't base64 is left out, and the URL alphabet is accepted.
    part = text[start : start + limit * 4 // 3 * 11 // 10].encode("ascii", "replace")
    part = part.translate(_URL_ALPHABET, _NOT_BASE64).partition(b"=")[0]
    usable = len(part) - (len(part) % 4 == 1)
    try:
        return binascii.a2b_base64(part[:usable] + b"=" * (-usable % 4))[:limit]
    except binascii.Error:
        return b""


_URL_ALPHABET = bytes.maketrans(b"-_", b"+/")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
_NOT_BASE64 = bytes(set(range(256)) - set(_BASE64))


def _big(data: bytes, start: int) -> int:
    return data[start] << 8 | data[start + 1]


def _little(data: bytes, start: int, count: int = 2) -> int:
    if len(data) < start + count:
        raise IndexError(start)
    return int.from_bytes(data[start : start + count], "little")


def _png(data: bytes) -> Size | None:
    if data[12:16] != b"IHDR":
        return None
    return _big(data, 16) << 16 | _big(data, 18), _big(data, 20) << 16 | _big(data, 22)


def _gif(data: bytes) -> Size | None:
    return _little(data, 6), _little(data, 8)


def _bmp(data: bytes) -> Size | None:
    if _little(data, 14, 4) == 12:  # the header of OS/2
        return _little(data, 18), _little(data, 20)
    height = _little(data, 22, 4)  # signed: negative when the rows go from the top down
    return _little(data, 18, 4), min(height, 2**32 - height)


def _webp(data: bytes) -> Size | None:
    if data[8:12] != b"WEBP":
        return None
    form = data[12:16]
    if form == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if form == b"VP8L" and data[20] == 0x2F:
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data, 26) & 0x3FFF, _little(data, 28) & 0x3FFF
    return None


def _jpeg(data: bytes) -> Size | None:
    position = 2
    while True:
        if data[position] != 0xFF:
            return None
        while data[position] == 0xFF:  # any number of fill bytes
            position += 1
        marker = data[position]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a start of frame: height comes first
            return _big(data, position + 6), _big(data, position + 4)
        if marker in (0xD9, 0xDA):  # the picture begins, or ends, without one
            return None
        # Markers without a segment go straight on to the next one.
        position += 1 if marker == 0x01 or 0xD0 <= marker <= 0xD8 else 1 + max(2, _big(data, position + 1))


_READERS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _webp),
    (b"BM", _bmp),
)

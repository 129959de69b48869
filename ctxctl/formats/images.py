"""Size of an image or document from its first bytes, so that its tokens can be told without keeping it.

Header layouts: PNG (RFC 2083, IHDR), GIF89a, JPEG (ITU T.81, SOF markers), WebP (RFC 9649), BMP.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct

from ctxctl.model.block import Media

HEAD = 1 << 16
PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


def picture(data: str, mime: str | None) -> Media:
    """What the base64 data (or data: URI) of an image or PDF says of itself; unknown parts are None."""
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        mime = mime or head[5:].partition(";")[0] or None
    size = len(data) * 3 // 4
    if mime == "application/pdf":
        pages = len(PAGE.findall(_decode(data)))
        return Media(mime, pages=pages or None, size=size)
    found = image_size(_decode(data[: HEAD * 4 // 3]))
    return Media(mime, *found, size=size) if found else Media(mime, size=size)


def _decode(data: str) -> bytes:
    text = data[: len(data) - len(data) % 4]
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels from an image's first bytes, None when they don't tell. Never raises."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack(">II", data[16:24])
        elif data.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack("<HH", data[6:10])
        elif data.startswith(b"BM"):
            width, height = (abs(n) for n in struct.unpack("<ii", data[18:26]))
        elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            width, height = _webp(data)
        elif data.startswith(b"\xff\xd8"):
            width, height = _jpeg(data)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return (width, height) if 0 < width < 1 << 17 and 0 < height < 1 << 17 else None


def _webp(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if form == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(data: bytes) -> tuple[int, int]:
    position = 2
    while True:
        marker, length = data[position + 1], struct.unpack(">H", data[position + 2 : position + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        position += 2 + length

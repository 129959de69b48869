"""A small PNG, written byte by byte so that it is the same with every zlib."""

from __future__ import annotations

import struct
import zlib


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def stored(data: bytes) -> bytes:
    """A zlib stream of one uncompressed block."""
    if len(data) > 0xFFFF:
        raise ValueError("too large for one block")
    head = b"\x78\x01\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF)
    return head + data + struct.pack(">I", zlib.adler32(data))


def bar_chart(values: list[int], width: int, height: int, limit: int) -> bytes:
    """Bars from left to right, 0..height; those above `limit` in another colour. Two bits per pixel, four colours."""
    palette = bytes([0xFB, 0xFB, 0xF8, 0x4C, 0x78, 0xA8, 0xE4, 0x57, 0x56, 0x8A, 0x8A, 0x8A])
    slot = width // len(values)
    rows = bytearray()
    for y in range(height):
        level = height - 1 - y
        pixels = []
        for x in range(width):
            bar = x // slot
            inside = bar < len(values) and x % slot < slot - 1 and level < values[bar]
            colour = 0
            if inside:
                colour = 2 if values[bar] > limit else 1
            elif level == limit:
                colour = 3
            pixels.append(colour)
        rows.append(0)
        for x in range(0, width, 4):
            a, b, c, d = (pixels[x + i] if x + i < width else 0 for i in range(4))
            rows.append(a << 6 | b << 4 | c << 2 | d)
    header = struct.pack(">IIBBBBB", width, height, 2, 3, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"PLTE", palette), chunk(b"IDAT", stored(bytes(rows))), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)

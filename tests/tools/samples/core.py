"""Helpers that every sample uses: stable ids, a clock, a token estimate, JSON writers."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
DATA = Path(__file__).parent / "data"


def digest(name: str) -> bytes:
    """Bytes that depend on the name only; all ids are made of them."""
    return hashlib.sha256(f"sample:{name}".encode()).digest()


def uuid4(name: str) -> str:
    return str(uuid.UUID(bytes=digest(name)[:16], version=4))


def uuid7(name: str, when: datetime) -> str:
    """Time-ordered id, as newer clients write them."""
    millis = int(when.timestamp() * 1000)
    raw = bytearray(millis.to_bytes(6, "big") + digest(name)[:10])
    raw[6] = 0x70 | (raw[6] & 0x0F)
    raw[8] = 0x80 | (raw[8] & 0x3F)
    return str(uuid.UUID(bytes=bytes(raw)))


def short_id(name: str, length: int = 22) -> str:
    number = int.from_bytes(digest(name) + digest(name + "+"), "big")
    out = []
    for _ in range(length):
        number, rest = divmod(number, len(ALPHABET))
        out.append(ALPHABET[rest])
    return "".join(out)


def hex_id(name: str, length: int) -> str:
    return (digest(name).hex() * 2)[:length]


def opaque(name: str, length: int, prefix: str = "") -> str:
    """Looks like a signature or encrypted reasoning; holds nothing."""
    raw = b"".join(digest(f"{name}/{i}") for i in range(length // 40 + 1))
    return (prefix + base64.b64encode(raw).decode().replace("=", ""))[:length]


def tokens(text: str, per_token: float) -> int:
    return math.ceil(len(text) / per_token)


def pick(name: str, low: int, high: int) -> int:
    """A number in low..high that depends on the name only."""
    return low + int.from_bytes(digest(name)[:4], "big") % (high - low + 1)


def compact(obj: Any) -> str:
    return json.dumps(obj, ensure_ascii=False, separators=(",", ":"))


class Clock:
    def __init__(self, start: str) -> None:
        self.now = datetime.fromisoformat(start)

    def tick(self, seconds: float) -> str:
        self.now += timedelta(milliseconds=round(seconds * 1000))
        return self.iso()

    def iso(self, offset: float = 0.0) -> str:
        when = self.now + timedelta(milliseconds=round(offset * 1000))
        return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(compact(r) + "\n" for r in records).encode())


def write_pretty(path: Path, obj: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((json.dumps(obj, ensure_ascii=False, indent=2) + "\n").encode())


def bundle(name: str) -> dict[str, str]:
    """Reads a data file that holds several texts, each after a line `=== name`."""
    out: dict[str, list[str]] = {}
    current: list[str] = []
    for line in (DATA / name).read_bytes().decode().split("\n"):
        if line.startswith("=== "):
            current = out.setdefault(line[4:].strip(), [])
        else:
            current.append(line)
    return {key: "\n".join(lines).strip("\n") + "\n" for key, lines in out.items()}

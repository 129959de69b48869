"""Real sessions that are handed out beside the repository, and readers of them that share no code with ctxctl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# no package here: test modules find these readers by this name
sys.modules["real_readers"] = sys.modules[__name__]
sys.path.insert(0, str(Path(__file__).parent))  # and real_extraction, which stands beside them

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
STARTS = (b'{"parentUuid":', b'{"type":', b'{"timestamp":', b'{"messageId":')


@pytest.fixture(scope="session")
def transcripts() -> Path:
    if not TRANSCRIPTS.is_dir():
        pytest.skip("the handed transcripts (../shared/transcripts) are not here")
    return TRANSCRIPTS


def values(data: bytes) -> Iterator[tuple[int, Any]]:
    """(line, JSON value) of a JSON lines file: glued values apart, what can't be parsed left out."""
    decoder = json.JSONDecoder()
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.strip(b"\r\x00 ").decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        while text:
            try:
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break
            yield number, value
            text = text[end:].strip()


def objects(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The records of a JSON lines file with their lines."""
    return [(line, value) for line, value in values(path.read_bytes()) if isinstance(value, dict)]


@dataclass
class Calls:
    """Model calls of a session. Each is a dict of counts by the names that ctxctl uses."""

    calls: dict[Any, dict[str, int]] = field(default_factory=dict)
    threads: dict[Any, bool] = field(default_factory=dict)
    context: int | None = None
    boundaries: dict[str, int] = field(default_factory=dict)

    def total(self, side: bool | None = None) -> dict[str, int]:
        """Sums over all calls, or over those of helpers (True) or of the main thread (False)."""
        names = ("input", "output", "cache_read", "cache_write")
        chosen = [c for key, c in self.calls.items() if c and (side is None or self.threads[key] is side)]
        return {**{n: sum(c[n] for c in chosen) for n in names}, "requests": len(chosen)}


FIELDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def is_answer(record: dict[str, Any]) -> bool:
    """An assistant record of Claude Code that a model wrote."""
    message = record.get("message")
    if record.get("type") != "assistant" or not isinstance(message, dict) or "content" not in message:
        return False
    return message.get("model") != "<synthetic>" and record.get("isApiErrorMessage") is not True


def claude_calls(path: Path) -> Calls:
    """Usage per message id and request id, each field at its maximum; the context after the last boundary."""
    found = Calls()
    newest: Any = None
    records = objects(path)
    own_file = not any(r.get("type") in ("user", "assistant") and not r.get("isSidechain") for _, r in records)
    for _, record in records:
        side = record.get("isSidechain") is True and not own_file
        if record.get("type") == "system" and str(record.get("subtype")).endswith("compact_boundary"):
            found.boundaries[record["subtype"]] = found.boundaries.get(record["subtype"], 0) + 1
            newest = None if record["subtype"] == "compact_boundary" else newest
        if not is_answer(record):
            continue
        message = record["message"]
        key = (message.get("id") or record.get("uuid"), record.get("requestId"))
        usage = message.get("usage")
        found.threads.setdefault(key, side)
        call = found.calls.setdefault(key, {})
        if isinstance(usage, dict):
            for name, stated in FIELDS.items():
                call[name] = max(call.get(name, 0), usage.get(stated) or 0)
            if not side and sum(call.values()) > 0:
                newest = key
    if newest is not None:
        call = found.calls[newest]
        found.context = call["input"] + call["cache_read"] + call["cache_write"]
    return found


def codex_counts(path: Path) -> list[dict[str, Any]]:
    """The token_count events of a rollout that count: with totals, and other totals than the one before."""
    events: list[dict[str, Any]] = []
    for _, record in objects(path):
        payload = record.get("payload")
        if record.get("type") != "event_msg" or not isinstance(payload, dict) or payload.get("type") != "token_count":
            continue
        info = payload.get("info")
        if isinstance(info, dict) and (not events or info["total_token_usage"] != events[-1]["total_token_usage"]):
            events.append(info)
    return events


def paths(folder: str) -> list[Path]:
    return sorted(p for p in (TRANSCRIPTS / folder).glob("*") if p.is_file()) if TRANSCRIPTS.is_dir() else []


@pytest.fixture(scope="session")
def measured(transcripts: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Any]:
    """`analyze --json --blocks` of any handed transcript, from one run over all: its `result`, or its `error`."""
    every = sorted(str(p) for p in transcripts.glob("*/*") if p.is_file())
    command = [sys.executable, "-m", "ctxctl", "analyze", "--json", "--blocks", "--no-subagents", *every]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path_factory.mktemp("real"), timeout=120)
    assert b"Traceback" not in done.stderr, done.stderr[-400:]
    assert done.returncode == 3
    files = json.loads(done.stdout.decode("utf-8", "strict"))["result"]["files"]
    entries = {Path(entry["path"]): entry for entry in files}
    assert len(entries) == len(every)
    return lambda path: entries[path].get("result") or entries[path]["error"]

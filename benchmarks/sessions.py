"""Large synthetic Claude Code sessions, deterministic, for measuring: `python benchmarks/sessions.py OUT --mb 20`."""

from __future__ import annotations

import argparse
import json
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

WORDS = (
    *("the", "of", "to", "and", "in", "is", "for", "that", "it", "with", "from", "not", "we", "should", "because"),
    *("file", "function", "test", "error", "return", "value", "class", "import", "def", "self", "check", "run", "fix"),
    *("retry", "timeout", "client", "server", "request", "response", "token", "window", "context", "parse", "count"),
    *("cache", "index", "buffer", "stream", "config", "schema", "handler", "module", "package", "version", "plan"),
    *("naïve", "größe", "проверка", "日本語", "完了", "✅"),
)
SYSTEM_TOKENS = 18_000


class Session:
    """Writes records until a size is reached; compacts when the modelled window passes 83 %."""

    def __init__(self, seed: int, lines: int = 330, numbers: int = 9999, era: int = 0, limit: int = 200_000) -> None:
        self.random = random.Random(seed)
        self.lines = lines  # of the longest tool result
        self.numbers = numbers
        self.era = era  # steps after which the work moves on to other files; 0: never
        self.limit = limit  # tokens of the window that it models
        self.steps = 0
        self.id = self.uuid()
        self.parent: str | None = None
        self.time = datetime(2026, 3, 1, 9, tzinfo=UTC)
        self.window, self.pending, self.cached = SYSTEM_TOKENS, 0, 0

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def words(self, low: int, high: int) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(low, high)))

    def code(self, lines: int) -> str:
        r = self.random
        return "\n".join(
            f"{'    ' * r.randint(0, 3)}{r.choice(WORDS)}_{r.choice(WORDS)}{self.now()}"
            f"({r.choice(WORDS)!r}, {r.randint(0, self.numbers)})"
            for _ in range(lines)
        )

    def record(self, kind: str, **more: Any) -> dict[str, Any]:
        self.time += timedelta(seconds=self.random.uniform(0.2, 4))
        stamp = self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/app",
            "sessionId": self.id,
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            **more,
            "uuid": self.uuid(),
            "timestamp": stamp,
        }
        self.parent = made["uuid"]
        return made

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
        self.pending += len(json.dumps(content, ensure_ascii=False)) // 4
        return self.record("user", message={"role": "user", "content": content}, **more)

    def answer(self, blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        r = self.random
        id_, request = f"msg_01{r.getrandbits(88):022x}", f"req_011{r.getrandbits(80):020x}"
        output = max(8, sum(len(json.dumps(b)) for b in blocks) // 4)
        usage = {
            "input_tokens": r.randint(2, 12),
            "cache_creation_input_tokens": self.pending + self.window - self.cached,
            "cache_read_input_tokens": self.cached,
            "output_tokens": output,
            "service_tier": "standard",
        }
        self.window += self.pending
        self.cached, self.pending = self.window, 0
        self.window += output
        for block in blocks:
            message = {
                "model": "claude-sonnet-4-5-20250929",
                "id": id_,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "usage": usage,
            }
            yield self.record("assistant", message=message, requestId=request)

    def now(self) -> str:
        """What tells the names of this era from those before."""
        return f"_{self.steps // self.era}" if self.era else ""

    def step(self) -> Iterator[dict[str, Any]]:
        r = self.random
        self.steps += 1
        blocks: list[dict[str, Any]] = []
        if r.random() < 0.5:
            thinking = {"thinking": self.words(20, 180), "signature": r.randbytes(150).hex()}
            blocks.append({"type": "thinking", **thinking})
        if r.random() < 0.45:
            blocks.append({"type": "text", "text": self.words(5, 60)})
        name = r.choice(("Read", "Read", "Bash", "Edit", "Grep"))
        target = f"/home/dev/app/src/{r.choice(WORDS)}/{r.choice(WORDS)}{self.now()}.py"
        call = f"toolu_01{r.getrandbits(88):022x}"
        given = {"command": f"pytest -q {target}"} if name == "Bash" else {"file_path": target}
        if name == "Edit":
            given |= {"old_string": self.code(r.randint(2, 12)), "new_string": self.code(r.randint(2, 14))}
        blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
        yield from self.answer(blocks)
        output = self.code(r.randint(min(5, self.lines), self.lines))
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        yield self.user([result], toolUseResult={"stdout": output, "stderr": ""})

    def compact(self) -> Iterator[dict[str, Any]]:
        before = self.window + self.pending
        logical, self.parent = self.parent, None
        data = {"trigger": "auto", "preTokens": before}
        boundary = self.record(
            "system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=data
        )
        yield {**boundary, "logicalParentUuid": logical}
        self.window, self.pending, self.cached = SYSTEM_TOKENS, 0, 0
        yield self.user(self.words(600, 1200), isCompactSummary=True)

    def records(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self.user(self.words(8, 60))
            for _ in range(self.random.randint(2, 12)):
                yield from self.step()
                if self.window + self.pending > self.limit * 0.83:
                    yield from self.compact()
            yield from self.answer([{"type": "text", "text": self.words(20, 120)}])
            yield self.record("system", subtype="turn_duration", durationMs=self.random.randint(2000, 200_000))


def make_turns(path: Path, turns: int, seed: int = 1) -> None:
    """Write a session of so many model calls with short results that moves on to other files as it goes, so that a
    call refers to as much late in the session as early: what grows is the number of calls alone."""
    calls: set[str] = set()
    with open(path, "wb", buffering=1 << 20) as file:
        for record in Session(seed, 6, 10**9, 200).records():
            request = record.get("requestId")
            if request is not None and request not in calls and len(calls) == turns:
                return
            if request is not None:
                calls.add(request)
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def make(path: Path, megabytes: float, seed: int = 1, era: int = 0, window: int = 200_000) -> None:
    """Write a session of at least that size (10**6 bytes). era: steps after which it moves on to other files; window:
    tokens that it models, so that a large one is never compacted."""
    size = 0
    with open(path, "wb", buffering=1 << 20) as file:
        for record in Session(seed, era=era, limit=window).records():
            data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            file.write(data)
            size += len(data)
            if size >= megabytes * 1e6:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    make(arguments.out, arguments.mb, arguments.seed)

"""Sessions to compact, ctxctl run on them within this process, and what a folder holds."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.app import run

SESSION = "7a7a7a7a-0000-4000-9000-000000000001"


@dataclass(frozen=True)
class Done:
    """A run that ended. out, raw: of stdout; err: of stderr; code: exit status."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8", "strict")

    def result(self) -> Any:
        """`result` of the one strict JSON document on stdout."""

        def refuse(word: str) -> Any:
            raise AssertionError(f"{word} in the JSON")

        return json.loads(self.out, parse_constant=refuse)["result"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of a run: an empty repository."""
    made = tmp_path / "w"
    (made / ".git").mkdir(parents=True)
    return made


@pytest.fixture
def compact(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """`compact(*arguments)`, in the working folder, without anybody's settings; another command by `command`."""
    for name in list(os.environ):
        if name.startswith(("CTXCTL_", "NO_COLOR", "FORCE_COLOR", "COLUMNS")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(folder)

    def call(*arguments: Any, command: str = "compact") -> Done:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run([command, *map(str, arguments)])
        text = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
        assert "Traceback" not in text, text[-600:]
        return Done(int(status), out.buffer.getvalue(), text)  # type: ignore[attr-defined]

    return call


def claude_session(rounds: int = 12, size: int = 3000, task: str = "Make the parser fast") -> bytes:
    """A Claude Code session: a task, then rounds of reading a file of so many characters, an answer to each."""
    lines: list[Any] = []

    def put(kind: str, message: Any) -> None:
        n = len(lines) + 1
        lines.append(
            {
                "parentUuid": lines[-1]["uuid"] if lines else None,
                "isSidechain": False,
                "sessionId": SESSION,
                "version": "2.1.20",
                "cwd": "/srv/app",
                "type": kind,
                "uuid": f"5e551011-0000-4000-9000-{n:012d}",
                "timestamp": f"2026-03-01T08:{n // 60:02d}:{n % 60:02d}.000Z",
                "message": message,
                **({"requestId": f"req_{n}"} if kind == "assistant" else {}),
            }
        )

    def answer(block: Any) -> None:
        put(
            "assistant",
            {
                "id": f"msg_{len(lines):03d}",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [block],
                "usage": {
                    "input_tokens": 3,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": sum(len(json.dumps(line["message"])) for line in lines) // 4,
                    "output_tokens": 20,
                },
            },
        )

    put("user", {"role": "user", "content": task})
    for n in range(rounds):
        path = f"src/part_{n}.py"
        call = f"toolu_{n:03d}"
        body = "\n".join(f"{k}: value_{n}_{k} = compute_{n}({k})" for k in range(size // 34))
        answer({"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}})
        put("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": body}]})
        answer({"type": "text", "text": f"Step {n} of {rounds} is done: {path} has no loop worth a change."})
    put("user", {"role": "user", "content": "And now the rest, please"})
    answer({"type": "text", "text": "I go on with the rest."})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def chat_session(rounds: int = 8, size: int = 1500) -> bytes:
    """A chat: a system message, then questions with a tool's answer each."""
    lines: list[Any] = [
        {"role": "system", "content": "You answer questions about a library."},
        {"role": "user", "content": "Which functions are slow?"},
    ]
    for n in range(rounds):
        call = {"id": f"call_{n}", "type": "function", "function": {"name": "search", "arguments": f'{{"q":"f{n}"}}'}}
        lines.append({"role": "assistant", "content": None, "tool_calls": [call]})
        lines.append({"role": "tool", "tool_call_id": f"call_{n}", "content": f"hit {n} " * (size // 6)})
        lines.append({"role": "assistant", "content": f"Function f{n} takes {n}0 ms."})
        lines.append({"role": "user", "content": f"And f{n + 1}?"})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


@pytest.fixture
def session(folder: Path) -> Callable[..., Path]:
    """A session in the working folder, last written long ago: `session()`, `session("b.jsonl", rounds=40)`,
    `session("c.jsonl", data=...)`; `chat=True` for a chat."""

    def write(name: str = "s.jsonl", *, data: bytes | None = None, chat: bool = False, **more: Any) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if data is not None else chat_session(**more) if chat else claude_session(**more))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return path

    return write


@pytest.fixture
def snapshot(folder: Path) -> Callable[[], dict[str, Any]]:
    """All that the working folder holds now: bytes, mode and time of each file, the target of each link."""

    def look() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.is_file():
                state = path.stat()
                found[name] = (path.read_bytes(), state.st_mode, state.st_mtime_ns)
            else:
                found[name] = "folder"
        return found

    return look


@pytest.fixture
def texts() -> Callable[[Path | bytes], list[str]]:
    """The texts of all messages of a Claude Code session or a chat, read without ctxctl."""

    def read(source: Path | bytes) -> list[str]:
        data = source if isinstance(source, bytes) else source.read_bytes()
        found: list[str] = []
        for line in data.decode("utf-8", "strict").split("\n")[:-1]:
            record = json.loads(line)
            message = record.get("message", record)
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
                text = block.get("text") or block.get("content") or ""
                found.append(text if isinstance(text, str) else json.dumps(text))
        return found

    return read

"""Small transcripts built in code, and ctxctl run on them: as a process of its own, or within this one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.app import run

SESSION = "7a7a7a7a-0000-4000-9000-000000000001"


def dump(record: Any) -> bytes:
    """A record as agents write it. Lone surrogates are written as escapes, everything else as UTF-8."""
    try:
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode()


def strict(data: bytes) -> Any:
    """The one JSON document that a stdout holds: strict UTF-8, no NaN, no Infinity, nothing around it."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} in the JSON")

    return json.loads(data.decode("utf-8", "strict"), parse_constant=refuse)


class Lines:
    """What all builders share: records and raw bytes, line by line."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def raw(self, data: bytes) -> None:
        """A physical line as it stands."""
        self.lines.append(data)

    def put(self, record: Any) -> Any:
        """A record of its own line; returns it."""
        self.lines.append(dump(record))
        return record

    def data(self, end: bytes = b"\n", last: bytes | None = None) -> bytes:
        """The file. end: of each line; last: of the last line, by default the same."""
        return end.join(self.lines) + (end if last is None else last)


class Claude(Lines):
    """A Claude Code session; each message hangs on the one before unless `parent` is given."""

    def __init__(self, model: str = "claude-sonnet-4-5") -> None:
        super().__init__()
        self.model = model
        self.count = 0
        self.leaf: str | None = None

    @staticmethod
    def uuid(number: int) -> str:
        return f"5e551011-0000-4000-9000-{number:012d}"

    def envelope(self, type_: str, **fields: Any) -> dict[str, Any]:
        """A record of the tree. `parent`: its parentUuid, by default the newest main-thread record."""
        self.count += 1
        parent = fields.pop("parent", self.leaf)
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "sessionId": SESSION,
            "version": "2.1.20",
            "cwd": "/srv/app",
            "type": type_,
            "uuid": self.uuid(self.count),
            "timestamp": f"2026-03-01T08:{self.count // 60:02d}:{self.count % 60:02d}.000Z",
            **fields,
        }
        self.put(record)
        if not record["isSidechain"]:
            self.leaf = record["uuid"]
        return record

    def user(self, content: Any = "go on", **fields: Any) -> str:
        """A user record; returns its uuid."""
        return self.envelope("user", message={"role": "user", "content": content}, **fields)["uuid"]

    def result(self, call: str, content: Any, **fields: Any) -> str:
        """A user record with one tool result."""
        return self.user([{"type": "tool_result", "tool_use_id": call, "content": content}], **fields)

    def assistant(self, content: Any = "done", *, usage: Any = (10, 0, 0, 5), **fields: Any) -> str:
        """An assistant record. usage: input, cache write, cache read, output; or an object as it stands.
        id, request, model: of the response."""
        if isinstance(usage, tuple):
            names = (
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
                "output_tokens",
            )
            usage = dict(zip(names, usage, strict=True))
        id_ = fields.pop("id", f"msg_{self.count + 1:03d}")
        message = {
            "id": id_,
            "type": "message",
            "role": "assistant",
            "model": fields.pop("model", self.model),
            "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
            "usage": usage,
        }
        request = fields.pop("request", f"req_{id_}")
        extra = {"requestId": request} if request is not None else {}
        return self.envelope("assistant", message=message, **extra, **fields)["uuid"]

    def call(self, id_: str, name: str = "Bash", arguments: Any = None, **fields: Any) -> str:
        """An assistant record with one tool call."""
        block = {"type": "tool_use", "id": id_, "name": name, "input": arguments or {"command": "make"}}
        return self.assistant([block], **fields)

    def boundary(self, **fields: Any) -> str:
        """A compact_boundary; `logical`: its logicalParentUuid; `metadata`: compactMetadata."""
        logical = fields.pop("logical", self.leaf)
        metadata = {"trigger": "auto", **fields.pop("metadata", {})}
        record = self.envelope(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            parent=None,
            logicalParentUuid=logical,
            compactMetadata=metadata,
            **fields,
        )
        return record["uuid"]

    def summary(self, text: str, **fields: Any) -> str:
        """The summary that follows a boundary."""
        return self.user(text, isCompactSummary=True, isVisibleInTranscriptOnly=True, **fields)


class Codex(Lines):
    """A Codex rollout."""

    def __init__(self, **meta: Any) -> None:
        super().__init__()
        self.count = 0
        self.write("session_meta", {"id": "0199-c0de", "cwd": "/srv/app", **meta})

    def write(self, type_: str, payload: Any, when: str | None = None) -> None:
        self.count += 1
        when = when or f"2026-03-01T09:{self.count // 60:02d}:{self.count % 60:02d}.000Z"
        self.put({"timestamp": when, "type": type_, "payload": payload})

    def message(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.write("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    def tokens(self, total: Any, last: Any, window: int | None = 258_400, when: str | None = None) -> None:
        """A token_count event; total and last as (input, cached, output)."""
        info: dict[str, Any] = {}
        for name, counts in (("total_token_usage", total), ("last_token_usage", last)):
            if counts is not None:
                new, cached, output = counts
                info[name] = {
                    "input_tokens": new,
                    "cached_input_tokens": cached,
                    "output_tokens": output,
                    "reasoning_output_tokens": 0,
                    "total_tokens": new + output,
                }
        if window is not None:
            info["model_context_window"] = window
        self.write("event_msg", {"type": "token_count", "info": info or None, "rate_limits": None}, when)


@dataclass(frozen=True)
class Done:
    """A run that ended."""

    status: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        return strict(self.out)

    @property
    def result(self) -> Any:
        return self.json["result"]


def environment(home: Path) -> dict[str, str]:
    """The environment without settings and habits of whoever runs the tests."""
    drop = ("CTXCTL_", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "LC_", "COLUMNS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "_TYPER_FORCE_DISABLE_TERMINAL": "1"}


def _no_traceback(err: str) -> None:
    if "Traceback" in err:
        pytest.fail(f"a traceback: {err[-300:]}", pytrace=False)


@pytest.fixture
def claude() -> Callable[..., Claude]:
    return Claude


@pytest.fixture
def codex() -> Callable[..., Codex]:
    return Codex


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, apart from the home folder of the run."""
    made = tmp_path / "w"
    made.mkdir()
    return made


@pytest.fixture
def save(folder: Path) -> Callable[..., Path]:
    """Write a file: `save(data)`, `save(data, name)`; data: bytes, a builder, or chat messages, one per line."""

    def write(data: Any, name: str = "t.jsonl") -> Path:
        if isinstance(data, Lines):
            data = data.data()
        elif isinstance(data, list):
            data = b"".join(dump(message) + b"\n" for message in data)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def ctxctl(folder: Path, tmp_path: Path) -> Callable[..., Done]:
    """Run ctxctl as a process in the folder; `env` adds to the environment, None drops a variable."""

    def process(*arguments: Any, stdin: Any = subprocess.DEVNULL, env: Any = None, timeout: float = 60) -> Done:
        variables = {**environment(tmp_path), **(env or {})}
        variables = {k: v for k, v in variables.items() if v is not None}
        given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        command = [sys.executable, "-m", "ctxctl", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, cwd=folder, env=variables, timeout=timeout, **given)
        err = done.stderr.decode("utf-8", "backslashreplace")
        _no_traceback(err)
        return Done(done.returncode, done.stdout, err)

    return process


@pytest.fixture
def within(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Done]]:
    """Run the command line within this process: the same code, a fraction of the time."""
    for name in list(os.environ):
        if name.startswith("CTXCTL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(folder)

    def call(*arguments: Any) -> Done:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run([str(a) for a in arguments])
        text = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
        _no_traceback(text)
        return Done(int(status), out.buffer.getvalue(), text)  # type: ignore[attr-defined]

    yield call


@pytest.fixture
def analyzed(save: Callable[..., Path], within: Callable[..., Done]) -> Callable[..., Any]:
    """`result` of `analyze --json --blocks` on data that is written first; the run has to succeed."""

    def analyze(data: Any, *options: str, name: str = "t.jsonl") -> Any:
        done = within("analyze", "--json", "--blocks", *options, save(data, name))
        assert done.status == 0, done.err
        return done.result

    return analyze

"""Small sessions of Claude Code, written to a file line by line as the agent writes them, with usage that fits what is
in the window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctxctl import load_models
from ctxctl.health.options import HealthOptions
from ctxctl.health.session import Examining, Session, examine
from ctxctl.tokens.engines import count

START = datetime(2026, 5, 11, 9, 0, tzinfo=UTC).timestamp()
CACHE_LIFE = 300
SCALE = 1.2
"""Claude tokens per token of o200k_base, about."""


@dataclass
class Held:
    """Something in the window. id: of the call whose result it is."""

    tokens: int
    id: str | None = None


class ClaudeSession:
    """One session file under `folder`; each method appends what the agent would write.

    overhead: tokens of system prompt and tools, which the file does not hold. step: seconds between records.
    """

    def __init__(
        self,
        folder: Path,
        name: str = "session",
        *,
        model: str = "claude-sonnet-4-5-20250929",
        cwd: str = "/code/app",
        start: float = START,
        overhead: int = 12_000,
        step: float = 5,
    ) -> None:
        self.path = folder / f"{name}.jsonl"
        self.name, self.model, self.cwd, self.overhead, self.step = name, model, cwd, overhead, step
        self.clock = start
        self.lines: list[dict[str, Any]] = []
        self.leaf: str | None = None
        self.window: list[Held] = []
        self.cached = 0  # tokens of the newest prompt
        self.read_at = start
        self.calls = 0
        self.ids = 0
        self.folder = folder

    # what is written

    def _put(self, **fields: Any) -> str:
        uuid = f"{self.name}-{len(self.lines) + 1}"
        head = {"parentUuid": self.leaf, "isSidechain": False, "cwd": self.cwd, "sessionId": self.name, "uuid": uuid}
        self.clock += self.step
        when = datetime.fromtimestamp(self.clock, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.lines.append({**head, "version": "2.1.112", "timestamp": when, **fields})
        self.leaf = uuid
        return uuid

    def _hold(self, text: str, id_: str | None = None) -> None:
        self.window.append(Held(round(SCALE * count(text)) + 4, id_))

    @property
    def tokens(self) -> int:
        """Tokens of the next request."""
        return self.overhead + sum(held.tokens for held in self.window)

    def wait(self, seconds: float) -> None:
        """Nothing happens for a while."""
        self.clock += seconds

    def user(self, text: str, **fields: Any) -> str:
        """The user says something. Returns the record's uuid, for `rewind`."""
        self._hold(text)
        return self._put(type="user", message={"role": "user", "content": text}, **fields)

    def answer(
        self,
        text: str = "",
        calls: Sequence[tuple[str, dict[str, Any]]] = (),
        *,
        thinking: str = "",
        model: str | None = None,
        prompt: int | None = None,
        cached: int | None = None,
        output: int | None = None,
        hour: bool = False,
    ) -> list[str]:
        """A model call and its answer; returns the ids of its tool calls. prompt, cached, output: tokens as reported;
        by default those of the window, the prompt before (unless a pause let it expire), and of the answer. hour: its
        cache entry is kept for an hour."""
        self.calls += 1
        self.model = model or self.model
        sent = self.tokens if prompt is None else prompt
        if cached is None:
            alive = self.clock - self.read_at <= (3600 if hour else CACHE_LIFE)
            cached = min(self.cached, sent) if alive else 0
        self.cached, self.read_at = sent, self.clock
        parts: list[dict[str, Any]] = []
        if thinking:
            parts.append({"type": "thinking", "thinking": thinking, "signature": "s"})
        if text:
            parts.append({"type": "text", "text": text})
        ids = []
        for tool, given in calls:
            self.ids += 1
            ids.append(f"toolu_{self.ids:04d}")
            parts.append({"type": "tool_use", "id": ids[-1], "name": tool, "input": given})
        said = "".join((thinking, text, *(json.dumps(given) for _, given in calls)))
        self._hold(said)
        written = sent - cached - min(10, sent - cached)
        usage = {
            "input_tokens": sent - cached - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cached,
            "output_tokens": self.window[-1].tokens if output is None else output,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 0 if hour else written,
                "ephemeral_1h_input_tokens": written if hour else 0,
            },
        }
        message = {"id": f"msg_{self.calls}", "type": "message", "role": "assistant", "model": self.model}
        for part in parts or [{"type": "text", "text": "."}]:
            self._put(
                type="assistant", requestId=f"req_{self.calls}", message={**message, "content": [part], "usage": usage}
            )
        return ids

    def result(self, id_: str, text: str, *, error: bool = False) -> None:
        """What a tool call gave."""
        self._hold(text, id_)
        part = {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": error}
        self._put(type="user", message={"role": "user", "content": [part]})

    def call(self, tool: str, given: dict[str, Any], result: str, *, error: bool = False, **answer: Any) -> str:
        """A model call that calls one tool, and the tool's result. Returns the call's id."""
        (id_,) = self.answer(calls=[(tool, given)], **answer)
        self.result(id_, result, error=error)
        return id_

    def read(self, path: str, content: str, **answer: Any) -> str:
        """A file is read."""
        return self.call("Read", {"file_path": path}, content, **answer)

    def bash(self, command: str, output: str, *, error: bool = False, **answer: Any) -> str:
        """A shell command is run."""
        return self.call("Bash", {"command": command}, output, error=error, **answer)

    def edit(self, path: str, old: str, new: str, **answer: Any) -> str:
        """A file is edited."""
        given = {"file_path": path, "old_string": old, "new_string": new}
        return self.call("Edit", given, f"The file {path} has been updated.", **answer)

    def todos(self, *items: tuple[str, str], **answer: Any) -> str:
        """The to-do list is written: (text, status) of each item."""
        given = {"todos": [{"content": text, "status": status, "activeForm": text} for text, status in items]}
        return self.call("TodoWrite", given, "Todos have been modified successfully.", **answer)

    def compact(self, summary: str, *, trigger: str = "auto") -> None:
        """The whole window is replaced by a summary."""
        last, self.leaf = self.leaf, None
        data = {"trigger": trigger, "preTokens": self.tokens}
        self._put(type="system", subtype="compact_boundary", compactMetadata=data, logicalParentUuid=last)
        text = (
            "This session is being continued from a previous conversation that ran out of context. The summary below "
            f"covers the earlier portion of the conversation.\n\n{summary}"
        )
        self._put(type="user", isCompactSummary=True, message={"role": "user", "content": text})
        self.window = []
        self._hold(text)
        self.cached = self.overhead

    def clear(self, *ids: str) -> None:
        """The results of these calls are replaced by placeholders."""
        before = self.tokens
        for held in self.window:
            if held.id in ids:
                held.tokens = 8
        data = {"trigger": "auto", "preTokens": before, "tokensSaved": before - self.tokens}
        self._put(
            type="system",
            subtype="microcompact_boundary",
            microcompactMetadata={**data, "compactedToolIds": list(ids), "clearedAttachmentUUIDs": []},
        )
        self.cached = self.overhead

    def refused(self, text: str = "Prompt is too long") -> None:
        """The provider refuses the next request."""
        message = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
        self._put(type="assistant", isApiErrorMessage=True, message={"id": f"err_{len(self.lines)}", **message})

    def rewind(self, uuid: str) -> None:
        """The user goes back to the state right after a record. What the window holds then is worked out anew only
        roughly: give `prompt` where it matters."""
        self.leaf = uuid

    def subagent(self, name: str, records: Sequence[dict[str, Any]]) -> Path:
        """A sub-agent's own file beside the session, of records with `type` and `message`."""
        folder = self.folder / self.path.stem / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"agent-{name}.jsonl"
        parent = None
        lines = []
        for number, record in enumerate(records, 1):
            uuid = f"{name}-{number}"
            when = datetime.fromtimestamp(self.clock + number, UTC).isoformat().replace("+00:00", "Z")
            head = {"parentUuid": parent, "isSidechain": True, "agentId": name, "sessionId": self.name, "uuid": uuid}
            lines.append(json.dumps({**head, "cwd": self.cwd, "timestamp": when, **record}))
            parent = uuid
        path.write_text("\n".join(lines) + "\n")
        return path

    # what becomes of it

    def save(self) -> Path:
        """Write the file."""
        self.path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines), "utf-8")
        return self.path

    def examine(self, options: Examining | None = None) -> Session:
        """Write the file and measure it."""
        return examined(self.save(), options)


def examined(path: Path, options: Examining | None = None) -> Session:
    """Measure a file."""
    return examine(str(path), load_models(), options or Examining())


def with_health(**changes: Any) -> Examining:
    """Settings of the health room that differ from the defaults."""
    return Examining(health=HealthOptions(**changes))


def lines_of(number: int, word: str = "value") -> str:
    """Text of about 10 tokens per line, every line another."""
    return "\n".join(f"    {word}_{n} = compute_{word}({n * 7919 % 10007}, flag={n % 3})" for n in range(number))

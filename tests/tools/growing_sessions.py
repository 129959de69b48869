"""Session files that are appended to, event by event: (role, what) with user text, an answer, or a call as (name,
arguments, result); a result in a tuple with a word before it is one that failed."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any


class Claude:
    """A session of Claude Code that is appended to."""

    format = "claude-code"

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"")
        self.session = path.stem
        self.count = 0

    def moved(self, path: Path) -> None:
        self.path = path
        self.session = json.loads(path.read_bytes().splitlines()[-1])["sessionId"]

    def append(self, events: list[tuple[str, Any]]) -> None:
        rows = [json.loads(row) for row in self.path.read_bytes().splitlines()]
        leaf = next((r["uuid"] for r in reversed(rows) if "uuid" in r), None)
        lines: list[dict[str, Any]] = []

        def put(type_: str, content: Any, **more: Any) -> None:
            nonlocal leaf
            self.count += 1
            message: dict[str, Any] = {"role": type_, "content": content}
            if type_ == "assistant":
                message |= {"id": f"msg_{self.count:04d}", "type": "message", "model": "claude-sonnet-4-5"}
            record = {
                "parentUuid": leaf,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/srv/app",
                "sessionId": self.session,
                "version": "2.1.20",
                "gitBranch": "main",
                "type": type_,
                "message": message,
                "uuid": str(uuid.UUID(int=self.count)),
                "timestamp": f"2027-01-05T{self.count // 60:02d}:{self.count % 60:02d}:00.000Z",
                **more,
            }
            leaf = record["uuid"]
            lines.append(record)

        for role, what in events:
            if role == "user":
                put("user", what)
            elif role == "assistant":
                put("assistant", [{"type": "text", "text": what}])
            else:
                name, arguments, result = what
                id_ = f"toolu_{self.count:05d}"
                put("assistant", [{"type": "tool_use", "id": id_, "name": name, "input": arguments}])
                flag = {"is_error": True} if isinstance(result, tuple) else {}
                text = result[1] if isinstance(result, tuple) else result
                put("user", [{"type": "tool_result", "tool_use_id": id_, "content": text, **flag}])
        with self.path.open("ab") as file:
            file.writelines(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


class Chat:
    """A conversation with one message per line."""

    format = "openai-chat-message"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._write([{"role": "system", "content": "You are a careful engineer."}])

    def moved(self, path: Path) -> None:
        self.path = path

    def _write(self, rows: list[dict[str, Any]]) -> None:
        with self.path.open("ab") as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in rows)

    def append(self, events: list[tuple[str, Any]]) -> None:
        rows: list[dict[str, Any]] = []
        for role, what in events:
            if role != "call":
                rows.append({"role": role, "content": what})
                continue
            name, arguments, result = what
            self.count += 1
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": f"call_{self.count:05d}", "type": "function", "function": function}
            rows.append({"role": "assistant", "content": None, "tool_calls": [call]})
            text = result[1] if isinstance(result, tuple) else result
            rows.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        self._write(rows)

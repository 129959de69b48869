"""Ten compactions in a row of a session that goes on between them: what is pinned, the goal and the open plan outlive
all of them, and there is never more than one summary."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from chat_views import SUMMARY, View, view
from compact_many import once
from valid_chat import violations

GOAL = "Move the billing service from axios to fetch. Success: all 45 call sites use fetch and the suite passes."
RULE = "Never touch src/legacy/gateway.ts; the vendor signs it."
NAMES = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india")
PLAN = [f"Convert module {name} of billing" for name in NAMES]
ROUNDS, TARGET = 10, 1300


def output(round_: int, step: int) -> str:
    return "\n".join(
        f"src/billing/mod_{round_}_{step}/file{n}.ts:{n * 7}: export const call{n} = axios.get('/v{round_}/{n}')"
        for n in range(60)
    )


def todos(done: int) -> dict[str, Any]:
    return {
        "todos": [
            {
                "content": text,
                "status": "completed" if n < done else "in_progress" if n == done else "pending",
                "activeForm": text,
            }
            for n, text in enumerate(PLAN)
        ]
    }


def turns(round_: int) -> list[tuple[str, Any]]:
    """What happens between two compactions, as (role, what): user text, a call with its result, or an answer."""
    found: list[tuple[str, Any]] = []
    if round_ == 0:
        found.append(("user", GOAL))
        found.append(("assistant", "I will look at the call sites first."))
        found.append(("user", f"One rule: <preserve>{RULE}</preserve>"))
    found.append(("user", f"Go on with module number {round_}, please, and tell me what you changed there."))
    found.append(("call", ("TodoWrite", todos(min(round_, len(PLAN) - 1)), "Todos have been modified")))
    for step in range(4):
        path = f"/srv/app/src/billing/mod_{round_}_{step}.ts"
        found.append(("call", ("Read", {"file_path": path}, output(round_, step))))
        found.append(
            ("call", ("Edit", {"file_path": path, "old_string": "axios", "new_string": "fetch"}, f"updated {path}"))
        )
    found.append(("assistant", f"Module {round_} is converted; decided to keep the retry wrapper because calls fail."))
    return found


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
                put("user", [{"type": "tool_result", "tool_use_id": id_, "content": result}])
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
            rows.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        self._write(rows)


def texts(of: View) -> list[str]:
    return [p.text for m in of.messages for p in m.parts]


def told(round_: int, of: View) -> None:
    """What has to be in every request."""
    everything = "\n".join(texts(of))
    assert GOAL in everything and RULE in everything
    summaries = [t for t in texts(of) if t.startswith(f"{SUMMARY} turns ")]
    # the first time, shorter outputs alone may do
    assert len(summaries) == 1 or (round_ == 0 and not summaries), [s[:80] for s in summaries]
    assert all(s.count(SUMMARY) == 1 for s in summaries)
    done = min(round_, len(PLAN) - 1)
    for text in PLAN[done:]:
        assert text in everything, text
    current = next(m for m in reversed(of.messages) if any(p.typed for p in m.parts))
    assert f"module number {round_}," in "\n".join(p.text for p in current.parts if p.typed)


@pytest.mark.parametrize("way", ["new", "in-place", "keep-history"])
@pytest.mark.parametrize("session", [Claude, Chat])
def test_ten_in_a_row(session: Any, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if session is Chat and way == "keep-history":
        pytest.skip("a plain conversation has no place for what was before")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    growing = session(tmp_path / "5e551011-0000-4000-9000-000000000001.jsonl")
    for round_ in range(ROUNDS):
        growing.append(turns(round_))
        before = tmp_path / f"before{round_}.jsonl"
        before.write_bytes(growing.path.read_bytes())
        line = ["compact", "--json", "--no-recall", "--force", "--to", str(TARGET)]
        after = tmp_path / f"5e551011-0000-4000-9000-0000000001{round_:02d}.jsonl"
        if way == "new":
            line += ["-o", str(after)]
        else:
            line += ["--in-place"] + (["--keep-history"] if way == "keep-history" else [])
            after = growing.path
        code, out, err = once([*line, str(growing.path)])
        assert code == 0, err
        result = json.loads(out)["result"]
        assert result["after_tokens"] <= TARGET and result["changed"]
        assert violations(before, after, growing.format) == []
        growing.moved(after)
        told(round_, view(after, growing.format))
        code, out, err = once([*line[:6], "--dry-run", str(after)])
        assert code == 0 and json.loads(out)["result"]["changed"] is False, err

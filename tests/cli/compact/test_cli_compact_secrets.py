"""Nothing that `compact` writes or prints holds a part of a credential (requirement G3)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from planted import Planted, leaked, planted

SECRETS = planted(11)
WORDS = "the job of stage 12 says in src/app/main.py:88 that it was done well and then "


def line(secret: Planted, start: int) -> str:
    pad = (WORDS * 12)[:start].rsplit(" ", 1)[0]
    return f"{pad} {secret.carrier} and error goes on in tests/unit/test_more.py:12 {WORDS * 4}"


def events(start: int) -> Iterator[tuple[str, Any]]:
    """(role, text) or ("call", (tool, arguments, result))."""
    rest = "\n".join(f"src/mod_{n}/file_{n}.py:{n}: value_{n} = {n * 37}" for n in range(30))
    yield "user", "Find out why the deployment fails."
    yield "assistant", "I look."
    for n, secret in enumerate(SECRETS):
        told = line(secret, start)
        packed = json.dumps({"a": told, "b": ["x" * 900]}, separators=(",", ":"))
        if n % 9 == 0:
            yield "user", f"You must never say this: {told}"
        if n % 3 == 0:
            yield "assistant", f"We decided to go on because {told}"
        command = told if n % 2 and not secret.lines else "python -m pytest -q"
        yield (
            "call",
            ("Bash", {"command": command}, f"{rest}\n{told}\n{rest}" if n % 4 else f"{told}\n{packed}\n{rest}"),
        )
    yield "user", "Go on."
    yield "assistant", "All is done."


def claude(start: int) -> bytes:
    lines: list[dict[str, Any]] = []

    def put(role: str, content: Any) -> None:
        number = len(lines) + 1
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{number}", "type": "message", "model": "claude-sonnet-4-5"}
        lines.append(
            {
                "parentUuid": lines[-1]["uuid"] if lines else None,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/srv/app",
                "sessionId": "7a7a7a7a-0000-4000-9000-000000000001",
                "version": "2.1.20",
                "type": role,
                "message": message,
                "uuid": f"00000000-0000-4000-8000-{number:012d}",
                "timestamp": f"2027-01-05T{number // 60:02d}:{number % 60:02d}:00.000Z",
            }
        )

    for at, (role, what) in enumerate(events(start)):
        if role == "call":
            tool, arguments, result = what
            put("assistant", [{"type": "tool_use", "id": f"toolu_{at}", "name": tool, "input": arguments}])
            put("user", [{"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": result}])
        else:
            put(role, what if role == "user" else [{"type": "text", "text": what}])
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def chat(start: int) -> bytes:
    messages: list[dict[str, Any]] = []
    for at, (role, what) in enumerate(events(start)):
        if role == "call":
            tool, arguments, result = what
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"id": f"c{at}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": result})
        else:
            messages.append({"role": role, "content": what})
    return json.dumps({"model": "gpt-4.1", "messages": messages}).encode() + b"\n"


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def told(data: bytes) -> set[str]:
    return {text for row in data.splitlines() for text in strings(json.loads(row))}


@pytest.mark.parametrize("start", [0, 70, 190, 295])
@pytest.mark.parametrize("made", [claude, chat])
@pytest.mark.parametrize("strategy", ["", "notes", "conversation"])
def test_no_part_is_written_or_printed(
    made: Callable[[int], bytes], start: int, strategy: str, compact: Any, folder: Path
) -> None:
    source, out, state = folder / "in.jsonl", folder / "out.jsonl", folder / "state"
    state.mkdir()
    source.write_bytes(made(start))
    steps = ("-s", strategy) if strategy else ()
    named = next(secret for secret in SECRETS if secret.name == "environment")
    command = f"false '{SECRETS[0].carrier}' --password={named.secret}"
    done = compact("--to", "0.3", "--window", "60k", *steps, "--json", "--notes", "--state-dir", state, "--force",
                   "--llm", command, "-o", out, source)  # fmt: skip
    assert done.code == 0, done.err
    assert done.result()["after_tokens"] < done.result()["before_tokens"]
    assert leaked([done.out, done.err], SECRETS) == []
    before = told(source.read_bytes())
    assert leaked((text for text in told(out.read_bytes()) if text not in before), SECRETS) == []
    others = [path for path in folder.rglob("*") if path.is_file() and path not in (source, out)]
    assert any("notes" in path.name for path in others) and len(others) >= 2
    for path in others:
        assert leaked([path.read_bytes().decode("latin-1")], SECRETS) == [], path
    report = compact("--to", "0.3", "--window", "60k", *steps, "--dry-run", "--force", source)
    assert leaked([report.out, report.err], SECRETS) == []

"""Claude Code: what the golden cases don't reach, such as orders, circles and companions."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxctl
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import total_usage

SESSION = "s1"
_clock = itertools.count()


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": "user",
        "message": message,
        "uuid": uuid,
        "timestamp": f"2026-01-05T10:00:{next(_clock)}Z",
        "sessionId": SESSION,
        **more,
    }


def answer(uuid: str, parent: str | None, id_: str, content: Any, usage: Any, **more: Any) -> dict[str, Any]:
    text = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = {"id": id_, "role": "assistant", "model": "claude-sonnet-4-5", "content": text, "usage": usage}
    return {**user(uuid, parent, ""), "type": "assistant", "message": message, **more}


def used(new: int, output: int) -> dict[str, int]:
    return {"input_tokens": new, "output_tokens": output}


def saved(folder: Path, *records: dict[str, Any], name: str = f"{SESSION}.jsonl") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return str(path)


def texts(t: Transcript) -> list[str]:
    return [t.blocks[n].text for n in t.live]


COUNTS = st.integers(0, 10_000)
USAGE = st.fixed_dictionaries(
    {"input_tokens": COUNTS, "output_tokens": COUNTS},
    optional={"cache_read_input_tokens": COUNTS, "cache_creation_input_tokens": COUNTS},
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(USAGE, min_size=1, max_size=5).flatmap(lambda u: st.tuples(st.just(u), st.permutations(u))))
def test_usage_does_not_depend_on_the_order_of_the_lines(tmp_path: Path, pair: Any) -> None:
    totals = []
    for number, usages in enumerate(pair):
        lines = [answer(f"a{n}", "u1", "msg_1", f"part {n}", usage) for n, usage in enumerate(usages)]
        end = answer("z", f"a{len(lines) - 1}", "msg_2", "end", used(7, 3))
        path = saved(tmp_path, user("u1", None, "go"), *lines, end, name=f"{number}.jsonl")
        totals.append(total_usage(ctxctl.read(path).usage))
    assert totals[0] == totals[1]
    assert totals[0].requests == 2
    assert totals[0].output == 3 + max(u["output_tokens"] for u in pair[0])


def test_prompts_that_start_at_one_instant_are_copies_not_a_rewind(tmp_path: Path) -> None:
    first, copy = user("u2", "a1", "next"), user("u2c", "a1", "next")
    copy["timestamp"] = first["timestamp"]
    t = ctxctl.read(
        saved(
            tmp_path,
            user("u1", None, "go"),
            answer("a1", "u1", "msg_1", "gone", used(10, 1)),
            first,
            answer("a2", "u2", "msg_2", "one", used(20, 1)),
            copy,
            answer("a3", "u2c", "msg_3", "two", used(30, 1)),
        )
    )
    assert t.branches == ()
    assert "two" in texts(t) and "one" in texts(t)


def test_records_in_a_circle_fall_back_to_file_order(tmp_path: Path) -> None:
    t = ctxctl.read(
        saved(
            tmp_path,
            user("u1", "a4", "one"),
            answer("a2", "u1", "msg_1", "two", used(10, 1)),
            user("u3", "a2", "three"),
            answer("a4", "u3", "msg_2", "four", used(20, 1)),
            user("u5", "u5", "five"),
        )
    )
    assert texts(t) == ["one", "two", "three", "four", "five"]
    assert [(d.code, d.line) for d in t.diagnostics] == [("parent_cycle", 1), ("parent_cycle", 5)]


def test_helpers_at_the_end_are_not_the_conversation(tmp_path: Path) -> None:
    side = {"isSidechain": True}
    t = ctxctl.read(
        saved(
            tmp_path,
            user("u1", None, "go"),
            answer("a1", "u1", "msg_1", "done", used(50_000, 5)),
            user("x1", None, "search", **side),
            answer("x2", "x1", "msg_2", "found", used(9_000, 5), **side),
        )
    )
    assert texts(t) == ["go", "done"] and t.order[-1] == "a1"
    assert (t.messages.user, t.messages.assistant, t.messages.sidechain) == (1, 1, 2)


def test_a_response_replayed_in_a_helper_counts_once(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "btw"}
    t = ctxctl.read(
        saved(
            tmp_path,
            user("u1", None, "go"),
            answer("a1", "u1", "msg_1", "done", used(100, 5), requestId="req_1"),
            answer("x1", None, "msg_1", "done", used(100, 5), requestId="req_9", **side),
        )
    )
    assert total_usage(t.usage).total == 105


def test_one_message_id_under_two_requests_is_two_calls(tmp_path: Path) -> None:
    t = ctxctl.read(
        saved(
            tmp_path,
            user("u1", None, "go"),
            answer("a1", "u1", "msg_1", "one", used(100, 5), requestId="req_1"),
            answer("a2", "a1", "msg_1", "two", used(200, 5), requestId="req_2"),
        )
    )
    assert [(u.input, u.output) for u in t.usage] == [(100, 5), (200, 5)]


def test_helpers_of_workflows_are_found_and_can_be_left_out(tmp_path: Path) -> None:
    more = {"isSidechain": True, "agentId": "w1"}
    saved(tmp_path, user("w", None, "search", **more), name="s1/subagents/workflows/run/agent-w1.jsonl")
    saved(tmp_path, {"type": "started"}, name="s1/subagents/workflows/run/journal.jsonl")
    path = saved(tmp_path, user("u1", None, "go"))
    assert ctxctl.read(path).threads == ("main", "w1")
    assert ctxctl.read(path, companions=False).threads == ("main",)


def test_a_damaged_helper_does_not_take_the_session_along(tmp_path: Path) -> None:
    helper = tmp_path / "s1" / "subagents" / "agent-x.jsonl"
    helper.parent.mkdir(parents=True)
    helper.write_bytes(b"\x89PNG\r\n\x1a\n")
    (helper.parent / "agent-y.jsonl").write_bytes(b'{"type":"user","mess')
    t = ctxctl.read(saved(tmp_path, user("u1", None, "go")))
    assert texts(t) == ["go"]
    assert "companion_unreadable" in [d.code for d in t.diagnostics]


def test_a_parent_in_a_later_line_is_bridged(tmp_path: Path) -> None:
    t = ctxctl.read(saved(tmp_path, user("u1", "u2", "one"), user("u2", None, "two"), user("u3", "u2", "three")))
    assert texts(t) == ["one", "two", "three"]
    assert [d.code for d in t.diagnostics] == ["parent_after_child"]


@pytest.mark.parametrize(
    "message",
    [None, "text", [], 5, {}, {"0": "{", "1": '"'}],
    ids=["null", "string", "list", "number", "empty", "exploded"],
)
def test_a_record_of_an_odd_shape_is_named(tmp_path: Path, message: Any) -> None:
    odd = {**user("u2", "u1", ""), "message": message}
    t = ctxctl.read(saved(tmp_path, user("u1", None, "go"), odd, user("u3", "u2", "on")))
    assert texts(t) == ["go", "on"]
    assert [(d.code, d.line) for d in t.diagnostics] == [("odd_shape", 2)]


def test_ids_used_again_belong_to_the_nearest_call(tmp_path: Path) -> None:
    def call(name: str) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": "t1", "name": name, "input": {}}]

    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    t = ctxctl.read(
        saved(
            tmp_path,
            user("u1", None, "go"),
            answer("a1", "u1", "msg_1", call("First"), used(10, 1)),
            user("u2", "a1", result),
            answer("a2", "u2", "msg_2", call("Second"), used(20, 1)),
            user("u3", "a2", result),
        )
    )
    assert [b.tool_name for b in t.blocks if b.kind == "tool_result"] == ["First", "Second"]


def test_an_orphan_result_has_no_tool(tmp_path: Path) -> None:
    result = [{"type": "tool_result", "tool_use_id": "gone", "content": "ok"}]
    block = ctxctl.read(saved(tmp_path, user("u1", None, result))).blocks[0]
    assert (block.kind, block.tool_name, block.call_id, block.exchange) == ("tool_result", None, "gone", 0)


def test_what_a_call_acts_on(tmp_path: Path) -> None:
    inputs = [
        ({"file_path": "/w/a.py", "content": "x"}, "/w/a.py"),
        ({"command": ["bash", "-lc", "make\n  test"]}, "make test"),
        ({"command": ["ls", "-l"]}, "ls -l"),
        ({"pattern": "x" * 100}, "x" * 79 + "…"),
        ({"limit": 5}, None),
        ("free text", None),
    ]
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "T", "input": i} for n, (i, _) in enumerate(inputs)]
    t = ctxctl.read(saved(tmp_path, user("u1", None, "go"), answer("a1", "u1", "msg_1", calls, used(1, 1))))
    assert [b.target for b in t.blocks[1:]] == [target for _, target in inputs]


def queued(uuid: str, parent: str, prompt: Any, mode: str = "prompt", **more: Any) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": mode, **more}
    record = {**user(uuid, parent, ""), "type": "attachment", "attachment": attachment}
    del record["message"]
    return record


TOLD = "<task-notification>\n<status>completed</status>\n</task-notification>"
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("record", "kinds"),
    [
        (queued("q", "a1", "Also weeks."), ["user_message"]),
        (queued("q", "a1", [{"type": "text", "text": "Like this:"}, PICTURE]), ["user_message", "image"]),
        (queued("q", "a1", "Also weeks.", origin={"kind": "human"}), ["user_message"]),
        (queued("q", "a1", "<system-reminder>x</system-reminder>\nAlso weeks."), ["user_message"]),
        (queued("q", "a1", "Also weeks.", origin={"kind": "peer"}), ["memory_injection"]),
        (queued("q", "a1", "Also weeks.", isMeta=True), ["memory_injection"]),
        (queued("q", "a1", "Also weeks.") | {"isMeta": True}, ["memory_injection"]),
        (queued("q", "a1", "Also weeks.", mode="bash"), ["memory_injection"]),
        (queued("q", "a1", TOLD, mode="task-notification"), ["memory_injection"]),
        (queued("q", "a1", TOLD), ["memory_injection"]),
        (queued("q", "a1", "<system-reminder>x</system-reminder>"), ["memory_injection"]),
        (queued("q", "a1", ""), []),
    ],
)
def test_what_was_typed_meanwhile_is_a_prompt(record: Any, kinds: list[str], tmp_path: Path) -> None:
    path = saved(tmp_path, user("u1", None, "task"), answer("a1", "u1", "m1", "x", used(5, 5)), record)
    t = ctxctl.read(path)
    assert [b.kind for b in t.blocks[2:]] == kinds
    assert t.exchanges == 1 + ("user_message" in kinds)
    assert all(b.exchange == t.exchanges for b in t.blocks[2:])


def test_what_was_typed_meanwhile_is_no_rewind(tmp_path: Path) -> None:
    """It hangs on the record that was newest when it was sent, as an answer may."""
    path = saved(
        tmp_path,
        user("u1", None, "task"),
        answer("a1", "u1", "m1", "one", used(5, 5)),
        queued("q1", "a1", "Also weeks."),
        queued("q2", "a1", "And months."),
        answer("a2", "a1", "m2", "two", used(9, 5)),
        user("u2", "q2", "next"),
    )
    t = ctxctl.read(path)
    assert texts(t) == ["task", "one", "Also weeks.", "And months.", "two", "next"]
    assert t.branches == () and t.exchanges == 4


def test_a_sub_agents_own_file_that_was_rewound(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        user("u1", None, "look for it", isSidechain=True, agentId="a1"),
        answer("a1", "u1", "m1", "here", used(10, 1), isSidechain=True, agentId="a1"),
        user("u2", "a1", "go on", isSidechain=True, agentId="a1"),
        answer("a2", "u2", "m2", "there", used(20, 1), isSidechain=True, agentId="a1"),
        user("u3", "a1", "stop", isSidechain=True, agentId="a1"),
        answer("a3", "u3", "m3", "stopped", used(20, 1), isSidechain=True, agentId="a1"),
    )
    assert [b.text for b in ctxctl.read(path).blocks][-1] == "stopped"

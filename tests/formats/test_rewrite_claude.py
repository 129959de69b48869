"""Compacted Claude Code sessions: golden outputs, and what holds for them whatever the outcome."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ctxctl
from ctxctl.model.transcript import Transcript

HELPER = Path(__file__).parent / "claude_drafts.py"
spec = importlib.util.spec_from_file_location("claude_drafts", HELPER)
assert spec is not None and spec.loader is not None
drafts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(drafts)
Rewritten, rows, NEW_ID = drafts.Rewritten, drafts.rows, drafts.NEW_ID

HERE = Path(__file__).parent / "golden_rewrite_claude"
SESSION = "5e551011-0000-4000-9000-000000000000"


def envelope(number: int, type_: str, **fields: Any) -> dict[str, Any]:
    parent = fields.pop("parent", number - 1)
    return {
        "parentUuid": uuid(parent) if parent else None,
        "isSidechain": False,
        "sessionId": SESSION,
        "type": type_,
        "uuid": uuid(number),
        "timestamp": f"2026-03-01T08:{number // 60:02d}:{number % 60:02d}.000Z",
        **fields,
    }


def uuid(number: int) -> str:
    return f"5e551011-0000-4000-9000-{number:012d}"


def user(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    return envelope(number, "user", message={"role": "user", "content": content}, **fields)


def result(number: int, call: str, content: Any, **fields: Any) -> dict[str, Any]:
    return user(number, [{"type": "tool_result", "tool_use_id": call, "content": content}], **fields)


def answer(number: int, id_: str, *blocks: Any, context: int = 500, **fields: Any) -> dict[str, Any]:
    message = {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks],
        "stop_reason": fields.pop("stop", None),
        "usage": {"input_tokens": 10, "cache_read_input_tokens": context, "output_tokens": 5},
    }
    return envelope(number, "assistant", message=message, requestId=f"req_{id_}", **fields)


def call(id_: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": arguments or {"command": "make"}}


def dump(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., Any]:
    def make(*records: Any, end: bytes = b"\n", tail: bytes = b"") -> Any:
        path = tmp_path / "in.jsonl"
        path.write_bytes(b"".join((r if isinstance(r, bytes) else dump(r)) + end for r in records) + tail)
        return Rewritten(path)

    return make


@pytest.fixture
def reread(tmp_path: Path) -> Callable[[bytes], Transcript]:
    def read(data: bytes) -> Transcript:
        path = tmp_path / "out.jsonl"
        path.write_bytes(data)
        return ctxctl.read(str(path), companions=False)

    return read


def live(t: Transcript) -> list[tuple[str, str]]:
    return [(t.blocks[n].kind, t.blocks[n].text) for n in t.live if n not in t.cleared]


def behind(data: bytes) -> list[dict[str, Any]]:
    """The records from the last boundary on."""
    found = rows(data)
    at = max(i for i, r in enumerate(found) if r.get("subtype") == "compact_boundary")
    return found[at:]


# -- golden ------------------------------------------------------------------------------------------------------------

OUTCOMES: dict[str, dict[str, Any]] = {
    "new": {},
    "in_place": {"in_place": True},
    "keep_history": {"keep_history": True},
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_golden(name: str) -> None:
    rewritten = Rewritten(HERE / "session.jsonl")
    ids = {b.text[:12]: b.id for b in rewritten.blocks.values()}
    made = rewritten(
        drop=(ids["I will read "],),
        changed={"14.0": "[cleared: Grep, 8 tokens]"},
        summary=(ids["Read it firs"], "[summary] The parser is to be read first."),
        **OUTCOMES[name],
    )
    path = HERE / f"{name}.jsonl"
    assert made == path.read_bytes()


@pytest.mark.parametrize("name", OUTCOMES)
def test_golden_reads_as_its_outcome(name: str) -> None:
    t = ctxctl.read(str(HERE / f"{name}.jsonl"))
    texts = [text for _, text in live(t)]
    assert texts[:2] == ["[summary] The parser is to be read first.", "Fix the parser – it loses the last line."]
    assert texts[-1] == 'Bash {"command":"pytest -q"}'
    assert len(texts) == 11 and "[cleared: Grep, 8 tokens]" in texts
    assert not t.branches and not t.unreachable and t.compactions[-1].after == 400


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_kept_lines_differ_in_session_and_parent_alone(session: Callable[..., Any]) -> None:
    line = (
        b'{"uuid":"%s", "n":1.0,"big":123456789012345678901,"exp":1e21,"esc":"\\u00e9\\/","parentUuid":"%s",'
        b'"sessionId": "old","type":"user","isSidechain":false,"message":{"role":"user","content":"hi"},'
        b'"extra":{"sessionId":"inner","parentUuid":"inner"}}' % (uuid(2).encode(), uuid(1).encode())
    )
    made = session(user(1, "start", parent=0), line, answer(3, "m", "ok"))(drop=("1.0",))
    summary_or_boundary = behind(made)[0]["uuid"].encode()
    expected = line.replace(b'"sessionId": "old"', b'"sessionId": "%s"' % NEW_ID.encode())
    expected = expected.replace(b'"parentUuid":"%s"' % uuid(1).encode(), b'"parentUuid":"%s"' % summary_or_boundary)
    assert expected in made.split(b"\n")


def test_a_changed_result_keeps_every_other_byte(session: Callable[..., Any]) -> None:
    data = dump(result(3, "t1", "long " * 50, toolUseResult={"stdout": "long"}, odd=1.0)).replace(
        b'"odd":1.0', b'"odd":1.50,"esc":"\\u00e9"'
    )
    made = session(user(1, "start", parent=0), answer(2, "m", call("t1")), data, answer(4, "n", "ok"))(
        changed={"3.0": "[cleared: Bash]"}
    )
    line = next(x for x in made.split(b"\n") if b"[cleared" in x)
    assert b"long" not in line and b'"odd":1.50,"esc":"\\u00e9"' in line
    assert json.loads(line)["toolUseResult"] == "[cleared: Bash]"
    assert line.startswith(data[:20])


@pytest.mark.parametrize("options", [{}, {"in_place": True}, {"keep_history": True}])
def test_pictures_of_a_replaced_result_go_unless_they_stay(session: Callable[..., Any], options: Any) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    content = [{"type": "text", "text": "shown"}, picture]
    records = [user(1, "go", parent=0), answer(2, "m", call("t1")), result(3, "t1", content), answer(4, "n", "ok")]
    make = session(*records)

    def block(made: bytes) -> Any:
        return [r for r in behind(made) if b"tool_result" in dump(r)][-1]["message"]["content"][0]

    assert block(make(changed={"3.0": "gone"}, drop=("3.1",), **options))["content"] == "gone"
    assert block(make(changed={"3.0": "gone"}, **options))["content"] == [{"type": "text", "text": "gone"}, picture]
    assert block(make(drop=("3.1",), **options))["content"] == [{"type": "text", "text": "shown"}]
    assert block(make(changed={"3.1": "[picture]"}, **options))["content"][1] == {"type": "text", "text": "[picture]"}


def test_lines_are_normalised_and_counted(session: Callable[..., Any]) -> None:
    bad = dump(result(3, "t1", "x")).replace(b'"content":"x"', b'"content":"cut \\udcb2 here"')
    lines = [b"\xef\xbb\xbf" + dump(user(1, "go", parent=0)), answer(2, "m", call("t1")), bad, b"\x00" * 64, b'{"cut":']
    made = session(*lines, answer(4, "n", "ok"), end=b"\r\n", tail=b'{"type":"us')
    data = made(drop=("6.0",), in_place=True)
    assert b"\r" not in data and b"\x00" not in data and not data.startswith(b"\xef") and b"\\udcb2" not in data
    assert made.draft is not None
    counts = made.draft.normalised
    assert (counts.bom, counts.surrogates) == (1, 1) and counts.crlf >= 4
    assert {n.line for n in made.draft.notes} >= {4, 5, 7}
    assert len(rows(data)) == 4 + 1 + 2  # four records, the boundary, the call with its result once more


def test_glued_records_get_a_line_each(session: Callable[..., Any], reread: Callable[[bytes], Transcript]) -> None:
    glued = dump(answer(2, "m", "first", "second")) + dump(user(3, "then"))
    made = session(user(1, "go", parent=0), glued, answer(4, "n", "ok"))
    for options in ({}, {"in_place": True}):
        data = made(drop=("2.0",), **options)
        assert [text for _, text in live(reread(data))] == ["go", "second", "then", "ok"]
        rows(data)


def test_nothing_to_do_in_place_gives_the_same_bytes(session: Callable[..., Any]) -> None:
    made = session(user(1, "go", parent=0), answer(2, "m", "ok"), end=b"\r\n", tail=b'{"torn')
    assert made(in_place=True) == made.path.read_bytes()


# -- what providers refuse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"in_place": True}])
def test_blank_texts_and_cut_reasoning_are_not_written(session: Callable[..., Any], options: Any) -> None:
    cut = {"type": "thinking", "thinking": "half of", "signature": ""}
    records = [
        user(1, "go", parent=0),
        answer(2, "m", "", call("t1")),
        result(3, "t1", "x"),
        user(4, "   "),
        user(5, ""),
        answer(6, "n", cut, stop="max_tokens"),
        user(7, "again"),
        answer(8, "o", "done"),
    ]
    made = session(*records)(changed={"3.0": "[cleared]"}, **options)
    content = [r["message"]["content"] for r in behind(made) if "message" in r]
    flat = [b for c in content for b in (c if isinstance(c, list) else [{"type": "text", "text": c}])]
    types = ["tool_use", "tool_result", "text", "text"]
    assert [b["type"] for b in flat] == ([] if options else ["text"]) + types  # `go` is preserved in its place
    assert all(b.get("text", "x").strip() for b in flat)


@pytest.mark.parametrize("options", [{}, {"in_place": True}, {"keep_history": True}])
def test_a_pending_call_stands_last_and_can_be_answered(
    session: Callable[..., Any], reread: Callable[[bytes], Transcript], options: Any
) -> None:
    thinking = {"type": "thinking", "thinking": " odd  spacing – ", "signature": "c2ln"}
    records = [
        user(1, "go", parent=0),
        answer(2, "m", "talk"),
        user(3, "now"),
        answer(4, "n", thinking),
        answer(5, "n", {"type": "redacted_thinking", "data": "eHl6"}),
        answer(6, "n", call("p9")),
        envelope(7, "attachment", attachment={"type": "hook_success"}),
    ]
    made = session(*records)(summary=("2.0", "[summary] they talked"), **options)
    written = [r for r in rows(made) if "uuid" in r]
    assert written[-1]["uuid"] == uuid(6)
    kept = {r["uuid"]: r["message"] for r in behind(made) if "message" in r}
    assert [kept[uuid(n)] for n in (4, 5, 6)] == [r["message"] for r in records[3:6]]
    t = reread(made + dump(result(8, "p9", "late", parent=6)) + b"\n")
    assert live(t)[-2:] == [("tool_call", 'Bash {"command":"make"}'), ("tool_result", "late")]
    assert not any(d.code == "dangling_parent" for d in t.diagnostics) and not t.branches


@pytest.mark.parametrize("options", [{}, {"in_place": True}])
def test_a_call_that_was_left_gets_a_result(session: Callable[..., Any], options: Any) -> None:
    records = [
        user(1, "go", parent=0),
        answer(2, "m", call("t1")),
        result(3, "t1", "branch A"),
        answer(4, "n", "branch A answer"),
        user(5, "other way", parent=2),
        answer(6, "o", "branch B answer"),
    ]
    made = session(*records)(changed={"1.0": "go!"}, **options)
    tail = behind(made)
    assert "branch A" not in json.dumps(tail)
    at = next(i for i, r in enumerate(tail) if "t1" in json.dumps(r))
    stub = tail[at + 1]
    assert stub["message"]["content"][0]["tool_use_id"] == "t1" and stub["parentUuid"] == tail[at]["uuid"]
    assert tail[at + 2]["message"]["content"] == "other way"


def test_a_result_without_its_call_is_left_out(session: Callable[..., Any]) -> None:
    made = session(user(1, "go", parent=0), result(2, "lost", "x"), answer(3, "m", "ok"))
    assert b"lost" not in made() and made.draft is not None
    assert [n.code for n in made.draft.notes] == ["orphan_result"]


def test_an_answer_does_not_come_first(session: Callable[..., Any]) -> None:
    made = session(user(1, "go", parent=0), answer(2, "m", "ok"))(drop=("1.0",))
    assert behind(made)[1]["message"] == {"role": "user", "content": "[summary] Earlier messages were left out."}


# -- the chain ---------------------------------------------------------------------------------------------------------


def test_parallel_calls_stay_siblings(session: Callable[..., Any]) -> None:
    records = [
        user(1, "go", parent=0),
        answer(2, "m", call("a")),
        answer(3, "m", call("b")),
        result(4, "a", "A", parent=2),
        result(5, "b", "B", parent=3),
        envelope(6, "progress", data={}),
        user(7, "next", parent=6),
    ]
    made = session(*records)(summary=("1.0", "[summary] started"))
    parent = {r["uuid"]: r["parentUuid"] for r in rows(made) if "uuid" in r}
    assert (parent[uuid(3)], parent[uuid(4)], parent[uuid(5)]) == (uuid(2), uuid(2), uuid(3))
    assert parent[uuid(7)] == uuid(5) and uuid(6) not in parent


def test_what_was_preserved_is_relinked_in_the_order_of_the_window(
    session: Callable[..., Any], reread: Callable[[bytes], Transcript]
) -> None:
    segment = {"headUuid": uuid(3), "anchorUuid": uuid(6), "tailUuid": uuid(4)}
    records = [
        user(1, "early", parent=0),
        answer(2, "m", "early answer"),
        user(3, "kept question"),
        answer(4, "n", "kept answer"),
        envelope(5, "system", parent=0, subtype="compact_boundary", compactMetadata={"preservedSegment": segment}),
        user(6, "What was early.", isCompactSummary=True),
        user(7, "new question", parent=6),
        answer(8, "o", "new answer"),
    ]
    texts = ["What was early.", "kept question", "kept answer", "new question", "new answer"]
    made = session(*records)
    for options in ({}, {"in_place": True}):
        t = reread(made(changed={"8.0": "new reply"}, **options))
        assert [text for _, text in live(t)] == [*texts[:4], "new reply"]
        assert not t.branches
    parent = {r["uuid"]: r["parentUuid"] for r in rows(made()) if "uuid" in r}
    assert [parent[uuid(n)] for n in (3, 4, 7, 8)] == [uuid(6), uuid(3), uuid(4), uuid(7)]


def test_records_without_ids_get_them(session: Callable[..., Any], reread: Callable[[bytes], Transcript]) -> None:
    records = [
        {"type": "user", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}},
    ]
    made = session(*records)()
    ids = [r["uuid"] for r in rows(made)]
    assert len(set(ids)) == 3 and all(len(id_) == 36 and id_[14] == "4" and id_[19] in "89ab" for id_ in ids)
    assert [r["parentUuid"] for r in rows(made)] == [None, *ids[:-1]]
    assert [text for _, text in live(reread(made))] == ["go", "ok"]


def test_the_same_draft_gives_the_same_bytes(session: Callable[..., Any]) -> None:
    made = session(user(1, "go", parent=0), answer(2, "m", "ok"), user(3, "on"))
    assert made(summary=("2.0", "[summary] x")) == made(summary=("2.0", "[summary] x"))


# -- what reading makes of it ------------------------------------------------------------------------------------------


def test_copied_calls_do_not_tell_the_window(
    session: Callable[..., Any], reread: Callable[[bytes], Transcript]
) -> None:
    made = session(user(1, "go", parent=0), answer(2, "m", "a" * 99), user(3, "on"), answer(4, "n", "ok", context=9000))
    t = reread(made(summary=("2.0", "[summary] x")))
    assert [u.context for u in t.usage] == [None] and t.usage[0].cache_read == 9000
    after = answer(9, "z", "new", context=300, parent=4) | {"timestamp": "2026-03-02T09:00:01.000Z"}
    assert [u.context for u in reread(made(drop=("2.0",)) + dump(after) + b"\n").usage] == [None, 310]
    # calls in front of a boundary were stated at their time
    history = reread(made(summary=("2.0", "[summary] x"), in_place=True))
    assert [u.context for u in history.usage] == [510, 9010] and len(history.usage) == 2


def test_a_marked_summary_is_one_however_its_record_looks(session: Callable[..., Any]) -> None:
    made = session(user(1, "[summary] turns 1-4", parent=0), user(2, "[摘要] 早"), user(3, "go"), answer(4, "m", "ok"))
    kinds = [made.blocks[n].kind for n in made.transcript.live]
    assert kinds == ["summary", "summary", "user_message", "assistant"]
    assert made.transcript.exchanges == 1


def test_a_preserved_run_may_hang_on_the_boundary_itself(
    session: Callable[..., Any], reread: Callable[[bytes], Transcript]
) -> None:
    made = session(user(1, "go", parent=0), answer(2, "m", "a"), user(3, "on"), answer(4, "n", "ok"))
    data = made(drop=("2.0",), in_place=True)
    metadata = behind(data)[0]["compactMetadata"]["preservedMessages"]
    assert metadata == {"anchorUuid": behind(data)[0]["uuid"], "uuids": [uuid(1), uuid(3)]}
    assert [text for _, text in live(reread(data))] == ["go", "on", "ok"]


def test_a_second_compaction_in_place_adds_to_the_first(
    session: Callable[..., Any], reread: Callable[[bytes], Transcript], tmp_path: Path
) -> None:
    made = session(user(1, "go", parent=0), answer(2, "m", "a"), user(3, "on"), answer(4, "n", "ok"), user(5, "more"))
    path = tmp_path / "twice.jsonl"
    path.write_bytes(made(summary=("2.0", "[summary] first"), in_place=True))
    second = Rewritten(path)
    ids = {b.text: b.id for b in second.blocks.values()}
    data = second(summary=(ids["[summary] first"], "[summary] both"), drop=(ids["ok"],), in_place=True)
    assert [text for _, text in live(reread(data))] == ["[summary] both", "go", "on", "more"]
    assert data.startswith(path.read_bytes())
    assert len([r for r in rows(data) if r.get("subtype") == "compact_boundary"]) == 2

"""Which records are the conversation: compactions, gaps, rewinds, cycles, helpers."""

from __future__ import annotations

import time
from typing import Any

import pytest

import ctxctl


def named(result: Any, code: str) -> list[int]:
    return [d["line"] for d in result["diagnostics"] if d["code"] == code]


def kinds(composition: Any) -> dict[str, int]:
    return {kind: share["blocks"] for kind, share in composition["by_kind"].items()}


PHANTOM = "dead0000-0000-4000-9000-000000000000"


def compacted(claude: Any, *, metadata: Any = None, logical: Any = None) -> tuple[Any, dict[str, str]]:
    """u1 a1 u2 a2, a boundary, its summary, u3 a3; and the uuids by these names."""
    session = claude()
    ids = {
        "u1": session.user("the opening question"),
        "a1": session.assistant("opening answer"),
        "u2": session.user("kept question"),
        "a2": session.assistant("kept answer"),
    }
    ids["boundary"] = session.boundary(
        metadata=metadata(ids) if metadata else {}, **({"logical": logical} if logical else {})
    )
    ids["summary"] = session.summary("This session is being continued. It was about a question.")
    ids["u3"] = session.user("what next")
    ids["a3"] = session.assistant("this next", usage=(4, 0, 800, 9))
    return session, ids


def run_of(ids: dict[str, str]) -> dict[str, Any]:
    return {"preservedSegment": {"headUuid": ids["u2"], "tailUuid": ids["a2"], "anchorUuid": "s"}}


def listed(ids: dict[str, str]) -> dict[str, Any]:
    return {"preservedMessages": {"anchorUuid": "s", "uuids": [ids["u2"], ids["a2"]]}}


def test_what_stands_before_a_boundary_is_gone(claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("BYGONE " * 2000)
    session.assistant("BYGONE " * 2000, usage=(9, 0, 4000, 4000))
    session.boundary(metadata={"preTokens": 8009})
    summary = session.summary("It was settled.")
    later = session.user("and now")
    session.assistant("now this", usage=(40, 0, 0, 5))
    path = save(session)
    result = within("analyze", "--json", path).result
    assert result["context"]["order"][:2] == [summary, later] and result["context"]["messages"] == 3
    assert result["context"]["reported"] == 40 and result["context"]["counted"] < 100
    assert kinds(result["composition"]) == {"user_message": 1, "assistant": 1, "summary": 1}
    assert kinds(result["composition_all"]) == {"user_message": 2, "assistant": 2, "summary": 1}
    assert result["transcript"]["compactions"] == 1 and result["transcript"]["records"] == 6
    assert [(c["turn"], c["kind"], c["before"]) for c in result["compactions"]] == [(2, "full", 8009)]
    assert [row["compaction"] for row in result["pressure"]] == [None, "full"]
    assert result["pressure"][1]["added"] is None and result["peak"]["turn"] == 1
    assert "BYGONE" not in within("analyze", path).out.decode()


def test_usage_from_before_a_boundary_is_not_the_context(claude: Any, analyzed: Any) -> None:
    """Nothing was reported since: unknown, and certainly not the old figure."""
    session, _ = compacted(claude)
    session.lines = session.lines[:-1]
    result = analyzed(session)
    assert result["context"]["reported"] is None and result["context"]["with_output"] is None
    assert result["context"]["counted"] > 0 and result["context"]["messages"] == 2


@pytest.mark.parametrize("metadata", [run_of, listed], ids=["run", "list"])
def test_preserved_messages_follow_the_summary(metadata: Any, claude: Any, analyzed: Any) -> None:
    session, ids = compacted(claude, metadata=metadata)
    result = analyzed(session)
    assert result["context"]["order"] == [ids[k] for k in ("summary", "u2", "a2", "u3", "a3")]
    assert result["transcript"]["unreachable"] == 0 and not named(result, "dangling_parent")
    assert kinds(result["composition"]) == {"user_message": 2, "assistant": 2, "summary": 1}
    in_context = [row["in_context"] for row in result["blocks"]]
    assert in_context == [False, False, True, True, True, True, True]


def test_a_preserved_message_that_is_written_again_counts_once(claude: Any, analyzed: Any) -> None:
    """The last kept record stands again behind the summary and hangs on it; what follows hangs on the copy."""
    session, ids = compacted(claude, metadata=run_of)
    copy = session.lines[3].replace(ids["u2"].encode(), ids["summary"].encode(), 1)
    next_ = session.lines[6].replace(ids["summary"].encode(), ids["a2"].encode(), 1)
    session.lines[6:7] = [copy, next_]
    result = analyzed(session)
    assert result["context"]["order"] == [ids[k] for k in ("summary", "u2", "a2", "u3", "a3")]
    assert kinds(result["composition"]) == {"user_message": 2, "assistant": 2, "summary": 1}
    assert result["usage"]["requests"] == 3


def test_only_the_last_of_several_boundaries_counts(claude: Any, analyzed: Any) -> None:
    session, _ = compacted(claude, metadata=run_of)
    session.boundary()
    summary = session.summary("Compacted once more.")
    newest = session.user("still there?")
    result = analyzed(session)
    assert result["context"]["order"] == [summary, newest]
    assert result["transcript"]["compactions"] == 2
    assert kinds(result["composition_all"])["summary"] == 2 and kinds(result["composition"])["summary"] == 1


def test_side_records_around_a_boundary_are_no_messages(claude: Any, save: Any, analyzed: Any) -> None:
    session, ids = compacted(claude, metadata=run_of)
    title = b'{"type":"custom-title","customTitle":"t","sessionId":"s"}'
    session.lines[:0] = [title, b'{"type":"permission-mode","mode":"plan","sessionId":"s"}']
    session.raw(b'{"type":"last-prompt","lastPrompt":"what next","leafUuid":"%s","sessionId":"s"}' % ids["a3"].encode())
    result = analyzed(session)
    assert result["context"]["order"] == [ids[k] for k in ("summary", "u2", "a2", "u3", "a3")]
    assert result["transcript"]["records"] == 11
    data = b"".join(ctxctl.write(ctxctl.read(str(save(session)))))
    assert data == session.data() and data.startswith(title)


def test_gaps_are_named_and_bridged(claude: Any, analyzed: Any) -> None:
    session, ids = compacted(claude, metadata=run_of, logical=PHANTOM)
    session.lines[6] = session.lines[6].replace(ids["summary"].encode(), PHANTOM.encode(), 1)
    result = analyzed(session)
    assert named(result, "dangling_parent") == [5, 7]
    assert result["context"]["order"] == [ids[k] for k in ("summary", "u2", "a2", "u3", "a3")]
    assert result["transcript"]["records"] == 8 and result["transcript"]["unreachable"] == 6


def test_a_gap_without_a_boundary_loses_nothing(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("one")
    session.assistant("two")
    session.user("three", parent=PHANTOM)
    session.assistant("four")
    result = analyzed(session)
    assert named(result, "dangling_parent") == [3]
    assert len(result["context"]["order"]) == 4 and result["transcript"]["unreachable"] == 2
    assert result["transcript"]["branches"] == []


def test_a_snapshot_with_the_id_of_the_next_message(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("one")
    session.assistant("two")
    for update in (False, True):
        session.put(
            {
                "type": "file-history-snapshot",
                "messageId": session.uuid(3),
                "snapshot": {"messageId": session.uuid(3), "trackedFileBackups": {}},
                "isSnapshotUpdate": update,
            }
        )
        if not update:
            session.user("three")
    session.assistant("four")
    result = analyzed(session)
    assert result["context"]["order"] == [session.uuid(n) for n in (1, 2, 3, 4)]
    assert result["transcript"]["records"] == 6
    assert [d["code"] for d in result["diagnostics"]] == []


def helper(claude: Any, *, at_end: bool = True, **fields: Any) -> Any:
    session = claude()
    for number in range(30):
        session.put({"type": "file-history-snapshot", "messageId": f"m{number}", "snapshot": {}})
    session.user("the task")
    session.assistant("working", usage=(10, 0, 39_000, 6))
    session.user("go on")
    session.assistant("done", usage=(10, 90, 39_900, 4))
    if at_end:
        session.user("helper brief", isSidechain=True, parent=None, **fields)
        session.assistant("helper report", usage=(10, 8000, 0, 7), isSidechain=True, parent=session.uuid(5), **fields)
    return session


@pytest.mark.parametrize("fields", [{}, {"agentId": "ab12"}], ids=["inline", "named"])
def test_a_helper_at_the_end_is_not_the_conversation(fields: Any, claude: Any, analyzed: Any) -> None:
    session = helper(claude, **fields)
    result = analyzed(session)
    assert result["context"]["order"] == [session.uuid(n) for n in (1, 2, 3, 4)]
    assert result["context"]["reported"] == 40_000 and result["context"]["at_turn"] == 2
    assert result["transcript"]["messages"] == {"main": {"user": 2, "assistant": 2}, "sidechain": 2}
    usage = result["usage"]
    assert (usage["input"], usage["cache_write"], usage["cache_read"], usage["output"]) == (30, 8090, 78_900, 17)
    main = usage["by_thread"].pop("main")
    assert (main["input"], main["output"], main["requests"]) == (20, 10, 2)
    ((name, side),) = usage["by_thread"].items()
    assert (side["input"], side["output"], side["cache_write"]) == (10, 7, 8000)
    assert name == "ab12" or not fields
    assert [row["tokens"] for row in result["pressure"]] == [39_010, 40_000]
    assert kinds(result["composition"]) == {"user_message": 2, "assistant": 2}
    assert kinds(result["composition_all"]) == {"user_message": 3, "assistant": 3}


def test_the_files_of_helpers_are_read_with_their_session(claude: Any, save: Any, within: Any) -> None:
    session = helper(claude, at_end=False)
    path = save(session, "p/s.jsonl")
    agent = claude()
    agent.user("helper brief", isSidechain=True, parent=None, agentId="ab12")
    agent.assistant("helper report", id="msg_helper", usage=(10, 8000, 0, 7), isSidechain=True, agentId="ab12")
    own = save(agent.data().replace(b"5e551011", b"a9e27000"), "p/s/subagents/agent-ab12.jsonl")
    both = within("analyze", "--json", path).result
    assert both["transcript"]["messages"]["sidechain"] == 2 and both["usage"]["by_thread"]["ab12"]["output"] == 7
    assert both["context"]["reported"] == 40_000
    alone = within("analyze", "--json", "--no-subagents", path).result
    assert alone["usage"]["output"] == 10 and list(alone["usage"]["by_thread"]) == ["main"]
    folder = within("analyze", "--json", "p").result
    assert len(folder["files"]) == 1 and folder["total"]["usage"]["output"] == 17
    helper_file = within("analyze", "--json", own).result
    assert helper_file["context"]["reported"] == 8010 and helper_file["context"]["messages"] == 2


def test_cycles_end_and_fall_back_to_file_order(claude: Any, analyzed: Any) -> None:
    session = claude()
    uuids = [session.uuid(n) for n in range(1, 7)]
    session.user("one", parent=uuids[2])
    session.assistant("two")
    session.user("three")
    session.assistant("four", parent=uuids[3])
    session.user("five", parent=uuids[5])
    session.assistant("six", parent=uuids[4])
    start = time.monotonic()
    result = analyzed(session)
    assert time.monotonic() - start < 5
    assert result["context"]["order"] == uuids
    assert len(named(result, "parent_cycle")) == 3 and named(result, "dangling_parent") == []
    assert result["transcript"]["messages"]["main"] == {"user": 3, "assistant": 3}


def test_a_long_chain_needs_no_recursion(claude: Any, analyzed: Any) -> None:
    session = claude()
    for number in range(2500):
        session.user(f"n {number}")
    result = analyzed(session)
    assert len(result["context"]["order"]) == 2500


def test_a_rewind_leaves_the_other_path_behind(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("begin")
    fork = session.call("toolu_b1", usage=(50, 0, 0, 10))
    session.result("toolu_b1", "done on path A")
    session.assistant("path A answer", usage=(60, 0, 0, 11))
    typed = session.user("no, rather this", parent=fork)
    leaf = session.assistant("path B answer", usage=(80, 0, 0, 12))
    result = analyzed(session)
    assert result["context"]["order"] == [session.uuid(1), fork, typed, leaf]
    branches = result["transcript"]["branches"]
    assert [(b["leaf"], b["live"], b["messages"]) for b in branches] == [(leaf, True, 4), (session.uuid(4), False, 4)]
    assert result["context"]["reported"] == 80
    assert (result["usage"]["input"], result["usage"]["output"]) == (190, 33)
    assert [(b["live"], b["input"]) for b in result["usage"]["by_branch"]] == [(True, 130), (False, 110)]
    assert kinds(result["composition"]) == {"user_message": 2, "assistant": 1, "tool_call": 1}
    assert kinds(result["composition_all"]) == {"user_message": 2, "assistant": 2, "tool_call": 1, "tool_result": 1}
    assert [row["tokens"] for row in result["pressure"]] == [50, 60, 80]


def test_the_leaf_that_was_noted_last_chooses_the_path(claude: Any, analyzed: Any) -> None:
    session = claude()
    start = session.user("begin")
    session.assistant("path A", parent=start)
    session.user("path A goes on")
    end = session.assistant("path A ends", usage=(30, 0, 0, 1))
    session.user("path B", parent=start)
    session.assistant("path B ends", usage=(20, 0, 0, 1))
    session.put({"type": "last-prompt", "lastPrompt": "x", "leafUuid": end, "sessionId": "s"})
    result = analyzed(session)
    assert result["context"]["order"][-1] == end and result["context"]["messages"] == 4
    assert result["context"]["reported"] == 30


def test_parallel_calls_and_their_results_are_one_path(claude: Any, analyzed: Any) -> None:
    """Results hang on their own call, the next call hangs on the first: siblings, not branches."""
    session = claude()
    session.user("look at three files")
    first = session.call("toolu_1", "Read", {"file_path": "/1"}, id="msg_par")
    second = session.call("toolu_2", "Read", {"file_path": "/2"}, id="msg_par")
    third = session.call("toolu_3", "Read", {"file_path": "/3"}, id="msg_par")
    session.result("toolu_2", "two", parent=second)
    session.result("toolu_1", "one", parent=first)
    session.result("toolu_3", "three", parent=third)
    session.assistant("all read")
    result = analyzed(session)
    assert result["transcript"]["branches"] == [] and result["transcript"]["unreachable"] == 0
    assert kinds(result["composition"]) == {"user_message": 1, "assistant": 1, "tool_call": 3, "tool_result": 3}
    assert result["composition"]["by_tool"]["Read"]["calls"] == 3
    assert result["transcript"]["turns"] == 2 and len(result["context"]["order"]) == 8


def test_notes_between_messages_carry_the_chain(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("one")
    session.envelope("progress", data={"type": "hook_progress"})
    session.envelope("system", subtype="turn_duration", durationMs=5)
    session.assistant("two")
    result = analyzed(session)
    assert len(result["context"]["order"]) == 2 and result["transcript"]["unreachable"] == 0
    assert result["diagnostics"] == []


def test_cleared_tool_results_stay_in_the_file_and_leave_the_window(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("go")
    session.call("toolu_1")
    session.result("toolu_1", "old output " * 500)
    session.call("toolu_2")
    session.result("toolu_2", "new output " * 500)
    before = analyzed(session)
    session.envelope(
        "system",
        subtype="microcompact_boundary",
        microcompactMetadata={"trigger": "auto", "compactedToolIds": ["toolu_1"], "preTokens": 1},
    )
    session.assistant("on")
    after = analyzed(session)
    tokens = before["composition"]["by_kind"]["tool_result"]["tokens"]
    assert after["composition"]["by_kind"]["tool_result"]["blocks"] == 2
    assert tokens / 2 < after["composition"]["by_kind"]["tool_result"]["tokens"] < tokens / 2 + 50
    assert after["transcript"]["compactions"] == 0 and after["context"]["messages"] == 6
    assert [c["kind"] for c in after["compactions"]] == ["micro"]


def test_a_rollout_lives_on_its_replacement_history(codex: Any, analyzed: Any) -> None:
    rollout = codex()
    rollout.message("user", "first wish")
    rollout.message("assistant", "granted " * 400)
    rollout.tokens((4000, 0, 900), (4000, 0, 900))
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first wish"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Summary: granted."}]},
    ]
    rollout.write("compacted", {"message": "", "replacement_history": history})
    before = analyzed(rollout)
    assert before["context"]["reported"] is None and before["context"]["counted"] < 30
    assert kinds(before["composition"]) == {"user_message": 1, "summary": 1}
    rollout.message("user", "second wish")
    rollout.message("assistant", "granted too")
    rollout.tokens((4300, 0, 950), (300, 0, 50))
    result = analyzed(rollout)
    assert result["context"]["reported"] == 350 and result["transcript"]["compactions"] == 1
    assert kinds(result["composition"]) == {"user_message": 2, "assistant": 1, "summary": 1}


def test_turns_that_were_rolled_back_leave_the_window(codex: Any, analyzed: Any) -> None:
    rollout = codex()
    for wish in ("first", "second", "third"):
        rollout.message("user", f"{wish} wish")
        rollout.message("assistant", f"{wish} granted")
    rollout.write("event_msg", {"type": "thread_rolled_back", "num_turns": 2})
    rollout.message("user", "another wish")
    result = analyzed(rollout)
    assert kinds(result["composition"]) == {"user_message": 2, "assistant": 1}
    assert kinds(result["composition_all"]) == {"user_message": 4, "assistant": 3}
    assert result["transcript"]["compactions"] == 0 and result["transcript"]["messages"]["main"]["user"] == 4

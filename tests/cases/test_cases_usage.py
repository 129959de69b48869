"""What was spent and how full the window is: deduplicated, never summed where it must not be, never below zero."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

NAMES = ("input", "cache_write", "cache_read", "output")


def spent(totals: Any) -> tuple[int, ...]:
    """Input, cache write, cache read, output; their sum has to be the total."""
    counts = tuple(totals[name] for name in NAMES)
    assert totals["total"] == sum(counts)
    return counts


# -- one response on several lines ---------------------------------------------------------------------------------


def test_blocks_of_one_response_are_billed_once(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    for block in (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_a", "name": "Read", "input": {"file_path": "/a"}},
    ):
        session.assistant([block], id="msg_one", usage=(7, 900, 20_000, 60))
    session.result("toolu_a", "text of a")
    session.assistant("it says a", id="msg_two", usage=(3, 120, 20_900, 40))
    result = analyzed(session)
    assert spent(result["usage"]) == (10, 1020, 40_900, 100)
    assert result["usage"]["requests"] == 2 and result["transcript"]["turns"] == 2
    assert result["context"]["reported"] == 3 + 120 + 20_900
    assert result["context"]["with_output"] == 3 + 120 + 20_900 + 40
    assert [row["tokens"] for row in result["pressure"]] == [20_907, 21_023]
    kinds = result["composition"]["by_kind"]
    assert {k: v["blocks"] for k, v in kinds.items()} == {
        "user_message": 1,
        "assistant": 2,
        "thinking": 1,
        "tool_call": 1,
        "tool_result": 1,
    }


SNAPSHOTS = [(11, 0, 0, 2), (11, 0, 0, 2), (11, 0, 0, 310)], [(5, 40, 8, 77), (9, 4, 80, 3)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_each_field_counts_at_its_largest_whatever_the_order(order: Any, claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    for index in order:
        session.assistant(f"part {index}", id="msg_up", usage=SNAPSHOTS[0][index])
    session.user("more")
    for index in (order[0] % 2, 1 - order[0] % 2):
        session.assistant(f"half {index}", id="msg_mixed", usage=SNAPSHOTS[1][index])
    result = analyzed(session)
    assert spent(result["usage"]) == (11 + 9, 40, 80, 310 + 77)
    assert result["usage"]["requests"] == 2
    assert result["context"]["reported"] == 9 + 40 + 80
    reported = analyzed(session, "--tokens", "reported")
    assert spent(reported["usage"]) == spent(result["usage"])


def test_lines_of_other_records_do_not_split_a_response(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    session.call("toolu_a", id="msg_one", usage=(5, 0, 100, 1))
    session.result("toolu_a", "first")
    session.envelope("progress", data={"type": "hook_progress"})
    session.call("toolu_b", id="msg_one", usage=(5, 0, 100, 50))
    session.result("toolu_b", "second")
    result = analyzed(session)
    assert spent(result["usage"]) == (5, 0, 100, 50) and result["transcript"]["turns"] == 1
    assert result["composition"]["by_tool"]["Bash"]["calls"] == 2


def test_a_response_that_is_written_again_as_a_whole_adds_no_blocks(claude: Any, analyzed: Any) -> None:
    """Some writers repeat the grown response on each line instead of its next block."""
    session = claude()
    session.user("start")
    grown = [
        [{"type": "text", "text": "The"}],
        [{"type": "text", "text": "The answer"}],
        [{"type": "text", "text": "The answer"}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}],
    ]
    for content, output in zip(grown, (1, 4, 30), strict=True):
        session.assistant(content, id="msg_one", usage=(5, 0, 0, output))
    result = analyzed(session)
    assert spent(result["usage"]) == (5, 0, 0, 30)
    assert {k: v["blocks"] for k, v in result["composition_all"]["by_kind"].items()} == {
        "user_message": 1,
        "assistant": 1,
        "tool_call": 1,
    }


IDS = [
    # (id, request) of two lines, and how many responses they are
    (("msg_1", "req_1"), ("msg_1", "req_1"), 1),
    (("msg_1", "req_1"), ("msg_1", None), 1),
    (("msg_1", None), ("msg_1", "req_1"), 1),
    (("msg_1", None), ("msg_1", None), 1),
    (("msg_1", "req_1"), ("msg_1", "req_2"), 2),
    (("msg_1", "req_1"), ("msg_2", "req_1"), 2),
    ((None, None), (None, None), 2),
]


@pytest.mark.parametrize(("one", "two", "requests"), IDS, ids=str)
def test_what_makes_two_lines_one_response(one: Any, two: Any, requests: int, claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    session.assistant("a", id=one[0], request=one[1], usage=(5, 1, 10, 20))
    session.assistant("b", id=two[0], request=two[1], usage=(5, 1, 10, 30))
    result = analyzed(session)
    assert result["usage"]["requests"] == result["transcript"]["turns"] == requests
    assert spent(result["usage"]) == ((5, 1, 10, 30) if requests == 1 else (10, 2, 20, 50))


def test_a_helper_that_replays_the_parent_is_no_new_call(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    session.assistant("told", id="msg_1", usage=(5, 0, 4000, 20))
    session.user("by the way", isSidechain=True, parent=None)
    session.assistant("told", id="msg_1", request="req_other", usage=(5, 0, 4000, 20), isSidechain=True)
    session.assistant("aside", id="msg_2", usage=(6, 0, 4100, 9), isSidechain=True)
    result = analyzed(session)
    assert spent(result["usage"]) == (11, 0, 8100, 29)
    assert spent(result["usage"]["by_thread"]["main"]) == (5, 0, 4000, 20)
    assert result["context"]["reported"] == 4005


def test_a_helper_that_is_seen_by_its_progress_alone_is_named(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("review it")
    session.assistant("I ask a helper")
    for agent in ("abc1", "abc1", "def2"):
        message = {"type": "assistant", "message": {"id": "msg_h", "usage": {"input_tokens": 900, "output_tokens": 90}}}
        session.envelope("progress", data={"type": "agent_progress", "agentId": agent, "message": message})
    session.assistant("done")
    result = analyzed(session)
    assert spent(result["usage"]) == (20, 0, 0, 10)
    note = next(d for d in result["diagnostics"] if d["code"] == "subagents_not_counted")
    assert (note["severity"], note["line"]) == ("warning", 3) and note["message"].startswith("2 sub-agents")
    session.assistant("read", isSidechain=True, agentId="abc1", id="msg_h")
    session.assistant("read", isSidechain=True, agentId="def2", id="msg_i")
    assert "subagents_not_counted" not in [d["code"] for d in analyzed(session)["diagnostics"]]


def test_a_resumed_copy_counts_once_over_both_files(claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("start")
    session.assistant("a", usage=(5, 0, 100, 20))
    first = session.data()
    session.user("go on")
    session.assistant("b", usage=(6, 0, 200, 30))
    save(first, "s/one.jsonl")
    save(session.data().replace(b"7a7a7a7a", b"8b8b8b8b"), "s/two.jsonl")
    done = within("analyze", "--json", "s")
    assert done.status == 0
    assert spent(done.result["total"]["usage"]) == (11, 0, 300, 50)
    assert [spent(f["result"]["usage"])[2] for f in done.result["files"]] == [100, 300]


# -- records that are no answers -----------------------------------------------------------------------------------

ERRORS = [
    {"model": "<synthetic>", "usage": (0, 0, 0, 0)},
    {"model": "<synthetic>", "usage": (0, 0, 0, 0), "isApiErrorMessage": True},
    {"usage": (0, 0, 0, 0), "isApiErrorMessage": True},
    {"model": "<synthetic>", "usage": None},
]


@pytest.mark.parametrize("fields", ERRORS, ids=str)
@pytest.mark.parametrize("mode", ["counted", "reported"])
def test_an_error_entry_does_not_reset_the_gauge(fields: Any, mode: str, claude: Any, analyzed: Any) -> None:
    session = claude("claude-sonnet-4-5")
    session.user("start")
    session.assistant("fine", usage=(21, 700, 64_000, 350))
    session.user("and then")
    session.assistant("API Error: 529 overloaded", **fields)
    result = analyzed(session, "--tokens", mode)
    assert result["context"]["reported"] == 64_721 and result["context"]["with_output"] == 65_071
    assert spent(result["usage"]) == (21, 700, 64_000, 350)
    transcript = result["transcript"]
    assert (transcript["model"], transcript["turns"], transcript["errors"]) == ("claude-sonnet-4-5", 1, 1)
    assert transcript["models"] == ["claude-sonnet-4-5"] and len(result["pressure"]) == 1
    if mode == "counted":
        assert result["composition"]["by_kind"]["assistant"]["blocks"] == 1


def test_an_error_entry_that_says_overflow_is_an_overflow_turn(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    session.assistant("fine", usage=(21, 700, 64_000, 350))
    session.assistant("Prompt is too long", model="<synthetic>", usage=(0, 0, 0, 0), isApiErrorMessage=True)
    overflows = analyzed(session)["transcript"]["overflows"]
    assert [(o["turn"], o["line"]) for o in overflows] == [(2, 3)]


def test_the_context_is_not_the_sum_over_turns(claude: Any, analyzed: Any) -> None:
    session = claude()
    for turn in range(6):
        session.user(f"question {turn}")
        session.assistant("answer", usage=(2, 500, 120_000 + 500 * turn, 100))
    result = analyzed(session, "--window", "200k")
    assert result["context"]["reported"] == 2 + 500 + 122_500 == result["peak"]["tokens"]
    assert result["peak"]["utilization"] == pytest.approx(0.61501)
    assert spent(result["usage"]) == (12, 3000, 727_500, 600)
    assert all(0 < row["utilization"] < 1 and row["turns_until_overflow"] >= 0 for row in result["pressure"])


# -- figures that cannot be ----------------------------------------------------------------------------------------


def test_unusable_counts_are_named_and_left_out(claude: Any, save: Any, within: Any) -> None:
    session = claude()
    session.user("start")
    session.assistant("a", usage=(200, 0, 0, 10))
    session.assistant("b", usage={"input_tokens": -9000, "output_tokens": 60})
    session.assistant("c", usage={"input_tokens": "PLACE1", "output_tokens": 5})
    session.assistant("d", usage={"input_tokens": 10**15, "output_tokens": 5})
    session.assistant("e", usage={"input_tokens": 1, "output_tokens": "PLACE2"})
    data = session.data().replace(b'"PLACE1"', b"NaN").replace(b'"PLACE2"', b"-Infinity")
    done = within("analyze", "--json", save(data))
    result = done.result
    assert done.status == 0
    assert [d["line"] for d in result["diagnostics"] if d["code"] == "invalid_usage"] == [3, 4, 5, 6]
    assert spent(result["usage"]) == (201, 0, 0, 80)
    assert result["cost"] is None or result["cost"] > 0
    assert all(row["tokens"] > 0 for row in result["pressure"])
    # an unusable prompt side is no measurement: the gauge stays at the newest whole one
    assert result["context"]["reported"] == 1


def test_a_wrong_prompt_side_is_not_taken_for_the_context(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("start")
    session.assistant("a", usage=(200, 0, 50_000, 10))
    session.assistant("b", usage={"input_tokens": 3, "cache_read_input_tokens": -50_000, "output_tokens": 6})
    result = analyzed(session)
    assert result["context"]["reported"] == 50_200 and result["usage"]["input"] == 203


def test_logged_and_estimated_figures_have_different_names(claude: Any, analyzed: Any) -> None:
    session = claude()
    session.user("dump it")
    session.call("toolu_1", usage=(10, 500, 500, 5))
    session.result("toolu_1", "lorem ipsum dolor " * 3000)
    session.assistant("read", usage=(5, 100, 1000, 5))
    result = analyzed(session)
    context = result["context"]
    assert context["reported"] == 1105 and context["counted"] > 6000
    assert context["drift"] == pytest.approx((context["counted"] + context["overhead"]) / 1105 - 1, abs=0.02)
    assert [d["code"] for d in result["diagnostics"]] == ["drift"]
    assert {row["source"] for row in result["pressure"]} == {"reported"}


# -- Codex: a cumulative counter -----------------------------------------------------------------------------------


def test_a_counter_that_is_written_again_counts_once(codex: Any, analyzed: Any) -> None:
    rollout = codex()
    rollout.message("user", "start")
    rollout.tokens(None, None, window=None)
    rollout.message("assistant", "one")
    rollout.tokens((1200, 200, 80), (1200, 200, 80))
    for _ in range(3):
        rollout.tokens((1200, 200, 80), (1200, 200, 80))
    rollout.message("user", "more")
    rollout.message("assistant", "two")
    rollout.tokens((2900, 1300, 190), (1700, 1100, 110))
    rollout.tokens(None, None, window=258_400)
    result = analyzed(rollout)
    assert spent(result["usage"]) == (1600, 0, 1300, 190)
    assert result["usage"]["requests"] == result["transcript"]["turns"] == 2
    assert result["context"]["reported"] == 1810
    assert result["window"] == {"tokens": 258_400, "source": "transcript"}
    assert [row["tokens"] for row in result["pressure"]] == [1280, 1810]


def test_a_request_larger_than_the_window_is_named_and_left_out(codex: Any, save: Any, within: Any) -> None:
    rollout = codex()
    rollout.message("user", "start")
    rollout.tokens((90_000, 0, 700), (90_000, 0, 700), window=400_000)
    rollout.tokens((3_690_000, 0, 9_700), (3_600_000, 0, 9_000), window=400_000)
    path = save(rollout)
    done = within("analyze", "--json", path)
    assert done.status == 0 and done.result["context"]["reported"] == 90_700
    assert [(d["code"], d["line"]) for d in done.result["diagnostics"]] == [("impossible_usage", 4)]
    assert "3,609,000" in done.result["diagnostics"][0]["message"]
    assert f"{path}:4" in done.err
    assert done.result["peak"]["utilization"] == pytest.approx(0.22675)
    assert "902" not in within("analyze", path).out.decode().replace("3,609,000", "")


def test_a_counter_that_starts_anew(codex: Any, analyzed: Any) -> None:
    rollout = codex()
    rollout.message("user", "start")
    rollout.tokens((5000, 1000, 100), (5000, 1000, 100))
    rollout.message("assistant", "one")
    rollout.tokens((700, 0, 40), (700, 0, 40))
    result = analyzed(rollout)
    assert spent(result["usage"]) == (4700, 0, 1000, 140) and result["context"]["reported"] == 740


def test_what_a_fork_copied_from_its_parent_is_inherited(codex: Any, analyzed: Any) -> None:
    rollout = codex(forked_from_id="0199-parent")
    when = "2026-03-01T09:00:01.400Z"
    rollout.write("session_meta", {"id": "0199-parent", "cwd": "/srv/app"}, when)
    rollout.tokens((5000, 1000, 100), (5000, 1000, 100), when=when)
    rollout.write("response_item", {"type": "message", "role": "user", "content": "anew"}, "2026-03-01T09:05:00.000Z")
    rollout.tokens((8000, 3000, 300), (3000, 2000, 200), when="2026-03-01T09:05:09.000Z")
    result = analyzed(rollout)
    assert spent(result["usage"]) == (1000, 0, 2000, 200)
    assert result["usage"]["inherited"] == 5100 and result["usage"]["requests"] == 1
    assert result["context"]["reported"] == 3200


# -- chat ----------------------------------------------------------------------------------------------------------


def test_cached_prompt_tokens_are_told_apart(save: Any, within: Any) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 90,
        "prompt_tokens_details": {"cached_tokens": 640},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    line = {"messages": [{"role": "user", "content": "hi"}], "model": "gpt-4o", "response": {"usage": usage}}
    line["response"]["choices"] = [{"message": {"role": "assistant", "content": "hello"}}]
    result = within("analyze", "--json", save([line])).result
    assert spent(result["usage"]) == (360, 0, 640, 90) and result["usage"]["reasoning"] == 30
    assert result["context"]["reported"] == 1000


def test_without_usage_nothing_is_made_up(save: Any, analyzed: Any) -> None:
    result = analyzed([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    assert result["usage"]["total"] == 0 and result["usage"]["requests"] == 0
    assert result["context"]["reported"] is None and result["context"]["drift"] is None
    assert result["context"]["counted"] > 0 and result["cost"] is None
    assert [row["source"] for row in result["pressure"]] == ["counted"]

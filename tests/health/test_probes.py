"""Questions that a window answers: damaged summaries fail exactly those that they lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.health.answers import Asked, Probe, answered
from ctxctl.health.fidelity import facts_of, judge
from ctxctl.health.passages import Passages, content_words, status_of
from ctxctl.health.probes import probes_of
from ctxctl.model.block import Block, Source

TODOS = (
    'TodoWrite {"todos": [{"content": "Read the parser", "status": "completed"}, '
    '{"content": "Write the tokenizer tests", "status": "in_progress"}, '
    '{"content": "Update the changelog", "status": "pending"}]}'
)
EDIT = 'Edit {"file_path": "/w/src/tokenizer.py", "old_string": "a", "new_string": "b"}'
TEST = 'Bash {"command": "pytest tests"}'


def block(number: int, kind: str, text: str, turn: int = 1, **more: object) -> Block:
    role = "user" if kind in ("user_message", "tool_result", "summary") else "assistant"
    return Block(f"{number}.0", kind, role, text, turn, 1, Source(number + 1), **more)  # type: ignore[arg-type]


def session() -> list[Block]:
    """What a window held."""
    task = "Speed up the tokenizer of the parser service. Never change the public API in src/api.py."
    decision = "Decision: use a lookup table instead of regular expressions because it is 12.5% faster."
    question = "The budget is 4096 tokens per call. Open question: does the cache survive a restart?"
    run = {"tool_name": "Bash", "call_id": "b1"}
    return [
        block(0, "user_message", task),
        block(1, "tool_call", TODOS, 2, tool_name="TodoWrite", call_id="t1"),
        block(2, "tool_result", "ok", 2, tool_name="TodoWrite", call_id="t1"),
        block(3, "assistant", decision, 3),
        block(4, "tool_call", EDIT, 4, tool_name="Edit", call_id="e1", target="/w/src/tokenizer.py"),
        block(5, "tool_result", "The file has been updated", 4, tool_name="Edit", call_id="e1"),
        block(6, "tool_call", TEST, 5, target="pytest tests", **run),
        block(7, "tool_result", "211 passed, 3 failed in 4.20s", 5, is_error=True, **run),
        block(8, "assistant", question, 6),
        block(9, "user_message", "Right, 4096 it is. Go on with the tests.", 7),
    ]


SUMMARY = """Goal: speed up the tokenizer of the parser service.
Constraint: never change the public API in src/api.py.
Decided to use a lookup table instead of regular expressions, since it is faster.
Progress: 1 of 3 steps done.
- [x] Read the parser
- [~] Write the tokenizer tests
- [ ] Update the changelog
Changed: src/tokenizer.py
Tests: `pytest tests` failed, 211 passed, 3 failed.
The budget is 4096 tokens per call.
Open: does the cache survive a restart?
The user said to go on with the tests."""


def lost(summary: str) -> set[str]:
    """Kinds of questions that a summary does not answer any more."""
    result = judge(session(), [block(0, "summary", summary)])
    assert result.asked >= 9
    return {one.kind for one in result.lost}


def test_a_summary_in_other_words_answers_everything() -> None:
    assert lost(SUMMARY) == set()


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("Goal: speed up the tokenizer of the parser service.", "", {"goal"}),
        ("Constraint: never change the public API in src/api.py.", "", {"constraint"}),
        ("never change the public API", "change the public API", {"constraint"}),
        ("Decided to use a lookup table instead of regular expressions, since it is faster.", "", {"decision"}),
        ("1 of 3 steps", "2 of 3 steps", set()),  # its own list still tells
        ("- [~] Write", "- [x] Write", {"step", "progress"}),
        ("- [ ] Update", "- [x] Update", {"step", "progress"}),
        ("Changed: src/tokenizer.py", "", {"file"}),
        ("4096", "4906", {"figure"}),
        ("failed, 211 passed, 3 failed", "passed", {"test"}),
        ("Open: does the cache survive a restart?", "", {"issue"}),
    ],
)
def test_what_was_damaged_and_nothing_else_is_lost(old: str, new: str, kinds: set[str]) -> None:
    assert old in SUMMARY
    damaged = SUMMARY.replace(old, new)
    if "progress" in kinds:
        damaged = damaged.replace("Progress: 1 of 3 steps done.\n", "")
    assert lost(damaged) - {"next"} == kinds


def test_the_same_window_answers_all_and_an_empty_one_nothing() -> None:
    assert judge(session(), session()).score == 1.0
    nothing = judge(session(), [])
    assert nothing.score == 0.0 and len(nothing.lost) == nothing.asked
    assert judge([], session()).score is None  # nothing was asked: never 1.0
    assert judge([block(0, "assistant", "ok")], []).score is None


def test_tool_output_alone_answers_no_question_on_what_was_said() -> None:
    log = block(0, "tool_result", SUMMARY, tool_name="Bash")
    assert {"goal", "constraint", "decision"} <= {one.kind for one in judge(session(), [log]).lost}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("- [x] build it", "done"),
        ("1. [ ] build it", "planned"),
        ("- [~] build it", "doing"),
        ("\u2705 build it", "done"),
        ("build it is done", "done"),
        ("build it: not done yet", "planned"),
        ("in progress: build it", "doing"),
        ("next: build it", "planned"),
        ("build it", None),
    ],
)
def test_what_a_line_says_of_progress(line: str, status: str | None) -> None:
    assert status_of(line) == status


def test_a_heading_tells_of_the_lines_below_it() -> None:
    text = "## Completed\n- parse the header\n\n## Remaining\n- write the footer\n\nNotes:\n- parse is fast"
    found = {p.text.strip("- "): p.status for p in Passages([text]).passages}
    assert found["parse the header"] == "done" and found["write the footer"] == "planned"
    assert found["parse is fast"] is None


def test_files_are_known_by_their_name_where_it_is_the_only_one() -> None:
    def one(path: str, text: str) -> bool:
        probe = Probe("file", "?", path, exact=(path, "/".join(path.split("/")[-2:]), path.rpartition("/")[2]))
        return answered(probe, Asked([block(0, "summary", text)]))

    assert one("/w/src/tokenizer.py", "changed `tokenizer.py` only")
    assert one("/w/src/tokenizer.py", "see src/tokenizer.py:12")
    assert not one("/w/src/tokenizer.py", "changed tokenizer.pyi and mytokenizer.py")


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        (["The limit is 4,096 tokens.", "So 4096 tokens it is."], {"4096"}),
        (["The limit is 4096 tokens."], set()),  # said once
        (["Raise it to 87.5%.", "87.5% of all calls are served."], {"87.5%"}),
        (["The bug is at line 412.", "Line 412 is empty."], set()),
        (["I delete 1713, 1714.", "1713 and 1714 are gone."], set()),
        (["It ran in 0.45s.", "Again 0.45s."], set()),
        (["filter(x__in=[1,2,3])", "[1,2,3] again"], set()),
        (["Both are 100% done.", "100% indeed."], set()),
        (["582 lines were added.", "GitHub says 582 lines, too."], {"582"}),
    ],
)
def test_figures_are_asked_that_were_said_again_and_are_no_places(said: list[str], figures: set[str]) -> None:
    blocks = [block(n, "assistant", text, n + 1) for n, text in enumerate(said)]
    asked = {p.exact[0] for p in probes_of(Asked(blocks, facts_of(blocks))) if p.kind == "figure"}
    assert asked == figures


def test_tests_that_ran_before_the_last_change_are_no_question() -> None:
    asked = {p.kind for p in probes_of(Asked(session(), facts_of(session())))}
    later = block(10, "tool_call", EDIT, 8, tool_name="Edit", call_id="e2", target="/w/src/tokenizer.py")
    blocks = [*session(), later]
    assert "test" in asked
    assert "test" not in {p.kind for p in probes_of(Asked(blocks, facts_of(blocks)))}


def test_credentials_in_lost_answers_are_taken_out() -> None:
    key = "sk-ant-api03-" + "Ab1" * 30
    task = f"Deploy the service to staging with the key {key} and report the outcome of the run."
    told = [block(0, "user_message", task)]
    lost = judge(told, []).lost
    assert lost and all(key not in one.answer and key not in one.question for one in lost)


def test_a_script_without_spaces_is_compared_by_pairs() -> None:
    assert len(content_words("\u63d0\u9ad8\u89e3\u6790\u5668\u7684\u901f\u5ea6")) >= 5


@given(st.lists(st.text(max_size=200), max_size=6))
def test_any_text_can_be_asked_and_answers_itself(texts: list[str]) -> None:
    blocks = [block(n, "user_message" if n % 2 == 0 else "assistant", text, n + 1) for n, text in enumerate(texts)]
    window = Asked(blocks, facts_of(blocks))
    probes = probes_of(window)
    assert probes == probes_of(Asked(blocks, facts_of(blocks)))
    assert all(answered(probe, window) for probe in probes if probe.kind not in ("file", "figure"))
    score = judge(blocks, blocks).score
    assert score is None or score == 1.0

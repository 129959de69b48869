"""Sentences that hold the words of another and say something else all the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxctl.health.answers import Asked, Probe, answered
from ctxctl.health.passages import boxes, contradicts
from ctxctl.model.block import Block, Source

DECISION = "use a lookup table of 512 entries instead of `re.compile` calls for Redis keys"


def window(text: str, kind: str = "summary", **more: object) -> Asked:
    return Asked([Block("0.0", kind, "assistant", text, 1, 1, Source(1), **more)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Decided: a lookup table of 512 entries for Redis keys instead of re.compile.", True),
        ("The lookup table (512 entries) is used for the keys of Redis rather than `re.compile` calls.", True),
        ("Decided: a lookup table of 256 entries for Redis keys instead of re.compile.", False),
        ("Decided: a lookup table of 512 entries for Memcached keys instead of json.loads calls.", False),
        ("Decided: `re.compile` calls for Redis keys instead of a lookup table of 512 entries.", False),
        ("Decided: a lookup table of 512 entries for Redis keys and re.compile calls.", False),  # not instead of them
        ("Redis holds a table.", False),
        ("", False),
    ],
)
def test_a_decision_is_known_in_other_words_and_not_when_it_was_changed(text: str, answers: bool) -> None:
    assert answered(Probe("decision", "What was decided?", DECISION), window(text)) is answers


@example("Send the lamp from LO-57990 back, and src/lib-x.ts instead of Redis-Cluster to us.")
@given(st.text(alphabet="aZ1 `._/-,LO", max_size=60))
def test_nothing_contradicts_itself(text: str) -> None:
    assert not contradicts(text, text)


def test_a_name_that_is_left_out_is_no_other_name() -> None:
    wanted = "Implement attribution of lines for the manual strategy in Entire CLI"
    assert not contradicts("implement attribution of lines for the manual strategy", wanted)
    assert contradicts("implement attribution of lines for the manual strategy in Other Tool", wanted)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- [x] a\n- [~] b\n- [ ] c", (1, 3)),
        ("\u2705 a\n\u2705 b\n\u23f3 c", (2, 3)),
        ("1. a\n2. b", (0, 0)),
    ],
)
def test_a_checklist_tells_how_many_steps_are_done(text: str, told: tuple[int, int]) -> None:
    assert boxes(text) == told
    probe = Probe("progress", "?", "2 of 3", "doing", total=3)
    assert answered(probe, window(text)) is (told == (2, 3))


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("2 of 3 steps are done", True),
        ("working on step 3 of 3", True),  # the one in work
        ("1 of 3 steps are done", False),
        ("2 of 4 steps are done", False),
        ("12 of 3", False),
    ],
)
def test_progress_needs_both_numbers(text: str, answers: bool) -> None:
    assert answered(Probe("progress", "?", "2 of 3", "doing", total=3), window(text)) is answers


@pytest.mark.parametrize("kind", ["thinking", "tool_result", "system"])
def test_what_was_not_said_answers_no_question(kind: str) -> None:
    probe = Probe("goal", "What is the task?", "Speed up the tokenizer of the parser service")
    assert answered(probe, window(probe.answer, "assistant"))
    assert not answered(probe, window(probe.answer, kind))


def test_a_line_of_code_answers_no_question_but_a_plan_does() -> None:
    probe = Probe("goal", "What is the task?", "Speed up the tokenizer of the parser service")
    write = f'Write {{"file_path": "/w/a.py", "content": "# {probe.answer}"}}'
    plan = f'ExitPlanMode {{"plan": "{probe.answer}"}}'
    assert not answered(probe, window(write, "tool_call", tool_name="Write", target="/w/a.py"))
    assert answered(probe, window(plan, "tool_call", tool_name="ExitPlanMode"))


def test_of_a_task_that_is_a_list_what_is_done_needs_no_mention() -> None:
    lines = ("Compare the two parsers", "Write a faster tokenizer", "Measure the tokenizer over the corpus")
    probe = Probe("goal", "What is the task?", "\n".join(lines), total=3)
    assert answered(probe, window("Write a faster tokenizer.\nMeasure it over the corpus."))
    assert answered(probe, window("Compare the two parsers."))
    assert not answered(probe, window("Update the changelog."))

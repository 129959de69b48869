"""The helper: what may replace something, what never does, and that a prompt holds all of its material."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.compaction.helper import Helper, helper_of
from ctxctl.compaction.llm import Answer, AskFailedError, Command
from ctxctl.compaction.options import CompactionOptions, LlmOptions
from ctxctl.compaction.templates import FRAMES, TASKS, Prompts
from ctxctl.errors import ConfigError, ExitCode, SummaryFailedError


def count(text: str, kind: str) -> int:
    """A token for every 4 bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


class Scripted:
    """A model that answers in turn, the last answer again and again; None: it fails."""

    def __init__(self, *answers: str | None, tries: int = 1) -> None:
        self.answers = answers
        self.tries = tries
        self.prompts: list[str] = []

    def ask(self, prompt: str) -> Answer:
        self.prompts.append(prompt)
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        if answer is None:
            raise AskFailedError("it failed")
        return Answer(answer)


def helper(model: Any, window: int = 32_000, **more: Any) -> Helper:
    return Helper(model, window=window, count=count, clean=str, **more)


MATERIAL = "\n".join(f"line {n}: src/part_{n}.py was read" for n in range(100))


def test_a_prompt_holds_goal_rules_and_all_of_the_material() -> None:
    for task in TASKS:
        model = Scripted("short")
        assert helper(model).write(task, "the goal {material}", MATERIAL, 200) == "short"
        (prompt,) = model.prompts
        assert MATERIAL in prompt and "the goal {material}" in prompt and "120 words" in prompt
        assert "never an instruction" in prompt


def test_braces_in_the_material_stay() -> None:
    model = Scripted("short")
    helper(model).write("notes", "g", "f'{goal} {words} {other}' " * 20, 50)
    assert "f'{goal} {words} {other}'" in model.prompts[0]


UNUSABLE = {"empty": "", "blank": " \n\t ", "only a mark": "[summary] ", "over-long": "word " * 500, "failed": None}


@pytest.mark.parametrize("case", UNUSABLE)
def test_what_never_replaces_anything(case: str) -> None:
    model = Scripted(UNUSABLE[case])
    made = helper(model)
    assert made.write("conversation", "g", MATERIAL, 200) is None
    assert (made.calls, made.failures, made.fallback, made.fell_back) == (1, 1, False, 1)
    assert made.log[0].failure == made.reasons[0] != ""


def test_what_was_written_for_the_same_material_is_given_again() -> None:
    """While it is short enough: a compaction is planned again with a target that is a little lower."""
    model = Scripted("a text of ten words that says what was done there", "brief")
    made = helper(model)
    first = made.write("conversation", "g", MATERIAL, 100)
    assert first is not None and made.write("conversation", "g", MATERIAL, 90) == first
    assert made.calls == 1
    assert made.write("conversation", "g", MATERIAL, 5) == "brief"
    assert made.write("conversation", "g", MATERIAL, 100) == "brief"
    assert made.calls == 2
    for task, goal, material in (("notes", "g", MATERIAL), ("conversation", "h", MATERIAL), ("notes", "g", "+ " * 99)):
        made.write(task, goal, material, 90)
    assert made.calls == 5


def test_what_failed_is_asked_for_again() -> None:
    made = helper(Scripted("", "fine"))
    assert [made.write("notes", "g", MATERIAL, 100) for _ in range(3)] == [None, "fine", "fine"]
    assert made.calls == 2


def test_a_summary_is_shorter_than_the_original() -> None:
    model = Scripted("twelve words that say as much as the original did, or a bit more")
    assert helper(model).write("progressive", "g", "the original, in few words", 500) is None
    assert helper(model).write("progressive", "g", "the original, in few words " * 9, 500) is not None


def test_nothing_to_write_asks_nobody() -> None:
    model = Scripted("x")
    for material, most in (("", 100), ("  \n ", 100), ("abc", 100), (MATERIAL, 0), (MATERIAL, -5)):
        assert helper(model).write("notes", "g", material, most) is None
    assert model.prompts == []


def test_after_three_failures_in_a_row_the_extract_stays() -> None:
    model = Scripted(None, "fine", None, "", None, "fine")
    made = helper(model)
    found = [made.write("notes", f"goal {n}", MATERIAL, 100) for n in range(8)]
    assert found == [None, "fine", None, None, None, None, None, None]
    assert made.fallback and made.calls == 5 and made.failures == 4 and made.fell_back == 7
    assert made.reasons == ["it failed", "it failed", "an empty answer", "it failed"]


def test_tries_count_as_failures() -> None:
    made = helper(Scripted(None, tries=3))
    assert made.write("notes", "g", MATERIAL, 100) is None
    assert made.fallback and made.calls == 3
    again = helper(Scripted(None, None, "fine", tries=3))
    assert again.write("notes", "g", MATERIAL, 100) == "fine"
    assert not again.fallback and again.fell_back == 0


def test_a_failure_can_be_an_error() -> None:
    made = helper(Scripted(""), on_failure="fail")
    with pytest.raises(SummaryFailedError, match=r"the summary failed .conversation.: an empty answer") as caught:
        made.write("conversation", "g", MATERIAL, 100)
    assert caught.value.exit_code == ExitCode.TARGET and caught.value.code == "summary_failed" and caught.value.hint


def test_calls_are_counted_with_tokens_and_time() -> None:
    made = helper(Scripted("fine"))
    made.write("notes", "g", MATERIAL, 100)
    (call,) = made.log
    assert call.output == 1 and call.prompt > count(MATERIAL, "") and made.seconds >= 0
    assert made.spent == [(call.prompt, 1, False)]


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=300),
    window=st.integers(1_000, 3_000),
    most=st.integers(20, 400),
)
def test_longer_material_comes_in_parts_and_nothing_is_left_out(lines: list[str], window: int, most: int) -> None:
    material = "\n".join(f"<{n}:{line}>" for n, line in enumerate(lines))
    model = Scripted("a part")
    made = helper(model, window)
    text = made.write("conversation", "the goal", material, most)
    assert text is None or text == "a part"
    assert all(count(prompt, "") + 2 <= window for prompt in model.prompts)
    if not model.prompts:
        return
    got = "".join(prompt.split("<material>\n", 1)[1].rsplit("\n</material>", 1)[0] for prompt in read(model.prompts))
    assert got == material
    assert all("the goal" in prompt for prompt in model.prompts)


def read(prompts: list[str]) -> list[str]:
    """Prompts that hold parts of the material, not texts written from them."""
    return [prompt for prompt in prompts if "The material was read in parts." not in prompt]


def test_parts_are_merged_in_stages() -> None:
    model = Scripted("w " * 400)
    made = helper(model, 2_000)
    material = "\n".join(f"line {n} " + "x" * 90 for n in range(1_000))
    assert made.write("conversation", "g", material, 250) is not None
    merges = len(model.prompts) - len(read(model.prompts))
    assert len(read(model.prompts)) >= 20 and merges > 2
    assert all(count(prompt, "") + 250 <= 2_000 for prompt in model.prompts)
    assert all(f"line {n} " in "".join(model.prompts) for n in range(1_000))


def test_one_line_longer_than_the_window_is_cut_between_characters() -> None:
    model = Scripted("s")
    assert helper(model, 1_500).write("tool-results", "g", "日本語" * 5_000, 100) == "s"
    assert len(model.prompts) > 10


def test_a_failed_part_fails_the_whole() -> None:
    model = Scripted("fine", None)
    made = helper(model, 2_000)
    assert made.write("conversation", "g", "line of text\n" * 3_000, 250) is None
    assert made.calls == 2


def test_a_goal_larger_than_the_window_is_cut() -> None:
    model = Scripted("s")
    assert helper(model, 2_000).write("notes", "goal " * 5_000, MATERIAL, 100) == "s"
    assert all(count(prompt, "") <= 2_000 for prompt in model.prompts)


def test_a_window_without_room_is_a_failure_and_no_loop(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("rule\n" * 2_000 + "{material}")
    made = helper(Scripted("s"), 1_000, prompts=Prompts(str(tmp_path)))
    assert made.write("notes", "g", MATERIAL, 100) is None
    assert made.calls == 0 and made.failures == 1 and "no room" in made.reasons[0]


def test_marks_of_its_own_are_taken_off() -> None:
    assert helper(Scripted("[summary]: it went well\n")).write("notes", "g", MATERIAL, 100) == "it went well"


def test_secrets_and_injections_reach_neither_the_model_nor_the_summary() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    model = Scripted(f"the token is {token}")
    made = Helper(model, window=32_000, count=count)
    text = made.write("conversation", f"use {token}", f"{MATERIAL}\nexport TOKEN={token}\n", 100)
    assert text is not None and token not in text
    assert token not in model.prompts[0]


def test_own_prompts_stand_for_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("\ufeffMine: {goal} / {material}", encoding="utf-8")
    prompts = Prompts(str(tmp_path))
    assert prompts.fill("notes", "g", "m", 10) == "Mine: g / m"
    assert prompts.fill("delegate", "g", "m", 10) == Prompts().fill("delegate", "g", "m", 10)


def test_wrong_prompts_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        Prompts(str(tmp_path / "none"))
    (tmp_path / "merge.md").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"merge.md.*not UTF-8"):
        Prompts(str(tmp_path))
    (tmp_path / "merge.md").write_text("no fields are needed here")
    (tmp_path / "progressive.md").write_text("no field")
    with pytest.raises(ConfigError, match=r"progressive.md.*no {material}"):
        Prompts(str(tmp_path))


def test_every_task_has_its_prompt() -> None:
    texts = {Prompts().fill(task, "", "m", 10) for task in TASKS}
    assert len(texts) == len(TASKS) and all("(not stated)" in text for text in texts)
    assert Prompts().fill("another", "g", "m", 10) == Prompts().fill("conversation", "g", "m", 10)
    assert set(FRAMES) == {"chunk", "merge"}


def test_settings_make_the_helper(serve: Callable[..., Any]) -> None:
    def of(llm: LlmOptions, *args: Any, **more: Any) -> Helper | None:
        return helper_of(CompactionOptions(llm=llm), *args, count=count, clean=str, **more)

    assert of(LlmOptions()) is None
    echo = (sys.executable, "-c", "print('short')")
    made = of(LlmOptions(command=echo))
    assert made is not None and made.write("notes", "g", MATERIAL, 50) == "short"
    server = serve("from afar")
    made = of(LlmOptions(endpoint=server.url, model="m", api_key_env="KEY"), environment={"KEY": "k"})
    assert made is not None and made.write("notes", "g", MATERIAL, 50) == "from afar"
    assert server.keys == ["Bearer k"] and made.log[0].prompt == 77
    made = of(LlmOptions(endpoint=server.url, model="m"), "echo by flag")
    assert made is not None and made.write("notes", "g", MATERIAL, 50) == "by flag"
    made = of(LlmOptions(command="exit 1", retries=0), None, "fail")
    assert made is not None
    with pytest.raises(SummaryFailedError, match="exit status 1"):
        made.write("notes", "g", MATERIAL, 50)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        of(LlmOptions(endpoint="https://api.openai.com/v1", model="m"), environment={})
    with pytest.raises(ConfigError, match="empty"):
        of(LlmOptions(), "  ")


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "a", "endpoint": "http://x", "model": "m"},
        {"endpoint": "http://x"},
        {"model": "m"},
        {"command": ""},
        {"command": ()},
    ],
    ids=str,
)
def test_contradictions_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        LlmOptions(**fields)


@pytest.mark.parametrize(
    "code", ["print('Error generating summary: 429'); raise SystemExit(1)", "", "print('\\n \\t')"]
)
def test_a_failing_command_leaves_no_word_behind(code: str) -> None:
    made = Helper(Command([sys.executable, "-c", code], retries=2), window=32_000, count=count, clean=str)
    assert made.write("conversation", "g", MATERIAL, 200) is None
    assert made.fallback and made.failures == 3
    assert "Error generating" not in " ".join(made.reasons)

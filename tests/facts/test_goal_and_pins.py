"""The goal is what a human asked for; pins are what a human or the system prompt preserves, never tool output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl import analyze, load_models
from ctxctl.facts.goal import LONGEST, GoalFinder
from ctxctl.facts.pins import Pin, PinFinder, spans
from ctxctl.model.block import KINDS, Block, Source


def block(kind: str, text: str, *, line: int = 1, thread: str = "main", exchange: int = 1) -> Block:
    return Block(f"{line}.0", kind, "user", text, 1, exchange, Source(line), thread=thread)


def test_the_first_message_states_the_goal_and_the_newest_the_task() -> None:
    finder = GoalFinder()
    texts = ["You are kind.", "  \n", "Fix the login.", "A helper's task.", "And the logout."]
    kinds = ["system", "user_message", "user_message", "user_message", "user_message"]
    for n, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
        finder.see(block(kind, text, thread="helper" if "helper" in text else "main", exchange=n), n)
    assert {name: (g.block, g.text) for name, g in finder.goals.items()} == {
        "main": (2, "Fix the login."),
        "helper": (3, "A helper's task."),
    }
    assert finder.current["main"].text == "And the logout."


def test_a_long_goal_is_cut() -> None:
    finder = GoalFinder()
    finder.see(block("user_message", "x" * 10_000), 0)
    assert len(finder.goals["main"].text) == LONGEST


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "user_message"])
def test_other_kinds_state_no_goal(kind: str) -> None:
    finder = GoalFinder()
    finder.see(block(kind, "Do it."), 0)
    assert finder.goals == {}


def goal_of(folder: Path, *contents: Any) -> str | None:
    path = folder / "x.jsonl"
    records = [
        {"type": "user", "uuid": f"u{n}", "parentUuid": None, "sessionId": "s", **(c if isinstance(c, dict) else {})}
        | ({} if isinstance(c, dict) else {"message": {"role": "user", "content": c}})
        for n, c in enumerate(contents)
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    found = analyze(str(path), load_models()).goal
    return found.text if found is not None else None


@pytest.mark.parametrize(
    "before",
    [
        "<system-reminder>Today is Monday.</system-reminder>",
        "<local-command-stdout>Cleared</local-command-stdout>",
        "<command-name>/clear</command-name>\n<command-args></command-args>",
        "<bash-input>ls</bash-input>",
        "[Request interrupted by user]",
        {"isMeta": True, "message": {"role": "user", "content": "Caveat: local commands follow."}},
        [{"type": "tool_result", "tool_use_id": "t", "content": "a result"}],
    ],
    ids=["reminder", "stdout", "command", "shell input", "interruption", "meta", "result"],
)
def test_what_the_client_wrote_is_not_the_goal(tmp_path: Path, before: Any) -> None:
    assert goal_of(tmp_path, before, "Fix the login.") == "Fix the login."


def test_a_session_without_a_prompt_has_no_goal(tmp_path: Path) -> None:
    assert goal_of(tmp_path, "<system-reminder>Today is Monday.</system-reminder>") is None


@pytest.mark.parametrize(
    ("text", "found", "unclosed"),
    [
        ("nothing", [], None),
        ("<preserve>keep</preserve>", ["keep"], None),
        ("a <preserve>one</preserve> b <preserve>two\nlines</preserve> c", ["one", "two\nlines"], None),
        ("<preserve></preserve>", [""], None),
        ("</preserve> <preserve>x</preserve>", ["x"], None),
        ("a <preserve>never closed", [], 2),
        ("<preserve>one</preserve><preserve>two", ["one"], 24),
        ("<PRESERVE>x</PRESERVE>", [], None),
    ],
)
def test_spans(text: str, found: list[str], unclosed: int | None) -> None:
    pinned, at = spans(text)
    assert [text[a:b].removeprefix("<preserve>").removesuffix("</preserve>") for a, b in pinned] == found
    assert at == unclosed


def test_a_nested_pin_keeps_at_least_what_the_outer_one_opened() -> None:
    text = "<preserve>outer <preserve>inner</preserve> rest"
    pinned, unclosed = spans(text)
    assert [text[a:b] for a, b in pinned] == ["<preserve>outer <preserve>inner</preserve>"]
    assert unclosed is None


@pytest.mark.parametrize("kind", KINDS)
def test_who_may_pin(kind: str) -> None:
    finder = PinFinder()
    finder.see(block(kind, "so <preserve>keep this</preserve>."), 4)
    allowed = kind in ("user_message", "system")
    assert finder.found == ([Pin(4, 3, 33, "keep this")] if allowed else [])


def test_unclosed_tags_are_noted_with_their_line_and_pin_nothing() -> None:
    finder = PinFinder()
    finder.see(block("user_message", "<preserve>open", line=7), 0)
    finder.see(block("tool_result", "<preserve>open", line=8), 1)
    assert finder.found == [] and finder.unclosed == [7]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["<preserve>", "</preserve>", "a", " ", "\n", "<"]), max_size=12).map("".join))
def test_spans_lie_apart_and_hold_their_tags(text: str) -> None:
    pinned, unclosed = spans(text)
    ends = 0
    for start, end in pinned:
        assert ends <= start < end
        assert text[start:end].startswith("<preserve>") and text[start:end].endswith("</preserve>")
        ends = end
    assert unclosed is None or (unclosed >= ends and "</preserve>" not in text[unclosed:])

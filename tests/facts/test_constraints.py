"""Constraints: sentences that forbid or demand, in English and Chinese; wishes are none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.facts.constraints import MOST_PER_BLOCK, Constraint, ConstraintFinder, is_directive, sentences
from ctxctl.model.block import KINDS, Block, Source


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("You must not touch main.", ["You must not touch main."]),
        ("Fix it. Never push to main! Thanks.", ["Never push to main!"]),
        ("Rename it, but don't change the API.", ["Rename it, but don't change the API."]),
        ("Do NOT use sudo.", ["Do NOT use sudo."]),
        ("Only edit src/auth.py, nothing else.", ["Only edit src/auth.py, nothing else."]),
        ("Please use at most 3 files. And be kind.", ["Please use at most 3 files."]),
        ("Keep the tests green", ["Keep the tests green"]),
        ("- Always run the linter\n- Say hello", ["Always run the linter"]),
        ("First sentence.\nSecond must hold.\nThird is free.", ["Second must hold."]),
        ("You must do this. You must do this.", ["You must do this."]),
        ("You must read it and never write it.", ["You must read it and never write it."]),
        ("不要修改数据库的结构。谢谢你的帮助。", ["不要修改数据库的结构。"]),
        ("请把它改成异步的。所有测试必须全部通过!好的。", ["所有测试必须全部通过!好的。"]),
        ("任何情况下都禁止直接推送到主分支", ["任何情况下都禁止直接推送到主分支"]),
    ],
)
def test_found(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Migrate the service from axios to fetch.",
        "It would be nice if you could add a test.",
        "You should perhaps look at the readme.",
        "The mustard and the nevermore are words.",
        "请帮我修复登录页面的问题。",
        "must",
    ],
)
def test_none(text: str) -> None:
    assert sentences(text) == []


def test_a_version_or_a_file_name_does_not_end_a_sentence() -> None:
    assert sentences("It must work with Python 3.11 and src/a.py too. Yes.") == [
        "It must work with Python 3.11 and src/a.py too."
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_who_may_demand(kind: str) -> None:
    finder = ConstraintFinder()
    finder.see(Block("1.0", kind, "user", "You must never do that.", 1, 1, Source(1)), 3)
    allowed = kind in ("user_message", "system", "summary")
    assert finder.found == ([Constraint(3, "You must never do that.")] if allowed else [])


def test_a_wall_of_text_stays_quick_and_short() -> None:
    start = time.monotonic()
    found = sentences("".join(f"Rule {n}: you must not do thing number {n}.\n" for n in range(20_000)))
    sentences(("word " * 19 + "must ") * 2_000)
    sentences("x" * 200_000 + " must not be slow.")
    assert len(found) == MOST_PER_BLOCK
    assert time.monotonic() - start < 3


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab .!\n。必须不要", max_size=60) | st.text(max_size=40))
def test_a_constraint_is_a_piece_of_the_text(text: str) -> None:
    for sentence in sentences(text + " must not "):
        assert sentence in text + " must not "
        assert "\n" not in sentence and len(sentence) <= 400


@pytest.mark.parametrize(
    "text",
    [
        "You must not touch main.",
        "Never push to main!",
        "Rename it, but don't change the API.",
        "Only edit src/auth.py, nothing else.",
        "Please use at most 3 files.",
        "Keep the tests green",
        "- **Always** run the linter",
        "All tests must pass before you commit.",
        "don't change the public signatures in src/api/*.ts, three other repositories import them",
        "keep the retry behaviour (3 attempts, exponential); docs/http-behaviour.md is the contract",
        "Use the standard library only.",
        "Responses may not exceed 100 ms.",
        "Do it without adding a dependency.",
        "I don't want travel insurance.",
        "No new dependencies.",
        "不要修改数据库的结构。",
    ],
)
def test_directives(text: str) -> None:
    assert sentences(text) and is_directive(text)


@pytest.mark.parametrize(
    "text",
    [
        "I don't have the reservation ID with me.",
        "I don’t remember it, sorry.",
        "I must have left it somewhere else.",
        "There must be something that can be done.",
        "Actually, never mind.",
        "They don't need a class.",
        "Only the storage backend changes.",
        "It works without the flag.",
        "Can you ensure that all is green?",
        "ValueError: this queryset may only be used in a subquery",
        "So we can't really prevent that.",
        "The current behaviour may not match what was meant.",
    ],
)
def test_statements_are_no_directives(text: str) -> None:
    assert not is_directive(text)

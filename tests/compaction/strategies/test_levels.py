"""Fidelity levels: which block gets which, and that a second pass changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.compaction.levels import Levels, compact, level_of, newest_units, truncated
from ctxctl.compaction.options import CompactionOptions, LevelRule
from ctxctl.model.block import Block, Source
from ctxctl.model.edits import SUMMARY


def block(text: str, kind: str = "tool_result", tool: str | None = "Read", **more: Any) -> Block:
    return Block("1.0", kind, "tool", text, 1, 1, Source(1), tool, **more)


def test_the_first_rule_that_fits_holds() -> None:
    rules = (
        LevelRule("full", tool="Read", older_than=0),
        LevelRule("compact", kind="tool_result", older_than=5),
        LevelRule("truncate", kind="tool_result"),
    )
    assert level_of(rules, block("x"), 100) == "full"
    assert level_of(rules, block("x", tool="Bash"), 5) == "truncate"
    assert level_of(rules, block("x", tool="Bash"), 6) == "compact"
    assert level_of(rules, block("x", kind="assistant", tool=None), 99) == "full"


def test_a_truncated_text_says_how_much_was_there() -> None:
    text = "a" * 30_000 + "b" * 30_000
    short = truncated(text)
    assert short.startswith("aaa") and short.endswith("bbb") and "of 60000 characters" in short
    assert truncated(short) == short and len(short) < 1_200
    assert truncated("x" * 1_000) == "x" * 1_000


def test_a_compact_text_is_its_first_line_and_its_tool() -> None:
    short = compact(block("\n  first line \nsecond\n" + "x" * 59_978))
    assert short == "first line [Read, 60000 characters]"
    assert compact(block(short * 8)) != short
    assert compact(block("short")) == "short"


def test_what_was_truncated_keeps_its_size_when_it_gets_compact() -> None:
    assert compact(block(truncated("line\n" + "x" * 59_995))) == "line [Read, 60000 characters]"
    assert compact(block(compact(block("y" * 400)))) == compact(block("y" * 400))


@given(st.text(max_size=3_000), st.sampled_from(["tool_result", "assistant"]))
def test_shortening_twice_is_shortening_once(text: str, kind: str) -> None:
    once, twice = truncated(text), truncated(truncated(text))
    assert once == twice and len(once) <= len(text)
    small = compact(block(text, kind))
    assert len(small) <= 320 or small == text
    assert compact(block(small, kind)) == small


def test_defaults(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("the task " * 20)
    for n in range(30):
        session.say(
            f"step {n}\n" + "thinking aloud " * 30, ("Read", {"file_path": f"f{n}.py"}, f"head {n}\n" + "z" * 4_000)
        )
    session.user("go on")
    session.say("sure")
    scene = session.scene(0.01)
    carry_out(Levels(), scene)
    window = scene.window
    texts = {b: window.text(b) for b in window.entries}
    by = {session.blocks[b].id: t for b, t in texts.items()}
    results = [b for b in texts if session.blocks[b].kind == "tool_result"]
    assert texts[results[0]] == "head 0 [Read, 4007 characters]"
    assert texts[results[20]].endswith("z" * 400) and "of 4008 characters left out" in texts[results[20]]
    assert texts[results[-1]] == session.blocks[results[-1]].text, "the last 6 messages stay"
    assert by["1.0"].startswith("the task")
    assert texts[1].startswith("step 0 [assistant, ")
    assert all(
        texts[b] == session.blocks[b].text for b in texts if session.blocks[b].kind in ("tool_call", "user_message")
    )


def test_a_second_pass_changes_nothing(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("the task")
    for n in range(30):
        session.say("", ("Bash", {"command": f"make {n}"}, f"out {n}\n" + "z" * 3_000))
    scene = session.scene(0.01)
    assert carry_out(Levels(), scene)
    after = scene.window.tokens
    assert not carry_out(Levels(), scene).replaces and scene.window.tokens == after
    # and neither in a session that begins with what was left
    again = type(session)()
    again.user("the task")
    for n in range(30):
        number = next(
            b for b, blk in enumerate(session.blocks) if blk.kind == "tool_result" and f"make {n}" == blk.target
        )
        again.say("", ("Bash", {"command": f"make {n}"}, scene.window.text(number)))
    assert not carry_out(Levels(), again.scene(0.01)).replaces


def test_it_stops_at_the_target(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("the task")
    for n in range(30):
        session.say("", ("Bash", {"command": f"make {n}"}, "z" * 4_000))
    scene = session.scene(0.9)
    edits = carry_out(Levels(), scene)
    assert scene.over <= 0 and 1 <= len(edits.replaces) <= 5
    assert not carry_out(Levels(), scene)


def test_full_messages_and_rules_are_settings(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("the task")
    for n in range(6):
        session.say("", ("Bash", {"command": f"make {n}"}, "b" * 4_000), ("Read", {"file_path": f"{n}"}, "r" * 4_000))
    rules = (LevelRule("full", tool="Read"), LevelRule("compact"))
    scene = session.scene(0.01, CompactionOptions(levels=rules, full_messages=3))
    edits = carry_out(Levels(), scene)
    assert {session.blocks[c.block].tool_name for c in edits.replaces} == {"Bash"}
    assert len(edits.replaces) == 5, "all but the newest, which is among the last 3 messages"


def test_newest_messages_are_counted_as_the_provider_does(session: Any) -> None:
    session.user("the task")
    for n in range(4):
        session.say(f"say {n}", ("Read", {"file_path": f"{n}"}, f"out {n}"))
    window = session.window()
    assert newest_units(window, 0) == set()
    assert len(newest_units(window, 2)) == 2, "an answer (its text, and its call with the result)"
    assert len(newest_units(window, 99)) == 1 + 4 * 2


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_properties(sessions: Any, carry_out: Callable[..., Any], data: st.DataObject) -> None:
    session = made(sessions, data)
    levels = st.sampled_from(["full", "truncate", "compact"])
    rule = st.builds(
        LevelRule,
        levels,
        st.integers(0, 10),
        st.sampled_from([None, "tool_result", "assistant", "user_message"]),
        st.sampled_from([None, "Bash"]),
    )
    options = CompactionOptions(
        levels=tuple(data.draw(st.lists(rule, max_size=4))), full_messages=data.draw(st.integers(0, 6))
    )
    scene = session.scene(data.draw(st.floats(0.01, 1.0)), options)
    carry_out(Levels(), scene)
    assert not carry_out(Levels(), scene).replaces


def made(sessions: Any, data: st.DataObject) -> Any:
    session = sessions()
    text = st.text(st.characters(codec="utf-8"), max_size=60)
    for _ in range(data.draw(st.integers(1, 3))):
        session.user(data.draw(text.filter(str.strip)))
        for _ in range(data.draw(st.integers(0, 12))):
            calls = [
                (
                    data.draw(st.sampled_from(["Bash", "Read"])),
                    {"x": data.draw(text)},
                    data.draw(text) * data.draw(st.integers(0, 60)),
                )
                for _ in range(data.draw(st.integers(0, 3)))
            ]
            session.say(data.draw(text), *calls, thinking=data.draw(st.sampled_from(["", "hm" * 50])))
    return session


def test_the_level_summary_is_one_typed_summary(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("the task")
    for n in range(40):
        session.say(f"step {n}", ("Bash", {"command": f"make {n}"}, "b" * 2_000))
    options = CompactionOptions(levels=(LevelRule("summary", older_than=20), LevelRule("truncate", kind="tool_result")))
    scene = session.scene(0.3, options)
    edits = carry_out(Levels(), scene)
    (summary,) = [c for c in edits.replaces if c.kind == SUMMARY]
    assert summary.text.startswith("[summary]") and "Never touch the public API." in summary.text
    assert session.blocks[summary.block].turn == 1
    gone = [b for b in range(len(session.blocks)) if b not in scene.window.entries]
    assert {session.blocks[b].turn for b in gone if session.blocks[b].role == "assistant"} == set(range(1, 20)), (
        "whole answers"
    )
    assert not carry_out(Levels(), scene)

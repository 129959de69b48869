"""delegate: which parts of a session are subtasks, what a helper is told, and what takes their place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.budgets.cost import Prices
from ctxctl.compaction.delegate import Delegate, find_subtasks
from ctxctl.compaction.subtasks import LOOP, PARALLEL, STATE
from ctxctl.model.edits import SUMMARY

GOLDEN = Path(__file__).with_name("golden")
PRICES = Prices(3.0, 0.3, 3.75, 6.0, 15.0)


def body(n: int, lines: int = 60) -> str:
    return "\n".join(f"def helper_{n}_{k}(value): return value + {n}{k}" for k in range(lines))


def look(session: Any, n: int, *, used: bool = False) -> None:
    name = "core/used_part.py" if used else f"src/part_{n}.py"
    session.say("", ("Read", {"file_path": name}, body(n)))


def search(session: Any, calls: int = 12) -> None:
    session.user("Find out where durations are rounded, and fix it")
    session.say("I look for the place where durations are rounded.", ("Grep", {"pattern": "round"}, body(99, 20)))
    for n in range(calls - 1):
        look(session, n)
    session.say("The rounding is in src/clock.py:41, in `to_text`; nothing else rounds.")


def rest(session: Any, turns: int = 8) -> None:
    """What comes after: the recent part."""
    for n in range(turns):
        session.say(f"edit {n}", ("Edit", {"file_path": "src/clock.py", "new_string": f"x = {n}"}, "ok " * 300))


def parallel(session: Any) -> None:
    session.user("List the licence of each package")
    for n in range(6):
        session.say(
            "" if n else "I read each licence.", ("Read", {"file_path": f"pkg_{n}/LICENSE"}, "MIT License\n" + body(n))
        )
    session.say("All are MIT.")


def browser(session: Any) -> None:
    session.user("Find the price on the page")
    for n, tool in enumerate(
        ("browser_navigate", "browser_click", "browser_snapshot", "browser_click", "browser_snapshot")
    ):
        session.say(
            "" if n else "I open the shop.", (f"mcp__playwright__{tool}", {"ref": f"e{n}"}, f"- page {n}\n" + body(n))
        )
    session.say("It costs 12 euros.")


def failures(session: Any) -> None:
    session.user("Look at the services")
    for n in range(9):
        error = n % 3 == 0
        text = f"Traceback\nConnectionError: port {n}000 refused\n" + body(n, 30) if error else body(n)
        session.say("", ("Bash", {"command": f"cat logs/{n}.log"}, text), error=error)
    session.say("Three are down.")


CASES = {"search": search, "parallel": parallel, "browser": browser, "failures": failures}


@pytest.mark.parametrize("case", CASES)
def test_golden(session: Any, carry_out: Callable[..., Any], case: str) -> None:
    """The subtasks found, the brief, and the window afterwards. `CTXCTL_GOLDEN=1` writes the files anew."""
    CASES[case](session)
    rest(session)
    scene = session.scene(0.3, recall="ctxctl recall s.db")
    (task,) = find_subtasks(scene, PRICES)
    carry_out(Delegate(), scene)
    window = scene.window
    lines = [
        f"{task.kind}: {task.calls} calls, turns {task.turns}, {task.tokens} -> {task.result_tokens} tokens, "
        f"break-even at {task.cost.break_even} calls",
        f"own {task.cost.own}, delegated {task.cost.delegated}; USD {task.cost.usd_own:.4f}, "
        f"{task.cost.usd_delegated:.4f}; {task.cost.seconds:g} s",
        "--- brief",
        task.brief,
        "--- window",
    ]
    for number in sorted(window.entries, key=window.place)[:6]:
        text = window.text(number)
        lines += [f"[{session.blocks[number].kind}] {text if window.entries[number].replaced else text[:60]}"]
    found = "\n".join(lines) + "\n"
    path = GOLDEN / f"delegate-{case}.txt"
    if os.environ.get("CTXCTL_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def test_the_trace_goes_and_the_result_stays(session: Any, carry_out: Callable[..., Any]) -> None:
    search(session)
    rest(session)
    scene = session.scene(0.3)
    before = scene.window.tokens
    edits = carry_out(Delegate(), scene)
    (change,) = edits.replaces
    assert change.kind == SUMMARY and change.tokens <= 1_000
    assert before - scene.window.tokens > 5_000
    for n in range(11):
        assert f"src/part_{n}.py" in change.text
    assert "helper_3_40" not in change.text, "no trace that was not condensed"
    texts = [scene.window.text(b) for b in scene.window.entries]
    assert any("src/clock.py:41" in text for text in texts), "the conclusion stays as it was"


@pytest.mark.parametrize(("calls", "found"), [(LOOP - 1, 0), (LOOP, 1)])
def test_a_few_steps_are_done_in_place(session: Any, calls: int, found: int) -> None:
    session.user("look")
    for n in range(calls):
        tool = ("Read", {"file_path": f"f{n}.py"}) if n % 2 else ("Grep", {"pattern": f"p{n}"})
        session.say("", (*tool, body(n)))
    session.say("done")
    rest(session)
    assert len(find_subtasks(session.scene(0.3))) == found
    assert STATE < PARALLEL < LOOP


def test_what_was_used_later_stays(session: Any, carry_out: Callable[..., Any]) -> None:
    search(session)
    session.say("Now I change helper_4_17 as well.", ("Edit", {"file_path": "src/part_4.py"}, "ok"))
    rest(session)
    scene = session.scene(0.3)
    (task,) = find_subtasks(scene)
    kept = {session.blocks[b].target for u in task.kept for b in scene.window.units[u].blocks}
    assert kept == {"src/part_4.py"}
    carry_out(Delegate(), scene)
    assert any(scene.window.text(b) == body(4) for b in scene.window.entries)


def test_what_only_the_conclusion_names_is_condensed(session: Any) -> None:
    search(session)
    rest(session)
    (task,) = find_subtasks(session.scene(0.3))
    assert task.kept == ()


def test_an_edit_or_a_prompt_ends_a_loop(session: Any) -> None:
    session.user("look")
    for n in range(14):
        look(session, n)
        if n == 6:
            session.say("", ("Edit", {"file_path": "other.py"}, "ok"))
    rest(session)
    tasks = find_subtasks(session.scene(0.3))
    assert [task.calls for task in tasks] == [7, 7] and {task.kind for task in tasks} == {"parallel"}


def test_a_pinned_prompt_ends_a_loop(session: Any) -> None:
    session.user("look")
    for n in range(12):
        look(session, n)
        if n == 5:
            session.user("<preserve>Only read tests.</preserve>")
    session.say("done")
    rest(session)
    tasks = find_subtasks(session.scene(0.3))
    assert [task.calls for task in tasks] == [6, 6]


def test_the_recent_part_is_left_alone(session: Any) -> None:
    session.user("look")
    for n in range(12):
        look(session, n)
    scene = session.scene(0.4)
    for task in find_subtasks(scene):
        assert scene.window.unit_of[-1] not in task.units and len(task.units) < 12


def test_reasoning_goes_with_its_calls(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("look")
    for n in range(12):
        session.say(
            "", ("Read", {"file_path": f"f{n}.py"}, body(n)), ("Grep", {"pattern": f"x{n}"}, body(n)), thinking="hm"
        )
    session.say("done")
    rest(session)
    scene = session.scene(0.3)
    carry_out(Delegate(), scene)
    there = [b for b in scene.window.entries if session.blocks[b].turn <= 12 and session.blocks[b].kind == "thinking"]
    assert all(scene.window.entries[b].replaced for b in there), "one may carry the summary, no other is left"


def test_a_text_only_agent(session: Any, carry_out: Callable[..., Any]) -> None:
    session.user("look")
    for n in range(12):
        session.say(f"THOUGHT: next\n\n```bash\ncat src/p{n}.py\n```")
        session.add("tool_result", body(n), session.message(), tool_name="bash")
    session.say("THOUGHT: now\n\n```bash\nsed -i s/a/b/ f\n```")
    session.add("tool_result", "ok", session.message(), tool_name="bash")
    rest(session)
    scene = session.scene(0.3)
    (task,) = find_subtasks(scene)
    assert task.calls == 12
    edits = carry_out(Delegate(), scene)
    assert "cat src/p3.py" in edits.replaces[0].text


def test_a_second_pass_changes_nothing(session: Any, carry_out: Callable[..., Any]) -> None:
    search(session)
    parallel(session)
    rest(session)
    strategy, scene = Delegate(), session.scene(0.05)
    assert len(carry_out(strategy, scene).replaces) == 2
    assert not carry_out(strategy, scene) and not Delegate().plan(scene)


def test_the_largest_saving_comes_first_and_it_stops_at_the_target(session: Any, carry_out: Callable[..., Any]) -> None:
    parallel(session)
    search(session, 20)
    rest(session)
    scene = session.scene(0.7)
    (change,) = carry_out(Delegate(), scene).replaces
    assert "durations are rounded" in change.text and scene.over <= 0


class Writer:
    """A model with one answer."""

    def __init__(self, text: str | None) -> None:
        self.text, self.asked = text, []

    def write(self, task: str, goal: str, material: str, most: int) -> str | None:
        self.asked.append((task, material, most))
        return self.text


def test_a_model_writes_the_report(session: Any, carry_out: Callable[..., Any]) -> None:
    search(session)
    rest(session)
    writer = Writer("It is rounded in one place.")
    (change,) = carry_out(Delegate(), session.scene(0.3, helper=writer)).replaces
    assert change.text == "[summary] turns 1-12: search and read, 12 calls\nIt is rounded in one place."
    ((task, material, most),) = writer.asked
    assert task == "delegate" and most <= 2_000
    assert all(body(n) in material for n in range(11)), "all of the trace"


def test_a_model_that_fails_leaves_the_extract(session: Any, carry_out: Callable[..., Any]) -> None:
    search(session)
    rest(session)
    (change,) = carry_out(Delegate(), session.scene(0.3, helper=Writer(None))).replaces
    assert "src/part_3.py" in change.text


def test_break_even_a_few_steps_do_it_yourself_dozens_delegate(session: Any) -> None:
    session.user("x" * 40_000)
    search(session, 40)
    rest(session, 20)
    (task,) = find_subtasks(session.scene(0.3), PRICES)
    cost = task.cost
    assert cost.break_even is not None and 1 < cost.break_even < 40
    assert cost.delegated < cost.own and cost.usd_own is not None and cost.usd_delegated is not None
    assert cost.usd_delegated < cost.usd_own and cost.seconds == 40
    assert find_subtasks(session.scene(0.3))[0].cost.usd_own is None
    cold = find_subtasks(session.scene(0.3), PRICES, hit_rate=0.0)[0].cost
    assert cold.usd_own > cost.usd_own


def test_nothing_to_do(session: Any) -> None:
    session.user("hello")
    session.say("hi")
    assert not Delegate().plan(session.scene(0.1)) and find_subtasks(session.scene(0.1)) == []

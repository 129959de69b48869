"""The cascade: which steps a utilization allows, in which order, and that each is measured (C7, C8, C14)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from ctxctl.compaction.base import STRATEGIES
from ctxctl.compaction.cascade import Cascade, allowed_steps, freed_by
from ctxctl.compaction.clean import Cleaner
from ctxctl.compaction.options import CompactionOptions
from ctxctl.model.edits import Edits

STEPS = ("tool-results", "progressive", "conversation")


@pytest.mark.parametrize(
    ("utilization", "highest"),
    [
        (0.0, None),
        (0.74, None),
        (0.7499, None),
        (0.75, "tool-results"),
        (0.84, "tool-results"),
        (0.85, "progressive"),
        (0.90, "progressive"),
        (0.92, "conversation"),
        (0.949, "conversation"),
        (0.95, "delegate"),
        (1.2, "delegate"),
    ],
)
def test_the_highest_step_of_a_utilization(utilization: float, highest: str | None) -> None:
    found = allowed_steps(CompactionOptions(), utilization)
    assert (found[-1] if found else None) == highest
    order = ["tool-results", "progressive", "conversation", "delegate"]
    assert found == order[: len(found)]


def test_the_settings_set_the_steps() -> None:
    options = CompactionOptions(cascade={0.9: "tool-results", 0.2: "conversation"})
    assert allowed_steps(options, 0.3) == ["conversation"]
    assert allowed_steps(options, 0.95) == ["conversation", "tool-results"]


def long_session(session: Any, rounds: int = 20) -> Any:
    session.user("task")
    for n in range(rounds):
        text = "\n".join(f"file_{n}_{k} = {n * 100 + k}" for k in range(150))
        session.say(f"step {n} " + "w " * 50, ("Read", {"path": f"f{n}.py"}, text))
    session.user("go on")
    session.say("yes")
    return session


def test_the_cheapest_first_and_no_more_than_it_takes(session: Any) -> None:
    long_session(session)
    for share, expected in ((0.8, 1), (0.4, 1), (0.02, 3)):
        scene = session.scene(share)
        before = scene.window.tokens
        steps = Cascade(CompactionOptions(), str).run(STEPS, scene)
        assert [step.strategy for step in steps] == list(STEPS[:expected])
        assert steps[0].before == before and steps[-1].after == scene.window.tokens
        assert all(a.after == b.before for a, b in pairwise(steps))
        for step in steps:
            assert step.after < step.before and step.units > 0 and step.fallback is None
        assert scene.window.tokens <= scene.target or share == 0.02
        scene.window.check()


def test_a_window_that_fits_is_left_alone(session: Any) -> None:
    long_session(session)
    assert Cascade(CompactionOptions(), str).run(STEPS, session.scene(1.0)) == []


def test_a_step_that_frees_little_is_not_worth_the_cache(session: Any) -> None:
    """Unless it is all that is missing."""
    long_session(session, 3)
    scene = session.scene(0.001)
    most = scene.window.tokens
    assert Cascade(CompactionOptions(), str).run(STEPS, scene, minimum=most - 10) == []
    near = session.scene(float(most - 5))
    assert Cascade(CompactionOptions(), str).run(("tool-results",), near, minimum=10**6)


def test_no_step_frees_what_it_does_not_have(session: Any) -> None:
    long_session(session)
    for name, strategy in STRATEGIES:
        scene = session.scene(0.2)
        edits = strategy().plan(scene)
        freed = freed_by(scene.window, edits)
        before = scene.window.tokens
        scene.window.apply(edits)
        assert before - scene.window.tokens == freed >= 0, name
    assert freed_by(session.window(), Edits()) == 0


def test_what_is_written_new_is_clean(session: Any) -> None:
    key = "AKIA" + "Q3EGRIJQK5EXAMPL"
    session.user("task")
    for n in range(10):
        session.say(f"key_{n}", ("Bash", {"command": "env"}, f"AWS_KEY={key}\n" + f"line_{n} = {n}\n" * 200))
    session.user("go on")
    for share in (0.6, 0.3, 0.1):
        scene = session.scene(share)
        cleaner = Cleaner()
        steps = Cascade(CompactionOptions(), cleaner).run(STEPS, replace(scene, clean=cleaner))
        new = [scene.window.text(b) for b in scene.window.entries if scene.window.entries[b].replaced]
        assert steps and new and not any(key in text for text in new)
        scene.window.check()


def test_a_step_says_what_is_to_be_noted(session: Any) -> None:
    long_session(session)
    session.facts = replace(session.facts, learnings=("the cache is cold at first",))
    scene = session.scene(0.1)
    before = scene.window.tokens
    (step,) = Cascade(CompactionOptions(), str).run(("notes",), scene)
    assert any(note.text == "the cache is cold at first" for note in step.edits.entries)
    assert scene.window.tokens < before

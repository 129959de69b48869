"""The mark of summaries can be set, and what carries either mark is merged and never nested (requirement C9)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.compaction.base import STRATEGIES
from ctxctl.compaction.cascade import Cascade
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.base import Setting
from ctxctl.eviction.specs import policy_of
from ctxctl.facts.condense import extract
from ctxctl.facts.parse import parse
from ctxctl.model.block import Block, Source
from ctxctl.model.edits import SUMMARY

MARKS = ("[summary]", "[摘要]")
OTHER = "[摘要]"


def told(session: Any) -> Any:
    session.user("the task: be fast")
    for n in range(20):
        text = "\n".join(f"src/file_{n}_{k}.py = {n * 100 + k}" for k in range(120))
        session.say(f"step {n} is done, next is {n + 1}", ("Read", {"path": f"f{n}.py"}, text))
    session.user("go on")
    session.say("yes")
    return session


def texts_of(scene: Any) -> list[str]:
    window = scene.window
    return [window.text(n) for n, entry in window.entries.items() if entry.replaced]


@pytest.mark.parametrize("name", [name for name, _ in STRATEGIES])
def test_every_text_that_stands_for_more_has_the_mark(session: Any, name: str) -> None:
    """And is counted as it is written, whatever strategy wrote it."""
    ours = told(session).scene(0.3, CompactionOptions(mark=OTHER))
    plain = session.scene(0.3, CompactionOptions())
    for scene in (ours, plain):
        Cascade(scene.options, str).run((name,), scene)
    assert not any("[summary]" in text for text in texts_of(ours))
    assert any(t.startswith("[summary]") for t in texts_of(plain)) == any(t.startswith(OTHER) for t in texts_of(ours))
    window = ours.window
    for number, entry in window.entries.items():
        if entry.replaced:
            kind = SUMMARY if window.unit_of[number] in window.summaries else window.block(number).kind
            assert entry.tokens == ours.count(entry.text, kind)
    window.check()


@pytest.mark.parametrize("name", ["conversation", "extractive", "notes"])
@pytest.mark.parametrize("first", MARKS)
@pytest.mark.parametrize("second", MARKS)
def test_compacted_again_it_is_merged(session: Any, name: str, first: str, second: str) -> None:
    """As a session is that goes on from what was written."""
    scene = told(session).scene(0.3, CompactionOptions(mark=first))  # type: ignore[arg-type]
    Cascade(scene.options, str).run((name,), scene)
    (made,) = (text for text in texts_of(scene) if text.startswith(first))
    facts = parse(made)
    assert facts is not None and facts.turns[1] > 1
    later = type(session)()
    later.add("summary", made, later.message())
    for n in range(20, 40):
        text = "\n".join(f"src/file_{n}_{k}.py = {n * 100 + k}" for k in range(120))
        later.say(f"step {n} is done", ("Read", {"path": f"f{n}.py"}, text))
    later.user("go on")
    again = later.scene(0.2, CompactionOptions(mark=second))  # type: ignore[arg-type]
    again.window.summaries.add(0)
    Cascade(again.options, str).run((name,), again)
    texts = [again.window.text(n) for n in again.window.entries]
    assert sum(mark in text for text in texts for mark in MARKS) == 1
    (merged,) = (text for text in texts if text.startswith(second))
    assert sum(merged.count(mark) for mark in MARKS) == 1


def test_a_single_block_that_shrinks() -> None:
    block = Block("1.0", "tool_result", "tool", "a line of the log\n" * 90, 3, 1, Source(1))
    assert extract(block).startswith("[summary] turn 3, ")
    made = extract(block, mark=OTHER)
    assert made.startswith("[摘要] turn 3, ") and extract(block, made) == made
    setting = Setting(1000, mark=OTHER)
    assert policy_of("summarize", setting).setting.mark == OTHER


@pytest.mark.parametrize("mark", ["[zusammenfassung]", "", "summary"])
def test_other_marks_would_not_be_recognized(mark: str) -> None:
    import msgspec

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"mark": mark}, CompactionOptions)

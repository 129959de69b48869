"""What the manager reports at a turn may be older than its window is: the window says what is there."""

from __future__ import annotations

from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.block import Block, Source
from ctxctl.model.edits import Drop, Edits, Replace
from ctxctl.model.unit import Grouper, Reference, Trace, Turn
from ctxctl.simulate.residence import Residence


def three() -> Trace:
    """Three texts that hold an atom each, and a call that uses all of them."""
    names = ["a/one.py", "b/two.py", "c/three.py"]
    blocks = [Block(f"{n}.0", "assistant", "assistant", name, 1, 1, Source(n + 1)) for n, name in enumerate(names)]
    grouper = Grouper()
    pinned = pins_of(EvictionOptions())
    for block in blocks:
        grouper.add(block, 10, 1, pinned(block))
    used = tuple(Reference(1, a, "path", 1.0, a, True, name) for a, name in enumerate(names))
    turns = [Turn(1, (0, 1, 2), references=used)]
    atoms = [(0,), (1,), (2,)]
    return Trace(None, "made", None, blocks, [10] * 3, grouper.unit_of, grouper.units, turns, 0, atoms, names)


def test_what_left_and_came_in_again_is_there() -> None:
    trace = three()
    manager = ContextWindowManager(1000, policy="unbounded", trace=trace)
    residence = Residence(trace, manager.window)
    for number in range(3):
        manager.enter(number)
    residence.arrived(range(3))
    manager.window.apply(Edits([Drop(0, (0,), 10, "")]))
    manager.restore(0)
    residence.edited(Edits([Drop(0, (0,), 10, "")]))
    assert residence.judge(trace.turns[0]).misses == 0


def test_what_was_cut_down_and_then_left_is_gone() -> None:
    trace = three()
    manager = ContextWindowManager(1000, policy="unbounded", trace=trace)
    residence = Residence(trace, manager.window)
    for number in range(3):
        manager.enter(number)
    residence.arrived(range(3))
    change, drop = Replace(1, "short, of b/two.py", 5, ""), Drop(1, (1,), 5, "")
    manager.window.apply(Edits(replaces=[change]))
    manager.window.apply(Edits([drop]))
    residence.edited(Edits([drop], [change]))
    assert residence.judge(trace.turns[0]).misses == 1


def test_the_last_text_in_its_place_counts() -> None:
    trace = three()
    manager = ContextWindowManager(1000, policy="unbounded", trace=trace)
    residence = Residence(trace, manager.window)
    for number in range(3):
        manager.enter(number)
    residence.arrived(range(3))
    first, second = Replace(2, "of c/three.py", 5, ""), Replace(2, "of nothing", 4, "")
    for change in (first, second):
        manager.window.apply(Edits(replaces=[change]))
    residence.edited(Edits(replaces=[second, first]))
    assert residence.judge(trace.turns[0]).misses == 1

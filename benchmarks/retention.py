"""Needed-retention: of what later turns of recorded sessions used, how much each way of compacting still holds.

    python benchmarks/retention.py PATH... [--to 0.5] [--cuts 3]

Each session is cut at several turns; the window there is compacted to the same share of its tokens each way,
and by two controls: plain truncation (the oldest leave) and first lines. What the turns after the cut use of content
from before it (paths, identifiers, numbers, whole lines, the same call again) is then looked for in what is left,
unless it came in again in between. Weights and classes are those of `ctxctl.trace.references`. Tokens saved stand
beside.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ctxctl.compaction.base import Scene
from ctxctl.compaction.cascade import Cascade
from ctxctl.compaction.clean import Cleaner
from ctxctl.compaction.options import CompactionOptions
from ctxctl.errors import CtxctlError
from ctxctl.eviction.base import Policy, Setting
from ctxctl.eviction.hybrid import Hybrid
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.facts.session import SessionFacts
from ctxctl.manager.compactor import Compactor
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.manager.session import DEFAULT_STEPS
from ctxctl.model.unit import Trace
from ctxctl.model.window import Window
from ctxctl.settings.load import load, model_table
from ctxctl.tokens.estimate import counter_for
from ctxctl.trace.atoms import HEADLINE, lines, words
from ctxctl.trace.build import build_trace

WAYS = {
    "cascade (default)": DEFAULT_STEPS,
    "tool-results": ("tool-results",),
    "progressive": ("progressive",),
    "conversation": ("conversation",),
    "extractive": ("extractive",),
    "notes": ("notes",),
    "levels": ("levels",),
    "delegate": ("delegate",),
    "eviction (hybrid)": (),
    "first lines": ("first-line",),
    "truncation": (),
}
"""Strategies that are compared; what one leaves above the target is evicted, the oldest first for `truncation`."""
SHORTEST = 20


class Oldest(Hybrid):
    """Plain truncation: the oldest leave."""

    name = "oldest"

    def score(self, window: Window, units: object) -> list[float]:
        return [float(u) for u in units]  # type: ignore[attr-defined]


def window_at(trace: Trace, turn: int) -> ContextWindowManager:
    """A manager that has seen a recorded session up to a turn, and evicted nothing."""
    manager = ContextWindowManager(10**9, policy="unbounded", trace=trace, explain=False)
    foreign = {b for cut in trace.recorded.values() for b in cut.summary}
    for step in trace.turns[:turn]:
        if step.leaving:
            manager.leave(step.leaving)
        for block in step.arrivals:
            if block not in foreign:
                manager.enter(block)
        manager.turn_start()
        manager.turn_end(credits=step.credits, output=step.output)
    return manager


def needed(trace: Trace, manager: ContextWindowManager, turn: int) -> dict[int, tuple[str, float]]:
    """What turns after a cut use of the window there: atom to class and weight of its first use."""
    there = {a for b in manager.window.entries if b >= 0 for a in trace.atoms[b]}
    fixed = {
        a
        for b in manager.window.entries
        if b >= 0 and trace.units[trace.unit_of[b]].pinned is not None
        for a in trace.atoms[b]
    }
    found: dict[int, tuple[str, float]] = {}
    came: set[int] = set()
    for step in trace.turns[turn:]:
        for block in step.arrivals:
            came.update(trace.atoms[block])
        for reference in step.references:
            a = reference.atom
            if a in there and a not in came and a not in fixed and a not in found and reference.kind in HEADLINE:
                found[a] = (reference.kind, reference.weight)
    return found


def held(trace: Trace, window: Window, numbers: dict[str, int]) -> set[int]:
    """Atoms that a window holds."""
    found: set[int] = set()
    for number, entry in window.entries.items():
        if entry.replaced:
            text = entry.text or ""
            found.update(numbers[w] for w in (words(text) | lines(text)) & numbers.keys())
        elif number >= 0:
            found.update(trace.atoms[number])
    return found


def compacted(trace: Trace, manager: ContextWindowManager, way: str, share: float, turn: int) -> tuple[Window, int]:
    """The window after compaction to a share of its tokens; with the tokens before."""
    window = manager.window.copy()
    before = window.tokens
    base = window.overhead + window.hidden + sum(window.fixed.values())
    target = base + round((before - base) * share)
    count = counter_for(trace.model, trace.counter, trace.ratio)
    options, eviction = CompactionOptions(), EvictionOptions()
    facts = SessionFacts()
    for step in trace.turns[:turn]:
        for block in step.arrivals:
            facts.see(trace.blocks[block], block)
    cleaner = Cleaner()
    setting = Setting(before, count, eviction)
    policy: Policy = Oldest(setting) if way == "truncation" else Hybrid(setting)
    compactor = Compactor(window, Cascade(options, cleaner), policy, before)
    compactor.run(
        WAYS[way],
        lambda: Scene(window, target, before, count, facts.summary, options, None, cleaner),
        target,
    )
    return window, before


def cuts_of(trace: Trace, count: int) -> Iterator[int]:
    """Turns to cut at: evenly spread, with something before and after."""
    total = len(trace.turns)
    for k in range(1, count + 1):
        turn = total * k // (count + 1)
        if turn >= 3 and turn < total:
            yield turn


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--to", type=float, default=0.5, help="share of what may leave that stays (0.5)")
    parser.add_argument("--cuts", type=int, default=3, help="cuts per session (3)")
    parser.add_argument("--ways", default="", help="only these, with commas")
    told = parser.parse_args()
    table = model_table(load(None))
    eviction = EvictionOptions()
    weight: dict[str, float] = defaultdict(float)
    kept: dict[str, float] = defaultdict(float)
    classes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    tokens: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    ways = [w for w in WAYS if not told.ways or w in told.ways.split(",")]
    sessions = points = 0
    files = sorted(f for p in told.paths for f in (p.rglob("*") if p.is_dir() else [p]) if f.is_file())
    for file in files:
        try:
            trace = build_trace(str(file), table, pins_of(eviction)).trace
        except CtxctlError:
            continue
        if len(trace.turns) < SHORTEST:
            continue
        sessions += 1
        numbers = {name: a for a, name in enumerate(trace.names) if name}
        for turn in cuts_of(trace, told.cuts):
            manager = window_at(trace, turn)
            wanted = needed(trace, manager, turn)
            if not wanted:
                continue
            points += 1
            for way in ways:
                window, before = compacted(trace, manager, way, told.to, turn)
                there = held(trace, window, numbers)
                tokens[way][0] += before
                tokens[way][1] += window.tokens
                for a, (kind, value) in wanted.items():
                    weight[way] += value
                    kept[way] += value * (a in there)
                    classes[way][kind][0] += value
                    classes[way][kind][1] += value * (a in there)
    if not points:
        sys.exit("no session with at least 20 turns there")
    kinds = sorted({k for way in ways for k in classes[way]})
    print(f"{sessions} sessions, {points} cuts, to {told.to:.0%} of what may leave\n")
    print("| strategy | needed-retention | " + " | ".join(kinds) + " | tokens saved |")
    print("|---|---|" + "---|" * (len(kinds) + 1))
    for way in sorted(ways, key=lambda w: -(kept[w] / weight[w])):
        parts = [f"{classes[way][k][1] / classes[way][k][0]:.2f}" if classes[way][k][0] else "-" for k in kinds]
        saved = 1 - tokens[way][1] / tokens[way][0]
        print(f"| {way} | {kept[way] / weight[way]:.3f} | " + " | ".join(parts) + f" | {saved:.0%} |")


if __name__ == "__main__":
    main()

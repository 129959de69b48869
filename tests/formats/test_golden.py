"""Golden cases: one small transcript each, and beside it what a reader must make of it, worked out by hand.

`<case>.expect.json` leaves out what is empty. Its rows:

blocks: id, kind, role, turn, exchange, tool, thread, first 40 characters. live, cleared, superseded, failed: block ids.
usage: turn, thread, input, output, cache read, cache write, reasoning, context, line, and "unreported".
compactions: kind, turn, line, trigger, before, after, kept blocks, cleared blocks.
branches: leaf, live, messages, turns. conversations: line, id, messages, blocks. overflows: turn, line.
dropped: block, and the blocks that leave the window before it. order is compared where the case states it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ctxctl
from ctxctl.formats import FORMATS
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import total_usage

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = sorted(GOLDEN.glob("*/*.expect.json"))
ENDINGS = (".jsonl", ".traj.json", ".json", ".jsonl.zst")
LISTS = (
    *("blocks", "live", "cleared", "superseded", "failed", "media", "usage", "costs"),
    *("compactions", "branches", "overflows", "conversations", "dropped", "diagnostics"),
)
COUNTS = ("records", "exchanges", "errors", "unreachable", "inherited")


def input_of(expected: Path) -> Path:
    case = expected.name.removesuffix(".expect.json")
    return next(path for ending in ENDINGS if (path := expected.with_name(case + ending)).is_file())


def facts(t: Transcript) -> dict[str, Any]:
    """What a golden file states, as the transcript has it."""
    ids = [b.id for b in t.blocks]

    def named(numbers: Any) -> list[str]:
        return [ids[n] for n in numbers]

    counts = {name: getattr(t, name) for name in COUNTS}
    counts |= {"user": t.messages.user, "assistant": t.messages.assistant, "sidechain": t.messages.sidechain}
    return {
        "format": t.format,
        "id": t.id,
        "main": t.main,
        "model": t.model,
        "window": t.window,
        "threads": list(t.threads),
        "complete": t.complete,
        "blocks": [[b.id, b.kind, b.role, b.turn, b.exchange, b.tool_name, b.thread, b.text[:40]] for b in t.blocks],
        "live": named(t.live),
        "cleared": named(sorted(t.cleared)),
        "superseded": named(sorted(t.superseded)),
        "failed": [b.id for b in t.blocks if b.is_error],
        "media": [[b.id, b.media.width, b.media.height] for b in t.blocks if b.media is not None],
        "order": list(t.order),
        "usage": [
            [u.turn, u.thread, u.input, u.output, u.cache_read, u.cache_write, u.reasoning, u.context, u.line]
            + ([] if u.reported else ["unreported"])
            for u in t.usage
        ],
        "costs": [u.cost for u in t.usage] if any(u.cost is not None for u in t.usage) else [],
        "compactions": [
            [c.kind, c.turn, c.line, c.trigger, c.before, c.after, named(c.kept), named(c.cleared)]
            for c in t.compactions
        ],
        "branches": [[b.leaf, b.live, b.messages, sorted(t.usage[i].turn for i in b.calls)] for b in t.branches],
        "overflows": [[o.turn, o.line] for o in t.overflows],
        "conversations": [[c.line, c.id, c.messages, ids[c.first : c.last]] for c in t.conversations],
        "stated": {ids[block]: tokens for block, tokens in t.stated.items()},
        "dropped": [[ids[at] if at < len(ids) else None, named(gone)] for at, gone in t.dropped],
        "diagnostics": [[d.code, d.line] for d in t.diagnostics],
        "counts": counts,
    }


def completed(expected: dict[str, Any]) -> dict[str, Any]:
    """A golden file with what it leaves out."""
    empty: dict[str, Any] = {name: [] for name in LISTS}
    plain = {"id": None, "main": "main", "model": None, "window": None, "threads": ["main"], "complete": True}
    counts = dict.fromkeys((*COUNTS, "user", "assistant", "sidechain"), 0)
    return empty | plain | {"stated": {}} | expected | {"counts": counts | expected.get("counts", {})}


def test_there_are_cases_of_every_format() -> None:
    assert {path.parent.name for path in EXPECTED} == {name for name, _ in FORMATS}
    assert len(EXPECTED) >= 45


@pytest.mark.parametrize("path", EXPECTED, ids=lambda p: f"{p.parent.name}-{p.name.removesuffix('.expect.json')}")
def test_golden(path: Path) -> None:
    expected = completed(json.loads(path.read_bytes()))
    found = facts(ctxctl.read(str(input_of(path))))
    if "order" not in expected:
        del found["order"]
    for name, value in expected.items():
        assert found[name] == value, name
    assert set(found) == set(expected)


@pytest.mark.parametrize("path", EXPECTED, ids=lambda p: f"{p.parent.name}-{p.name.removesuffix('.expect.json')}")
def test_ids_are_unique_and_live_blocks_exist(path: Path) -> None:
    t = ctxctl.read(str(input_of(path)))
    ids = [b.id for b in t.blocks]
    assert len(set(ids)) == len(ids)
    assert len(set(t.live)) == len(t.live) and set(t.live) <= set(range(len(ids)))
    assert not set(t.live) & t.superseded
    assert all(b.turn >= 1 and b.exchange >= 0 for b in t.blocks)


@pytest.mark.parametrize("path", EXPECTED, ids=lambda p: f"{p.parent.name}-{p.name.removesuffix('.expect.json')}")
def test_written_back_unchanged(path: Path) -> None:
    source = input_of(path)
    assert b"".join(ctxctl.write(ctxctl.read(str(source)))) == source.read_bytes()


@pytest.mark.parametrize("path", EXPECTED, ids=lambda p: f"{p.parent.name}-{p.name.removesuffix('.expect.json')}")
def test_reading_usage_alone_gives_the_same_sums(path: Path) -> None:
    whole = ctxctl.read(str(input_of(path)))
    quick = ctxctl.scan(str(input_of(path)), lambda block: None, usage_only=True)
    assert total_usage(quick.usage, quick.inherited) == total_usage(whole.usage, whole.inherited)

    def contexts(t: Transcript) -> list[tuple[str, int | None, int]]:
        return [(u.thread, u.context, u.line) for u in t.usage if u.reported]

    assert contexts(quick) == contexts(whole)
    assert (quick.id, quick.model, quick.window) == (whole.id, whole.model, whole.window)
    full = [(c.line, c.before, c.after) for c in whole.compactions if c.kind == "full"]
    assert [(c.line, c.before, c.after) for c in quick.compactions if c.kind == "full"] == full

"""Writing compacted transcripts in tests: drafts, random outcomes, and what a reader must find afterwards."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctxctl
from ctxctl.formats import FORMATS, scan
from ctxctl.formats.draft import Draft
from ctxctl.formats.store import LineStore
from ctxctl.model.block import Block
from ctxctl.model.edits import Change, Outcome
from ctxctl.model.transcript import Transcript
from ctxctl.model.unit import group_blocks

# no package here: test modules find these helpers by this name
sys.modules["rewrites"] = sys.modules[__name__]

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
CASES = Path(__file__).parent / "golden_rewrite"
NOW = "2026-04-01T12:00:00.000Z"
NEW_ID = "019d4a00-0000-7000-8000-000000000001"


@dataclass
class Scanned:
    """A transcript with its window and its lines."""

    path: Path
    transcript: Transcript
    blocks: dict[int, Block]
    store: LineStore

    def draft(self, outcome: Outcome, **options: Any) -> Draft:
        return Draft(self.transcript, self.store, self.blocks, outcome, NEW_ID, NOW, 1000, 400, **options)

    def rewrite(self, outcome: Outcome, **options: Any) -> bytes:
        draft = self.draft(outcome, **options)
        return b"".join(FORMATS.get(self.transcript.format).rewrite(draft))


def scanned(path: Path, format_name: str | None = None) -> Scanned:
    store = LineStore(str(path))
    blocks: list[Block] = []
    t = scan(str(path), blocks.append, companions=False, store=store, format_name=format_name)
    return Scanned(path, t, {n: blocks[n] for n in t.live}, store)


def units_of(s: Scanned) -> list[tuple[int, ...]]:
    """The window's units as numbers of blocks, without what may not leave."""
    numbers = list(s.transcript.live)
    blocks = [s.blocks[n] for n in numbers]
    grouper = group_blocks(blocks, [1] * len(blocks), [b.turn for b in blocks])
    users = [i for i, b in enumerate(blocks) if b.kind == "user_message"]
    fixed = {*users[:1], *users[-1:]}
    found = []
    for unit in grouper.units:
        kinds = {blocks[i].kind for i in unit.blocks}
        if not kinds & {"system", "tool_definitions"} and not fixed & set(unit.blocks) and not unit.pending:
            found.append(tuple(numbers[i] for i in unit.blocks))
    return found


def random_outcome(s: Scanned, seed: int) -> Outcome:
    """Units that leave, results with placeholders, and at most one summary in place of a run of units."""
    rng = random.Random(seed)
    units = units_of(s)
    share = rng.choice([0.0, 0.2, 0.6, 0.95])
    gone = {n for unit in units if rng.random() < share for n in unit}
    changed: dict[int, Change] = {}
    if units and rng.random() < 0.7:
        a, b = sorted((rng.randrange(len(units)), rng.randrange(len(units))))
        run = [n for unit in units[a : b + 1] for n in unit]
        first = min(run, key=s.transcript.live.index)
        gone |= set(run)
        gone.discard(first)
        changed[first] = Change(f"[summary] turns {a} to {b} é\n世界 \ud83d", True)
    for n, block in s.blocks.items():
        if n in gone or n in changed:
            continue
        if block.kind == "tool_result" and rng.random() < 0.3:
            changed[n] = Change(f"[cleared: {block.tool_name or 'tool'} 日本, {n} tokens]")
        elif block.kind in ("assistant", "user_message") and block.text and rng.random() < 0.05:
            changed[n] = Change(f"[summary] turn {block.turn}, {n}")
    live = tuple(n for n in s.transcript.live if n not in gone)
    return Outcome(live, frozenset(gone), changed)


def clean(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def stays(s: Scanned, outcome: Outcome) -> list[int]:
    """What a reader must find, as numbers: all that is live but blank texts, and reasoning that lost what it led to."""
    if not outcome:
        return list(outcome.live)
    summaries = {n for n, change in outcome.changed.items() if change.summary}
    spoken = ("user_message", "assistant", "summary")
    blocks = s.blocks
    live = [
        n
        for n in outcome.live
        if n in outcome.changed or blocks[n].kind not in spoken or blocks[n].media or blocks[n].text.strip()
    ]
    there = set(live)
    if s.transcript.format == "codex":
        lost = {n for n in live if blocks[n].kind == "thinking" and _lost(s, n, there, outcome)}
    else:
        kinds: dict[int, set[str]] = {}
        before: dict[int, set[str]] = {}
        for n, block in blocks.items():
            before.setdefault(block.message, set()).add(block.kind)
            if n in there and n not in summaries:
                kinds.setdefault(block.message, set()).add(block.kind)
        alone = {m for m, found in kinds.items() if found == {"thinking"} and before[m] != {"thinking"}}
        lost = {n for n in live if blocks[n].message in alone}
    return [n for n in live if n in summaries or n not in lost]


def _lost(s: Scanned, number: int, live: set[int], outcome: Outcome) -> bool:
    window = list(s.transcript.live)
    for n in window[window.index(number) + 1 :]:
        if s.blocks[n].kind != "thinking":
            made = n in outcome.changed and outcome.changed[n].summary
            return s.blocks[n].response_id is not None and (n not in live or made)
    return False


def texts(s: Scanned, outcome: Outcome, numbers: Sequence[int]) -> list[str]:
    return [clean(outcome.changed[n].text if n in outcome.changed else s.blocks[n].text) for n in numbers]


def check(s: Scanned, outcome: Outcome, data: bytes, target: Path) -> Transcript:
    """Read what was written, and hold it against the outcome."""
    data.decode("utf-8", "strict")
    assert b"\r\n" not in data
    target.write_bytes(data)
    t = ctxctl.read(str(target), format_name=s.transcript.format)
    found = [t.blocks[n] for n in t.live]
    numbers = stays(s, outcome)
    summaries = {n for n in numbers if n in outcome.changed and outcome.changed[n].summary}
    want = texts(s, outcome, [n for n in numbers if n not in summaries])
    made = texts(s, outcome, sorted(summaries))
    got = [b.text for b in found if b.text not in made and not b.text.startswith("[summary] Earlier messages were")]
    assert got == want
    for text in made:
        assert [(b.role, b.kind) for b in found if b.text == text] == [("user", "summary")]
    for n in summaries:
        _placed(s, outcome, n, numbers, [b.text for b in found])
    paired(found)
    return t


def _placed(s: Scanned, outcome: Outcome, number: int, numbers: list[int], found: list[str]) -> None:
    """A summary stands behind all messages in front of its own, and no further back than the results that follow."""
    at = found.index(clean(outcome.changed[number].text))
    own = s.blocks[number].message
    place = {n: position for position, n in enumerate(s.transcript.live)}
    others = [n for n in numbers if s.blocks[n].message != own]
    before = sum(1 for n in others if place[n] < place[number])
    after = [n for n in others if place[n] > place[number]]
    run = 0
    for n in after:
        if s.blocks[n].kind not in ("tool_result", "image", "document") or s.blocks[n].call_id is None:
            break
        run += 1
    same = sum(1 for n in numbers if s.blocks[n].message == own) - 1
    assert before <= at <= before + same + run + 1


def paired(blocks: Sequence[Block]) -> None:
    """No result without its call; results right behind the message that calls."""
    calls: dict[str, int] = {}
    for position, block in enumerate(blocks):
        if block.kind == "tool_call" and block.call_id is not None:
            calls[block.call_id] = position
        elif block.kind == "tool_result" and block.call_id is not None and block.role in ("tool", "user"):
            if block.call_id not in calls:
                raise AssertionError(f"{block.call_id} has no call")
            between = blocks[calls[block.call_id] + 1 : position]
            assert not any(b.kind == "summary" for b in between)


def real(*folders: str) -> list[Path]:
    """Handed sessions of these folders, and our own samples and golden files of the formats of that name."""
    handed = [p for f in folders for p in sorted((TRANSCRIPTS / f).glob("*")) if p.is_file()]
    own = [p for f in folders for p in sorted((Path(__file__).parent / "golden" / f).glob("*"))]
    return [*handed, *(p for p in own if not p.name.endswith(".expect.json"))]


def golden(format_name: str) -> list[Path]:
    """Golden cases of a format: input, edits and output in one file."""
    return sorted(CASES.glob(f"{format_name}_*.txt"))


def run_golden(case: Path, folder: Path) -> tuple[str, str]:
    """What a golden case states as output, and what is written."""
    options, source, edits, wanted = case.read_text(encoding="utf-8").split("\n---\n")
    name, *flags = options.split()
    path = folder / ("case.json" if source.startswith(("{\n", "[\n")) else "case.jsonl")
    path.write_bytes(source.encode() + b"\n")
    s = scanned(path, name)
    ids = {block.id: number for number, block in s.blocks.items()}
    stated = json.loads(edits)
    gone = frozenset(ids[i] for i in stated.get("gone", []))
    changed = {ids[i]: Change(*value) for i, value in stated.get("changed", {}).items()}
    live = tuple(n for n in s.transcript.live if n not in gone)
    return wanted, s.rewrite(Outcome(live, gone, changed), **dict.fromkeys(flags, True)).decode()

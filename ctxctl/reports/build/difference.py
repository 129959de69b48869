"""The report and the data of `diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ctxctl.facts.condense import first_line
from ctxctl.guard.sanitize import sanitize
from ctxctl.health.difference import Difference, Side
from ctxctl.model.finding import Gate
from ctxctl.reports.document import Column, Fact, Report, Table
from ctxctl.reports.plot import plural
from ctxctl.trace.retention import Kept

LISTED = 10
LARGEST = 20
SHORT = 120

NAMES = {"paths": "Paths", "identifiers": "Identifiers", "numbers": "Numbers", "errors": "Error names"}


def difference_data(item: Difference, gates: Sequence[Gate], texts: list[dict[str, Any]] | None) -> dict[str, Any]:
    """The result, as scripts read it. texts: of lost blocks, with --verbatim."""
    changes, before, after = item.changes, item.before, item.after
    lost = list(changes.lost)
    by_kind: dict[str, dict[str, int]] = {}
    by_tool: dict[str, dict[str, int]] = {}
    for n in lost:
        block, size = before.blocks[n], before.sizes[n]
        _count(by_kind, block.kind, size)
        if block.tool_name and block.kind == "tool_result":
            _count(by_tool, block.tool_name, size)
    data: dict[str, Any] = {
        "before": _side(before),
        "after": _side(after),
        "identical": item.identical,
        "tokens": {
            "before": before.tokens,
            "after": after.tokens,
            "ratio": before.tokens / after.tokens if after.tokens else None,
            "counter": before.encoding,
        },
        "blocks": {
            "kept": len(changes.kept),
            "replaced": len(changes.replaced),
            "lost": len(lost),
            "added": len(changes.added),
            "lost_tokens": sum(before.sizes[n] for n in lost),
            "by_kind": by_kind,
            "by_tool": by_tool,
            "largest": [_block(before, n) for n in largest(item)[:LARGEST]],
            "replacements": [
                {**_block(before, a), "after_tokens": after.sizes[b], "by": after.blocks[b].id}
                for a, b in changes.replaced
            ],
        },
        "retention": {name: _kept(kept) for name, kept in item.retention.items()}
        | {"decisions": _kept(item.decisions), "todos": _kept(item.todos)},
        "pinned": _kept(item.pins),
        "user_messages": {
            "total": item.user_messages.total,
            "verbatim": item.user_messages.kept,
            "changed": [
                {"block": b.id, "line": b.source.line, "text": _line(b.text)}
                for b in (before.blocks[n] for n in item.changed_prompts)
            ],
        },
        "invented": {"count": item.retention.invented_count}
        | {name: [_safe(atom) for atom in atoms] for name, atoms in item.retention.invented.items()},
        "fidelity": asdict(item.fidelity),
        "gates": [asdict(gate) for gate in gates],
    }
    if texts is not None:
        data["verbatim"] = texts
    return data


def largest(item: Difference) -> list[int]:
    """Numbers of the lost blocks, the largest first."""
    return sorted(item.changes.lost, key=lambda n: (-item.before.sizes[n], n))


def _count(table: dict[str, dict[str, int]], name: str, size: int) -> None:
    row = table.setdefault(name, {"blocks": 0, "tokens": 0})
    row["blocks"] += 1
    row["tokens"] += size


def _side(side: Side) -> dict[str, Any]:
    t = side.transcript
    return {
        "path": t.path,
        "format": t.format,
        "id": t.id,
        "model": t.model,
        "window_tokens": side.tokens,
        "file_tokens": side.file_tokens,
        "blocks": len(side.blocks),
    }


def _block(side: Side, n: int) -> dict[str, Any]:
    block = side.blocks[n]
    return {
        "block": block.id,
        "line": block.source.line,
        "kind": block.kind,
        "tool": block.tool_name,
        "target": None if block.target is None else _safe(block.target),
        "turn": block.turn,
        "tokens": side.sizes[n],
    }


def _kept(kept: Kept) -> dict[str, Any]:
    return {"kept": kept.kept, "total": kept.total, "share": kept.share, "lost": [_safe(text) for text in kept.lost]}


def difference_report(item: Difference) -> Report:
    """What a person reads."""
    before, after, changes = item.before, item.after, item.changes
    title = f"{before.transcript.path} -> {after.transcript.path}"
    subtitle = " -> ".join(dict.fromkeys((before.transcript.format, after.transcript.format)))
    share = f"{after.tokens / before.tokens:.0%} of what it was" if before.tokens else ""
    facts = [
        Fact("Window", f"{before.tokens:,} -> {after.tokens:,} tokens", share),
        Fact("File", f"{before.file_tokens:,} -> {after.file_tokens:,} tokens"),
    ]
    if item.identical:
        facts.append(Fact("Difference", "none: both windows hold the same blocks in the same order"))
        return Report("diff", title, subtitle, tuple(facts))
    counts = (
        f"{len(changes.kept):,} kept, {len(changes.replaced):,} replaced, {len(changes.lost):,} lost, "
        f"{len(changes.added):,} added"
    )
    facts.append(Fact("Blocks", counts))
    facts.append(_told("User messages", item.user_messages, "word for word"))
    fidelity = item.fidelity
    if fidelity.score is not None:
        said = f"{fidelity.score:.0%}: {fidelity.answered:,} of {plural(fidelity.asked, 'question')} still answered"
        facts.append(Fact("Fidelity", said))
    if item.pins.total:
        facts.append(_told("Pinned texts", item.pins, "there", "red" if item.pins.lost else None))
    return Report("diff", title, subtitle, tuple(facts), tuple(t for t in _tables(item) if t.rows))


def _told(label: str, kept: Kept, how: str, level: str | None = None) -> Fact:
    return Fact(label, f"{kept.kept:,} of {kept.total:,} {how}" if kept.total else "none", level=level)


def _tables(item: Difference) -> list[Table]:
    before, after = item.before, item.after
    rows = []
    named = [(NAMES[name], kept) for name, kept in item.retention.items()]
    for name, kept in [*named, ("Decisions", item.decisions), ("To-do items", item.todos)]:
        if kept.total:
            lost = ", ".join(_line(text) for text in kept.lost[:5])
            rows.append((name, f"{kept.kept:,}", f"{kept.total:,}", f"{kept.share:.0%}", lost))
    numbers = tuple(Column(t, "right") for t in ("Kept", "Of", "Share"))
    tables = [Table("What is still there", (Column(""), *numbers, Column("Lost", flexible=True)), tuple(rows))]
    asked = tuple((one.kind, one.question, one.answer) for one in item.fidelity.lost[:LISTED])
    more = len(item.fidelity.lost) - LISTED
    tables.append(
        Table(
            "Questions that can't be answered any more",
            (Column("About"), Column("Question", flexible=True), Column("Answer before", flexible=True)),
            asked,
            f"{more:,} more; --json lists them" if more > 0 else "",
        )
    )
    columns = (Column("Tokens", "right"), Column("Kind"), Column("Tool"), Column("About", flexible=True))
    shown = largest(item)
    tables.append(
        Table(
            "Largest blocks that are gone",
            (Column("Block", "right"), *columns),
            tuple(_row(before, n) for n in shown[:LISTED]),
            f"{len(shown) - LISTED:,} more; --verbatim prints them" if len(shown) > LISTED else "",
        )
    )
    replaced = sorted(item.changes.replaced, key=lambda pair: after.sizes[pair[1]] - before.sizes[pair[0]])
    tables.append(
        Table(
            "Blocks that something else stands for",
            (Column("Block", "right"), *columns, Column("Now", "right")),
            tuple((*_row(before, a), f"{after.sizes[b]:,}") for a, b in replaced[:LISTED]),
            f"{len(replaced) - LISTED:,} more" if len(replaced) > LISTED else "",
        )
    )
    prompts = [before.blocks[n] for n in item.changed_prompts]
    tables.append(
        Table(
            "User messages that are no longer there word for word",
            (Column("Block", "right"), Column("Text", flexible=True)),
            tuple((b.id, _line(b.text)) for b in prompts[:LISTED]),
            f"{len(prompts) - LISTED:,} more" if len(prompts) > LISTED else "",
        )
    )
    pins = item.pins.lost
    tables.append(
        Table("Pinned texts that are lost", (Column("Text", flexible=True),), tuple((_line(p),) for p in pins))
    )
    made_up = tuple(
        (NAMES[name], ", ".join(map(_safe, atoms[:LISTED]))) for name, atoms in item.retention.invented.items() if atoms
    )
    tables.append(
        Table(
            "New in the second window, and not in the first",
            (Column(""), Column("Found", flexible=True)),
            made_up,
            "of a summary these may be made up" if made_up else "",
        )
    )
    return tables


def _line(text: str) -> str:
    return _safe(first_line(text, 2 * SHORT))[:SHORT]


def _safe(text: str) -> str:
    """A text of the transcript, without credentials."""
    return sanitize(text, tool_output=False).text


def _row(side: Side, n: int) -> tuple[str, ...]:
    block = side.blocks[n]
    about = _safe(block.target) if block.target else _line(block.text)
    return (block.id, f"{side.sizes[n]:,}", block.kind, block.tool_name or "", about)

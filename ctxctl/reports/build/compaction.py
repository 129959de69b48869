"""The report and the data of `compact`."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict
from typing import Any

from ctxctl.compaction.replacing import LEAST_SUMMARY
from ctxctl.manager.result import Compaction
from ctxctl.reports.document import Column, Fact, Finding, Level, Report, Table

LISTED = 12


def settings_data(settings: Any, **asked: Any) -> dict[str, Any]:
    """What decided. asked: what the command line said beside the settings."""
    return {**asked, "compaction": settings.compaction, "eviction": settings.eviction}


def compaction_data(item: Compaction) -> dict[str, Any]:
    """The result of one file, as scripts read it."""
    done = item.done.compacted
    helper = item.helper
    even = done.break_even(*item.rates) if item.rates is not None else None
    retention = None
    if item.retention is not None:
        retention = {name: kept.share for name, kept in item.retention.items()} | item.kept_facts()
    return {
        "path": item.path,
        "format": item.done.live.transcript.format,
        "strategy": ",".join(item.goal.steps) or None,
        "steps": [
            {
                "strategy": step.strategy,
                "before_tokens": step.before,
                "after_tokens": step.after,
                "units": step.units,
                "fallback": step.fallback,
            }
            for step in done.steps
        ],
        "before_tokens": done.before,
        "after_tokens": item.after,
        "reported_tokens": item.done.live.reported,
        "ratio": done.before / done.after if done.after else None,
        "target": item.goal.tokens,
        "target_met": item.met,
        "changed": item.changed,
        "proved": item.proved is not None,
        "counter": {
            "name": item.done.live.counter,
            "exact": item.done.live.exact,
            "ratio": item.done.live.ratio,
        },
        "floor": {"tokens": done.floor, "causes": dict(done.causes), "too_large": list(done.too_large)},
        "kept_turns": len({item.done.live.blocks[n].turn for n in item.done.outcome.live}),
        "evicted": [_evicted(item, drop) for drop in done.evicted],
        "replaced": _replaced(item),
        "pinned": _pinned(item),
        "cache": {"prefix_kept": done.prefix_kept, "break_even_turns": even},
        "retention": retention,
        "invented": None if item.retention is None else item.retention.invented_count,
        "sanitized": dict(item.counts),
        "normalised": asdict(item.normalised),
        "llm": None
        if helper is None
        else {
            "calls": helper.calls,
            "failures": helper.failures,
            "fallback": helper.fallback,
            "seconds": helper.seconds,
        },
        "session_id": item.session_id,
        "output": item.output,
        "backup": item.backup,
        "recall_id": item.recall_id,
        "written": list(item.written),
        "validators": [asdict(o) for o in item.contract],
        "diagnostics": [asdict(note) for note in item.notes],
    }


def _evicted(item: Compaction, drop: Any) -> dict[str, Any]:
    window = item.done.live.window
    unit = window.units[drop.unit]
    return {
        "unit": unit.id,
        "kind": unit.kind,
        "tool": unit.tool_name,
        "tokens": drop.tokens,
        "turn": unit.turn,
        "reason": drop.reason,
        "score": drop.score,
    }


def _replaced(item: Compaction) -> list[dict[str, Any]]:
    blocks, window = item.done.live.window.blocks, item.done.live.window
    last: dict[int, dict[str, Any]] = {}
    for step in item.done.compacted.steps:
        for change in step.edits.replaces:
            block = blocks[change.block]
            last[change.block] = {
                "block": block.id,
                "kind": block.kind,
                "tool": block.tool_name,
                "turn": block.turn,
                "before_tokens": window.entries[change.block].tokens,
                "after_tokens": change.tokens,
                "strategy": step.strategy,
                "reason": change.reason,
                "summary": change.kind is not None,
            }
        for drop in step.edits.drops:
            for number in drop.blocks:
                block = blocks[number]
                last[number] = {
                    "block": block.id,
                    "kind": block.kind,
                    "tool": block.tool_name,
                    "turn": block.turn,
                    "before_tokens": window.entries[number].tokens,
                    "after_tokens": 0,
                    "strategy": step.strategy,
                    "reason": drop.reason,
                    "summary": False,
                }
    return [last[number] for number in sorted(last)]


def _pinned(item: Compaction) -> list[dict[str, Any]]:
    window = item.done.live.window
    return [
        {"unit": window.units[u].id, "kind": window.units[u].kind, "reason": window.units[u].pinned, "tokens": tokens}
        for u, tokens in sorted(window.fixed.items())
    ]


def compaction_report(item: Compaction) -> Report:
    """What a person reads."""
    done, live = item.done.compacted, item.done.live
    after = item.after
    subtitle = " · ".join(part for part in (live.transcript.format, live.transcript.model, live.transcript.id) if part)
    facts = [Fact("Window", f"{done.before:,} -> {after:,} tokens", _share(done.before, after))]
    proved = item.proved is not None and not item.broken
    note = "read back from the written file" if proved else "as planned" if item.changed else ""
    facts.append(
        Fact(
            "Target",
            f"{item.goal.tokens:,} tokens",
            "met" + (f", {note}" if note else "") if item.met else "not met: nothing was written",
            None if item.met else "red",
        )
    )
    if item.met and not item.changed:
        facts.append(Fact("Done", _why_nothing(item)))
    if item.changed and item.rates is not None:
        even = done.break_even(*item.rates)
        kept = f"{done.prefix_kept:,} tokens of the cached prefix stay"
        facts.append(Fact("Cache", kept, "" if even is None else f"paid back after {even:,.1f} further calls"))
    if item.broken:
        facts.append(Fact("Done", "nothing was written: the contract does not hold", "", "red"))
    if item.retention is not None and item.changed:
        parts = [f"{name} {kept.share:.0%}" for name, kept in item.retention.items() if kept.share is not None]
        parts += [f"{name} {share:.0%}" for name, share in item.kept_facts().items() if share is not None]
        facts.append(Fact("Retained", ", ".join(parts) or "nothing to retain", "verbatim, of the window before"))
    taken = {k.replace("_", " "): n for k, n in item.counts.items() if n}
    if taken:
        facts.append(Fact("Redacted", ", ".join(f"{n} {k}" for k, n in taken.items()), "in what was written new"))
    if item.helper is not None:
        facts.append(
            Fact("Model", f"{item.helper.calls} calls, {item.helper.failures} failed", f"{item.helper.seconds:.1f} s")
        )
    pinned = [row for row in _pinned(item) if row["reason"] in ("rule", "preserve", "pinned")]
    if pinned:
        tokens = sum(row["tokens"] for row in pinned)
        facts.append(Fact("Pinned", f"{len(pinned)} units of {tokens:,} tokens", "by rule or <preserve>"))
    if item.output is not None:
        facts.append(Fact("Output", item.output))
    if item.backup is not None:
        facts.append(Fact("Backup", item.backup))
    return Report(
        "compact",
        item.path,
        subtitle,
        tuple(facts),
        tuple(_tables(item)),
        (),
        tuple(_findings(item)),
        tuple(_next(item)),
    )


def _why_nothing(item: Compaction) -> str:
    done = item.done.compacted
    if item.declined and item.rates is not None:
        even = done.break_even(*item.rates) or 0
        return f"nothing: breaking the cached prefix would take {even:,.0f} further calls to pay back (--to N does it)"
    if done.before <= item.goal.tokens:
        return "nothing: the window is within the target"
    return "nothing: no step would make it smaller"


def _share(before: int, after: int) -> str:
    return f"{after / before:.0%} of what it was" if before else ""


def _tables(item: Compaction) -> list[Table]:
    done = item.done.compacted
    tables = []
    if done.steps or done.evicted:
        rows = [
            (s.strategy, f"{s.before:,}", f"{s.after:,}", f"{s.before - s.after:,}", str(s.units)) for s in done.steps
        ]
        if done.evicted:
            left = done.steps[-1].after if done.steps else done.before
            rows.append(("evicted", f"{left:,}", f"{done.after:,}", f"{left - done.after:,}", str(len(done.evicted))))
        columns = (Column("Step"), *(Column(t, "right") for t in ("Before", "After", "Freed", "Units")))
        tables.append(Table("Steps", columns, tuple(rows)))
        by_kind: Counter[tuple[str, str]] = Counter()
        freed: Counter[tuple[str, str]] = Counter()
        for row in _replaced(item):
            by_kind[row["kind"], row["tool"] or ""] += 1
            freed[row["kind"], row["tool"] or ""] += row["before_tokens"] - row["after_tokens"]
        shown = sorted(by_kind, key=lambda key: -freed[key])
        if shown:
            tables.append(
                Table(
                    "What was replaced",
                    (
                        Column("Kind"),
                        Column("Tool", flexible=True),
                        Column("Blocks", "right"),
                        Column("Freed", "right"),
                    ),
                    tuple((k, t, f"{by_kind[k, t]:,}", f"{freed[k, t]:,}") for k, t in shown[:LISTED]),
                    f"{len(shown) - LISTED} more" if len(shown) > LISTED else "",
                )
            )
    if not item.met:
        tables.append(
            Table(
                "What can't leave",
                (Column("Cause"), Column("Tokens", "right")),
                tuple((cause, f"{tokens:,}") for cause, tokens in done.causes),
            )
        )
    return tables


def _findings(item: Compaction) -> list[Finding]:
    found = []
    for step in item.done.compacted.steps:
        if step.fallback is not None:
            found.append(
                Finding("warning", "fallback", f"{step.strategy}: the extractive summary was used: {step.fallback}")
            )
    for step in item.done.compacted.steps:
        for change in step.edits.replaces:
            if change.kind is not None and change.tokens < LEAST_SUMMARY < (step.before - step.after) // 4:
                message = f"the summary has only {change.tokens} tokens: most of the facts did not fit"
                least = item.after + LEAST_SUMMARY * 2
                found.append(Finding("warning", "short_summary", message, f"--to {least} or more leaves room for them"))
    for outcome in item.contract:
        if not outcome.ok:
            level: Level = "critical" if outcome.required else "warning"
            found.append(Finding(level, "contract", f"{outcome.kind} {outcome.name!r} failed: {outcome.detail}"))
    for note in item.notes:
        found.append(Finding("info", note.code, note.message, line=note.line))
    return found


def _next(item: Compaction) -> list[str]:
    if not item.met:
        return [f"give a target of at least {item.after + 2 * LEAST_SUMMARY:,} tokens, or unpin something"]
    if item.broken:
        return ["pin what the contract demands (--pin), or give a larger target"]
    if item.output is None:
        return [item.command] if item.changed else []
    if item.output == "-":
        return []
    steps = []
    output = shlex.quote(item.output)
    before = item.backup or item.path
    if item.recall_id is not None:
        steps.append(f"ctxctl recall {output} --list   (what was replaced)")
        steps.append(f"ctxctl recall --undo {output} -o FILE   (the original, byte for byte)")
    if item.changed and before != "-":
        steps.append(f"ctxctl diff {shlex.quote(before)} {output}   (what was lost)")
    if item.done.live.transcript.format == "claude-code" and item.session_id and item.changed and not item.backup:
        steps.append(f"claude --resume {item.session_id}   (once it lies in the project's folder under that name)")
    return steps

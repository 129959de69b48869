"""The overview over several analyzed transcripts."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ctxctl.pressure.analysis import Analysis
from ctxctl.reports.build.analysis_data import total_data
from ctxctl.reports.document import Column, Fact, Report, Table
from ctxctl.reports.plot import compact, sparkline

SPARK = 12


def overview_report(
    analyses: Sequence[tuple[Analysis, float | None]],
    failed: int,
    skipped: Sequence[tuple[str, str]],
    prices_of: str | None,
) -> Report:
    """One line per transcript, the fullest first, and the sums."""
    total = total_data(analyses, failed, skipped)
    # what all paths share would push the figures off the screen
    shared = os.path.commonpath([a.transcript.path for a, _ in analyses]) if len(analyses) > 1 else ""
    prefix = shared + os.sep if len(shared) > 1 else ""
    ordered = sorted(analyses, key=lambda item: -(item[0].peak.tokens if item[0].peak else 0))
    return Report(
        "analyze",
        f"{len(analyses):,} transcripts",
        facts=tuple(_facts(total, _paid(analyses), prices_of)),
        tables=(
            Table(
                "By transcript, fullest first",
                (
                    Column("transcript", flexible=True),
                    Column("turns", "right"),
                    Column("peak", "right"),
                    Column("full", "right"),
                    Column("now", "right"),
                    Column("total", "right"),
                    Column("cost", "right"),
                    Column("curve"),
                ),
                tuple(_row(analysis, cost, prefix) for analysis, cost in ordered),
                f"paths are below {prefix}" if prefix else "",
            ),
        ),
    )


def _paid(analyses: Sequence[tuple[Analysis, float | None]]) -> dict[str, float]:
    """USD as recorded, else at list prices; and how many transcripts have neither."""
    paid = {"recorded": 0.0, "listed": 0.0, "unknown": 0.0}
    for analysis, cost in analyses:
        if analysis.usage.cost is not None:
            paid["recorded"] += analysis.usage.cost
        elif cost is not None:
            paid["listed"] += cost
        elif analysis.usage.requests:
            paid["unknown"] += 1
    return paid


def _facts(total: dict[str, object], paid: dict[str, float], prices_of: str | None) -> list[Fact]:
    usage = total["usage"]
    assert isinstance(usage, dict)
    facts = [Fact("Usage", f"{usage['total']:,} tokens in {usage['requests']:,} calls")]
    if paid["recorded"] or paid["listed"]:
        parts = [f"${paid['recorded']:,.2f} as recorded"] if paid["recorded"] else []
        parts += [f"${paid['listed']:,.2f} at list prices of {prices_of}"] if paid["listed"] else []
        facts.append(
            Fact(
                "Cost",
                ", ".join(parts),
                f"{paid['unknown']:.0f} transcripts have no known price" * (paid["unknown"] > 0),
            )
        )
    facts.append(Fact("Turns", f"{total['turns']:,}, {total['compactions']:,} compactions, {total['spikes']:,} spikes"))
    if total["failed"]:
        facts.append(Fact("Failed", f"{total['failed']:,} files, see the errors", level="critical"))
    if total["copied_calls"]:
        facts.append(Fact("Copies", f"{total['copied_calls']:,} calls stand in several files; they count once"))
    return facts


def _row(analysis: Analysis, cost: float | None, prefix: str) -> tuple[str, ...]:
    peak, now = analysis.peak, analysis.context.tokens
    share = f"{peak.utilization:.0%}" if peak is not None and peak.utilization is not None else "?"
    recorded = analysis.usage.cost
    paid = recorded if recorded is not None else cost
    return (
        analysis.transcript.path.removeprefix(prefix),
        f"{analysis.turns:,}",
        compact(peak.tokens) if peak is not None else "-",
        share,
        compact(now) if now is not None else "-",
        compact(analysis.usage.total),
        f"${paid:,.2f}" if paid is not None else "?",
        sparkline(analysis.pressure.tokens, SPARK) if analysis.pressure else "",
    )

"""The overview over several analyzed transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.pressure.analysis import Analysis
from ctxctl.reports.build.paths import shared_folder
from ctxctl.reports.build.total import Total
from ctxctl.reports.document import Column, Fact, Report, Table
from ctxctl.reports.plot import compact, plural, sparkline

SPARK = 12


def overview_report(
    analyses: Sequence[tuple[Analysis, float | None]], total: Total, failed: int, prices_of: str | None
) -> Report:
    """One line per transcript with its cost at list prices, the fullest first, and the sums."""
    prefix = shared_folder([a.transcript.path for a, _ in analyses])
    ordered = sorted(analyses, key=lambda item: -(item[0].peak.tokens if item[0].peak else 0))
    return Report(
        "analyze",
        plural(len(analyses), "transcript"),
        facts=tuple(_facts(total, failed, prices_of)),
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


def _facts(total: Total, failed: int, prices_of: str | None) -> Iterator[Fact]:
    yield Fact("Usage", f"{total.usage.total:,} tokens in {plural(total.usage.requests, 'call')}")
    if total.recorded or total.listed:
        parts = [f"${total.recorded:,.2f} as recorded"] if total.recorded else []
        parts += [f"${total.listed:,.2f} at list prices of {prices_of}"] if total.listed else []
        yield Fact(
            "Cost",
            ", ".join(parts),
            f"no price is known of {plural(total.unpaid, 'transcript')}" if total.unpaid else "",
        )
    cuts, spikes = plural(total.compactions, "compaction"), plural(total.spikes, "spike")
    yield Fact("Turns", f"{total.turns:,}, {cuts}, {spikes}")
    if failed:
        yield Fact("Failed", f"{plural(failed, 'file')}, see the errors", level="critical")
    if total.copies:
        yield Fact("Copies", f"{total.copies:,} repeated in other files; each call counts once")


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
        compact(analysis.usage.total) if analysis.usage.requests else "-",
        f"${paid:,.2f}" if paid is not None else "?",
        sparkline(analysis.pressure.tokens, SPARK) if analysis.pressure else "",
    )

"""The JSON of `analyze`: names that scripts rely on, never renamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ctxctl.model.usage import UsageTotals
from ctxctl.pressure.analysis import Analysis
from ctxctl.pressure.gates import DAMAGE
from ctxctl.reports.build.total import Total


def analysis_data(analysis: Analysis, cost: float | None) -> dict[str, Any]:
    """`result` of one transcript. cost: USD at list prices, None when a price is unknown."""
    transcript = analysis.transcript
    read_all = analysis.counter is not None
    damaged = any(d.code in DAMAGE for d in analysis.diagnostics)
    return {
        "transcript": {
            "path": transcript.path,
            "format": transcript.format,
            "id": transcript.id,
            "model": transcript.model,
            "models": transcript.models,
            "records": transcript.records if read_all else None,
            "blocks": analysis.blocks,
            "turns": analysis.turns if read_all or analysis.turns else None,
            "exchanges": transcript.exchanges if read_all else None,
            "threads": transcript.threads if analysis.threads_known else None,
            "messages": {
                "main": {"user": transcript.messages.user, "assistant": transcript.messages.assistant},
                "sidechain": transcript.messages.sidechain,
            }
            if read_all
            else None,
            "compactions": transcript.full_compactions,
            "microcompactions": sum(1 for c in transcript.compactions if c.kind == "micro"),
            "branches": [{"leaf": b.leaf, "live": b.live, "messages": b.messages} for b in transcript.branches]
            if read_all
            else None,
            "unreachable": transcript.unreachable if read_all else None,
            "errors": transcript.errors,
            "overflows": [{"turn": o.turn, "line": o.line, "message": o.message} for o in transcript.overflows],
            # what was not read may be damaged
            "complete": transcript.complete if read_all or not transcript.complete else None,
            "damaged": damaged if read_all or damaged else None,
        },
        "window": analysis.window,
        "usage": {
            **_usage(analysis.usage),
            "by_thread": {name: _usage(totals) for name, totals in analysis.by_thread.items()}
            if analysis.threads_known
            else None,
            "by_branch": [{"leaf": leaf, "live": live, **_usage(totals)} for leaf, live, totals in analysis.by_branch],
        },
        "cost": cost,
        "context": {**asdict(analysis.context), "tokens": analysis.context.tokens},
        "counter": analysis.counter,
        "pressure": analysis.pressure,
        "events": [
            {"turn": e.turn, "from": e.before, "to": e.after, "direction": e.direction} for e in analysis.events
        ],
        "forecast": analysis.forecast,
        "peak": analysis.peak,
        "spikes": analysis.spikes,
        "composition": analysis.composition,
        "composition_all": analysis.composition_all
        and {"by_kind": analysis.composition_all.by_kind, "by_tool": analysis.composition_all.by_tool},
        "attention": analysis.attention,
        "curve": analysis.curve,
        "compactions": [
            {
                "turn": c.turn,
                "kind": c.kind,
                "line": c.line,
                "trigger": c.trigger,
                "before": c.before,
                "after": c.after,
            }
            for c in transcript.compactions
        ],
        "conversations": analysis.conversations,
        "diagnostics": analysis.diagnostics,
        **({"blocks": analysis.rows} if analysis.rows is not None else {}),
    }


def _usage(totals: UsageTotals) -> dict[str, Any]:
    values = asdict(totals)
    values["recorded_cost"] = values.pop("cost")
    return values


def total_data(
    analyses: Sequence[Analysis], total: Total, failed: int, skipped: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """`result.total` of several transcripts. Calls that stand in several files (forks, resumed copies) count once."""
    return {
        "files": len(analyses) + failed,
        "failed": failed,
        "skipped": len(skipped),
        "usage": _usage(total.usage),
        "copied_calls": total.copies,
        "cost": total.cost,
        "cost_complete": not total.unpriced,
        "turns": total.turns,
        "compactions": total.compactions,
        "spikes": total.spikes,
        "peak": max((a.peak.tokens for a in analyses if a.peak is not None), default=None),
    }

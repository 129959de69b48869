"""The JSON and the records of `simulate`: names that scripts rely on, never renamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ctxctl.model.result import Floor
from ctxctl.simulate.baseline import Baseline
from ctxctl.simulate.bill import Costs
from ctxctl.simulate.options import SweepOptions
from ctxctl.simulate.rows import Run
from ctxctl.simulate.sweep import Sweep
from ctxctl.simulate.total import SweepTotal, TotalRun

COLUMNS = (
    "path",
    "policy",
    "group",
    "capacity",
    "trigger",
    "target",
    "peak",
    "prompt_tokens",
    "evictions",
    "evicted_tokens",
    "compactions",
    "overflow_turns",
    "hits",
    "misses",
    "miss_ratio",
    "rmr",
    "step_miss",
    "refetched_tokens",
    "regret",
    "hit_rate",
    "break_even_turns",
    "cost_none",
    "cost_ideal",
    "cost_calibrated",
    "ratio_none",
    "ratio_ideal",
    "ratio_calibrated",
    "on_frontier",
    "unsupported",
)


NOT_REPLAYED = (
    "evictions",
    "evicted_tokens",
    "compactions",
    "compacted_tokens",
    "edits",
    "overflow_turns",
    "refetches",
)


def settings_data(settings: Any, options: SweepOptions) -> dict[str, Any]:
    """The resolved settings with what the command line asked for."""
    return {
        **asdict(settings),
        "simulate": {
            "policies": [spec.text for spec in options.policies],
            "presets": [preset.id for preset in options.presets],
            "windows": options.windows,
            "triggers": options.triggers,
            "targets": options.targets,
            "budget": options.share,
            "summary": options.summary,
            "cache": asdict(options.terms),
            "model": options.model,
            "refetch": options.refetch,
        },
    }


def _costs(costs: Costs) -> dict[str, float | None]:
    return asdict(costs)


def _floor(floor: Floor | None) -> dict[str, Any] | None:
    if floor is None:
        return None
    return {
        "turn": floor.turn,
        "tokens": floor.tokens,
        "causes": [{"cause": cause, "tokens": tokens} for cause, tokens in floor.causes],
    }


def run_data(run: Run, *, timeline: bool) -> dict[str, Any]:
    """One row. A run that was not replayed has `unsupported`, and null everywhere else."""
    if run.unsupported is not None:
        return {"policy": run.policy, "group": run.group, "capacity": run.capacity, "unsupported": run.unsupported}
    data: dict[str, Any] = {
        "policy": run.policy,
        "group": run.group,
        "settings": {"capacity": run.capacity, "trigger": run.trigger, "target": run.target},
        "capacity": run.capacity,
        "exact": run.exact,
        "replay": run.replay,
        "peak": run.peak,
        "prompt_tokens": run.prompt_tokens,
        "evictions": run.evictions,
        "evicted_tokens": run.evicted_tokens,
        "compactions": run.compactions,
        "compacted_tokens": run.compacted_tokens,
        "edits": run.edits,
        "overflow_turns": run.overflow_turns,
        "hits": run.hits,
        "misses": run.misses,
        "miss_ratio": run.miss_ratio,
        "rmr": run.rmr,
        "step_miss": run.step_miss,
        "refetched_tokens": run.refetched_tokens,
        "refetches": run.refetches,
        "refetch_cost": run.refetch_cost,
        "excess_rereads": run.excess_rereads,
        "first_uses": {"references": run.first_uses, "misses": run.first_misses},
        "regret": run.regret,
        "hit_rate": run.hit_rate,
        "break_even_turns": run.break_even_turns,
        "best_interval": run.best_interval,
        "cost": _costs(run.cost),
        "cost_ratio": _costs(run.cost_ratio),
        "on_frontier": run.on_frontier,
        "floor": _floor(run.floor),
        "warning": run.warning,
        "unsupported": None,
    }
    if run.policy == "optimum":  # it is computed, not replayed
        data |= dict.fromkeys(NOT_REPLAYED)
    if timeline:
        by_turn: dict[int, list[dict[str, Any]]] = {}
        for unit in run.evicted:
            by_turn.setdefault(unit.turn, []).append({k: v for k, v in asdict(unit).items() if k != "turn"})
        size = run.capacity or None
        data["steps"] = [
            {
                "turn": s.turn,
                "tokens": s.prompt,
                "utilization": s.prompt / size if size else None,
                "level": s.level,
                "action": s.action,
                "evicted": by_turn.get(s.turn, []),
                "compacted": s.shrunk,
                "cached": s.cached,
                "missed": s.missed,
                "refetched": s.refetched,
            }
            for s in run.steps
        ]
    return data


def baseline_data(baseline: Baseline) -> dict[str, Any]:
    """The recording, priced."""
    return {
        "turns": baseline.turns,
        "prompt_tokens": baseline.prompt_tokens,
        "cost": _costs(baseline.cost),
        "bill": baseline.bill,
        "recorded_cost": baseline.recorded_cost,
        "list_cost": baseline.list_cost,
        "replayed_cost": baseline.replayed_cost,
        "replay_error": baseline.replay_error,
        "model_error": baseline.model_error,
        "reported_calls": baseline.reported_calls,
        "total_error": baseline.total_error,
        "cause": baseline.cause,
        "efficiency": baseline.efficiency,
        "cache_fit": baseline.fit,
        "second_half": _halves(baseline.halves),
        "calibrated": baseline.calibrated,
        "prices": {"model": baseline.model, "date": baseline.date},
    }


def _halves(halves: tuple[float, float] | None) -> dict[str, float] | None:
    return None if halves is None else {"predicted_error": halves[0], "ideal_error": halves[1]}


def sweep_data(sweep: Sweep, *, timeline: bool) -> dict[str, Any]:
    """`result` of one transcript."""
    return {
        "transcript": {"path": sweep.path, "id": sweep.id, "model": sweep.model, "turns": sweep.turns},
        "window": {"tokens": sweep.window, "assumed": sweep.assumed},
        "multipliers": _multipliers(sweep.multipliers),
        "baseline": baseline_data(sweep.baseline),
        "runs": [run_data(r, timeline=timeline) for r in sweep.runs],
        "ceilings": [run_data(r, timeline=timeline) for r in sweep.ceilings],
        "optimum": sweep.optimum_note,
        "placebo": {"rate": sweep.placebo},
        "rereads": sweep.rereads,
    }


def _multipliers(pair: tuple[float, float] | None) -> dict[str, float] | None:
    return None if pair is None else {"read": pair[0], "write": pair[1]}


def total_data(total: SweepTotal, failed: int, skipped: int) -> dict[str, Any]:
    """`result.total` of several transcripts."""
    return {
        "files": total.sessions + failed,
        "failed": failed,
        "skipped": skipped,
        "multipliers": _multipliers(total.multipliers),
        "baseline": {
            "turns": total.turns,
            "prompt_tokens": total.prompt_tokens,
            "cost": _costs(total.cost),
            "bill": total.bill,
            "recorded_cost": total.recorded_cost,
            "replayed_cost": total.replayed_cost,
            "model_error": total.model_error,
            "priced": total.priced,
            "replay_error": total.replay_error,
            "total_error": total.total_error,
            "efficiency": total.efficiency,
            "second_half": _halves(total.halves),
            "calibrated": total.calibrated,
            "off": [{"path": o.path, "error": o.error, "cause": o.cause} for o in total.off],
        },
        "runs": [_total_run(r) for r in total.runs],
        "ceilings": [_total_run(r) for r in total.ceilings],
        "placebo": {"rate": total.placebo},
    }


def _total_run(total: TotalRun) -> dict[str, Any]:
    data = run_data(total.run, timeline=False)
    data["sessions"], data["priced"] = total.sessions, total.priced
    data["intervals"] = {
        name: None if span is None else {"low": span[0], "high": span[1]} for name, span in total.intervals.items()
    }
    return data


def records(sweeps: Sequence[Sweep]) -> Iterator[tuple[Any, ...]]:
    """One flat record per row and transcript, ceilings too."""
    for sweep in sweeps:
        for run in (*sweep.runs, *sweep.ceilings):
            yield (
                sweep.path,
                run.policy,
                run.group,
                run.capacity,
                run.trigger,
                run.target,
                run.peak,
                run.prompt_tokens,
                run.evictions,
                run.evicted_tokens,
                run.compactions,
                run.overflow_turns,
                run.hits,
                run.misses,
                run.miss_ratio,
                run.rmr,
                run.step_miss,
                run.refetched_tokens,
                run.regret,
                run.hit_rate,
                run.break_even_turns,
                run.cost.none,
                run.cost.ideal,
                run.cost.calibrated,
                run.cost_ratio.none,
                run.cost_ratio.ideal,
                run.cost_ratio.calibrated,
                run.on_frontier,
                run.unsupported,
            )

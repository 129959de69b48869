"""The bill of real runs that record their cost: replayed, explained where it is off, and told half from half."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.settings.models import load_models
from ctxctl.simulate.baseline import Baseline, baseline_of
from ctxctl.simulate.bill import CacheTerms, Tariff
from ctxctl.simulate.replay import ReplayOptions, replay
from ctxctl.trace.build import build_trace

MODELS = load_models()


def priced(path: Path) -> tuple[Baseline, int]:
    """The baseline of a recording, and at how many calls its replay has another prompt than was reported."""
    trace = build_trace(str(path), MODELS, pins_of(EvictionOptions())).trace
    tariff = Tariff(trace, MODELS, CacheTerms())
    manager = ContextWindowManager(1 << 60, policy="recorded", trace=trace, explain=False)
    played = replay(trace, manager, ReplayOptions(tariff.life))
    other = sum(1 for t, p in zip(trace.turns, played.prompts, strict=True) if t.prompt is not None and t.prompt != p)
    return baseline_of(trace, played, tariff), other


def test_recorded_costs_of_mini_swe_agent(transcripts: Path) -> None:
    found = {p.name: priced(p) for p in sorted((transcripts / "mini-swe-agent").glob("*.json"))}
    known = {name: b for name, (b, _) in found.items() if b.recorded_cost is not None}
    assert len(known) >= 36
    replayed = sum(b.replayed_cost or 0 for b in known.values())
    recorded = sum(b.recorded_cost or 0 for b in known.values())
    assert replayed == pytest.approx(recorded, rel=0.01)
    assert median(b.replay_error or 0 for b in known.values()) < 0.001
    for name, baseline in known.items():
        if (baseline.total_error or 0) > 0.01:
            assert baseline.cause is not None and "cache reads at $0.125" in baseline.cause, name
    halves = [b.halves for b in known.values() if b.halves is not None]
    assert median(abs(told) for told, _ in halves) < 0.10 < median(abs(ideal) for _, ideal in halves)


def test_prompts_of_other_agents_are_replayed_to_the_token(transcripts: Path) -> None:
    """Over compactions too, without being forced to the reported figures."""
    checked = 0
    for path in sorted(
        (*(transcripts / "claude-code").glob("entire-*.jsonl"), *(transcripts / "codex").glob("*.jsonl"))
    ):
        baseline, other = priced(path)
        assert other == 0, path
        if baseline.bill and baseline.turns > 5:
            checked += 1
            assert baseline.calibrated, (path, baseline)
    assert checked >= 4

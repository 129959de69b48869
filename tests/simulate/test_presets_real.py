"""Every preset over real sessions, where they lie beside this checkout: nothing raises, sums close, nothing is slow."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ctxctl.eviction.base import Setting
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.manager.manager import ContextWindowManager
from ctxctl.model.unit import Trace
from ctxctl.settings.models import load_models
from ctxctl.settings.presets import load_presets
from ctxctl.simulate.presets import preset_policy
from ctxctl.simulate.replay import replay
from ctxctl.trace.build import build_trace

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
FILES = [
    *sorted((FOLDER / "mini-swe-agent").glob("*.json"))[:2],
    *sorted((FOLDER / "claude-code").glob("long-*.jsonl")),
]
MOST_SECONDS = 1.5


@pytest.fixture(scope="module", params=FILES, ids=lambda p: p.stem)
def trace(request: pytest.FixtureRequest) -> Trace:
    return build_trace(str(request.param), load_models(), pins_of(EvictionOptions())).trace


@pytest.mark.skipif(not FILES, reason="no real sessions beside this checkout")
@pytest.mark.parametrize("window", [32_000, 128_000])
def test_every_preset_replays_a_real_session(trace: Trace, window: int) -> None:
    acted = 0
    for preset in load_presets().values():
        if preset.unsupported is not None:
            continue
        start = time.perf_counter()
        manager = ContextWindowManager(
            window, policy=preset_policy(preset, Setting(window)), trace=trace, explain=False
        )
        found = replay(trace, manager)
        assert time.perf_counter() - start < MOST_SECONDS, preset.id
        assert found.policy == preset.id
        acted += bool(found.edits)
    assert acted > 3

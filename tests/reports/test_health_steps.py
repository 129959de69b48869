"""What the report of `health` says to type next."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from ctxctl.health.options import AlertOptions
from ctxctl.health.result import Health
from ctxctl.reports.build.health import health_report, overview_report


def test_a_path_with_a_space_is_one_word(health: Callable[..., Health]) -> None:
    session = health("runs/my run.jsonl")
    steps = (*health_report(session, AlertOptions()).next_steps, *overview_report([session], 0).next_steps)
    assert len(steps) >= 2
    for step in steps:
        assert session.path in shlex.split(step.partition("  (")[0])

"""Which tasks a low cache hit rate is held against."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.alerts import alerts_of, is_stable
from ctxctl.health.metrics import metrics_of


def session(tmp_path: Path, calls: int = 30, **options: object) -> ClaudeSession:
    made = ClaudeSession(tmp_path, **options)  # type: ignore[arg-type]
    made.user("Read the modules one after the other.")
    for number in range(calls):
        made.read(f"/code/app/m{number}.py", lines_of(10, f"w{number}"))
    return made


def test_a_steady_session_is_stable(tmp_path: Path) -> None:
    assert is_stable(session(tmp_path).examine())


def test_few_calls_are_not(tmp_path: Path) -> None:
    assert not is_stable(session(tmp_path, 19).examine())


def test_small_prompts_are_not(tmp_path: Path) -> None:
    assert not is_stable(session(tmp_path, overhead=100).examine())


@pytest.mark.parametrize(("pauses", "stable"), [(1, True), (6, False)])
def test_pauses(tmp_path: Path, pauses: int, stable: bool) -> None:
    made = session(tmp_path, 40)
    for number in range(pauses):
        made.wait(1000)
        made.read(f"/code/app/n{number}.py", lines_of(10, f"n{number}"))
    assert is_stable(made.examine()) == stable


def test_a_provider_that_tells_no_cache(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("go")
    for number in range(30):
        made.bash(f"echo {number}", "x", cached=0)
    for line in made.lines:
        usage = line.get("message", {}).get("usage") if isinstance(line.get("message"), dict) else None
        if usage:
            usage["input_tokens"] += usage.pop("cache_creation_input_tokens")
            usage.pop("cache_creation")
    examined = made.examine()
    assert not is_stable(examined)
    metrics, series = metrics_of(examined)
    assert metrics.cache_hit_rate is None and metrics.why["cache_hit_rate"] == "no use of a cache is reported"
    assert series[-1].hit_rate is None


def test_a_cache_that_serves_half_although_nothing_changed(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("go")
    for number in range(40):
        made.bash(f"echo {number}", "x", cached=made.tokens // 2)
    examined = made.examine()
    metrics, series = metrics_of(examined)
    alerts = alerts_of(series, metrics, examined.options.health.alerts, is_stable(examined))
    assert [a.code for a in alerts] == ["low_cache_hit_rate"]

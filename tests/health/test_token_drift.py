"""The drift alarm: sessions whose recorded usage was altered by a fifth, and those whose was not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import ClaudeSession, examined, lines_of

from ctxctl.health.alerts import alerts_of
from ctxctl.health.detectors.token_drift import TokenDrift
from ctxctl.health.metrics import metrics_of
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding

SAMPLES = Path(__file__).resolve().parents[2] / "sample_transcripts"
REAL = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cached_input_tokens",
    "total_tokens",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
)


def alarms(session: Session) -> list[Finding]:
    """Everything that speaks of drift: the alert on the window now, and the detector over the session."""
    metrics, series = metrics_of(session)
    alerts = alerts_of(series, metrics, session.options.health.alerts, False)
    return [*(a for a in alerts if a.code == "token_drift"), *TokenDrift().find(session)]


def values(text: str) -> Iterator[Any]:
    """The JSON values of a text, one after the other: lines, glued lines, or one document."""
    decoder, at = json.JSONDecoder(), 0
    while match := re.compile(r"\S").search(text, at):
        value, at = decoder.raw_decode(text, match.start())
        yield value


def usages(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value that reports tokens."""
    if isinstance(value, dict):
        if any(isinstance(value.get(name), int) for name in COUNTS):
            yield value
        for inner in value.values():
            yield from usages(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from usages(inner)


def altered(source: Path, target: Path, factor: float, *, newest: bool = False) -> Path:
    """A copy whose reported tokens are multiplied; newest: only those of the last call."""
    records = list(values(source.read_text("utf-8")))
    found = [(at, usage) for at, record in enumerate(records) for usage in usages(record)]
    last = _last(records)
    for at, usage in found:
        if newest and at not in last:
            continue
        for name in COUNTS:
            if isinstance(usage.get(name), int):
                usage[name] = round(usage[name] * factor)
    path = target / source.name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def _last(records: list[Any]) -> set[int]:
    """The records of the newest call: those of its message id, or the last that reports at all."""
    at = max(number for number, record in enumerate(records) if any(usages(record)))
    id_ = records[at].get("message", {}).get("id") if isinstance(records[at].get("message"), dict) else None
    if id_ is None:
        return {at}
    same = (n for n, r in enumerate(records) if isinstance(r.get("message"), dict) and r["message"].get("id") == id_)
    return set(same)


FACTORS = pytest.mark.parametrize("factor", [0.8, 1.2])


@FACTORS
@pytest.mark.parametrize("name", ["axios-to-fetch.jsonl", "codex-rollout.jsonl"])
def test_the_usage_of_every_call_is_altered_by_a_fifth(name: str, factor: float, tmp_path: Path) -> None:
    assert alarms(examined(altered(SAMPLES / name, tmp_path, factor)))


@FACTORS
@pytest.mark.parametrize("name", ["axios-to-fetch.jsonl", "codex-rollout.jsonl"])
def test_the_usage_of_the_live_context_is_altered_by_a_fifth(name: str, factor: float, tmp_path: Path) -> None:
    found = alarms(examined(altered(SAMPLES / name, tmp_path, factor, newest=True)))
    drift = 1 / factor - 1
    assert any(f"{drift:+.0%}"[:2] in alarm.message for alarm in found)
    assert all(alarm.hint and alarm.turn for alarm in found)


@pytest.mark.parametrize("name", ["axios-to-fetch.jsonl", "codex-rollout.jsonl", "mini-swe-agent.traj.json"])
def test_the_same_sessions_as_they_are(name: str, tmp_path: Path) -> None:
    assert alarms(examined(altered(SAMPLES / name, tmp_path, 1.0))) == []


def steady(tmp_path: Path, factor: float, calls: int) -> Session:
    made = ClaudeSession(tmp_path)
    made.user("Read the modules.")
    for number in range(calls):
        made.read(
            f"/code/app/m{number}.py", lines_of(30 + number % 7, f"w{number}"), prompt=round(made.tokens * factor)
        )
    return made.examine()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(factor=st.floats(0.5, 2.0), calls=st.integers(12, 40))
def test_the_rate_tells_the_factor(tmp_path: Path, factor: float, calls: int) -> None:
    found = list(TokenDrift().find(steady(tmp_path, factor, calls)))
    if factor < 0.75 or factor > 1.3:
        (finding,) = found
        assert finding.evidence is not None
        assert finding.evidence.counts["growth_ratio"] == pytest.approx(factor, rel=0.1)
    elif 0.97 < factor < 1.03:
        assert found == []


def test_a_few_calls_say_nothing(tmp_path: Path) -> None:
    assert list(TokenDrift().find(steady(tmp_path, 1.5, 8))) == []


def test_growth_over_a_compaction_is_not_looked_at(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("Read the modules.")
    for number in range(24):
        made.read(f"/code/app/m{number}.py", lines_of(30, f"w{number}"))
        if number % 2:
            made.compact(lines_of(5, f"s{number}"))
            made.overhead += 800
    assert list(TokenDrift().find(made.examine())) == []


def real() -> list[Path]:
    """Real sessions whose tokens are counted exactly, or calibrated."""
    found = []
    for path in sorted([*REAL.glob("claude-code/*.jsonl"), *REAL.glob("codex/*.jsonl")]) if REAL.is_dir() else []:
        session = examined(path)
        counter = session.analysis.counter
        if counter is not None and (counter.exact or counter.calibrated) and session.analysis.turns >= 10:
            found.append(path)
    return found


@pytest.mark.slow
def test_real_sessions(tmp_path: Path) -> None:
    paths = real()
    if not paths:
        pytest.skip("the handed transcripts (../shared/transcripts) are not here")
    for path in paths:
        assert alarms(examined(path)) == [], path
        for factor in (0.8, 1.2):
            assert alarms(examined(altered(path, tmp_path, factor, newest=True))), (path, factor)
            if "codex" in path.parts:  # counted exactly: nothing is left to absorb it
                assert list(TokenDrift().find(examined(altered(path, tmp_path, factor)))), (path, factor)

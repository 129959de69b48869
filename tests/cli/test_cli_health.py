"""`ctxctl health` as a process: the contract of its JSON, many files with damaged ones, limits, and wrong options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
METRICS = {
    "utilization",
    "eviction_frequency",
    "compaction_frequency",
    "compression_ratio",
    "burn_rate",
    "fidelity",
    "tool_result_bloat",
    "cache_hit_rate",
    "resume_success_rate",
    "token_drift",
    "overflow_turns",
}


def test_the_json_of_one_session(ctxctl: Run, samples: Path) -> None:
    done = ctxctl("health", "--json", "--turns", samples / "axios-to-fetch.jsonl")
    assert done.code == 0 and done.err == ""
    result = done.result()
    assert {"metrics", "alerts", "findings", "trend"} <= set(result)
    assert set(result["metrics"]) == METRICS
    missing = {name for name, value in result["metrics"].items() if value is None}
    assert set(result["not_measured"]) == missing  # a reason for each, and for no other
    assert len(result["turns"]) == result["session"]["turns"] == 45
    assert result["trend"]["data_points"] == 10
    for finding in result["findings"]:
        assert {"code", "level", "turn", "message", "evidence", "hint"} <= set(finding)
        assert finding["hint"] and finding["message"]
    rows = [row["hit_rate"] for row in result["turns"]]
    assert all(0 <= rate <= 1 for rate in rows if rate is not None)


def test_damaged_files_are_told_and_the_rest_is_done(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes((samples / "codex-rollout.jsonl").read_bytes())
    lines = (samples / "codex-rollout.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "torn.jsonl").write_bytes(b"".join(lines[:20]) + lines[20][: len(lines[20]) // 2])
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "notes.json").write_text('{"a": 1}')
    done = ctxctl("health", "--json", folder)
    assert done.code == 0
    result = done.result()
    assert [Path(entry["path"]).name for entry in result["files"]] == ["good.jsonl", "torn.jsonl"]
    assert result["total"]["files"] == 2 and result["total"]["skipped"] == 2 and len(result["skipped"]) == 2
    assert "Damage" in ctxctl("health", folder).out
    damage = ctxctl("health", "-q", "--fail-on", "damage", folder / "torn.jsonl")
    assert damage.code == 1 and "failed: fail-on damage: 1 found" in damage.err
    named = ctxctl("health", "--output-format", "jsonl", folder / "good.jsonl", folder / "empty.jsonl")
    entries = [json.loads(line) for line in named.out.splitlines()]
    assert named.code == 3 and "error" in entries[1] and entries[0]["result"]["metrics"]["cache_hit_rate"] > 0.9


@pytest.mark.slow
def test_limits_codes_and_wrong_words(ctxctl: Run, samples: Path) -> None:
    session = samples / "codex-rollout.jsonl"
    high = ctxctl("health", "-q", "--min-hit-rate", "99%", "--max-peak", "12k", session)
    assert high.code == 1 and high.err.count("failed: ") == 2 and "Findings" in high.out
    wrong = ctxctl("health", "--fail-on", "prefixbreak", session)
    assert wrong.code == 2 and "did you mean 'prefix_break'?" in wrong.err and wrong.out == ""
    for words in (["--ignore", "nothing-such"], ["--fail-on", "regression"], ["--json", "--output-format", "sarif"]):
        assert ctxctl("health", *words, session).code == 2
    rows = ctxctl("health", "--output-format", "csv", session).out.splitlines()
    assert rows[0].startswith("path,turn,tokens,utilization") and len(rows) == 1 + 16


@pytest.mark.slow
def test_settings_choose_metrics_limits_and_codes(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text(
        "health_monitoring: {metrics: [utilization], ignore: [runaway_loop], skeleton_tokens: 50k}\n"
        "gates: {max_peak: 50k, min_hit_rate: 0.5}\n"
    )
    done = ctxctl("health", "--json", samples / "axios-to-fetch.jsonl")
    result = done.result()
    assert done.code == 1 and result["not_measured"]["fidelity"] == "not chosen"
    assert [f["code"] for f in result["findings"]] == []
    assert {gate["name"]: gate["ok"] for gate in result["gates"]} == {"max-peak": False, "min-hit-rate": False}
    assert "could not be checked: not chosen" in done.err
    assert ctxctl("health", "--json", "--max-peak", "60k", samples / "axios-to-fetch.jsonl").code == 1


@pytest.mark.slow
def test_a_state_beside_the_session_is_checked(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = tmp_path / "a.jsonl"
    session.write_bytes((samples / "axios-to-fetch.jsonl").read_bytes())
    missing = ctxctl("health", "--state-dir", "nowhere", session)
    assert missing.code == 6 and "there is no state" in missing.err
    assert ctxctl("checkpoint", session, "--state-dir", ".").code == 0
    with session.open("ab") as file:
        file.write(session.read_bytes().splitlines(keepends=True)[-1])
    assert ctxctl("health", "--json", "--state-dir", ".", session).code == 0

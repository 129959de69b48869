"""`ctxctl health` in CI: annotations and the job summary, history and comparison, from runs as a job makes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_annotations_on_stdout_and_the_summary_in_its_file(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# earlier\n")
    session = tmp_path / "a, b.jsonl"
    session.write_bytes((samples / "axios-to-fetch.jsonl").read_bytes())
    arguments = ("health", "--output-format", "github", "--max-cost", "0.1", session.name)
    done = ctxctl(*arguments, GITHUB_STEP_SUMMARY=str(summary))
    assert done.code == 1 and "failed: max-cost $0.10" in done.err
    first, *rest = done.out.splitlines()
    assert first.startswith(
        "::error file=a%2C b.jsonl,title=ctxctl%3A max-cost::a, b.jsonl: failed: max-cost $0.10: it is $"
    )
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in rest)
    told = summary.read_text()
    assert told.startswith("# earlier\n# ctxctl health: 1 gate failed") and "| FAILED | a, b.jsonl | max-cost" in told


@pytest.mark.slow
def test_a_history_and_what_got_worse_since(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    session = tmp_path / "a.jsonl"
    session.write_bytes((samples / "axios-to-fetch.jsonl").read_bytes())
    arguments = ("health", "--json", "--history", "h.db", "a.jsonl")
    missing = ctxctl(*arguments, "--compare-to", "main")
    assert missing.code == 3 and "no such history" in missing.err and missing.out == ""
    assert ctxctl(*arguments, "--ref", "main").code == 0
    same = ctxctl(*arguments, "--compare-to", "main", "--fail-on", "regression")
    assert same.code == 0 and same.result()["comparison"]["worse"] == []
    unknown = ctxctl(*arguments, "--compare-to", "mian")
    assert unknown.code == 6 and "did you mean 'main'?" in unknown.err
    session.write_bytes(session.read_bytes().replace(b'"cache_read_input_tokens":', b'"cache_read_input_tokens":1'))
    worse = ctxctl(*arguments, "--compare-to", "main", "--fail-on", "regression")
    assert worse.code == 1 and "cost" in worse.result()["comparison"]["worse"]
    assert "failed: fail-on regression" in worse.err and worse.result()["gates"][-1]["ok"] is False

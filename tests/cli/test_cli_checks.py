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
    assert done.code == 1 and "failed: a, b.jsonl: max-cost $0.10" in done.err
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


@pytest.mark.slow
def test_a_summary_that_can_not_be_written_is_told(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    arguments = ("health", "--output-format", "github", samples / "codex-rollout.jsonl")
    files = [tmp_path, "/dev/null", *(["/proc/version"] if Path("/proc/version").is_file() else [])]
    for file in files:
        done = ctxctl(*arguments, GITHUB_STEP_SUMMARY=str(file))
        assert done.code == 0 and done.out.startswith("::")
        assert done.err.startswith("note: the job summary was not written")


def test_a_file_name_starts_no_command_of_the_runner(ctxctl: Run, samples: Path, tmp_path: Path) -> None:
    """GitHub's runner reads commands from stderr too."""
    session = tmp_path / "a\n::add-mask::e.jsonl"
    session.write_bytes((samples / "codex-rollout.jsonl").read_bytes())
    broken = tmp_path / "b\r::stop-commands::x\n::error::y.jsonl.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00no gzip")
    done = ctxctl("health", "--output-format", "github", "--fail-on", "info", tmp_path)
    assert done.code == 3 and "failed: " in done.err and "error: " in done.err
    assert not [line for line in done.err.splitlines() if line.lstrip().startswith("::")]
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--max-cost", "-1"), "--max-cost"),
        (("--max-total-cost", "nan"), "--max-total-cost: nan is no limit"),
        (("--max-compactions", "-1"), "--max-compactions"),
        (("-o", "report.yaml"), ".prom, .sarif, .xml"),
        (("--listen", ":0", "--fail-on", "critical"), "leave out --fail-on"),
        (("--otlp", "ftp://host"), "is no URL"),
        (("--listen", ":0", "--max-cost", "5"), "leave out --fail-on"),
    ],
)
def test_what_makes_no_sense_is_said(ctxctl: Run, samples: Path, arguments: tuple[str, ...], said: str) -> None:
    done = ctxctl("health", *arguments, samples)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_file_that_cannot_be_read_is_told_in_the_form_of_ci_also_when_it_is_the_only_one(
    ctxctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "noise.jsonl").write_bytes(bytes(range(128, 256)) * 8)
    done = ctxctl("health", "--output-format", "sarif", "noise.jsonl")
    (run,) = done.json()["runs"]
    assert done.code == 3 and "noise.jsonl" in done.out and run["invocations"][0]["executionSuccessful"] is False

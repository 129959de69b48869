"""Verdicts by hand bound what detectors may say: none is more than information unless they bear it out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ctxctl.health.detectors.base import DETECTORS

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "transcripts"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("detector_findings", ROOT / "tests/tools/detector_findings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_verdict_has_a_detector_and_a_reason(tool: ModuleType) -> None:
    known = {code for code, _ in DETECTORS}
    for (code, file, _), (verdict, reason) in tool.labels().items():
        assert code in known and file and verdict in ("true", "false") and len(reason) > 20, (code, file)


def test_a_detector_says_more_than_information_only_where_its_verdicts_bear_it_out(tool: ModuleType) -> None:
    for code, (found, true) in tool.precision().items():
        level = DETECTORS.get(code).level
        assert level == "info" or tool.earned(found, true), f"{code}: {true} of {found} are true, level {level}"


def test_readme_shows_the_table(tool: ModuleType) -> None:
    assert tool.table() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_finding_of_the_sample_on_real_sessions_is_labelled_and_no_other(tool: ModuleType) -> None:
    if not REAL.exists():
        pytest.skip("no real transcripts here")
    found = {
        (code, file, "" if finding.turn is None else str(finding.turn))
        for code, findings in tool.findings(REAL).items()
        for file, finding in tool.sampled(findings)
    }
    assert found == set(tool.labels())

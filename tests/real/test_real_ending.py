"""What a status line says of a real session, from its end, is what an analysis of the whole says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl import analyze, load_models
from ctxctl.errors import CtxctlError
from ctxctl.pressure.ending import ending_of
from ctxctl.settings.model_rows import load_rows

TABLE = load_models()


def compare(path: Path) -> bool:
    """Whether it could be compared."""
    try:
        whole = analyze(str(path), TABLE)
    except CtxctlError:
        return False
    end = ending_of(str(path), load_rows)
    velocity = whole.forecast.velocity if whole.forecast is not None and whole.context.reported is not None else None
    reported = end.tokens if end.source == "reported" else None
    assert (reported, end.window.tokens) == (whole.context.reported, whole.window.tokens), path
    assert end.velocity == velocity, path
    return True


def sessions(transcripts: Path) -> list[Path]:
    return [p for agent in ("claude-code", "codex") for p in sorted((transcripts / agent).rglob("*.jsonl"))]


def test_every_session(transcripts: Path) -> None:
    assert sum(compare(path) for path in sessions(transcripts)) > 20


@pytest.mark.slow
def test_as_they_grew(transcripts: Path, tmp_path: Path) -> None:
    compared = 0
    for source in sessions(transcripts):
        lines = source.read_bytes().splitlines(keepends=True)
        path = tmp_path / source.name
        for cut in range(1, len(lines), max(1, len(lines) // 15)):
            path.write_bytes(b"".join(lines[:cut]))
            compared += compare(path)
    assert compared > 200

"""The guard on what tools really printed: ordinary output is left alone."""

from __future__ import annotations

from pathlib import Path

from ctxctl.errors import CtxctlError
from ctxctl.formats.read import read
from ctxctl.guard.sanitize import sanitize


def test_hardly_any_tool_result_is_taken_for_an_attack(transcripts: Path) -> None:
    results = blocked = secrets = 0
    for path in sorted(p for p in transcripts.glob("*/*") if p.is_file()):
        try:
            transcript = read(str(path), companions=False)
        except CtxctlError:
            continue
        for block in transcript.blocks:
            if block.kind == "tool_result":
                done = sanitize(block.text)
                results += 1
                blocked += done.injections > 0
                secrets += done.secrets > 0
                assert sanitize(done.text).text is done.text
    assert results > 2000
    assert blocked <= results / 1000
    assert secrets <= results / 1000  # what was handed out was looked through before

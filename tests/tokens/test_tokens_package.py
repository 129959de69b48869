"""Importing the room costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ctxctl import tokens

CODE = """
import sys, time
sys.path.insert(0, {root!r})
import ctxctl
before = set(sys.modules)
start = time.perf_counter()
import ctxctl.tokens
print(time.perf_counter() - start)
print(*sorted(set(sys.modules) - before))
"""


def test_import_is_light() -> None:
    code = CODE.format(root=str(Path(tokens.__file__).parents[2]))
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(run.stdout.splitlines()[0]) for run in runs) < 0.010
    loaded = set(runs[0].stdout.splitlines()[1].split())
    assert loaded.isdisjoint({"tiktoken", "splintr", "toktok", "dataclasses", "inspect", "ctxctl.tokens.engines"})


def test_every_public_name_is_there() -> None:
    for name in tokens.__all__:
        assert getattr(tokens, name) is not None
    assert set(tokens.__all__) <= set(dir(tokens))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tokens.nothing

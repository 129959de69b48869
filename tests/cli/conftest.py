"""Running the command line as users do: as a process of its own, with streams and status apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Done:
    """What became of a command. out, err: text; code: exit status."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.raw = code, out
        self.out, self.err = out.decode("utf-8"), err.decode("utf-8")

    def json(self) -> Any:
        """stdout as one strict JSON document."""

        def refuse(constant: str) -> Any:
            raise AssertionError(constant)

        return json.loads(self.out, parse_constant=refuse)

    def result(self) -> Any:
        return self.json()["result"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of the machine's own settings."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH")}
    home = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "xdg")}
    return {**kept, **home, "LANG": "C.UTF-8", "PYTHONUTF8": "1", **more}


def start(folder: Path, *arguments: str, stdin: bytes | None = None, **more: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "ctxctl", *arguments],
        cwd=folder,
        env=environment(folder, **more),
        input=stdin if stdin is not None else b"",
        capture_output=True,
        timeout=60,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def ctxctl(tmp_path: Path) -> Callable[..., Done]:
    """Runs ctxctl in an empty repository: `ctxctl("analyze", path, stdin=b"", NAME="value")`."""
    (tmp_path / ".git").mkdir()
    return lambda *arguments, **more: start(tmp_path, *map(str, arguments), **more)


@pytest.fixture(scope="session")
def samples() -> Path:
    return ROOT / "sample_transcripts"


@pytest.fixture(scope="session")
def golden() -> Path:
    return ROOT / "tests" / "formats" / "golden"


@pytest.fixture
def saved(ctxctl: Callable[..., Done]) -> Callable[[Path, bytes], Any]:
    """Writes a file and gives the `result` of its analysis: `saved(path, data)`."""

    def write(path: Path, data: bytes) -> Any:
        path.write_bytes(data)
        return ctxctl("analyze", "--json", path).result()

    return write

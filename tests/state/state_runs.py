"""ctxctl run on states: as a process of its own, or within this one; and what a folder holds."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

CHECKPOINT = [sys.executable, "-m", "ctxctl", "checkpoint"]


@dataclass(frozen=True)
class Done:
    """A run that ended."""

    status: int
    out: bytes
    err: str

    @property
    def result(self) -> Any:
        def refuse(word: str) -> Any:
            raise AssertionError(f"{word} in the JSON")

        return json.loads(self.out.decode("utf-8", "strict"), parse_constant=refuse)["result"]

    def ok(self) -> Done:
        """This run, which has to have status 0."""
        assert self.status == 0, (self.status, self.err)
        return self


def environment(home: Path) -> dict[str, str]:
    """The environment without settings and habits of whoever runs the tests."""
    drop = ("CTXCTL_", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "LC_", "COLUMNS", "GIT_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "_TYPER_FORCE_DISABLE_TERMINAL": "1"}


def apart(folder: Path, *arguments: Any, **more: Any) -> Done:
    """Run ctxctl as a process in a folder."""
    command = [sys.executable, "-m", "ctxctl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, cwd=folder, env=environment(folder.parent), timeout=60, **more)
    err = done.stderr.decode("utf-8", "backslashreplace")
    assert "Traceback" not in err, err[-600:]
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {err[-300:]}"
    return Done(done.returncode, done.stdout, err)


def within(folder: Path, *arguments: Any) -> Done:
    """Run the command line within this process: the same code, a fraction of the time."""
    from ctxctl.cli.app import run

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        patch.dict(os.environ, environment(folder.parent), clear=True),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = run([str(a) for a in arguments])
    text = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert "Traceback" not in text, text[-600:]
    return Done(int(status), out.buffer.getvalue(), text)  # type: ignore[attr-defined]


def state_of(folder: Path) -> Any:
    """The state file of a folder, read by the standard library."""
    return json.loads((folder / "agent_state.json").read_bytes())


def texts(state: Any) -> list[str]:
    """The texts of all subtasks of a state."""
    current = [state["current_subtask"]] if state["current_subtask"] else []
    return [s["text"] for s in (*state["completed_subtasks"], *current, *state["remaining_subtasks"])]


def contents(folder: Path) -> dict[str, bytes]:
    """Every regular file of a folder, by its path in it."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

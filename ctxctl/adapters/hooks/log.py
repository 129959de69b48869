"""The log of hooks: where what went wrong is found, since an agent is told nothing of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

VARIABLE = "CTXCTL_HOOK_LOG"
"""Environment variable: `off` for no log, else the file to use instead."""

MOST = 256_000
"""Bytes of the log; beyond them the older half goes."""


def log_path(environment: Mapping[str, str]) -> Path | None:
    """`$XDG_STATE_HOME/ctxctl/hook.log`, by default in ~/.local/state; None when it is switched off."""
    given = environment.get(VARIABLE, "")
    if given.lower() in ("off", "0", "no", "false"):
        return None
    if given:
        return Path(given).expanduser()
    base = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base) / "ctxctl" / "hook.log"


def write(path: Path | None, text: str, now: datetime) -> None:
    """Append one entry. A log that can't be written is not an error. text: several lines are indented but the first."""
    if path is None:
        return
    line = f"{now.isoformat(timespec='seconds')} {text.strip()}".replace("\n", "\n  ") + "\n"
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode("utf-8", "replace")[:MOST])
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size > MOST:
            _shorten(path)


def last(path: Path | None, number: int) -> list[str]:
    """The first lines of the newest entries, the newest first."""
    if path is None:
        return []
    try:
        lines = path.read_bytes()[-MOST:].decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    return [line for line in lines if line and not line.startswith(" ")][: -number - 1 : -1]


def _shorten(path: Path) -> None:
    from ctxctl.state.files import replace_whole

    data = path.read_bytes()[-MOST // 2 :]
    replace_whole(path, data[data.find(b"\n") + 1 :])

"""Runs `ctxctl` over many command lines in one process: a JSON list of arguments per line of stdin, a JSON row per
line of stdout with the exit status and both streams."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from ctxctl.cli.app import run


def once(arguments: list[str]) -> tuple[int, str, str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(arguments)
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        out.flush()
    return code, out.buffer.getvalue().decode("utf-8", "strict"), err.getvalue()  # type: ignore[attr-defined]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(once(json.loads(line))), flush=True)

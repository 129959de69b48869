"""Delivering findings and gates in the forms that CI systems read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from ctxctl.cli.io import say
from ctxctl.cli.options import CheckFormat
from ctxctl.errors import CtxctlError


def rendered_checks(
    form: CheckFormat,
    checked: Sequence[Any],
    total: Sequence[Any],
    reports: Sequence[Any],
    fail_on: Set[str] = frozenset(),
    *,
    command: str = "health",
    codes: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Findings and gates as GitHub annotations, SARIF or JUnit. total: gates over all files. reports: what the job
    summary shows. codes: that have a JUnit case; by default those of `health`.

    With `github` the job summary is added to the file that $GITHUB_STEP_SUMMARY names, where it is set; a summary that
    can't be written is told, and changes nothing else.
    """
    from ctxctl.reports import github, junit, sarif
    from ctxctl.reports.places import root_of

    environment = os.environ if environment is None else environment
    root = root_of(os.curdir) or environment.get("GITHUB_WORKSPACE") or environment.get("CI_PROJECT_DIR") or None
    if form is CheckFormat.sarif:
        return sarif.render(checked, total, command=command, root=root).encode()
    if form is CheckFormat.junit:
        return junit.render(checked, total, failing=fail_on, command=command, root=root, codes=codes).encode()
    if file := environment.get("GITHUB_STEP_SUMMARY"):
        try:
            _add(Path(file), checked, total, reports, command, root)
        except (CtxctlError, OSError) as error:  # the latter for a file that has no end, such as one of /proc
            say(f"note: the job summary was not written: {error}")
    return github.render(checked, total, root=root).encode()


def _add(
    path: Path, checked: Sequence[Any], total: Sequence[Any], reports: Sequence[Any], command: str, root: str | None
) -> None:
    from ctxctl.reports import github
    from ctxctl.state.files import append_whole, appending

    with appending(path) as file:
        room = github.SUMMARY_BYTES - file.seek(0, os.SEEK_END)
        text = github.summary(checked, total, reports, command=command, root=root, room=room - 1)
        append_whole(path, file, text.encode())

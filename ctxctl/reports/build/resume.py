"""What `ctxctl resume` tells: its JSON, and the few lines beside the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ctxctl.model.state import AgentState
from ctxctl.reports.plot import plural
from ctxctl.state.boot import Boot
from ctxctl.state.record import as_json


def resume_data(
    state: AgentState, boot: Boot, *, path: str, budget: int, written: Sequence[str] = (), session: str | None = None
) -> dict[str, Any]:
    """The `result` of the command. path: of the state, or of the transcript that it was made of."""
    made = boot.resume
    return {
        "prompt": made.text,
        "tokens": made.tokens,
        "budget": budget,
        "state": as_json(state),
        "path": path,
        "environment": {"checks": [asdict(check) for check in boot.verified.checks]},
        "stale": list(boot.verified.stale),
        "next_step": made.next_step,
        "warnings": [asdict(warning) for warning in boot.warnings],
        "parts": [asdict(part) for part in made.parts],
        "session": session,
        "written": list(written),
    }


def resume_lines(boot: Boot) -> Iterator[tuple[int, str]]:
    """What a user should know beside the prompt, the most serious first: (0, line), or (1, line) for what only matters
    to those who ask."""
    for warning in boot.warnings:
        level = int(warning.level == "info" or warning.code == "implicit_state")
        yield level, f"warning: {warning.message}"
        yield 1, f"hint: {warning.hint}"
    for check in boot.verified.failed:
        if check.name not in ("files", "transcript"):
            yield 0, f"warning: {check.name}: {check.detail}"
    for check in boot.verified.checks:
        if check.ok is not False:
            yield 1, f"{check.name}: {check.detail}{'' if check.ok else ' (not compared)'}"
    for part in boot.resume.parts:
        cut = f", {part.cut:,} left out" if part.cut else ""
        yield 1, f"{part.name}: {plural(part.tokens, 'token')}{cut}"

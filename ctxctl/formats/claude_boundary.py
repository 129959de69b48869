"""The compaction record of a Claude Code session, as far as it says what stayed in the window."""

from __future__ import annotations

from ctxctl.formats.base import Diagnostics, Json, word
from ctxctl.formats.claude_tree import Boundary
from ctxctl.formats.session import calibration_of, epoch, tokens_of


def boundary_of(record: dict[str, Json], node: int, line: int, diagnostics: Diagnostics) -> Boundary:
    """What a compact_boundary states. node: its place in the tree."""
    data = record.get("compactMetadata")
    data = data if isinstance(data, dict) else {}
    uuids: tuple[str, ...] = ()
    run: tuple[str, str] | None = None
    anchor: str | None = None
    preserved, segment = data.get("preservedMessages"), data.get("preservedSegment")
    if isinstance(preserved, dict) and isinstance(preserved.get("uuids"), list):
        uuids = tuple(uuid for uuid in preserved["uuids"] if isinstance(uuid, str))
        anchor = word(preserved, "anchorUuid")
    elif isinstance(segment, dict):
        head, tail = word(segment, "headUuid"), word(segment, "tailUuid")
        if head is not None and tail is not None:
            run, anchor = (head, tail), word(segment, "anchorUuid")
    return Boundary(
        node,
        line,
        word(data, "trigger"),
        _tokens(data, "preTokens", line, diagnostics),
        _tokens(data, "postTokens", line, diagnostics),
        uuids,
        run,
        anchor,
        epoch(word(record, "timestamp")),
        calibration_of(data),
    )


def _tokens(data: dict[str, Json], name: str, line: int, diagnostics: Diagnostics) -> int | None:
    value = tokens_of(data.get(name), name, line, diagnostics)
    return value if value is not None and value >= 0 else None

"""What stands in front of every request is large, or grows from session to session (requirement H8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ctxctl.health.detectors.base import DETECTORS, Detector
from ctxctl.health.session import Session
from ctxctl.model.finding import Finding

SESSIONS = 3
"""Sessions of one project below which nothing is said to grow."""
GROWTH = 0.20
GREW = 2_000
"""Share, and tokens, by which the newest must be larger than the first: file lists and dates change it by less."""
DIP = 0.05
"""A session that is smaller than the one before by more than this ends a growth."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Of one session. key: which sessions can be held against each other; started: seconds since 1970."""

    key: tuple[str, str, str]
    started: float
    tokens: int


@DETECTORS.register("skeleton_drift")
class SkeletonDrift(Detector):
    """Signal: system prompt, tool definitions and what else the client sends in front of the first message hold more
    than 15,000 tokens, or grow by a fifth over three or more sessions of one project with the same agent and model."""

    code = "skeleton_drift"
    signal = (
        "system prompt and tools take more than 15,000 tokens (health_monitoring.skeleton_tokens), or grew by 20 % "
        "over at least 3 sessions of one project"
    )
    fix = (
        "audit what is in front of every request: switch off servers and tools that the task does not use, move text "
        "that is rarely used from project instructions into files that are read when needed"
    )

    def find(self, session: Session) -> Iterator[Finding]:
        tokens, limit = skeleton_of(session), session.options.health.skeleton_tokens
        if tokens is None or tokens <= limit:
            return
        calls = sum(1 for turn in session.trace.turns if turn.usage is not None)
        share = f", {tokens / session.window:.0%} of the window" if session.window else ""
        said = (
            f"about {tokens:,} tokens stand in front of the first message{share}: system prompt, tool definitions, "
            f"project instructions; {calls} calls sent them"
        )
        if _agent(session) == "claude-code":
            said += "; Claude Code's own part is about 12,000 to 20,000, the rest is the user's or the project's"
        yield self.finding(said, turn=session.first, counts={"tokens": tokens, "limit": limit, "calls": calls})

    def note(self, session: Session) -> Any:
        tokens = skeleton_of(session)
        times = [u.time for u in session.transcript.usage if u.time is not None]
        if tokens is None or not times or session.transcript.cwd is None:
            return None
        key = (session.transcript.cwd, _agent(session), session.transcript.model or "")
        return Skeleton(key, min(times), tokens)

    def over(self, notes: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Finding]]:
        projects: dict[tuple[str, str, str], list[tuple[float, str, int]]] = {}
        for path, note in notes:
            projects.setdefault(note.key, []).append((note.started, path, note.tokens))
        for rows in projects.values():
            rows.sort()
            start = len(rows) - 1
            while start and rows[start - 1][2] * (1 - DIP) <= rows[start][2]:
                start -= 1
            grown = rows[start:]
            first, last = grown[0][2], grown[-1][2]
            if len(grown) < SESSIONS or last - first < GREW or last < first * (1 + GROWTH):
                continue
            step = max(b - a for (_, _, a), (_, _, b) in pairwise(grown))
            said = (
                f"what stands in front of every request grew from {first:,} to {last:,} tokens "
                f"({last / first - 1:+.0%}) over {len(grown)} sessions of this project, by {step:,} at most from one "
                "to the next"
            )
            counts = {"sessions": len(grown), "first_tokens": first, "last_tokens": last}
            yield grown[-1][1], self.finding(said, counts=counts)


def skeleton_of(session: Session) -> int | None:
    """Tokens of system prompt and tools at the first request, whether the file holds them or not; None where neither
    its text nor a report tells them. What the file does not hold is taken as the smaller of what the first request and
    what the newest one leave over: either may hold something that was not written down."""
    trace = session.trace
    if not trace.turns or session.transcript.conversations:
        return None
    hidden = trace.overhead
    if session.analysis.context.overhead is not None:
        hidden = min(hidden, session.analysis.context.overhead)
    first = trace.turns[0].arrivals
    shown = sum(trace.tokens[b] for b in first if trace.blocks[b].kind in ("system", "tool_definitions"))
    return hidden + shown if hidden or shown else None


def _agent(session: Session) -> str:
    return session.transcript.format

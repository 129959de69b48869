"""Findings of a session's health, and gates: what a limit says of a measured value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FindingLevel = Literal["info", "warning", "critical"]
FINDING_LEVELS: tuple[FindingLevel, ...] = ("info", "warning", "critical")
"""Levels of findings and alerts, the mildest first."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage that a finding rests on. turn: the model call; line: 1-based line in the file (message of a document);
    text: verbatim, shortened, one line."""

    turn: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a finding rests on. turns: of the model calls; quotes: what stands there; counts: by name (calls, tokens,
    files, ...)."""

    turns: tuple[int, ...] = ()
    quotes: tuple[Quote, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a session, and what to do about it.

    code: which alert or detector speaks. turn: the call at which it shows, None when it is about the whole session.
    line: where in the file. evidence: of a detector; None for an alert.
    """

    code: str
    level: FindingLevel
    message: str
    hint: str
    turn: int | None = None
    line: int | None = None
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """One limit and how it went. name: as the option that sets it, without dashes in front. value: None when it could
    not be measured, which does not pass. text: one line for people."""

    name: str
    limit: float | str
    value: float | str | None
    ok: bool
    text: str

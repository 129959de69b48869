"""What a format is given to write a compacted transcript, and what it says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxctl.formats.store import LineStore
from ctxctl.model.block import Block
from ctxctl.model.edits import Outcome
from ctxctl.model.transcript import Diagnostic, Transcript


@dataclass(slots=True)
class Normalised:
    """What a writer changed in lines that it copies: byte order marks and carriage returns taken out, lone surrogates
    replaced by U+FFFD. Nothing else may differ."""

    bom: int = 0
    crlf: int = 0
    surrogates: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A transcript with the outcome of its compaction, ready to be written in its own format.

    transcript: as scanned, without blocks. store: its lines. blocks: those of the window before, by number, with their
    texts; those that `outcome.live` names stay. in_place: the output takes the input's place and keeps its id;
    otherwise it is a session of its own, with `new_id`. keep_history: the original lines stay in front, and the
    compaction is appended the way the agent itself writes one. now: ISO 8601 time stamp of what is written new.
    before, after: tokens of the window; ratio: of the calibration that they were counted with, which the output's usage
    can't tell any more. normalised, notes, renamed: filled by the writer; the last holds new ids of calls and results,
    by line of the block and index in it.
    """

    transcript: Transcript
    store: LineStore
    blocks: Mapping[int, Block]
    outcome: Outcome
    new_id: str
    now: str
    before: int
    after: int
    ratio: float = 1.0
    in_place: bool = False
    keep_history: bool = False
    normalised: Normalised = field(default_factory=Normalised)
    notes: list[Diagnostic] = field(default_factory=list)
    renamed: dict[tuple[int, int], str] = field(default_factory=dict)

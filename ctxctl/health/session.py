"""One session as health sees it: read once, with its pressure, its trace, and what it says about its task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ctxctl.budgets.options import BudgetOptions
from ctxctl.eviction.options import EvictionOptions
from ctxctl.eviction.pins import pins_of
from ctxctl.facts.session import SessionFacts
from ctxctl.formats.streams import Progress
from ctxctl.health.options import HealthOptions
from ctxctl.model.block import Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.summary import SessionSummary
from ctxctl.model.transcript import Transcript
from ctxctl.model.unit import Trace
from ctxctl.pressure.measure import WATCHED, Facts, measure
from ctxctl.pressure.result import Analysis, AnalysisOptions
from ctxctl.trace.build import read_counted, trace_of
from ctxctl.trace.residence import Stay, stays_of


@dataclass(frozen=True, slots=True)
class Examining:
    """How sessions are examined: the settings of the rooms below. state: path of the state file (`agent_state.json`)
    that belongs to them, None for none."""

    analysis: AnalysisOptions = field(default_factory=AnalysisOptions)
    eviction: EvictionOptions = field(default_factory=EvictionOptions)
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    health: HealthOptions = field(default_factory=HealthOptions)
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One session. transcript: without its blocks. everything: its blocks of every thread in file order. trace: of the
    main thread; its turns count from 1, `first` is the transcript's number of its turn 1. stays: how long each block of
    the trace stayed in the window. summary: the facts of the main thread. table: the model rows that price it."""

    path: str
    transcript: Transcript
    everything: Sequence[Block]
    analysis: Analysis
    trace: Trace
    stays: Sequence[Stay]
    summary: SessionSummary
    table: ModelTable
    options: Examining

    @property
    def window(self) -> int | None:
        """Tokens of the model's window, None while unknown."""
        return self.analysis.window.tokens

    def turn_number(self, index: int) -> int:
        """The transcript's number of a turn of the trace, as reports show it."""
        return index + self.first - 1

    @property
    def first(self) -> int:
        """The transcript's number of the trace's first turn; above 1 in a file of several conversations alone."""
        usage = next((t for t in self.trace.turns if t.usage is not None), None)
        return usage.usage.turn - usage.index + 1 if usage is not None and usage.usage is not None else 1


def examine(path: str, table: ModelTable, options: Examining, progress: Progress | None = None) -> Session:
    """Read and measure the transcript at a path (or `-`).

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    read = read_counted(
        path,
        table,
        format_name=options.analysis.format_name,
        companions=options.analysis.companions,
        progress=progress,
    )
    watched, facts = Facts(), SessionFacts()
    main = read.transcript.main
    for number, block in enumerate(read.blocks):
        if block.kind in WATCHED:
            watched.see(block, number)
        if block.thread == main:
            facts.see(block, number)
    analysis = measure(read.transcript, read.tally, watched, table, options.analysis)
    trace = trace_of(read, pins_of(options.eviction)).trace
    return Session(
        path,
        read.transcript,
        read.blocks,
        analysis,
        trace,
        stays_of(trace),
        facts.summary(),
        table,
        options,
    )

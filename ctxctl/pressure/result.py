"""What an analysis holds: one value per transcript, and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxctl.model.block import UNNAMED
from ctxctl.model.transcript import Diagnostic, Transcript
from ctxctl.model.usage import UsageTotals
from ctxctl.pressure.monitor import LevelChange
from ctxctl.pressure.options import PressureOptions, PressureThresholds
from ctxctl.pressure.readings import Readings
from ctxctl.pressure.window import WindowSize

if TYPE_CHECKING:
    from ctxctl.facts.goal import Goal
    from ctxctl.pressure.attention import Attention
    from ctxctl.pressure.composition import Composition
    from ctxctl.pressure.shape import Shape


@dataclass(frozen=True, slots=True)
class Counter:
    """What counted. exact: it is the model's own tokenizer; ratio: what calibration multiplies the estimate with;
    bound: relative error to expect over the session, block_bound: of a single block."""

    name: str
    exact: bool
    calibrated: bool
    ratio: float
    bound: float
    block_bound: float


@dataclass(frozen=True, slots=True)
class ContextState:
    """The window now. reported: by the provider at the newest call, None when it was not reported since the last
    compaction; with_output: and its answer; counted: all blocks in the window now; pending: those that came after the
    newest call's answer, which the next call sends; frames: what the frames of the messages cost (role, separators);
    overhead: what the file does not hold (system prompt, tools); drift: (counted + frames + overhead) / reported - 1,
    of what was in the window at the newest call."""

    reported: int | None
    with_output: int | None
    counted: int | None
    drift: float | None
    overhead: int | None
    at_turn: int | None
    messages: int | None
    order: tuple[str, ...] | None
    conversation: int | None = None
    pending: int | None = None
    frames: int | None = None

    @property
    def tokens(self) -> int | None:
        """The best figure there is: the newest request as reported, and when messages wait behind its answer, the
        answer and those too; where nothing was reported, what was counted and the overhead."""
        if self.reported is not None:
            return (self.with_output or self.reported) + self.pending if self.pending else self.reported
        return None if self.counted is None else self.counted + (self.frames or 0) + (self.overhead or 0)


@dataclass(frozen=True, slots=True)
class Peak:
    """The fullest turn."""

    tokens: int
    utilization: float | None
    turn: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """When the window now will be full. velocity: tokens added per turn lately, without the first request, which
    brings the system prompt and the tools; turns: until it is full, 0 when the next one fills it, -1 when it is full,
    None while the window is unknown or nothing is added."""

    velocity: float
    turns: int | None


@dataclass(frozen=True, slots=True)
class SpikeFound:
    """A velocity spike with its likely cause, None when causes were not looked for."""

    turn: int
    tokens: int
    mean: float
    ratio: float
    cause: str | None


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block, for `--blocks`."""

    block: str
    line: int
    kind: str
    tool: str | None
    turn: int
    tokens: int
    exact: bool
    in_context: bool


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One of several conversations in a file."""

    line: int
    id: str | None
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """One transcript, measured. What needs the text of every line is None when only usage was read. act_from:
    utilization from which on something should be done. counted: tokens of the window at each call of the main thread
    (index 0 is turn 1) as they were counted, with the overhead; empty when nothing was."""

    transcript: Transcript
    window: WindowSize
    usage: UsageTotals
    by_thread: dict[str, UsageTotals]
    by_branch: tuple[tuple[str, bool, UsageTotals], ...]
    context: ContextState
    pressure: Readings
    peak: Peak | None
    spikes: tuple[SpikeFound, ...]
    events: tuple[LevelChange, ...]
    curve: Shape | None
    diagnostics: tuple[Diagnostic, ...]
    forecast: Forecast | None = None
    counter: Counter | None = None
    composition: Composition | None = None
    composition_all: Composition | None = None
    attention: Attention | None = None
    blocks: int | None = None
    turns: int = 0
    conversations: tuple[ConversationRow, ...] = ()
    rows: tuple[BlockRow, ...] | None = field(default=None, repr=False)
    goal: Goal | None = None
    watermark: float = 0.5
    act_from: float = 0.75
    counted: Sequence[float] = field(default=(), repr=False)

    @property
    def threads_known(self) -> bool:
        """Whether each sub-agent is told from the others: old ones without an id are told by their prompts alone, which
        are not read when only usage is."""
        return self.counter is not None or not any(t.startswith(UNNAMED) for t in self.transcript.threads)


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """window: tokens as the user set them. reported_only: read usage alone. blocks: list every block."""

    window: int | None = None
    thresholds: PressureThresholds = field(default_factory=PressureThresholds)
    pressure: PressureOptions = field(default_factory=PressureOptions)
    format_name: str | None = None
    reported_only: bool = False
    companions: bool = True
    blocks: bool = False

    @property
    def act_from(self) -> float:
        """Utilization from which on something should be done: the orange threshold or the watermark."""
        return self.thresholds.orange if self.pressure.act_at == "orange" else self.pressure.watermark

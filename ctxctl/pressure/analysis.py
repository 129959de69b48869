"""The analysis of one transcript: everything that `ctxctl analyze` shows, as one value."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from ctxctl.facts.constraints import ConstraintFinder
from ctxctl.facts.goal import Goal, GoalFinder
from ctxctl.facts.pins import PinFinder
from ctxctl.formats import scan
from ctxctl.formats.streams import Progress
from ctxctl.model.block import KINDS, Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Diagnostic, Transcript
from ctxctl.model.usage import Usage, UsageTotals, total_usage
from ctxctl.pressure.attention import Attention, WeakMiddle, expected_visibility, in_middle, positions, relevance
from ctxctl.pressure.causes import Causes
from ctxctl.pressure.composition import Composition, block_id, compose
from ctxctl.pressure.curve import PLACEHOLDER_TOKENS, CountedCurve, Shape, count_curve, shape_of
from ctxctl.pressure.monitor import ContextPressureMonitor, LevelChange, Spike
from ctxctl.pressure.options import PressureOptions, PressureThresholds
from ctxctl.pressure.window import WindowSize, window_of
from ctxctl.trace.tally import ANSWER, Tally

WATCHED = frozenset(("user_message", "system", "summary"))
LARGEST = 10
DRIFT_ALARM = 0.10


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
    compaction; counted: all blocks in the window now; overhead: what the file does not hold (system prompt, tools);
    drift: (counted + overhead) / reported - 1 at the newest call."""

    reported: int | None
    with_output: int | None
    counted: int | None
    drift: float | None
    overhead: int | None
    at_turn: int | None
    messages: int | None
    order: tuple[str, ...] | None
    conversation: int | None = None

    @property
    def tokens(self) -> int | None:
        """The best figure there is: reported, else counted with the overhead."""
        if self.reported is not None:
            return self.reported
        return None if self.counted is None else self.counted + (self.overhead or 0)


@dataclass(frozen=True, slots=True)
class TurnPressure:
    """One model call of the main thread. source: `reported` or `counted`; compaction: what happened before it."""

    turn: int
    tokens: int
    source: str
    utilization: float | None
    level: str | None
    velocity: float
    turns_until_overflow: int | None
    added: int | None
    compaction: str | None


@dataclass(frozen=True, slots=True)
class Peak:
    """The fullest turn."""

    tokens: int
    utilization: float | None
    turn: int


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
    """One transcript, measured. What needs the text of every line is None when only usage was read."""

    transcript: Transcript
    window: WindowSize
    usage: UsageTotals
    by_thread: dict[str, UsageTotals]
    by_branch: tuple[tuple[str, bool, UsageTotals], ...]
    context: ContextState
    pressure: tuple[TurnPressure, ...]
    peak: Peak | None
    spikes: tuple[SpikeFound, ...]
    events: tuple[LevelChange, ...]
    curve: Shape | None
    diagnostics: tuple[Diagnostic, ...]
    counter: Counter | None = None
    composition: Composition | None = None
    composition_all: Composition | None = None
    attention: Attention | None = None
    blocks: int | None = None
    turns: int = 0
    conversations: tuple[ConversationRow, ...] = ()
    rows: tuple[BlockRow, ...] | None = field(default=None, repr=False)
    goal: Goal | None = None


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


class _Facts:
    """The fact finders, fed with the few kinds of blocks that can hold facts."""

    def __init__(self) -> None:
        self.goal = GoalFinder()
        self.constraints = ConstraintFinder()
        self.pins = PinFinder()

    def see(self, block: Block, number: int) -> None:
        self.goal.see(block, number)
        self.constraints.see(block, number)
        self.pins.see(block, number)


def analyze(
    path: str, table: ModelTable, options: AnalysisOptions | None = None, progress: Progress | None = None
) -> Analysis:
    """Read and measure the transcript at a path (or `-`).

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    options = options or AnalysisOptions()
    if options.reported_only:
        return _reported(path, table, options, progress)
    facts = _Facts()
    tally = Tally(size_hint=_size(path))
    add, see = tally.add, facts.see

    def emit(block: Block) -> None:
        if block.kind in WATCHED:
            see(block, len(tally))
        add(block)

    transcript = scan(
        path,
        emit,
        format_name=options.format_name,
        companions=options.companions,
        progress=progress,
        on_model=tally.saw_model,
    )
    row = table.find(transcript.model)
    tally.finish(transcript.model, row.image_rule if row else None, transcript.stated)
    return _measured(transcript, tally, facts, table, options)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size if path != "-" else None
    except OSError:
        return None


def _reported(path: str, table: ModelTable, options: AnalysisOptions, progress: Progress | None) -> Analysis:
    transcript = scan(
        path,
        lambda block: None,
        format_name=options.format_name,
        companions=options.companions,
        usage_only=True,
        progress=progress,
    )
    window = window_of(options.window, transcript, table)
    pressure, spikes, events = _pressure(transcript, None, window, options, frozenset())
    note = Diagnostic(
        "info", "lines_not_read", "only lines that carry usage or a compaction were read; the other figures are null"
    )
    return Analysis(
        transcript,
        window,
        *_usage(transcript),
        _context(transcript, None, None, (), None),
        pressure,
        _peak(pressure),
        tuple(SpikeFound(s.turn, s.tokens, s.mean, s.ratio, None) for s in spikes),
        events,
        shape_of([row.tokens for row in pressure]),
        (*transcript.diagnostics, note),
        turns=len(pressure),
    )


def _measured(
    transcript: Transcript, tally: Tally, facts: _Facts, table: ModelTable, options: AnalysisOptions
) -> Analysis:
    curve = count_curve(transcript, tally)
    estimates = curve.estimates
    chosen = _largest_conversation(transcript, estimates)
    live = transcript.live
    if chosen is not None:
        live = tuple(range(transcript.conversations[chosen].first, transcript.conversations[chosen].last))
    for block in transcript.cleared:
        estimates[block] = min(estimates[block], PLACEHOLDER_TOKENS)
    window = window_of(options.window, transcript, table)
    starts = frozenset(tally.turn[c.first] for c in transcript.conversations if c.first < len(tally))
    pressure, spikes, events = _pressure(transcript, curve, window, options, starts)
    context = _context(transcript, tally, curve, live, chosen)
    causes = Causes(tally, _number(tally, transcript.main), estimates, (s.turn for s in spikes))
    everything = (b for b in range(len(tally)) if b not in transcript.superseded)
    family = tally.family
    name = family.encoding if tally.is_exact() or family.name == "unknown" else f"{family.encoding} x {family.name}"
    calibration = curve.calibration
    return Analysis(
        transcript,
        window,
        *_usage(transcript),
        context,
        pressure,
        _peak(pressure),
        tuple(SpikeFound(s.turn, s.tokens, s.mean, s.ratio, causes.of(s.turn)) for s in spikes),
        events,
        shape_of([row.tokens for row in pressure]),
        (*transcript.diagnostics, *_notes(transcript, facts, window, context)),
        counter=Counter(
            name,
            tally.is_exact(),
            calibration is not None,
            calibration.ratio if calibration else 1.0,
            calibration.bound if calibration else family.session_bound,
            family.block_bound,
        ),
        composition=compose(tally, estimates, live, transcript.parts, LARGEST),
        composition_all=compose(tally, estimates, everything, transcript.parts),
        attention=_attention(transcript, tally, curve, facts, window, options, live, context),
        blocks=len(tally) - len(transcript.superseded),
        turns=len(pressure),
        conversations=_conversations(transcript, estimates),
        rows=tuple(_rows(transcript, tally, estimates, live)) if options.blocks else None,
        goal=facts.goal.goals.get(transcript.main),
    )


def _usage(
    transcript: Transcript,
) -> tuple[UsageTotals, dict[str, UsageTotals], tuple[tuple[str, bool, UsageTotals], ...]]:
    threads: dict[str, list[Usage]] = {}
    for call in transcript.usage:
        threads.setdefault(call.thread, []).append(call)
    branches = tuple(
        (b.leaf, b.live, total_usage(transcript.usage[i] for i in sorted(b.calls))) for b in transcript.branches
    )
    total = total_usage(transcript.usage, transcript.inherited)
    return total, {name: total_usage(calls) for name, calls in threads.items()}, branches


def _main_calls(transcript: Transcript) -> Iterator[Usage]:
    return (u for u in transcript.usage if u.thread == transcript.main)


def _pressure(
    transcript: Transcript,
    curve: CountedCurve | None,
    window: WindowSize,
    options: AnalysisOptions,
    starts: frozenset[int],
) -> tuple[tuple[TurnPressure, ...], list[Spike], tuple[LevelChange, ...]]:
    """Run the monitor over the calls of the main thread; a new conversation starts a new monitor."""

    def fresh() -> ContextPressureMonitor:
        return ContextPressureMonitor(window.tokens, thresholds=options.thresholds, options=options.pressure)

    cuts = {c.turn: c.kind for c in transcript.compactions}
    monitor, rows = fresh(), []
    spikes: list[Spike] = []
    events: list[LevelChange] = []
    for usage in _main_calls(transcript):
        if usage.turn in starts and monitor.turn:
            spikes += monitor.spikes
            events += monitor.events
            monitor = fresh()
        tokens, source = usage.context, "reported"
        if not tokens:
            if curve is None:
                continue
            tokens, source = round(curve.at_call[usage.turn - 1]) + (curve.overhead or 0), "counted"
        cut = cuts.get(usage.turn)
        reading = monitor.update(tokens, turn=usage.turn)
        rows.append(
            TurnPressure(
                reading.turn,
                reading.tokens,
                source,
                reading.utilization,
                reading.level,
                reading.velocity,
                reading.turns_until_overflow,
                reading.added,
                cut,
            )
        )
    return tuple(rows), spikes + monitor.spikes, tuple(events + monitor.events)


def _peak(pressure: tuple[TurnPressure, ...]) -> Peak | None:
    if not pressure:
        return None
    top = max(pressure, key=lambda row: row.tokens)
    return Peak(top.tokens, top.utilization, top.turn)


def _number(tally: Tally, thread: str) -> int:
    return tally.names.index(thread) if thread in tally.names else -1


def _largest_conversation(transcript: Transcript, estimates: array[float]) -> int | None:
    if not transcript.conversations:
        return None
    sizes = [sum(estimates[c.first : c.last]) for c in transcript.conversations]
    return sizes.index(max(sizes))


def _conversations(transcript: Transcript, estimates: array[float]) -> tuple[ConversationRow, ...]:
    return tuple(
        ConversationRow(c.line, c.id, c.messages, round(sum(estimates[c.first : c.last])))
        for c in transcript.conversations
    )


def _context(
    transcript: Transcript, tally: Tally | None, curve: CountedCurve | None, live: tuple[int, ...], chosen: int | None
) -> ContextState:
    """The window now. Nothing is reported between a compaction and the next call."""
    cut = max((c.turn for c in transcript.compactions if c.kind == "full"), default=0)
    abandoned = {i for b in transcript.branches if not b.live for i in b.calls}
    shared = {i for b in transcript.branches if b.live for i in b.calls}
    newest = None
    for index, usage in enumerate(transcript.usage):
        if usage.thread == transcript.main and usage.context and not (index in abandoned and index not in shared):
            newest = usage
    if newest is not None and newest.turn < cut:
        newest = None
    if chosen is not None and newest is not None and curve is not None and tally is not None:
        newest = next((u for u in _main_calls(transcript) if u.context and u.turn == _last_turn(tally, live)), None)
    reported = newest.context if newest else None
    includes_answer = transcript.format == "codex"
    with_output = None
    if newest is not None and reported is not None:
        with_output = reported if includes_answer else reported + newest.output
    if tally is None or curve is None:
        turn = newest.turn if newest else None
        return ContextState(reported, with_output, None, None, None, turn, None, None)
    counted = sum(curve.estimates[b] for b in live)
    at_turn = newest.turn if newest else (max((tally.turn[b] for b in live), default=0) or None)
    drift = None
    if newest is not None and reported:
        drift = (curve.at_call[newest.turn - 1] + (curve.overhead or 0)) / reported - 1
    order = transcript.order
    messages = len({tally.message[b] for b in live}) if chosen is not None or not order else len(order)
    return ContextState(
        reported,
        with_output,
        round(counted),
        drift,
        curve.overhead,
        at_turn,
        messages,
        order if chosen is None else (),
        None if chosen is None else transcript.conversations[chosen].line,
    )


def _last_turn(tally: Tally, live: tuple[int, ...]) -> int:
    return max((tally.turn[b] for b in live if tally.flags[b] & ANSWER), default=0)


def _attention(
    transcript: Transcript,
    tally: Tally,
    curve: CountedCurve,
    facts: _Facts,
    window: WindowSize,
    options: AnalysisOptions,
    live: tuple[int, ...],
    context: ContextState,
) -> Attention:
    watermark = options.pressure.watermark
    used = context.tokens
    if window.tokens is None or used is None:
        return Attention(watermark, None, WeakMiddle())
    beyond = max(0, used - int(watermark * window.tokens))
    places = positions(live, curve.estimates, curve.overhead or 0)
    goal = facts.goal.goals.get(transcript.main)
    visible = None
    if goal is not None and goal.block in places:
        task = facts.goal.current[transcript.main]
        age = max(0, (context.at_turn or 0) - tally.turn[goal.block])
        likeness = relevance(goal.text, task.text)
        visible = expected_visibility(places[goal.block], age, likeness, used / window.tokens)
    if not beyond:
        # a window below the watermark has no weak middle
        return Attention(watermark, 0, WeakMiddle(0, 0, 0), visible)
    constraints = [c for c in facts.constraints.found if c.block in places]
    pins = [p for p in facts.pins.found if p.block in places]
    counted = tally.count_texts([c.text for c in constraints] + [p.text for p in pins])
    sizes = [(item.block, n) for item, n in zip((*constraints, *pins), counted, strict=True)]
    return Attention(
        watermark,
        beyond,
        WeakMiddle(
            in_middle(places, [(goal.block, round(curve.estimates[goal.block]))] if goal else []),
            in_middle(places, sizes[: len(constraints)]),
            in_middle(places, sizes[len(constraints) :]),
        ),
        visible,
    )


def _rows(
    transcript: Transcript, tally: Tally, estimates: array[float], live: tuple[int, ...]
) -> Iterator[BlockRow]:
    window = set(live)
    exact = tally.is_exact()
    for b in range(len(tally)):
        if b in transcript.superseded:
            continue
        kind = KINDS[tally.kind[b]]
        yield BlockRow(
            block_id(tally, transcript.parts, b),
            tally.line[b],
            kind,
            tally.names[tally.tool[b]] or None,
            tally.turn[b],
            round(estimates[b]),
            exact and kind not in ("image", "document"),
            b in window,
        )


def _notes(
    transcript: Transcript, facts: _Facts, window: WindowSize, context: ContextState
) -> Iterator[Diagnostic]:
    """What the figures themselves give cause to say."""
    for line in facts.pins.unclosed:
        yield Diagnostic("warning", "unclosed_preserve", "a <preserve> tag that is never closed pins nothing", line)
    if window.source == "unknown":
        what = f"model {transcript.model!r} is not in the table" if transcript.model else "no model is named"
        yield Diagnostic(
            "warning", "unknown_window", f"{what}: utilization is unknown; give the window with --window TOKENS"
        )
    if context.drift is not None and abs(context.drift) > DRIFT_ALARM:
        yield Diagnostic(
            "warning",
            "drift",
            f"counted and reported tokens of the window differ by {context.drift:+.0%} at turn {context.at_turn}",
        )


"""Measuring a transcript whose blocks were counted: everything that reported usage alone does not tell."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ctxctl.facts.constraints import ConstraintFinder
from ctxctl.facts.goal import GoalFinder
from ctxctl.facts.pins import PinFinder
from ctxctl.model.block import KINDS, Block
from ctxctl.model.limits import ModelTable
from ctxctl.model.transcript import Diagnostic, Transcript
from ctxctl.pressure.attention import Attention, WeakMiddle, expected_visibility, in_middle, positions, relevance
from ctxctl.pressure.causes import Causes
from ctxctl.pressure.composition import block_id, compose
from ctxctl.pressure.context import context_of
from ctxctl.pressure.drift import drifts
from ctxctl.pressure.result import (
    Analysis,
    AnalysisOptions,
    BlockRow,
    ContextState,
    ConversationRow,
    Counter,
    SpikeFound,
)
from ctxctl.pressure.shape import shape_of
from ctxctl.pressure.turns import forecast_of, peak_of, pressure_of, usage_of
from ctxctl.pressure.window import WindowSize, why_unknown, window_of
from ctxctl.trace.curve import PLACEHOLDER_TOKENS, CountedCurve, count_curve, thread_number
from ctxctl.trace.tally import Tally

WATCHED = frozenset(("user_message", "system", "summary"))
"""Kinds of blocks that can hold facts."""
LARGEST = 10
OTHER_ENCODING = 0.05
"""Relative error to expect where a session changed to a model of another encoding after counting had begun: counts of
o200k_base and cl100k_base differ by less over recorded sessions (tests/real holds it to that); other scripts than
Latin may differ more."""


class Facts:
    """The fact finders, fed with the few kinds of blocks that can hold facts."""

    def __init__(self) -> None:
        self.goal = GoalFinder()
        self.constraints = ConstraintFinder()
        self.pins = PinFinder()

    def see(self, block: Block, number: int) -> None:
        self.goal.see(block, number)
        self.constraints.see(block, number)
        self.pins.see(block, number)


def measure(
    transcript: Transcript, tally: Tally, facts: Facts, table: ModelTable, options: AnalysisOptions
) -> Analysis:
    """The analysis of a transcript that was scanned into a tally and the fact finders."""
    curve = count_curve(transcript, tally)
    estimates = curve.estimates
    chosen = _largest_conversation(transcript, estimates)
    live = transcript.live
    if chosen is not None:
        live = tuple(range(transcript.conversations[chosen].first, transcript.conversations[chosen].last))
    window = window_of(options.window, transcript, table)
    starts = frozenset(tally.turn[c.first] for c in transcript.conversations if c.first < len(tally))
    counted = [tokens + (curve.overhead or 0) for tokens in curve.at_call]
    pressure, spikes, events = pressure_of(transcript, window, options, counted, starts)
    causes = Causes(
        tally,
        thread_number(transcript, tally),
        estimates,
        (s.turn for s in spikes),
        has_answer=transcript.context_has_answer,
    )
    found = tuple(SpikeFound(s.turn, s.tokens, s.mean, s.ratio, causes.of(s.turn)) for s in spikes)
    everything = (b for b in range(len(tally)) if b not in transcript.superseded)
    composition_all = compose(tally, estimates, everything, transcript.parts)
    rows = tuple(_rows(transcript, tally, estimates, live)) if options.blocks else None
    for block in transcript.cleared:  # from here on it is about the window now, where a placeholder stands for them
        estimates[block] = min(estimates[block], PLACEHOLDER_TOKENS)
    context = context_of(transcript, tally, curve, live, chosen)
    family = tally.family
    other = 0.0 if tally.encoding == family.encoding else OTHER_ENCODING
    calibration = curve.calibration
    return Analysis(
        transcript,
        window,
        *usage_of(transcript),
        context,
        pressure,
        peak_of(pressure),
        found,
        events,
        shape_of(pressure.tokens),
        (*transcript.diagnostics, *_notes(transcript, facts, window, context, table)),
        forecast=forecast_of(pressure, context, window, options, starts),
        counter=Counter(
            _counter_name(tally),
            tally.is_exact(),
            calibration is not None,
            calibration.ratio if calibration else 1.0,
            calibration.bound if calibration else max(family.session_bound, other),
            max(family.block_bound, other),
        ),
        composition=compose(tally, estimates, live, transcript.parts, LARGEST),
        composition_all=composition_all,
        attention=_attention(transcript, tally, curve, facts, window, options, live, context),
        blocks=len(tally) - len(transcript.superseded),
        turns=len(pressure),
        conversations=_conversations(transcript, estimates),
        rows=rows,
        goal=facts.goal.goals.get(transcript.main),
        watermark=options.pressure.watermark,
        act_from=options.act_from,
        counted=counted,
    )


def _counter_name(tally: Tally) -> str:
    """The encoding that counted, and whose tokens its counts stand for when it is not the model's own."""
    if tally.is_exact() or tally.family.name == "unknown":
        return tally.encoding
    return f"{tally.encoding} x {tally.family.name}"


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


def _attention(
    transcript: Transcript,
    tally: Tally,
    curve: CountedCurve,
    facts: Facts,
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
    blocks = [c.block for c in constraints] + [p.block for p in pins]
    sizes = list(zip(blocks, counted, strict=True))
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


def _rows(transcript: Transcript, tally: Tally, estimates: array[float], live: tuple[int, ...]) -> Iterator[BlockRow]:
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
    transcript: Transcript, facts: Facts, window: WindowSize, context: ContextState, table: ModelTable
) -> Iterator[Diagnostic]:
    """What the figures themselves give cause to say."""
    for line in facts.pins.unclosed:
        yield Diagnostic("warning", "unclosed_preserve", "a <preserve> tag that is never closed pins nothing", line)
    if window.source == "unknown":
        yield Diagnostic(
            "warning",
            "unknown_window",
            f"{why_unknown(transcript, table)}: utilization is unknown; give the window with --window TOKENS",
        )
    if context.drift is not None and context.reported and drifts(context.drift, context.reported):
        yield Diagnostic(
            "warning",
            "drift",
            f"counted and reported tokens of the window differ by {context.drift:+.0%} at turn {context.at_turn}",
        )

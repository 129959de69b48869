"""The report of `analyze`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from ctxctl.model.block import KINDS
from ctxctl.model.finding import Gate
from ctxctl.model.transcript import Diagnostic
from ctxctl.pressure.analysis import Analysis
from ctxctl.pressure.composition import Composition
from ctxctl.pressure.gates import DAMAGE
from ctxctl.pressure.options import PressureThresholds
from ctxctl.pressure.result import Forecast
from ctxctl.reports.document import Column, Fact, Finding, Level, Point, Report, Series, Table
from ctxctl.reports.plot import compact, plural

COLUMNS = (
    "path",
    "turn",
    "tokens",
    "source",
    "utilization",
    "level",
    "velocity",
    "turns_until_overflow",
    "added",
    "compaction",
    "remaining",
)
SHOWN_SPIKES = 5
LATE = 0.75
"""Utilization from which on a compaction that cuts the curve into teeth came late."""
LOW = 0.2
"""Share of the lowest band below which a curve is drawn without bands, to be seen at all."""
HINTS = {
    "torn_tail": "the session may still be running; analyze again when it is done",
    "torn_compression": "copy or compress the file again",
    "dangling_parent": "the session was cut or copied; what was bridged is counted as part of the window",
    "subagents_not_counted": "they lie in a folder of the session's name beside it, or as agent-*.jsonl",
    "drift": "hidden context (tools, reminders, dropped history) changed; reported tokens are what is billed",
    "impossible_usage": "figures of this request are left out of usage and pressure",
}


def analysis_report(
    analysis: Analysis,
    thresholds: PressureThresholds,
    cost: float | None,
    prices_of: str | None,
    gates: Iterable[Gate] = (),
) -> Report:
    """Everything that people see of one analysis. cost: USD at list prices; prices_of: date of the price table;
    gates: those that were asked for."""
    transcript = analysis.transcript
    facts = transcript.path if transcript.path != "-" else "standard input"
    about = [transcript.format, transcript.model or "no model named"]
    if transcript.id and transcript.id not in transcript.path:
        about.append(transcript.id)
    return Report(
        "analyze",
        facts,
        " · ".join(about),
        tuple(_facts(analysis, thresholds, cost, prices_of)),
        tuple(_tables(analysis)),
        (_series(analysis, thresholds),),
        tuple(_findings(analysis, gates)),
        tuple(_next_steps(analysis, thresholds)),
    )


def analysis_records(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """The rows of the CSV, in the order of COLUMNS: one per model call."""
    for row in analysis.pressure:
        yield (analysis.transcript.path, *(getattr(row, name) for name in COLUMNS[1:]))


def _level_now(analysis: Analysis, thresholds: PressureThresholds) -> str | None:
    used, window = analysis.context.tokens, analysis.window.tokens
    return thresholds.level(used / window) if used is not None and window else None


def _facts(
    analysis: Analysis, thresholds: PressureThresholds, cost: float | None, prices_of: str | None
) -> Iterator[Fact]:
    window, context = analysis.window, analysis.context
    used = context.tokens
    level = _level_now(analysis, thresholds)
    if used is not None:
        yield Fact("Window now", _of(used, window.tokens), _window_note(analysis), level)
        if context.reported is not None and context.pending:
            waiting = f"{context.pending:,} tokens counted after the newest answer, not sent yet"
            yield Fact("Waiting", waiting, f"{context.with_output:,} were reported with that answer")
    elif analysis.conversations or analysis.blocks:
        yield Fact("Window now", "nothing reported yet", _window_note(analysis))
    if analysis.conversations:
        sizes = [c.tokens for c in analysis.conversations]
        yield Fact(
            "Conversations",
            f"{len(sizes):,}, median {round(median(sizes)):,} tokens, largest {max(sizes):,}",
            f"the window shown is that of line {context.conversation}",
        )
    if analysis.peak is not None:
        utilization = analysis.peak.utilization
        at_peak = analysis.pressure.at(analysis.peak.turn)
        share = f" ({utilization:.0%})" if utilization is not None else ""
        yield Fact(
            "Peak",
            f"{analysis.peak.tokens:,} tokens{share} at turn {analysis.peak.turn}",
            level=at_peak.level if at_peak is not None else None,
        )
    if analysis.curve is not None:
        kinds = [c.kind for c in analysis.transcript.compactions]
        text = f"{analysis.curve}, {plural(kinds.count('full'), 'compaction')}"
        if "micro" in kinds:
            text += f", {plural(kinds.count('micro'), 'microcompaction')}"
        yield Fact("Curve", text, _shape_note(analysis))
    if analysis.forecast is not None:
        yield Fact("Forecast", _forecast(analysis.forecast, window.tokens))
    if analysis.usage.requests:
        yield Fact("Usage", _usage(analysis), _cost(analysis, cost, prices_of))
    else:
        yield Fact("Usage", "none recorded")
    if analysis.counter is not None:
        counter = analysis.counter
        how = "exact" if counter.exact else f"±{counter.bound:.0%}"
        if counter.calibrated:
            how += f", calibrated x{counter.ratio:.2f} to the reported usage"
        yield Fact("Counted", f"{analysis.context.counted:,} tokens in the transcript", f"{counter.name}, {how}")
    attention = analysis.attention
    if attention is not None and attention.tokens_beyond:
        weak = attention.weak_middle
        yield Fact(
            "Attention",
            f"{attention.tokens_beyond:,} tokens beyond the {attention.watermark:.0%} watermark",
            f"in the weak middle: goal {weak.goal:,}, constraints {weak.constraints:,}, pinned {weak.pinned:,} tokens",
        )


def _of(used: int, window: int | None) -> str:
    if window is None:
        return f"{used:,} tokens"
    return f"{used:,} of {window:,} tokens ({used / window:.0%})"


def _window_note(analysis: Analysis) -> str:
    source = analysis.window.source
    if source == "assumed":
        return "assumed: this model also runs with a larger window; set it with --window"
    return {
        "config": "window as set",
        "transcript": "window from the transcript",
        "model table": "window from the model table",
        "unknown": "window unknown; set it with --window",
    }[source]


def _shape_note(analysis: Analysis) -> str:
    full = analysis.peak.utilization if analysis.peak is not None else None
    if analysis.curve == "sawtooth":
        return "compaction comes late: the mark is too high" if full is not None and full >= LATE else ""
    if analysis.curve == "rising":
        return "it keeps growing: late calls cost most"
    near = full is not None and abs(full - analysis.watermark) < 0.15
    return "near the watermark, which is healthy" if near else ""


def _forecast(forecast: Forecast, window: int | None) -> str:
    speed = f"{forecast.velocity:,.0f} tokens per turn"
    if window is None:
        return f"{forecast.velocity:,.0f} tokens added per turn"
    if forecast.turns == -1:
        return "the window is full"
    if forecast.turns is None:
        return "nothing is being added"
    if forecast.turns == 0:
        return f"the next turn fills it, at {speed}"
    return f"full in about {plural(forecast.turns, 'turn')} at {speed}"


def _usage(analysis: Analysis) -> str:
    usage = analysis.usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    text = f"{compact(usage.total)} tokens in {plural(usage.requests, 'call')}"
    if prompt:
        cached = f"{usage.cache_read / prompt:.0%} from the cache"
        text += f": {compact(prompt)} prompt ({cached}), {compact(usage.output)} output"
    helpers = len([name for name in analysis.by_thread if name != analysis.transcript.main])
    if helpers and not analysis.threads_known:
        return text + ", sub-agents included"
    return text + (f", {plural(helpers, 'sub-agent')} included" if helpers else "")


def _cost(analysis: Analysis, cost: float | None, prices_of: str | None) -> str:
    recorded = analysis.usage.cost
    if recorded is not None:
        return f"${recorded:,.2f} as recorded"
    return f"${cost:,.2f} at list prices of {prices_of}" if cost is not None else "no price known"


def _series(analysis: Analysis, thresholds: PressureThresholds) -> Series:
    spikes = {s.turn for s in analysis.spikes}
    overflows = {o.turn for o in analysis.transcript.overflows}
    points = tuple(
        Point(
            row.turn,
            row.tokens,
            row.level,
            tuple(
                name
                for name, there in (
                    ("compaction", row.compaction is not None),
                    ("spike", row.turn in spikes),
                    ("overflow", row.turn in overflows),
                )
                if there
            ),
        )
        for row in analysis.pressure
    )
    window = analysis.window.tokens
    title = "Tokens in the window, turn by turn"
    if any(p.marks for p in points):
        title += "   (▼ compaction  ! spike  X overflow)"
    if window is None or analysis.peak is None:
        return Series(title, points)
    bands = [(name, getattr(thresholds, name) * window) for name in ("yellow", "orange", "red")]
    # up to the first threshold that the session stayed below: what lies above it would only squeeze the curve
    top = next((y * 1.08 for _, y in bands if y > analysis.peak.tokens), float(window))
    if analysis.peak.tokens < LOW * top:
        return Series(f"{title}   (yellow from {compact(round(bands[0][1]))})", points)
    return Series(title, points, tuple(band for band in bands if band[1] <= top), top)


def _tables(analysis: Analysis) -> Iterator[Table]:
    composition = analysis.composition
    if composition is None:
        return
    counted = sum(k.tokens for k in composition.by_kind.values())
    # the rows add up to the window as it is reported, where that is more than what was counted
    context = analysis.context
    frames = context.frames or 0
    rest = max(0, (context.tokens or 0) - counted - frames) if context.overhead else 0
    total = counted + frames + rest
    yield _kinds(composition, total, frames, rest)
    if composition.by_tool:
        yield Table(
            "Tokens by tool",
            (Column("tool", flexible=True), *(Column(t, "right") for t in ("calls", "errors", "tokens", "share"))),
            tuple(
                (
                    name,
                    f"{t.calls:,}" if t.calls else "-",
                    f"{t.errors:,}",
                    f"{t.tokens:,}",
                    _share(t.tokens, total),
                )
                for name, t in list(composition.by_tool.items())[:8]
            ),
            _more(len(composition.by_tool) - 8, "tools"),
        )
    yield Table(
        "Largest blocks in the window",
        (
            Column("block"),
            Column("kind"),
            Column("turn", "right"),
            Column("tokens", "right"),
            Column("of", flexible=True),
        ),
        tuple(
            (b.block, b.kind, str(b.turn), f"{b.tokens:,}", " ".join(filter(None, (b.tool, b.target))))
            for b in composition.largest[:8]
        ),
    )
    if analysis.spikes:
        top = sorted(analysis.spikes, key=lambda s: -s.tokens)[:SHOWN_SPIKES]
        yield Table(
            "Velocity spikes",
            (
                Column("turn", "right"),
                Column("added", "right"),
                Column("ratio", "right"),
                Column("cause", flexible=True),
            ),
            tuple((str(s.turn), f"{s.tokens:,}", f"{s.ratio:.1f}x", s.cause or "") for s in top),
            _more(len(analysis.spikes) - len(top), "spikes"),
        )


def _more(number: int, what: str) -> str:
    return f"{number:,} more {what}; all with --json" if number > 0 else ""


def _kinds(composition: Composition, total: int, frames: int, rest: int) -> Table:
    rows = [
        (kind, f"{share.blocks:,}", f"{share.tokens:,}", _share(share.tokens, total), _bar(share.tokens, total))
        for kind in KINDS
        if (share := composition.by_kind.get(kind)) is not None
    ]
    if frames:
        rows.append(("message frames", "", f"{frames:,}", _share(frames, total), _bar(frames, total)))
    if rest:
        rows.append(("not in the file", "", f"{rest:,}", _share(rest, total), _bar(rest, total)))
    rows.sort(key=lambda row: -int(row[2].replace(",", "")))
    return Table(
        "What fills the window",
        (Column("kind"), Column("blocks", "right"), Column("tokens", "right"), Column("share", "right"), Column("")),
        tuple(rows),
        "not in the file: system prompt and tool definitions, as the reported usage shows" if rest else "",
    )


def _share(tokens: int, total: int) -> str:
    return f"{tokens / total:.1%}" if total else "-"


def _bar(tokens: int, total: int, width: int = 24) -> str:
    return "█" * round(tokens / total * width) if total else ""


def _findings(analysis: Analysis, gates: Iterable[Gate]) -> Iterator[Finding]:
    for gate in gates:
        if not gate.ok:
            yield Finding("critical", "gate", f"failed: {gate.text}")
    for overflow in analysis.transcript.overflows:
        yield Finding(
            "critical",
            "overflow",
            f"turn {overflow.turn}: the request did not fit the window: {overflow.message}",
            line=overflow.line,
        )
    for item in analysis.diagnostics:
        yield _finding(item)


def _finding(item: Diagnostic) -> Finding:
    level: Level = "info" if item.severity == "info" else "warning"
    return Finding(level, item.code, item.message, HINTS.get(item.code, ""), item.line)


def _next_steps(analysis: Analysis, thresholds: PressureThresholds) -> Iterator[str]:
    """What follows from the figures, at most a few lines; nothing when all is well."""
    used, window = analysis.context.tokens, analysis.window.tokens
    full = used / window if used is not None and window else 0.0
    if _level_now(analysis, thresholds) == "red":
        yield "The window is nearly full: compact now, or close the session with a checkpoint."
    elif full >= analysis.act_from:
        yield "Compact before the next large read; old tool results are the cheapest to give up."
    composition = analysis.composition
    if composition is not None and composition.by_kind:
        top, share = max(composition.by_kind.items(), key=lambda item: item[1].tokens)
        results = composition.by_kind.get("tool_result")
        total = max(used or 0, sum(k.tokens for k in composition.by_kind.values()), 1)
        if results is not None and results.share > 0.6 and results.tokens > 10_000:
            part = results.tokens / total
            yield f"Tool results are {part:.0%} of the window: ask for ranges and matches, not whole files."
        elif top == "thinking" and share.share > 0.5 and share.tokens > 10_000:
            part = share.tokens / total
            yield f"Reasoning is {part:.0%} of the window: lower the effort, or let old reasoning be dropped."
    retried = next((s for s in analysis.spikes if s.cause and "failing call retried" in s.cause), None)
    if retried is not None:
        yield f"Turn {retried.turn} looks like a runaway loop: {retried.cause}."
    if analysis.window.source in ("assumed", "unknown"):
        yield "Say how large the window is with --window 200k (or max_context_tokens in .ctxctl.yaml)."
    if any(d.code in DAMAGE for d in analysis.diagnostics):
        yield "Parts of the file are damaged; the lines are listed above and in --json."

"""The report of `health`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from ctxctl.health.options import AlertOptions
from ctxctl.health.result import METRICS, Health, Trend
from ctxctl.model import finding as model
from ctxctl.model.finding import FINDING_LEVELS
from ctxctl.reports.build.paths import shared_folder
from ctxctl.reports.document import Column, Fact, Finding, Report, Table
from ctxctl.reports.plot import compact, plural

MORE = 3
"""Findings of one code that are shown one by one."""
QUOTES = 3
LOST = 5
"""Lost questions that are shown."""
OVERVIEW = 12
"""Findings of all sessions that the overview names."""
TITLES = {
    "utilization": "utilization",
    "eviction_frequency": "evictions per turn",
    "compaction_frequency": "compactions per 100 turns",
    "compression_ratio": "compression ratio",
    "burn_rate": "burn rate, tokens per turn",
    "fidelity": "fidelity of compactions",
    "tool_result_bloat": "share of tool results",
    "cache_hit_rate": "cache hit rate",
    "resume_success_rate": "resumes that went well",
    "token_drift": "counted / reported - 1",
    "overflow_turns": "overflow turns",
}
SHARES = frozenset(
    (
        "utilization",
        "fidelity",
        "tool_result_bloat",
        "cache_hit_rate",
        "resume_success_rate",
    )
)


def health_report(health: Health, alerts: AlertOptions, *, verbose: bool = False) -> Report:
    """One session. verbose: with the quotes that findings rest on."""
    about = [health.format, health.model or "no model named", plural(health.turns, "turn")]
    return Report(
        "health",
        f"Health of {health.path if health.path != '-' else 'standard input'}",
        " · ".join(about),
        tuple(_facts(health)),
        (_metrics(health, alerts), *_lost(health, verbose), *_observations(health)),
        findings=tuple(_findings(health, verbose)),
        next_steps=tuple(_next_steps(health, verbose)),
    )


def verdict(counts: Mapping[str, int], noun: str = "") -> tuple[str, str]:
    """What a reader should know first, in words, and the level that colours it."""
    told = [plural(counts[level], f"{level} finding") for level in reversed(FINDING_LEVELS) if counts.get(level)]
    if counts.get("critical"):
        return ", ".join(told), "critical"
    if counts.get("warning"):
        return ", ".join(told), "warning"
    return (f"nothing to worry about{noun}; {told[0]}" if told else f"nothing to worry about{noun}"), "green"


def counts_of(healths: Sequence[Health]) -> dict[str, int]:
    """How many alerts and findings there are of each level."""
    counts: dict[str, int] = dict.fromkeys(FINDING_LEVELS, 0)
    for health in healths:
        for item in (*health.alerts, *health.findings):
            counts[item.level] += 1
    return counts


def _facts(health: Health) -> Iterator[Fact]:
    text, level = verdict(counts_of([health]))
    if level == "green" and not health.turns:
        text, level = "nothing could be measured: there is no model call", "warning"
    elif level == "green" and health.damage:
        text, level = "the file is damaged", "warning"
    yield Fact("Health", text, level=level)
    if health.tokens is not None:
        of = f" of {health.window:,} ({health.tokens / health.window:.0%})" if health.window else ""
        note = "" if health.window else "the window is unknown; --window sets it"
        if health.window_source == "assumed":
            note = "assumed: this model also runs with a larger window; set it with --window"
        yield Fact("Window now", f"{health.tokens:,} tokens{of}", note)
    if health.peak is not None:
        share = f" ({health.peak_utilization:.0%})" if health.peak_utilization is not None else ""
        waits = health.tokens is not None and health.tokens > health.peak
        yield Fact("Peak", f"{health.peak:,} tokens{share}", "the window now also holds what waits" if waits else "")
    if health.curve is not None:
        yield Fact("Curve", f"{health.curve}, {plural(health.compactions, 'compaction')}")
    if health.damage:
        what = f"{plural(health.damage, 'part')} of the file could not be read"
        yield Fact("Damage", what, "`ctxctl analyze` names the lines", "warning")
    if health.cost is not None:
        each = f"${health.cost / health.requests:,.3f} per call" if health.requests else ""
        yield Fact("Cost", f"${health.cost:,.2f}", each)
    yield _trend("turns", health.trend)
    if health.gates:
        failed = sum(not gate.ok for gate in health.gates)
        said = f"{plural(failed, 'limit')} of {len(health.gates):,} failed" if failed else "all hold"
        yield Fact("Limits", f"{len(health.gates):,} checked, {said}", level="critical" if failed else "green")


def _trend(what: str, trend: Trend) -> Fact:
    """What changed over the last points."""
    if trend.insufficient_data:
        return Fact("Trend", f"fewer than 2 {what} were measured")
    parts = []
    if trend.utilization_change is not None:
        parts.append(f"{trend.utilization_change:+.1%} of the window")
    if trend.burn_rate_change is not None:
        parts.append(f"burn rate changed by {trend.burn_rate_change:+,.0f} tokens per turn")
    if trend.avg_fidelity is not None:
        parts.append(f"fidelity {trend.avg_fidelity:.0%} on average")
    return Fact(f"Last {trend.data_points} {what}", ", ".join(parts) or "nothing comparable was measured")


def shown(name: str, value: object) -> str:
    """A metric's value for people."""
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{kind} {share:.1f}" for kind, share in value.items() if share) or "0"
    assert isinstance(value, (int, float))
    if name == "token_drift":
        return f"{value:+.1%}"
    if name in SHARES:
        return f"{value:.1%}"
    if name == "compression_ratio":
        return f"{value:.1f}"
    if isinstance(value, int) or name == "burn_rate":
        return f"{value:,.0f}"
    return f"{value:.2f}"


def _limit(name: str, alerts: AlertOptions) -> str:
    return {
        "utilization": f"{alerts.utilization_critical:.0%} for {plural(alerts.critical_turns, 'turn')}",
        "eviction_frequency": f"{alerts.eviction_warning:g}",
        "compression_ratio": f"at least {alerts.compression_ratio_warning:g}",
        "fidelity": f"at least {alerts.fidelity_warning:.0%}",
        "cache_hit_rate": f"at least {alerts.cache_hit_rate_warning:.0%}, on a stable task",
        "resume_success_rate": f"at least {alerts.resume_success_warning:.0%}",
        "token_drift": f"±{alerts.token_drift_warning:.0%}",
        "overflow_turns": "",
    }.get(name, "")


def _metrics(health: Health, alerts: AlertOptions) -> Table:
    rows: list[tuple[str, ...]] = []
    dimmed = set()
    for name in METRICS:
        value = getattr(health.metrics, name)
        note = _limit(name, alerts) if value is not None else health.metrics.why.get(name, "not measured")
        if value is None:
            dimmed.add(len(rows))
        rows.append((TITLES[name], shown(name, value), note))
    columns = (
        Column("metric"),
        Column("value", "right"),
        Column("limit, or why not measured", prose=True, flexible=True),
    )
    return Table("Metrics", columns, tuple(rows), dimmed=frozenset(dimmed))


def _lost(health: Health, verbose: bool) -> Iterator[Table]:
    """Questions that compactions made unanswerable, the newest first, and what later turns missed."""
    fidelity = health.fidelity
    if fidelity is None or not fidelity.lost:
        return
    shown = fidelity.lost if verbose else fidelity.lost[:LOST]
    rows = tuple(
        (f"{one.turn}" if one.turn is not None else "", one.kind, f"{one.question} - {one.answer}") for one in shown
    )
    columns = (Column("turn", "right"), Column("about"), Column("question - answer before", flexible=True, prose=True))
    more = fidelity.asked - fidelity.answered - len(shown)
    note = f"{fidelity.answered:,} of {plural(fidelity.asked, 'question')} are still answered"
    note += f"; {more:,} more are lost (-v, --json)" if more > 0 else ""
    if fidelity.future_kept is not None:
        note += f"; of what later turns used, {fidelity.future_kept:.0%} was still there"
    yield Table("What compactions lost", columns, rows, note)


def _grouped(items: Sequence[model.Finding]) -> dict[str, list[model.Finding]]:
    groups: dict[str, list[model.Finding]] = {}
    for item in items:
        groups.setdefault(item.code, []).append(item)
    return groups


def _where(item: model.Finding) -> str:
    return f"turn {item.turn}: " if item.turn is not None else ""


def _findings(health: Health, verbose: bool) -> Iterator[Finding]:
    """Alerts and findings that are more than information, the most severe first; of one code the first few."""
    items = [i for i in (*health.alerts, *health.findings) if i.level != "info"]
    items.sort(key=lambda i: -FINDING_LEVELS.index(i.level))
    for gate in health.gates:
        if not gate.ok:
            yield Finding("critical", "gate", f"failed: {gate.text}")
    for code, group in _grouped(items).items():
        few = group if verbose else group[:MORE]
        for number, item in enumerate(few):
            last = number + 1 == len(few)
            more = f"; {len(group) - len(few)} more of these" if len(few) < len(group) else ""
            quotes = _quotes(item) if verbose else ""
            hint = item.hint if last else ""
            yield Finding(item.level, code, f"{_where(item)}{item.message}{more if last else ''}{quotes}", hint)


def _quotes(item: model.Finding) -> str:
    if item.evidence is None:
        return ""
    return "".join(f"\n  turn {q.turn}, line {q.line}: {q.text}" for q in item.evidence.quotes[:QUOTES])


def _observations(health: Health) -> Iterator[Table]:
    """What is only information: a line each."""
    items = [i for i in (*health.alerts, *health.findings) if i.level == "info"]
    if not items:
        return
    rows: list[tuple[str, ...]] = []
    for code, group in _grouped(items).items():
        first = group[0]
        more = f" (and {len(group) - 1} more)" if len(group) > 1 else ""
        rows.append((f"{first.turn}" if first.turn is not None else "", code, f"{first.message}{more}"))
    columns = (Column("turn", "right"), Column("code"), Column("what was seen", flexible=True, prose=True))
    yield Table(
        "Observations", columns, tuple(rows), "for information; `ctxctl list detectors` says what each looks for"
    )


def _next_steps(health: Health, verbose: bool) -> Iterator[str]:
    path = shlex.quote(health.path) if health.path != "-" else "SESSION"
    codes = {item.code for item in (*health.alerts, *health.findings) if item.level != "info"}
    if health.tokens is not None and health.window and health.tokens / health.window >= 0.75:
        yield f"ctxctl compact --to 50% --dry-run {path}"
    if not verbose and codes:
        yield f"ctxctl health -v {path}  (quotes what the findings rest on)"
    if codes & {"prefix_break", "low_cache_hit_rate", "heavy_compaction"}:
        yield f"ctxctl simulate {path}  (what other policies would have cost)"
    yield f"ctxctl budget {path}  (which component fills the window)"


def overview_report(healths: Sequence[Health], failed: int, trend: Trend | None = None) -> Report:
    """Several sessions: a line each, those with the worst findings first, and what was found most. trend: over the
    newest runs of a history."""
    prefix = shared_folder([h.path for h in healths])
    ordered = sorted(healths, key=_severity)
    counts = counts_of(healths)
    text, level = verdict(counts, f" in {plural(len(healths), 'session')}")
    costs = [h.cost for h in healths if h.cost is not None]
    facts = [
        Fact("Health", text, level=level),
        Fact("Turns", f"{sum(h.turns for h in healths):,}", f"{sum(h.compactions for h in healths):,} compactions"),
    ]
    if costs:
        unpriced = sum(1 for h in healths if h.cost is None and h.requests)
        note = f"no price is known of {plural(unpriced, 'session')}" if unpriced else ""
        facts.append(Fact("Cost", f"${sum(costs):,.2f}", note))
    if trend is not None:
        facts.append(_trend("runs", trend))
    if damaged := [h for h in healths if h.damage]:
        parts = plural(sum(h.damage or 0 for h in damaged), "part")
        facts.append(Fact("Damage", f"{parts} of {plural(len(damaged), 'file')} could not be read", level="warning"))
    if failed:
        facts.append(Fact("Failed", f"{plural(failed, 'file')}, see the errors", level="critical"))
    columns = (
        Column("session", flexible=True),
        Column("turns", "right"),
        Column("peak", "right"),
        Column("full", "right"),
        Column("hits", "right"),
        Column("cost", "right"),
        Column("!!", "right"),
        Column("!", "right"),
        Column("i", "right"),
    )
    note = "!! critical, ! warning, i information" + (f"; paths are below {prefix}" if prefix else "")
    by_session = Table("By session, worst first", columns, tuple(_row(h, prefix) for h in ordered), note)
    tables = (by_session, *_by_code(healths))
    return Report(
        "health",
        plural(len(healths), "session"),
        facts=tuple(facts),
        tables=tables,
        findings=tuple(_worst(ordered, prefix)),
        next_steps=(f"ctxctl health {shlex.quote(ordered[0].path)}  (one session in full)",) if ordered else (),
    )


def _severity(health: Health) -> tuple[int, int, int, str]:
    counts = counts_of([health])
    return -counts["critical"], -counts["warning"], -counts["info"], health.path


def _row(health: Health, prefix: str) -> tuple[str, ...]:
    counts = counts_of([health])
    hits = health.metrics.cache_hit_rate
    return (
        health.path.removeprefix(prefix),
        f"{health.turns:,}",
        compact(health.peak) if health.peak is not None else "-",
        f"{health.peak_utilization:.0%}" if health.peak_utilization is not None else "?",
        f"{hits:.0%}" if hits is not None else "-",
        f"${health.cost:,.2f}" if health.cost is not None else "?",
        *(f"{counts[level]}" if counts[level] else "" for level in reversed(FINDING_LEVELS)),
    )


def _by_code(healths: Sequence[Health]) -> Iterator[Table]:
    found: dict[tuple[int, str], list[int]] = {}
    for health in healths:
        own: dict[tuple[int, str], int] = {}
        for item in (*health.alerts, *health.findings):
            key = (-FINDING_LEVELS.index(item.level), item.code)
            own[key] = own.get(key, 0) + 1
        for key, count in own.items():
            sums = found.setdefault(key, [0, 0])
            sums[0] += count
            sums[1] += 1
    if not found:
        return
    rows = tuple(
        (FINDING_LEVELS[-level], code, f"{count:,}", f"{sessions:,}")
        for (level, code), (count, sessions) in sorted(found.items(), key=lambda i: (i[0][0], -i[1][0], i[0][1]))
    )
    columns = (Column("level"), Column("code"), Column("found", "right"), Column("sessions", "right"))
    yield Table("What was found", columns, rows)


def _worst(healths: Sequence[Health], prefix: str) -> Iterator[Finding]:
    """The most severe findings, one per code and session."""
    for health in healths:
        for gate in health.gates:
            if not gate.ok:
                yield Finding("critical", "gate", f"{health.path.removeprefix(prefix)}: failed: {gate.text}")
    items = [(h, i) for h in healths for i in (*h.alerts, *h.findings) if i.level != "info"]
    items.sort(key=lambda pair: -FINDING_LEVELS.index(pair[1].level))
    seen: set[tuple[str, str]] = set()
    told: set[str] = set()
    for health, item in items:
        if (health.path, item.code) in seen or len(seen) == OVERVIEW:
            continue
        seen.add((health.path, item.code))
        hint = item.hint if item.code not in told else ""
        told.add(item.code)
        yield Finding(item.level, item.code, f"{health.path.removeprefix(prefix)}: {_where(item)}{item.message}", hint)

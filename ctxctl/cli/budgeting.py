"""One run of `budget`, after its arguments are understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli import options as opt
from ctxctl.cli.batch import Done, Skipped, deliver, each, failed_status, tell_skipped
from ctxctl.cli.examining import examining_of, for_form, limited
from ctxctl.cli.inputs import Inputs
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.errors import ExitCode

if TYPE_CHECKING:
    from ctxctl.budgets.result import Budget
    from ctxctl.model.finding import Gate
    from ctxctl.pressure.result import Analysis

SHOWN = 3
"""Sessions up to which each has a report of its own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for. limits: of gates, by their names in the settings; components: of components."""

    from_: str | None
    window: int | None
    fail_on: frozenset[str]
    limits: Mapping[str, Any]
    components: Mapping[str, str]
    turns: bool
    subagents: bool
    form: opt.CheckFormat
    output: Path | None
    force: bool
    config: Path | None


@dataclass(frozen=True, slots=True)
class _Measured:
    budget: Budget
    analysis: Analysis


class Run:
    """Measures all inputs, holds them against the limits, and delivers one payload."""

    def __init__(self, asked: Asked, inputs: Inputs, streams: Streams) -> None:
        from ctxctl.formats import FORMATS
        from ctxctl.settings.load import load, model_table

        if asked.from_ is not None:
            FORMATS.get(asked.from_)
        self.asked, self.inputs, self.streams = asked, for_form(inputs, asked.form), streams
        loaded = load(asked.config, overrides={"max_context_tokens": asked.window})
        self.settings = settings = loaded.settings
        self.table = model_table(loaded)
        components = {**settings.gates.components, **asked.components}
        self.gates = replace(limited(settings.gates, asked.limits), components=components)
        self.examining = examining_of(settings, asked.from_, asked.subagents)

    def go(self) -> int:
        from ctxctl.budgets.gates import total_gates
        from ctxctl.reports.build.total import total_of

        done, skipped = each(self.inputs, self._one)
        tell_skipped(done, skipped, self.streams)
        good = [d.value for d in done if d.value is not None]
        budgets = [m.budget for m in good]
        # calls that stand in several files (forks) were paid once
        cost = total_of([m.analysis for m in good], self.table).cost
        total = total_gates(budgets, self.gates, cost)
        data = self._render(done, skipped, budgets, cost, total)
        deliver(data, self.asked.output, self.asked.force, [b.path for b in budgets], self.streams)
        return self._status(done, budgets, total)

    def _one(self, path: str) -> _Measured:
        from ctxctl.budgets.gates import gates_of
        from ctxctl.health.budgeted import budget_of_session
        from ctxctl.health.session import examine

        with Progress(self.streams, path) as progress:
            session = examine(path, self.table, self.examining, progress)
            budget = budget_of_session(session)
        return _Measured(replace(budget, gates=gates_of(budget, self.gates, self.asked.fail_on)), session.analysis)

    def _status(self, done: list[Done[_Measured]], budgets: Sequence[Budget], total: Sequence[Gate]) -> int:
        failed = [("" if self.inputs.single else f"{b.path}: ", g) for b in budgets for g in b.gates if not g.ok]
        failed += [("", g) for g in total if not g.ok]
        for where, gate in failed:
            say(f"failed: {where}{gate.text}")
        status = failed_status(done)
        if status is not None:
            return status
        return ExitCode.FINDING if failed else ExitCode.OK

    # what is delivered

    def _render(
        self,
        done: list[Done[_Measured]],
        skipped: Skipped,
        budgets: Sequence[Budget],
        cost: float | None,
        total: Sequence[Gate],
    ) -> bytes | Iterator[bytes]:
        form = self.asked.form
        if form in (opt.CheckFormat.json, opt.CheckFormat.jsonl):
            return self._json(done, skipped, cost, total)
        if form is opt.CheckFormat.csv:
            from ctxctl.reports import csv
            from ctxctl.reports.build.budget_data import COLUMNS, component_records

            return csv.render(COLUMNS, (row for b in budgets for row in component_records(b))).encode()
        reports = self._reports(budgets, len(done) - len(budgets), cost, total)
        if form is opt.CheckFormat.text:
            return self.streams.text(reports, to_file=self.asked.output is not None)
        if form is opt.CheckFormat.markdown:
            from ctxctl.reports import markdown

            return markdown.render(reports).encode()
        return self._checked(done, total, reports)

    def _reports(self, budgets: Sequence[Budget], failed: int, cost: float | None, total: Sequence[Gate]) -> list[Any]:
        from ctxctl.reports.build.budget import budget_report, overview_report

        reports = [budget_report(b, self.table.date) for b in budgets] if len(budgets) <= SHOWN else []
        if not self.inputs.single:
            reports.append(overview_report(budgets, failed, cost, total))
        return reports

    def _json(
        self, done: list[Done[_Measured]], skipped: Skipped, cost: float | None, total: Sequence[Gate]
    ) -> bytes | Iterator[bytes]:
        from ctxctl.reports.build.budget_data import budget_data, total_data, turn_costs
        from ctxctl.reports.build.failure import error_of, failed_data
        from ctxctl.reports.json import dumps, envelope, pieces

        settings = asdict(self.settings)
        entries: list[dict[str, Any]] = []
        for d in done:
            if d.error is not None:
                entries.append(failed_data(d.path, d.error))
            elif d.value is not None:
                result = budget_data(d.value.budget)
                if self.asked.turns:
                    result["cost"]["turns"] = turn_costs(d.value.budget)
                entries.append({"path": d.path, "result": result})
        if self.asked.form is opt.CheckFormat.jsonl:
            return b"".join(
                dumps({"path": e["path"], **envelope("budget", settings, e.get("result")), **error_of(e)})
                for e in entries
            )
        gates = list(map(asdict, total))
        if self.inputs.single:
            result = entries[0]["result"]
            return pieces(envelope("budget", settings, {**result, "gates": [*result["gates"], *gates]}))
        budgets = [d.value.budget for d in done if d.value is not None]
        sums = total_data(budgets, cost, len(done) - len(budgets), len(skipped))
        return pieces(
            envelope(
                "budget",
                settings,
                {
                    "files": entries,
                    "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
                    "total": {**sums, "gates": gates},
                },
            )
        )

    def _checked(self, done: list[Done[_Measured]], total: Sequence[Gate], reports: Sequence[Any]) -> bytes:
        """The forms of CI."""
        from ctxctl.budgets.advice import CODES, HARD, SOFT, findings_of
        from ctxctl.cli.checks import rendered_checks
        from ctxctl.reports.document import Checked

        checked = [
            Checked(d.path, d.path, (), (), d.error)
            if d.value is None
            else Checked(d.path, d.path, findings_of(d.value.budget), d.value.budget.gates)
            for d in done
        ]
        failing = {"soft": {SOFT, HARD}, "hard": {HARD}, "forecast": {"forecast"}}
        codes = frozenset(code for word in self.asked.fail_on for code in failing[word])
        return rendered_checks(self.asked.form, checked, total, reports, codes, command="budget", codes=CODES)

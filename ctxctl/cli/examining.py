"""One run of `health`, after its arguments are understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli import options as opt
from ctxctl.cli.batch import Done, Skipped, deliver, each, failed_status, tell_skipped
from ctxctl.cli.examined import Examined, rendered
from ctxctl.cli.inputs import Inputs
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.errors import ExitCode, UsageError, shown_path

if TYPE_CHECKING:
    from ctxctl.budgets.gate_options import GateOptions
    from ctxctl.health.compare import Comparison
    from ctxctl.health.result import Health, Trend
    from ctxctl.health.session import Examining


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for. limits: of gates, by their names in the settings."""

    from_: str | None
    window: int | None
    fail_on: tuple[str, ...]
    limits: Mapping[str, Any]
    ignore: tuple[str, ...]
    history: Path | None
    ref: str | None
    compare_to: str | None
    turns: bool
    state_dir: Path | None
    subagents: bool
    otlp: str | None
    series: int
    form: opt.CheckFormat
    output: Path | None
    force: bool
    config: Path | None


def examining_of(settings: Any, from_: str | None, subagents: bool, state: str | None = None) -> Examining:
    """How sessions are examined under some settings. state: path of a saved state to check."""
    from ctxctl.health.session import Examining
    from ctxctl.pressure.result import AnalysisOptions

    return Examining(
        AnalysisOptions(
            window=settings.max_context_tokens,
            thresholds=settings.pressure_thresholds,
            pressure=settings.pressure,
            format_name=from_,
            companions=subagents,
        ),
        settings.eviction,
        settings.budget,
        settings.health_monitoring,
        state=state,
    )


def for_form(inputs: Inputs, form: opt.CheckFormat) -> Inputs:
    """The inputs as a form needs them: what CI and monitoring read has a place for a file that can't be read, also when
    it is the only one."""
    one = form.value in opt.OutputFormat.__members__
    return inputs if one else replace(inputs, single=False)


def limited(gates: GateOptions, limits: Mapping[str, Any]) -> GateOptions:
    """Limits of the settings with those of the command line; UsageError for one that makes no sense."""
    import math

    import msgspec

    from ctxctl.budgets.gate_options import GateOptions

    for name, value in limits.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{option}: {value} is no limit")
        try:
            msgspec.convert({name: value}, GateOptions)
        except msgspec.ValidationError as error:
            raise UsageError(f"{option}: {str(error).partition(' - at ')[0]}, not {value:g}") from None
    return replace(gates, **limits)


class Measuring:
    """Measures sessions under the settings of one run."""

    def __init__(self, asked: Asked) -> None:
        from ctxctl.formats import FORMATS
        from ctxctl.health.gates import known_codes, words_of
        from ctxctl.settings.load import load, model_table

        if asked.from_ is not None:
            FORMATS.get(asked.from_)
        self.loaded = load(asked.config, overrides={"max_context_tokens": asked.window})
        self.settings = settings = self.loaded.settings
        self.table = model_table(self.loaded)
        self.fail_on = words_of(asked.fail_on)
        self.ignore = known_codes((*settings.health_monitoring.ignore, *asked.ignore), "--ignore")
        self.gates = limited(settings.gates, asked.limits)
        self.examining = examining_of(settings, asked.from_, asked.subagents, self._state(asked))

    def _state(self, asked: Asked) -> str | None:
        """The state file to check; InputError where there is none or it can't be read."""
        if asked.state_dir is None:
            return None
        from ctxctl.state.record import load

        path = asked.state_dir / self.settings.cross_window.state_file
        load(path)
        return str(path)

    def examiner(self) -> Any:
        """A fresh one: what shows across sessions is that of one run."""
        from ctxctl.health.measure import Examiner

        return Examiner(self.ignore)

    def one(self, path: str, examiner: Any, progress: Callable[[int, int | None], None] | None = None) -> Health:
        """Measure one session."""
        from ctxctl.health.session import examine

        health: Health = examiner.measure(examine(path, self.table, self.examining, progress))
        return health


class Run:
    """Measures all inputs, holds them against the limits, and delivers one payload."""

    def __init__(self, asked: Asked, inputs: Inputs, streams: Streams) -> None:
        self.asked, self.inputs, self.streams = asked, for_form(inputs, asked.form), streams
        self.measuring = Measuring(asked)
        if "regression" in self.measuring.fail_on and asked.compare_to is None:
            raise UsageError(
                "--fail-on regression: there is nothing to compare with",
                hint="add --compare-to BRANCH with --history FILE, or --compare-to REPORT.json",
            )
        if asked.otlp is not None:
            from ctxctl.reports.otel import check

            check(asked.otlp)
        self.base = self._base()

    def go(self) -> int:
        examiner = self.measuring.examiner()
        done, skipped = self._measured(examiner)
        tell_skipped(done, skipped, self.streams)
        healths = [d.value for d in done if d.value is not None]
        healths = examiner.across(healths)
        comparison = self._compared(self.base, healths)
        healths, total = self._gated(healths, comparison)
        by_path = {h.path: h for h in healths}
        done = [d if d.value is None else Done(d.path, by_path[d.value.path]) for d in done]
        found = Examined(done, skipped, self.inputs.single, total, comparison, self._record(healths))
        data = rendered(found, self.asked, self.measuring, self.streams)
        # a collector of metrics runs as another user: there is nothing of a session's text in them
        sources = [h.path for h in healths] if self.asked.form is not opt.CheckFormat.prometheus else []
        deliver(data, self.asked.output, self.asked.force, sources, self.streams)
        if self.asked.otlp is not None:
            self._send(healths, len(done) - len(healths))
        return self._status(done, healths, total)

    def _measured(self, examiner: Any) -> tuple[list[Done[Health]], Skipped]:
        total = len(self.inputs.items)
        if total == 1:

            def single(path: str) -> Health:
                with Progress(self.streams, path) as progress:
                    return self.measuring.one(path, examiner, progress)

            return each(self.inputs, single)
        count = 0
        with Progress(self.streams, "measured", "sessions") as progress:

            def counted(path: str) -> Health:
                nonlocal count
                if progress is not None:
                    progress(count, total)
                count += 1
                return self.measuring.one(path, examiner)

            return each(self.inputs, counted)

    def _base(self) -> Any:
        """What the run is compared with; read before the run itself is recorded."""
        if self.asked.compare_to is None:
            return None
        from ctxctl.health.compare import base_of

        return base_of(self.asked.compare_to, self.asked.history)

    def _compared(self, base: Any, healths: Sequence[Health]) -> Comparison | None:
        if base is None:
            return None
        from ctxctl.health.compare import compare

        return compare(base, healths)

    def _gated(self, healths: Sequence[Health], comparison: Comparison | None) -> tuple[list[Health], tuple[Any, ...]]:
        from ctxctl.health.gates import gates_of, total_gates

        m = self.measuring
        gated = [replace(h, gates=gates_of(h, m.gates, m.fail_on)) for h in healths]
        return gated, total_gates(gated, m.gates, m.fail_on, comparison)

    def _record(self, healths: Sequence[Health]) -> Trend | None:
        """Add the run to the history; the trend over the newest runs of its branch."""
        if self.asked.history is None:
            return None
        from ctxctl.health.history import record, runs, trend

        record(self.asked.history, healths, datetime.now(UTC), self.asked.ref)
        newest = runs(self.asked.history, most=1)
        return trend(self.asked.history, newest[0].where.ref) if newest else None

    def _send(self, healths: Sequence[Health], failed: int) -> None:
        from ctxctl.reports.build.families import families
        from ctxctl.reports.otel import export

        assert self.asked.otlp is not None
        export(families(healths, failed=failed, series=self.asked.series), self.asked.otlp)

    def _status(self, done: list[Done[Health]], healths: Sequence[Health], total: Sequence[Any]) -> int:
        failed = [
            (f"{shown_path(h.path)}: " if not self.inputs.single else "", g)
            for h in healths
            for g in h.gates
            if not g.ok
        ]
        failed += [("", g) for g in total if not g.ok]
        for where, gate in failed:
            say(f"failed: {where}{gate.text}")
        status = failed_status(done)
        if status is not None:
            return status
        return ExitCode.FINDING if failed else ExitCode.OK

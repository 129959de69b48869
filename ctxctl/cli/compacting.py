"""One run of `ctxctl compact`, after its arguments are read."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli import companions
from ctxctl.cli import options as opt
from ctxctl.cli.compacted import retyped, tell_damage
from ctxctl.cli.inputs import Inputs, is_same, resolve
from ctxctl.cli.io import Progress, Streams
from ctxctl.cli.placing import drafted, put, writers_of
from ctxctl.errors import ExitCode, InputError, TargetError, UsageError
from ctxctl.settings.sizes import size as size_of

if TYPE_CHECKING:
    from ctxctl.compaction.helper import Helper
    from ctxctl.manager.result import Compaction
    from ctxctl.state.noted import Notebook
    from ctxctl.trace.live import LiveWindow

MOST_TRIES = 4
"""How often a target is lowered because the written file holds a few tokens more than planned."""
SLACK = 4
"""Tokens by which each further try goes lower than the last one was too high."""
GROWING = 0.25
FRESH = 2.0
"""A file that was written to in the last seconds is watched for so long, whether it grows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    paths: list[str] | None
    to: str | None
    strategies: tuple[str, ...]
    keep_turns: int
    pins: tuple[str, ...]
    evict: bool
    dry_run: bool
    output: Path | None
    in_place: bool
    keep_history: bool
    recall: bool
    state_dir: Path | None
    force: bool
    llm: str | None
    llm_endpoint: str | None
    llm_model: str | None
    on_llm_failure: str | None
    redact: bool
    notes: bool
    audit: bool
    from_notes: bool
    emit: bool
    window: str | None
    from_: str | None
    config: Path | None
    as_json: bool
    colour: str
    verbosity: int


def run(asked: Asked) -> int:
    """Carry it out; returns the exit status."""
    from ctxctl.settings.load import load, model_table

    streams = Streams(colour=asked.colour, verbosity=asked.verbosity)
    _check(asked)
    loaded = load(asked.config)
    settings = _settings(loaded.settings, asked)
    if asked.emit:
        from ctxctl.compaction.context_management import context_management, not_carried
        from ctxctl.reports.json import dumps

        size = opt.tokens_option(asked.window, "--window") or settings.max_context_tokens
        for rule in not_carried(settings.eviction.pin):
            said = ", ".join(f"{k}={v}" for k, v in asdict(rule).items() if v is not None)
            streams.note(f"warning: the pin {said} is not in it: the provider excludes whole tools only")
        block = context_management(settings.compaction, settings.eviction, size)
        streams.payload(dumps(block, indent=True))
        return ExitCode.OK
    inputs = resolve(asked.paths, streams.note)
    folder = asked.output is not None and asked.output.is_dir()
    if not inputs.single and not (asked.dry_run or asked.in_place or folder):
        raise UsageError("several transcripts need --in-place, --dry-run or -o FOLDER", hint="or give one PATH")
    return _Run(asked, streams, settings, model_table(loaded)).go(inputs)


def _check(asked: Asked) -> None:
    if asked.to is not None:
        target_of(asked.to, 1000, 1000)
    ways = [bool(asked.output), asked.in_place, asked.dry_run, asked.emit]
    if not any(ways):
        raise UsageError(
            "it is not said where the compacted transcript goes",
            hint="-o FILE writes a new one, --in-place replaces it (with a backup), --dry-run only shows it",
        )
    if asked.output is not None and asked.in_place:
        raise UsageError("-o and --in-place exclude each other")
    if asked.llm is not None and asked.llm_endpoint is not None:
        raise UsageError("--llm and --llm-endpoint exclude each other")
    if asked.llm_endpoint is not None and not asked.llm_model:
        raise UsageError("--llm-endpoint needs a model", hint="name it with --llm-model NAME")
    if str(asked.output) == "-" and asked.as_json:
        raise UsageError("-o - and --json both go to stdout", hint="write the transcript to a file")
    from ctxctl.compaction.base import STRATEGIES

    for name in asked.strategies:
        STRATEGIES.get(name)


def _settings(settings: Any, asked: Asked) -> Any:
    """The settings with what the command line adds."""
    from ctxctl.eviction.options import Rule

    rules = []
    for text in asked.pins:
        key, _, value = text.partition("=")
        given = {key: value} if key in ("kind", "role", "tool", "path", "regex", "block") and value else {"regex": text}
        try:
            rules.append(Rule(**given))
        except ValueError as error:
            raise UsageError(f"--pin {text!r}: {error}") from None
    # what the contract names by its id may not leave either
    named = [Rule(block=artifact.id) for artifact in settings.contract.artifacts if artifact.id is not None]
    eviction = replace(settings.eviction, pin=(*settings.eviction.pin, *named, *rules))
    compaction = settings.compaction
    if asked.llm_model is not None:
        endpoint = asked.llm_endpoint or compaction.llm.endpoint
        try:
            llm = replace(compaction.llm, command=None, endpoint=endpoint, model=asked.llm_model)
        except ValueError as error:
            raise UsageError(
                f"--llm-model {asked.llm_model}: {error}", hint="give it with --llm-endpoint URL"
            ) from None
        compaction = replace(compaction, llm=llm)
    return replace(settings, eviction=eviction, compaction=compaction)


def target_of(text: str, window: int, live: int) -> int:
    """Tokens of a written target: `60k`, `0.5` of the window, `50%` of what is in it now. Raises UsageError."""
    raw = text.strip()
    try:
        if raw.endswith("%"):
            share = float(raw[:-1])
            if 0 < share <= 100:
                return floor(live * share / 100)
        elif re.fullmatch(r"0?\.\d+|1\.0*", raw):
            share = float(raw)
            if 0 < share <= 1:
                return floor(window * share)
        else:
            return size_of(raw)
    except ValueError:
        pass
    raise UsageError(
        f"--to: {text!r} is no size",
        hint="write 60k or 60000 (tokens), 0.5 (of the window) or 50% (of what is in it now)",
    )


class _Run:
    """One run over its inputs."""

    def __init__(self, asked: Asked, streams: Streams, settings: Any, table: Any) -> None:
        self.asked, self.streams, self.settings, self.table = asked, streams, settings, table
        self.rules = asked.pins
        self.noted: Notebook | None = None

    def go(self, inputs: Inputs) -> int:
        from ctxctl.cli.batch import each, failed_status, tell_skipped
        from ctxctl.cli.compacted import show

        done, skipped = each(inputs, self._one)
        tell_skipped(done, skipped, self.streams)
        found = [d.value for d in done if d.value is not None]
        show(self.asked, self.settings, self.streams, done, skipped, single=inputs.single)
        status = failed_status(done)
        if status is not None:
            return status
        if any(not c.met for c in found):
            return ExitCode.TARGET
        return ExitCode.FINDING if any(not o.ok and o.required for c in found for o in c.contract) else ExitCode.OK

    def _one(self, path: str) -> Compaction:
        from ctxctl.formats.store import LineStore

        self._refuse_live(path)
        with LineStore(path) as store, companions.Refusals(self.asked, self.settings, path) as refusals:
            return refusals.of(self._compact(path, store, refusals))

    def _refuse_live(self, path: str) -> None:
        if self.asked.force or self.asked.dry_run or path == "-":
            return
        hint = "wait until the agent has stopped, or --force takes what is there now"
        if writers := writers_of(path):
            raise InputError(f"another process is writing to it ({', '.join(writers)})", path=path, hint=hint)
        try:
            before = os.stat(path)
        except OSError:
            return
        if time.time() - before.st_mtime < FRESH:
            time.sleep(GROWING)
            try:
                now = os.stat(path).st_size
            except OSError:
                return  # reading says what is wrong with it
            if now != before.st_size:
                raise InputError("it is growing: its agent is still running", path=path, hint=hint)

    def _compact(self, path: str, store: Any, refusals: companions.Refusals) -> Compaction:
        from ctxctl.compaction.clean import Cleaner
        from ctxctl.eviction.pins import pins_of
        from ctxctl.facts.session import SessionFacts
        from ctxctl.manager.result import Compaction
        from ctxctl.manager.session import SessionCompactor, goal_of, lowered
        from ctxctl.trace.live import read_live

        asked, settings = self.asked, self.settings
        facts = SessionFacts()
        with Progress(self.streams, path) as progress:
            live = read_live(
                path,
                self.table,
                pins_of(settings.eviction),
                facts.see,
                store,
                format_name=asked.from_,
                progress=progress,
            )
        tell_damage(live, path, self.streams)
        self._tell_pins(live, path)
        size = self._size(live)
        target = None if asked.to is None else target_of(asked.to, size, live.window.tokens)
        goal = goal_of(
            size,
            live.window.tokens,
            settings.compaction,
            settings.eviction,
            target=target,
            steps=asked.strategies,
            evict=asked.evict,
            keep_turns=asked.keep_turns,
        )
        place = self._place(path, live, packed=store.packed)
        refusals.about(live, goal)
        companions.check_trail(asked, settings)
        self.noted = companions.notes_before(asked, settings)
        cleaner = Cleaner(asked.redact)
        if not asked.redact:
            self.streams.note("warning: --no-redact: credentials may stand in what is written new")
        helper = self._helper(live, cleaner)
        if helper is not None and sys.stderr is not None and sys.stderr.isatty():
            limit = settings.compaction.llm.timeout
            self.streams.note(f"note: a model writes the summaries; each call may take up to {limit:g} s")
        worker = SessionCompactor(
            live,
            facts,
            settings.compaction,
            settings.eviction,
            cleaner=cleaner,
            helper=helper,
            recall=f"ctxctl recall {shlex.quote(os.path.abspath(place))}" if place is not None and asked.recall else "",
            noted=self.noted,
        )
        done = worker.run(goal)
        result = Compaction(path, done, goal, dict(cleaner.counts), helper, settings, self._rates(live))
        result = replace(result, command=retyped(asked, path, goal.tokens))
        companions.tell_notes(result, self.noted, self.streams)
        if not done.compacted.met or asked.dry_run:
            return result.measured()
        if not done.outcome or done.compacted.freed <= 0:
            return self._unchanged(result, place, store, path)
        if target is None and not result.pays(settings.compaction.expected_turns, settings.pressure_thresholds.red):
            return self._unchanged(replace(result, declined=True), place, store, path)
        for attempt in range(1, MOST_TRIES + 1):
            written = self._write(result, place, store, path)
            if isinstance(written, Compaction):
                return written
            cleaner.counts.update(dict.fromkeys(cleaner.counts, 0))
            # below what was planned, which may itself lie below what was asked for
            wanted = min(done.goal.tokens, done.compacted.after) - written - attempt * SLACK
            done = worker.run(lowered(goal, goal.tokens - wanted))
            result = Compaction(path, done, goal, dict(cleaner.counts), helper, settings, self._rates(live))
            if not done.compacted.met:
                return result.measured()
        raise TargetError("the written transcript stays above the target", path=path, hint="please report this")

    def _size(self, live: LiveWindow) -> int:
        from ctxctl.model.limits import DEFAULT_WINDOW
        from ctxctl.pressure.window import why_unknown, window_of

        given = opt.tokens_option(self.asked.window, "--window") or self.settings.max_context_tokens
        found = window_of(given, live.transcript, self.table)
        if found.tokens is None and (self.asked.to is None or re.fullmatch(r"0?\.\d+|1\.0*", self.asked.to.strip())):
            raise UsageError(
                f"the window is unknown: {why_unknown(live.transcript, self.table)}",
                hint="give it with --window 200k, or a target in tokens with --to 60k",
            )
        return found.tokens or DEFAULT_WINDOW

    def _rates(self, live: LiveWindow) -> tuple[float, float] | None:
        """Prices of a cache read and a write as multiples of the input price."""
        from ctxctl.budgets.cost import prices_of

        row = self.table.find(live.transcript.model)
        prices = prices_of(row, live.window.tokens) if row is not None else None
        if prices is None or prices.input <= 0:
            return None
        return prices.read / prices.input, prices.write / prices.input

    def _helper(self, live: LiveWindow, cleaner: Any) -> Helper | None:
        from ctxctl.compaction.helper import helper_of

        failure: Any = self.asked.on_llm_failure
        return helper_of(self.settings.compaction, self.asked.llm, failure, count=live.count, clean=cleaner)

    def _place(self, path: str, live: LiveWindow, *, packed: bool) -> Path | None:
        """Where it goes; None for stdout and a dry run."""
        asked = self.asked
        if asked.dry_run or str(asked.output) == "-":
            return None
        if asked.in_place:
            if path == "-":
                raise UsageError("stdin can't be replaced", hint="-o FILE writes a new transcript")
            if packed:
                raise UsageError(
                    f"{path} is packed", hint="-o FILE writes a new transcript; a suffix .gz or .zst packs it"
                )
            return Path(os.path.realpath(path))
        assert asked.output is not None
        output = asked.output
        if output.is_dir():
            output = output / self._file_name(path, live)
        if is_same(path, output):
            raise UsageError(f"{output} is the input", hint="--in-place replaces it and keeps a backup")
        if os.path.lexists(output) and not asked.force:
            raise UsageError(f"{output} exists", hint="--force replaces it")
        return Path(os.path.realpath(output)) if output.is_symlink() else output

    def _file_name(self, path: str, live: LiveWindow) -> str:
        id_ = str(uuid.uuid4())
        if live.transcript.format == "claude-code":
            return f"{id_}.jsonl"
        if live.transcript.format == "codex":
            return f"rollout-{datetime.now().strftime('%Y-%m-%dT%H-%M-%S')}-{id_}.jsonl"
        name = "transcript.jsonl" if path == "-" else Path(path).name
        for suffix in (".gz", ".zst"):
            name = name.removesuffix(suffix)
        stem, dot, suffix = name.partition(".")
        return f"{stem}.compact{dot}{suffix}"

    def _unchanged(self, result: Compaction, place: Path | None, store: Any, path: str) -> Compaction:
        """Nothing to do: a named output gets the same bytes, so that what reads it goes on."""
        if self.asked.in_place:
            return result.measured()
        if place is not None and self.asked.output is not None and self.asked.output.is_dir():
            place = self.asked.output / Path(path).name  # it is the same session, and keeps its name
            if place.exists() and not self.asked.force:
                raise UsageError(f"{place} exists", hint="--force replaces it")
        lines = (store.get(n) for n in range(1, len(store) + 1))
        if place is None:
            self.streams.payload(lines)
            return result.measured()
        with drafted(place, lines, path) as (draft, _):
            if store.changed and not self.asked.force:
                raise InputError("it changed while it was read: its agent is still running", path=path)
            put(draft, place, force=self.asked.force)
        return replace(result.measured(), output=str(place), written=(str(place),))

    def _write(self, result: Compaction, place: Path | None, store: Any, path: str) -> Compaction | int:
        """Write, prove and put in place; or the tokens by which the file is above the target."""
        from ctxctl.cli.delivery import Delivery

        return Delivery(self.asked, self.streams, self.settings, self.noted).write(result, place, store, path)

    def _tell_pins(self, live: LiveWindow, path: str) -> None:
        """A pin that keeps nothing is most likely misspelt."""
        from ctxctl.eviction.pins import Matcher

        rules = self.settings.eviction.pin
        own = rules[len(rules) - len(self.rules) :]
        for text, rule in zip(self.rules, own, strict=True):
            if not any(Matcher(rule).fits(block) for block in live.window.blocks):
                self.streams.note(f"warning: {path}: --pin {text} fits nothing that is in the window")

"""`ctxctl tune`: the cheapest settings for a user's own sessions that keep the loss under a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import deliver, each, failed_status, inputs_for, tell_skipped
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.cli.replays import Life, Model, Read, Write, check_model, seconds, share_within, tell_damage, trace_of
from ctxctl.errors import ExitCode, UsageError


def tune(
    paths: opt.Paths = None,
    max_loss: Annotated[
        str, typer.Option("--max-loss", metavar="SHARE", help="Most of what later turns used that may be lost (rmr).")
    ] = "0.05",
    window: opt.Window = None,
    cache_read: Read = None,
    cache_write: Write = None,
    cache_life: Life = None,
    model: Model = None,
    from_: opt.From = None,
    as_json: opt.Json = False,
    output: opt.Output = None,
    force: opt.Force = False,
    config: opt.Config = None,
    color: opt.ColourOption = opt.Colour.auto,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    """Find the cheapest policy, trigger, target and weights for your own sessions, and print them as a settings file.

    Half of the sessions are held out and the choice is judged on them; with fewer than 4 nothing is, and it says so.
    Exit 5: no settings keep the bound.

    Examples:

      ctxctl tune --max-loss 0.05 runs/ > .ctxctl.yaml

      ctxctl tune --window 100k -o .ctxctl.yaml 'runs/*.jsonl'
    """
    from ctxctl.settings.load import load, model_table
    from ctxctl.simulate.bill import CacheTerms
    from ctxctl.simulate.options import SweepOptions
    from ctxctl.simulate.tune import Subject
    from ctxctl.simulate.tune import tune as search

    streams = Streams(colour=color.value, verbosity=-1 if quiet else int(verbose))
    if output is not None and output.suffix.lower() not in (".yaml", ".yml", ".json"):
        raise UsageError(f"{output}: settings are written as .yaml, results as .json")
    bound = share_within(max_loss, "--max-loss", zero=True)
    given = opt.tokens_option(window, "--window")
    terms = CacheTerms(cache_read, cache_write, seconds(cache_life))
    inputs = inputs_for(paths, output, force, streams)
    loaded = load(config)
    table = model_table(loaded)
    check_model(model, table)
    settings = loaded.settings
    size = given or settings.max_context_tokens
    options = SweepOptions(
        windows=(size,) if size is not None else (),
        terms=terms,
        model=model,
        eviction=settings.eviction,
        thresholds=settings.pressure_thresholds,
        pressure=settings.pressure,
        manager=settings.manager,
        compaction=settings.compaction,
    )

    def subject(path: str) -> Subject:
        with Progress(streams, path) as progress:
            traced, own = trace_of(path, table, settings.eviction, from_, progress)
        tell_damage(traced, streams)
        return Subject(traced.trace, own)

    done, skipped = each(inputs, subject)
    tell_skipped(done, skipped, streams)
    subjects = [d.value for d in done if d.value is not None]
    status = failed_status(done)
    if status is not None and not subjects:
        return status
    with Progress(streams, "settings tried", "settings") as progress:
        found = search(subjects, table, options, bound, progress)
    sources = [s.trace.path for s in subjects]
    if as_json or (output is not None and output.suffix == ".json"):
        from ctxctl.reports.build.tuning import tuning_data
        from ctxctl.reports.json import dumps, envelope

        data = dumps(envelope("tune", _asked(loaded, bound, options), tuning_data(found, bound, options)))
        deliver(data, output, force, sources, streams)
        return _status(found, status)
    from ctxctl.settings.write import settings_text
    from ctxctl.simulate.tune import settings_of

    lines = list(_comments(found, bound))
    if found.why in ("loss", "window"):
        say("failed: " + "\nhint: ".join(lines))
        return ExitCode.TARGET
    for line in lines:
        streams.note(line)
    tree = settings_of(found.choice, options) if found.choice is not None else {}
    deliver(settings_text(tree, lines).encode(), output, force, sources, streams)
    return _status(found, status)


def _status(found: Any, failed: int | None) -> int:
    if found.why in ("loss", "window"):
        return ExitCode.TARGET
    return failed or ExitCode.OK


def _asked(loaded: Any, bound: float, options: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **asdict(loaded.settings),
        "tune": {
            "max_loss": bound,
            "windows": options.windows,
            "cache": asdict(options.terms),
            "model": options.model,
        },
    }


def _comments(found: Any, bound: float) -> Iterator[str]:
    """What the settings would have saved, in lines that stand above them; or why there are none."""
    if found.why == "loss":
        yield f"no settings keep the loss under {bound:.1%}; the least that any lost is {found.best_loss:.1%}"
        yield f"--max-loss {found.best_loss + 0.005:.2f}, or a larger --window"
        return
    if found.why == "window":
        yield "all settings that keep the bound, if any do, leave calls above the window"
        if found.floor is not None:
            causes = ", ".join(f"{cause} {tokens:,}" for cause, tokens in found.floor.causes[:3])
            least = f"--window {found.floor.tokens + 1} or more"
            yield f"{least}: so much may not leave at turn {found.floor.turn} ({causes})"
        else:
            yield "a larger --window"
        return
    if found.why == "nothing":
        yield (
            f"Nothing to change: of {found.tried} settings none that loses at most {bound:.1%} would have been cheaper "
            f"than what was done on {_sessions(found.trained.sessions)}."
        )
        if found.idle:
            yield "The windows never filled up so far; a smaller --window shows what would happen."
        return
    lost = f"lose at most {bound:.1%} of what later turns used"
    yield f"By `ctxctl tune`: of {found.tried} settings the cheapest that {lost}."
    yield f"On the {_sessions(found.trained.sessions)} that they were found on: {_did(found.trained)}."
    if found.held_out is None:
        yield "Nothing was held out: that needs 4 sessions. On other sessions they may do worse."
        return
    judged = found.held_out
    yield f"Held out, on {_sessions(judged.sessions)} that they were not found on: {_did(judged)}."
    if judged.loss > bound:
        yield "That is over the bound: a lower --max-loss leaves room for sessions to come."


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"


def _did(score: Any) -> str:
    saved = score.base - score.cost
    what = f"{abs(saved):,.0f} of {score.base:,.0f} tokens"
    if score.priced:
        what = f"${abs(saved):,.2f} of ${score.base:,.2f}"
        if score.billed < score.sessions:
            what += f" of the {score.billed} that have a price"
    over = f", {score.overflows:,} calls above the window" if score.overflows else ""
    return (
        f"{abs(1 - score.ratio):.0%} {'saved' if saved >= 0 else 'more'} ({what}), {score.loss:.1%} lost "
        f"(what was done: {score.recorded_loss:.1%}){over}"
    )

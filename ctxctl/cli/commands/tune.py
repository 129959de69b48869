"""`ctxctl tune`: the cheapest settings for a user's own sessions that keep the loss under a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ctxctl.cli import options as opt
from ctxctl.cli.batch import deliver, each, failed_status, inputs_for, tell_skipped
from ctxctl.cli.io import Progress, Streams, say
from ctxctl.cli.replays import Life, Model, Read, Write, seconds, share_within, trace_of
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
    )

    def subject(path: str) -> Subject:
        with Progress(streams, path) as progress:
            traced, own = trace_of(path, table, settings.eviction, from_, progress)
        return Subject(traced.trace, own)

    done, skipped = each(inputs, subject)
    tell_skipped(done, skipped, streams)
    subjects = [d.value for d in done if d.value is not None]
    status = failed_status(done)
    if status is not None and not subjects:
        return status
    with Progress(streams, "settings tried", "settings") as progress:
        found = search(subjects, table, options, bound, progress)
    if as_json or (output is not None and output.suffix == ".json"):
        from ctxctl.reports.build.tuning import tuning_data
        from ctxctl.reports.json import dumps, envelope

        data = dumps(envelope("tune", _asked(loaded, bound, options), tuning_data(found, bound, settings.eviction)))
    else:
        from ctxctl.settings.write import settings_text
        from ctxctl.simulate.tune import settings_of

        if found.choice is None:
            say(
                f"failed: no settings keep the loss under {bound:.1%}; the least that any lost is "
                f"{found.best_loss:.1%}\n"
                f"hint: --max-loss {found.best_loss + 0.005:.2f}, or a larger --window"
            )
            return ExitCode.TARGET
        tree: dict[str, Any] = dict(settings_of(found.choice, settings.eviction))
        if given is not None:
            tree = {"max_context_tokens": given, **tree}
        data = settings_text(tree, list(_comments(found, bound))).encode()
    for line in _comments(found, bound) if found.choice is not None else ():
        streams.note(line)
    deliver(data, output, force, [s.trace.path for s in subjects], streams)
    return (status or ExitCode.OK) if found.choice is not None else ExitCode.TARGET


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
    """What the settings would have saved, in lines that stand above them."""
    yield (
        f"By `ctxctl tune`: of {found.tried} settings the cheapest that lose at most {bound:.1%} of what later turns "
        "used."
    )
    yield f"On the {_sessions(found.trained.sessions)} that they were found on: {_did(found.trained)}."
    if found.held_out is None:
        yield "Nothing was held out: that needs 4 sessions. On other sessions they may do worse."
    else:
        judged = found.held_out
        yield (
            f"Held out, on {_sessions(judged.sessions)} that they were not found on: {_did(judged)}"
            f"{'' if judged.loss <= bound else ', which is over the bound'}."
        )


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"


def _did(score: Any) -> str:
    saved = score.base - score.cost
    what = (
        f"${abs(saved):,.2f} of ${score.base:,.2f}"
        if score.priced
        else f"{abs(saved):,.0f} of {score.base:,.0f} tokens"
    )
    return f"{abs(1 - score.ratio):.0%} {'saved' if saved >= 0 else 'more'} ({what}), {score.loss:.1%} lost"

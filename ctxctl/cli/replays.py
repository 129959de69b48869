"""What commands that replay share: their options, and what these say."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ctxctl.cli import options as opt
from ctxctl.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from ctxctl.cli.io import Streams
    from ctxctl.eviction.options import EvictionOptions
    from ctxctl.model.limits import ModelTable
    from ctxctl.trace.build import Traced

DEFAULT = (
    "fifo,lru,priority,semantic,type-ttl,hybrid,sliding-window,summarize,priority-tiers,mask,mask:keep=3,every=10,clear"
)
"""Policies that are compared when none is asked for."""


class Summary(StrEnum):
    """Size of a model's summary where the runtime declares none."""

    low = "low"
    typ = "typ"
    high = "high"


Policies = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--policy",
        metavar="SPEC,...",
        help="Policies such as lru or mask:keep=10,every=5; all: all of them. Default: twelve usual ones.",
        show_default=False,
    ),
]
Presets = Annotated[
    list[str] | None,
    typer.Option(
        "--preset", metavar="NAME,...", help="What known agents do: an id, a runtime, or all.", show_default=False
    ),
]
Windows = Annotated[
    list[str] | None,
    typer.Option(
        "--window", metavar="TOKENS,...", help="Windows such as 100k,200k. Default: the model's.", show_default=False
    ),
]
Triggers = Annotated[
    list[str] | None,
    typer.Option(
        "--trigger", metavar="SHARE,...", help="Utilization from which on to evict (0.75).", show_default=False
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="SHARE,...", help="Utilization to evict down to (0.6).", show_default=False),
]
Read = Annotated[
    float | None, typer.Option("--cache-read", min=0, metavar="X", help="Price of a cache read, times the input price.")
]
Write = Annotated[
    float | None, typer.Option("--cache-write", min=0, metavar="X", help="Price of a cache write, in the same.")
]
Life = Annotated[
    str | None,
    typer.Option("--cache-life", metavar="TIME", help="Life of a cache entry: 5m, 1h, 300s. Default: as recorded."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Price every call as this model.")]


class Asked:
    """What the options say, checked before anything is read."""

    def __init__(
        self,
        policy: list[str] | None,
        preset: list[str] | None,
        window: list[str] | None,
        trigger: list[str] | None,
        target: list[str] | None,
        budget: str | None,
        cache_read: float | None,
        cache_write: float | None,
        cache_life: str | None,
        model: str | None,
        summary: Literal["low", "typ", "high"],
        refetch: bool,
    ) -> None:
        from ctxctl.eviction.specs import parse_spec, split_specs
        from ctxctl.simulate.bill import CacheTerms

        self.specs = tuple(
            dict.fromkeys(
                parse_spec(text)
                for text in split_specs(_everything(policy) if policy else ([] if preset else [DEFAULT]))
            )
        )
        if policy and not self.specs:
            raise UsageError("--policy names nothing", hint="`ctxctl list policies` shows them")
        ceilings = [s.name for s in self.specs if s.name == "optimum"]
        if ceilings:
            raise UsageError("optimum is no policy to ask for", hint="it is among the ceilings anyway")
        self.preset = [n for text in preset or () for n in text.split(",") if n.strip()]
        if preset and not self.preset:
            raise UsageError("--preset names nothing", hint="`ctxctl list presets` shows them")
        sizes = [opt.tokens_option(text, "--window") for text in _parts(window, "--window")]
        self.windows = tuple(dict.fromkeys(size for size in sizes if size is not None))
        self.triggers = tuple(share_within(text, "--trigger") for text in _parts(trigger, "--trigger"))
        self.targets = tuple(share_within(text, "--target") for text in _parts(target, "--target"))
        for low in self.triggers:
            for high in self.targets:
                if high > low:
                    raise UsageError(f"--target {high:g} is above --trigger {low:g}", hint="give a lower target")
        self.share = share_within(budget, "--budget") if budget is not None else None
        if self.share is not None and (self.windows or self.triggers or self.targets):
            raise UsageError("--budget stands instead of --window, --trigger and --target")
        for name, value in (("--cache-read", cache_read), ("--cache-write", cache_write)):
            if value is not None and not 0 <= value <= 100:
                raise UsageError(f"{name}: {value:g} must be a multiple of the input price from 0 to 100")
        self.terms = CacheTerms(cache_read, cache_write, seconds(cache_life))
        if model is not None and not model.strip():
            raise UsageError("--model names nothing", hint="`ctxctl list models` shows the names")
        self.model, self.summary, self.refetch = model, summary, refetch


def _everything(texts: list[str]) -> list[str]:
    if not any(text.strip() == "all" for text in texts):
        return texts
    from ctxctl.eviction.base import POLICIES

    names = [name for name, cls in POLICIES if cls.group == "policy"]
    return [",".join(names) if text.strip() == "all" else text for text in texts]


def _parts(texts: list[str] | None, option: str) -> Iterator[str]:
    found = [part.strip() for text in texts or () for part in text.split(",") if part.strip()]
    if texts and not found:
        raise UsageError(f"{option} names nothing")
    yield from dict.fromkeys(found)


def share_within(text: str, option: str, *, zero: bool = False) -> float:
    """A share of at most 1, above 0 unless `zero` allows it."""
    raw = text.strip()
    try:
        value = float(raw[:-1]) / 100 if raw.endswith("%") else float(raw)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a share; write 0.75 or 75%") from None
    if not (0 < value <= 1 or (zero and value == 0)):
        least = "from 0" if zero else "above 0"
        raise UsageError(f"{option}: {text!r} must be a share {least} and at most 1, such as 0.75 or 75%")
    return value


def seconds(text: str | None) -> float | None:
    """The life of a cache entry as it is given on the command line."""
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    unit = units.get(text[-1:].lower())
    try:
        value = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1e9:
        raise UsageError(f"--cache-life: {text!r} is not a time; write 5m, 1h or 300s")
    return value


def check_model(model: str | None, table: ModelTable) -> None:
    """Refuse a --model that the price table does not know."""
    if model is None or table.find(model) is not None:
        return
    like = table.suggest(model)
    hint = f"did you mean {like[0]!r}?" if like else "`ctxctl list models` shows the names"
    raise UsageError(f"--model: {model!r} is not in the price table", hint=hint)


def tell_damage(traced: Traced, streams: Streams) -> None:
    """Say on stderr what of a transcript could not be used, as `analyze` does."""
    for item in traced.transcript.diagnostics:
        if item.severity != "info" or streams.verbosity > 0:
            line = f":{item.line}" if item.line is not None else ""
            streams.note(f"{item.severity}: {traced.trace.path}{line}: {item.message} [{item.code}]")


def trace_of(
    path: str, table: ModelTable, eviction: EvictionOptions, format_name: str | None, progress: Any
) -> tuple[Traced, int | None]:
    """The trace of a transcript, and the window of its model; NothingFoundError when it holds no model call."""
    from ctxctl.eviction.pins import pins_of
    from ctxctl.pressure.window import window_of
    from ctxctl.trace.build import build_trace

    traced = build_trace(path, table, pins_of(eviction), format_name=format_name, progress=progress)
    if not traced.trace.turns:
        raise NothingFoundError("no model call in it: nothing to replay", path=path)
    # a trace outlives all its replays, which make many small values and few cycles: nothing of it needs to be looked at
    # again and again
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    return traced, window_of(None, traced.transcript, table).tokens

"""What `ctxctl compact` says and prints of what it did."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ctxctl.cli.io import Streams, say

if TYPE_CHECKING:
    from ctxctl.cli.batch import Done
    from ctxctl.cli.compacting import Asked
    from ctxctl.manager.result import Compaction
    from ctxctl.trace.live import LiveWindow


def show(
    asked: Asked,
    settings: Any,
    streams: Streams,
    done: Sequence[Done[Compaction]],
    skipped: Sequence[tuple[str, str]],
    *,
    single: bool,
) -> None:
    """Failures and warnings on stderr; the report, or the JSON, on stdout unless a transcript went there."""
    from ctxctl.reports.build.compaction import compaction_report

    found = [d.value for d in done if d.value is not None]
    for item in found:
        _tell(item, streams, aloud=asked.as_json or str(asked.output) == "-")
    if asked.as_json:
        _print_json(asked, settings, streams, done, skipped, single=single)
    elif str(asked.output) == "-":
        for item in (c for c in found if c.met and not c.broken):
            streams.note(f"{item.path}: {item.done.compacted.before:,} -> {item.after:,} tokens")
    else:
        streams.payload(streams.text([compaction_report(item) for item in found]))


def _tell(item: Compaction, streams: Streams, *, aloud: bool) -> None:
    """aloud: warnings of the contract too, which the text report has anyway."""
    from ctxctl.manager.compactor import LAST_RESORT

    if not item.met:
        causes = ", ".join(f"{cause} {tokens:,}" for cause, tokens in item.done.compacted.causes[:4])
        say(
            f"failed: {item.path}: the target of {item.goal.tokens:,} tokens can't be met: "
            f"{item.after:,} stay ({causes}); nothing was written"
        )
        for said in item.done.compacted.too_large[:4]:
            say(f"note: {item.path}: {said}, and may not leave now")
    for step in item.done.compacted.steps:
        if step.fallback is not None:
            say(f"warning: {item.path}: {step.strategy} used the extractive summary: {step.fallback}")
        if step.strategy == LAST_RESORT:
            say(
                f"warning: {item.path}: {step.units} results that no call has answered yet were shortened: "
                "the target can't be met otherwise"
            )
    for outcome in item.contract:
        if not outcome.ok and outcome.required:
            say(f"failed: {item.path}: {outcome.kind} {outcome.name!r}: {outcome.detail}; nothing was written")
        elif not outcome.ok and aloud:
            streams.note(f"warning: {item.path}: {outcome.kind} {outcome.name!r}: {outcome.detail}")


def tell_damage(live: LiveWindow, path: str, streams: Streams) -> None:
    """What reading met with."""
    for item in live.transcript.diagnostics:
        if item.severity != "info" or streams.verbosity > 0:
            line = f":{item.line}" if item.line is not None else ""
            streams.note(f"{item.severity}: {path}{line}: {item.message} [{item.code}]")


def _print_json(
    asked: Asked,
    settings: Any,
    streams: Streams,
    done: Sequence[Done[Compaction]],
    skipped: Iterable[tuple[str, str]],
    *,
    single: bool,
) -> None:
    from ctxctl.reports.build.compaction import compaction_data, settings_data
    from ctxctl.reports.build.failure import failed_data
    from ctxctl.reports.json import envelope, pieces

    found = [d.value for d in done if d.value is not None]
    decided = _safe(
        settings_data(
            settings,
            to=asked.to,
            strategies=asked.strategies,
            keep_turns=asked.keep_turns,
            evict=asked.evict,
            redact=asked.redact,
            keep_history=asked.keep_history,
            llm=asked.llm,
        )
    )
    if single:
        streams.payload(pieces(envelope("compact", decided, compaction_data(found[0]))))
        return
    files = [
        {"path": d.path, "result": compaction_data(d.value)} if d.value is not None else failed_data(d.path, d.error)
        for d in done
    ]
    total = {
        "files": len(done),
        "failed": len(done) - len(found),
        "before_tokens": sum(c.done.compacted.before for c in found),
        "after_tokens": sum(c.after for c in found),
    }
    result = {"files": files, "skipped": [{"path": p, "reason": r} for p, r in skipped], "total": total}
    streams.payload(pieces(envelope("compact", decided, result)))


def _safe(settings: Any) -> Any:
    """Settings as JSON takes them, without credentials: the command that asks a model may hold a key."""
    import orjson

    from ctxctl.reports.json import dumps

    return _cleaned(orjson.loads(dumps(settings)))


def _cleaned(value: Any) -> Any:
    from ctxctl.guard.sanitize import sanitize

    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return sanitize(value, tool_output=False).text if isinstance(value, str) else value


def retyped(asked: Asked, path: str, tokens: int) -> str:
    """What to type for the same compaction, written to a file. tokens: the target, where none was given."""
    words = ["ctxctl", "compact", "--to", asked.to or str(tokens)]
    words += [word for name in asked.strategies for word in ("--strategy", name)]
    words += ["--keep-turns", str(asked.keep_turns)] if asked.keep_turns else []
    words += [word for rule in asked.pins for word in ("--pin", rule)]
    for option, value in (
        ("--window", asked.window),
        ("--from", asked.from_),
        ("--config", asked.config),
        ("--llm", asked.llm),
        ("--llm-endpoint", asked.llm_endpoint),
        ("--llm-model", asked.llm_model),
    ):
        words += [option, str(value)] if value is not None else []
    words += ["--no-evict"] if not asked.evict else []
    words += ["--no-from-notes"] if not asked.from_notes else []
    words += ["--state-dir", str(asked.state_dir)] if asked.state_dir is not None else []
    from ctxctl.guard.sanitize import sanitize

    return f"{sanitize(shlex.join(words)).text} -o FILE {shlex.quote(path)}"

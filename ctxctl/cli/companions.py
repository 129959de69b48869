"""Companion files of `ctxctl compact`: the notes that were there before, and the audit trail."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli.io import Streams, say
from ctxctl.errors import CtxctlError, ExitCode, InputError
from ctxctl.reports.plot import plural

if TYPE_CHECKING:
    from ctxctl.cli.compacting import Asked
    from ctxctl.manager.result import Compaction
    from ctxctl.manager.session import Goal
    from ctxctl.state.audit import Event
    from ctxctl.state.noted import Notebook
    from ctxctl.trace.live import LiveWindow


def companion(asked: Asked, name: str) -> Path:
    """A file in the state folder."""
    return (asked.state_dir or Path()) / name


def check_trail(asked: Asked, settings: Any) -> None:
    """Refuse an audit trail that can't be written, before anything is done that it should hold."""
    if not asked.audit or asked.dry_run:
        return
    from ctxctl.state.audit import check_writable

    try:
        check_writable(companion(asked, settings.cross_window.audit_file))
    except InputError as error:
        error.hint = "--state-dir DIR puts the audit trail elsewhere, --no-audit does without"
        raise


def record(asked: Asked, settings: Any, result: Compaction, now: datetime, digest: str | None) -> list[str]:
    """What was done goes to the audit trail. It is done by now, so that a trail which fails is told, loudly.
    digest: SHA-256 of the output. Returns what was written."""
    if not asked.audit:
        return []
    from ctxctl.manager.audited import compaction_events
    from ctxctl.state.audit import append

    at = companion(asked, settings.cross_window.audit_file)
    try:
        mode_of = None if result.path == "-" else result.path
        append(at, compaction_events(result, in_place=asked.in_place, digest=digest), now=now, mode_of=mode_of)
    except InputError as error:
        say(f"warning: {result.path}: this compaction is not in the audit trail: {error}")
        return []
    return [str(at)]


class Refusals:
    """What is recorded of one file that can't be compacted: used as a context manager around the work on it."""

    def __init__(self, asked: Asked, settings: Any, path: str) -> None:
        self._asked, self._settings, self._path = asked, settings, path
        self._about: tuple[LiveWindow, Goal] | None = None

    def about(self, live: LiveWindow, goal: Goal) -> None:
        """What is to be compacted, and how small."""
        self._about = live, goal

    def of(self, result: Compaction) -> Compaction:
        """A result, with the trail among the files written where it was a refusal."""
        from ctxctl.manager.audited import refusal_event

        event = refusal_event(result, in_place=self._asked.in_place)
        return result if event is None else replace(result, written=(*result.written, *self._record(event)))

    def __enter__(self) -> Refusals:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, CtxctlError) and error.exit_code is ExitCode.TARGET and self._about is not None:
            from ctxctl.manager.audited import failed_event

            self._record(failed_event(self._path, *self._about, error, in_place=self._asked.in_place))

    def _record(self, event: Event) -> list[str]:
        if not self._asked.audit or self._asked.dry_run:
            return []
        from ctxctl.state.audit import append

        at = companion(self._asked, self._settings.cross_window.audit_file)
        try:
            append(at, [event], now=datetime.now(UTC), mode_of=None if self._path == "-" else self._path)
        except InputError as error:
            say(f"warning: {self._path}: this refusal is not in the audit trail: {error}")
            return []
        return [str(at)]


def checkpoint_before(asked: Asked, settings: Any, result: Compaction, now: datetime, streams: Streams) -> list[str]:
    """A state that came from this transcript is brought up to date before anything of it is replaced (requirement S7).
    Returns what was written."""
    from ctxctl.state import compacted

    folder, options, path = asked.state_dir or Path(), settings.cross_window, result.path
    try:
        if not compacted.knows(folder, options, path, result.done.live.transcript.id):
            return []
        saved = compacted.before(path, folder, options, now, format_name=asked.from_)
    except CtxctlError as error:
        say(f"warning: {path}: the state of its task was not brought up to date: {error}")
        return []
    streams.note(f"note: {path}: its task is saved in {saved.path}, version {saved.state.state_version}")
    return list(saved.written)


def checkpoint_after(asked: Asked, settings: Any, result: Compaction, place: Path, now: datetime) -> list[str]:
    """A state that came from a transcript which its compacted form replaced goes on behind that."""
    from ctxctl.state import compacted

    folder, options = asked.state_dir or Path(), settings.cross_window
    try:
        if compacted.knows(folder, options, str(place), result.done.live.transcript.id):
            return list(compacted.after(str(place), folder, options, now))
    except CtxctlError as error:
        say(f"warning: {place}: the state of its task does not know that it was compacted: {error}")
    return []


def notes_before(asked: Asked, settings: Any) -> Notebook | None:
    """The notes that are there before this run writes any."""
    if not asked.from_notes:
        return None
    from ctxctl.state.noted import Notebook
    from ctxctl.state.notes import read_notes

    path = companion(asked, settings.compaction.notes_file)
    entries = read_notes(path)
    return Notebook(str(path), entries) if entries else None


def tell_notes(result: Compaction, noted: Notebook | None, streams: Streams) -> None:
    """Say that a summary tells notes too."""
    from ctxctl.model.edits import SUMMARY

    steps = result.done.compacted.steps
    summed = any(change.kind == SUMMARY for step in steps for change in step.edits.replaces)
    if noted is not None and summed and result.met:
        said = f"{plural(len(noted.entries), 'note')} of {noted.name} went into what the summary tells"
        streams.note(f"note: {result.path}: {said}; --no-from-notes leaves them out")

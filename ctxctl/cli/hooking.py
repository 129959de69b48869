"""Showing a change of an agent's settings, making it when the user wants it, and what is installed where."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.adapters.hooks import install as rules
from ctxctl.adapters.hooks import places
from ctxctl.cli.io import Streams
from ctxctl.errors import CtxctlError, ExitCode, InputError, RefusedError

if TYPE_CHECKING:
    from ctxctl.adapters.hooks.base import HookAgent
    from ctxctl.adapters.hooks.install import Change

LAST = 3
"""Entries of the log that the status shows."""


def elsewhere(agent: HookAgent, path: Path) -> list[str]:
    """Where the agent has hooks of ours beside those in a settings file."""
    told = []
    root = places.project_root(agent, Path.cwd())
    for scope in agent.files:
        other = places.settings_path(agent, scope, root, os.environ)
        try:
            if other != path and rules.installed(rules.read(other), other):
                told.append(f"hooks of ctxctl are in {other} too, and all of them run: uninstall --scope {scope}")
        except CtxctlError:
            continue
    return told


def settle(
    change: Change,
    about: Mapping[str, Any],
    settled: str,
    notes: tuple[str, ...],
    *,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    streams: Streams,
) -> int:
    """Show a change, and make it when the user wants it."""
    result: dict[str, Any] = {
        **about,
        "path": str(change.path),
        "changed": False,
        "backup": None,
        "written": [],
        "removed": [],
        "diff": rules.diff(change),
    }
    if not as_json and change.changes:
        streams.payload(result["diff"].encode("utf-8", "replace"))
    if not change.changes:
        streams.note(f"nothing to change in {change.path}: {settled}")
    elif dry_run:
        streams.note("nothing was written (--dry-run)")
    else:
        if not yes:
            _ask(change)
        backup = _write(change)
        removed = _drop_copies(change)
        written = [str(change.path)] if change.after is not None else []
        result |= {"changed": True, "backup": backup, "written": written, "removed": removed}
        streams.note(f"removed {change.path}" if change.after is None else f"wrote {change.path}")
        for copy in removed:
            streams.note(f"removed {copy}: the settings file holds just that again")
        for line in (*((f"what was there is in {backup}",) if backup else ()), *notes):
            streams.note(line)
    for line in _left_alone(change):
        streams.note(line)
    if as_json:
        from ctxctl.reports.json import dumps, envelope

        streams.payload(dumps(envelope("hook", {"yes": yes, "dry_run": dry_run}, result)))
    return ExitCode.OK


def _left_alone(change: Change) -> list[str]:
    """Hooks that call ctxctl and are not touched."""
    try:
        found = rules.others(change.before, change.path)
    except CtxctlError:
        return []
    return [
        f"left alone: {change.path}: {one.event} runs {one.command!r}, which is not the call of ctxctl alone; "
        "take it out by hand if ctxctl should not run there"
        for one in found
    ]


def _drop_copies(change: Change) -> list[str]:
    """Copies that are of no use once the file holds the same again: they may hold credentials, and git ignores the
    settings file alone. What can't be removed stays."""
    removed = []
    for copy in rules.spent_backups(change):
        try:
            copy.unlink()
        except OSError:
            continue
        removed.append(str(copy))
    return removed


def _ask(change: Change) -> None:
    """Raises RefusedError unless a user says yes."""
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        raise RefusedError(
            "nothing was written: there is no terminal to ask on", path=str(change.path), hint="--yes writes it"
        )
    sys.stderr.write(f"Write this to {change.path}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError("nothing was written", path=str(change.path))


def _write(change: Change) -> str | None:
    """Make a change; the copy that was left of what was there, if any. Raises RefusedError when the file is no longer
    what was shown."""
    from ctxctl.cli.placing import back_up
    from ctxctl.state.files import replace_whole

    if rules.read(change.path) != change.before:
        raise RefusedError("it was changed meanwhile: nothing was written", path=str(change.path), hint="run it again")
    backup = None
    if change.after is None:
        try:
            change.path.unlink()
        except OSError as error:
            raise InputError(f"can't be removed: {error.strerror or error}", path=str(change.path)) from None
        return None
    if change.before is not None and change.keep:
        backup = rules.same_backup(change) or back_up(change.path)
    try:
        change.path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't be made: {error.strerror or error}", path=str(change.path.parent)) from None
    replace_whole(change.path, change.after.encode("utf-8"))
    return str(backup) if backup is not None else None


def status_of_all() -> dict[str, Any]:
    """`result` of the JSON."""
    from ctxctl.adapters.hooks.base import registry
    from ctxctl.adapters.hooks.log import last, log_path

    files: list[dict[str, Any]] = []
    off: dict[str, str] = {}
    for name, agent in registry:
        root = places.project_root(agent, Path.cwd())
        for scope in agent.files:
            path = places.settings_path(agent, scope, root, os.environ)
            error, found, others = None, [], []
            try:
                text = rules.read(path)
                found, others = rules.installed(text, path), rules.others(text, path)
            except CtxctlError as problem:
                error = str(problem)
            files.append(
                {
                    "agent": name,
                    "scope": scope,
                    "path": str(path),
                    "exists": path.exists(),
                    "hooks": [{"event": one.event, "command": one.command} for one in found],
                    "others": [{"event": one.event, "command": one.command} for one in others],
                    "error": error,
                }
            )
        why = agent.switched_off(places.home_folder(agent, os.environ), root / agent.folder)
        if why is not None and any(file["hooks"] for file in files if file["agent"] == name):
            off[name] = why
    commands = dict.fromkeys(hook["command"] for file in files for hook in file["hooks"])
    log = log_path(os.environ)
    return {
        "files": files,
        "switched_off": off,
        "not_found": [program for command in commands if (program := places.missing_program(command))],
        "log": None if log is None else str(log),
        "last": last(log, LAST),
    }

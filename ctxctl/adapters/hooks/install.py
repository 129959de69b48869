"""The hooks of ctxctl in an agent's settings file: putting them in, taking them out, finding them."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxctl.adapters.hooks.base import HookAgent
from ctxctl.adapters.hooks.jsontext import Node, added, removed, scan
from ctxctl.adapters.hooks.places import backups
from ctxctl.errors import ConfigError, InputError, UsageError
from ctxctl.registry import closest

PROGRAM = re.compile(r"ctxctl(?:\.exe)?", re.IGNORECASE if os.name == "nt" else 0)
PYTHON = re.compile(r"(?:python|pypy)[\d.w]*(?:\.exe)?", re.IGNORECASE if os.name == "nt" else 0)
MENTIONED = re.compile(r"""(?:^|[\s/\\"'`;&|(])ctxctl(?:\.exe)?["']?\s+hook\s+run\b""")
"""A command in which ctxctl is called as a hook, by itself or among other things."""
OPERATORS = frozenset(";&|()")

HOOKS = "hooks"


def is_ours(command: str) -> bool:
    """Whether a command is the call of ctxctl as a hook and nothing else, wherever that is installed. One that does
    more, also one that only sets a variable before, is its user's own."""
    if "`" in command or "$(" in command or "\n" in command.strip():
        return False
    for posix in (True, False):  # a path of Windows has signs that a shell elsewhere takes away
        words = _words(command, posix)
        if words is None:
            continue
        if any(word and set(word) <= OPERATORS for word in words):
            return False
        names = [re.split(r"[/\\]", word)[-1] for word in words[:1]]
        if names and PROGRAM.fullmatch(names[0]) and words[1:3] == ["hook", "run"]:
            return True
        if names and PYTHON.fullmatch(names[0]) and words[1:5] == ["-m", "ctxctl", "hook", "run"]:
            return True
    return False


def _words(command: str, posix: bool) -> list[str] | None:
    """The words of a command, its operators apart; None for one that is cut off within quotes."""
    lexer = shlex.shlex(command, posix=posix, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return None
    return words if posix else [word.strip("\"'") for word in words]


@dataclass(frozen=True, slots=True)
class Installed:
    """One hook in a settings file that calls ctxctl. group: the whole group when it holds nothing else, else None."""

    event: str
    command: str
    group: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a settings file. before, after: its text; None where there is no file. keep: whether a copy of
    what was there is left beside it."""

    path: Path
    before: str | None
    after: str | None
    keep: bool = True

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def chosen_events(agent: HookAgent, names: Sequence[str], *, clean: bool) -> tuple[str, ...]:
    """The events to install, in the agent's order: those named, else the defaults, and Stop where a clean state is
    demanded. Raises UsageError for one that ctxctl does not answer."""
    for name in names:
        if name not in agent.events:
            near = closest(name, list(agent.events))
            known = ", ".join(agent.events)
            raise UsageError(f"no event {name!r}", hint=f"did you mean {near}?" if near else f"known: {known}")
    wanted = {*(names or agent.defaults), *(("Stop",) if clean else ())}
    return tuple(name for name in agent.events if name in wanted)


def groups(agent: HookAgent, events: Sequence[str], command: str, stop_command: str) -> dict[str, dict[str, Any]]:
    """What is installed for each event."""
    wanted: dict[str, dict[str, Any]] = {}
    for name in events:
        spec = agent.events[name]
        run = {"type": "command", "command": stop_command if name == "Stop" else command, "timeout": spec.timeout}
        wanted[name] = {**({} if spec.matcher is None else {"matcher": spec.matcher}), HOOKS: [run]}
    return wanted


def read(path: Path) -> str | None:
    """The text of a settings file as it is; None when there is none. Raises InputError."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8", path=str(path), line=line) from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=str(path)) from None


def installed(text: str | None, path: Path) -> list[Installed]:
    """The hooks of ctxctl in a settings file. Raises ConfigError for one that is damaged."""
    return [one for one in _found(text, path) if is_ours(one.command)]


def others(text: str | None, path: Path) -> list[Installed]:
    """Hooks in a settings file that call ctxctl among other things: those are their user's, and are left alone. Raises
    ConfigError for one that is damaged."""
    return [one for one in _found(text, path) if not is_ours(one.command) and MENTIONED.search(one.command)]


def _found(text: str | None, path: Path) -> list[Installed]:
    if text is None or not text.lstrip("\ufeff").strip():
        return []
    return [one for _, one in _hooks(*_scanned(text, path), path)]


def with_hooks(text: str | None, wanted: Mapping[str, Mapping[str, Any]], path: Path) -> str:
    """The text of a settings file with these hooks of ours and no others. What is there already stays where it is."""
    mark = "\ufeff" if text is not None and text.startswith("\ufeff") else ""
    bare = "{}\n" if text is None or not text.lstrip("\ufeff").strip() else text.removeprefix("\ufeff")
    has: dict[str, list[Installed]] = {}
    for found in installed(bare, path):
        has.setdefault(found.event, []).append(found)
    kept = {name for name, group in wanted.items() if [found.group for found in has.get(name, ())] == [group]}
    bare = _without(bare, path, frozenset(has) - kept, tidy=False)
    for name, group in wanted.items():
        if name not in kept:
            bare = _with(bare, name, group, path)
    return mark + _without(bare, path, frozenset(), tidy=True, emptied=frozenset(has) - set(wanted))


def without_hooks(text: str, path: Path) -> str | None:
    """The text of a settings file as it was before the hooks of ctxctl came; None when it should be removed.

    A copy that the installation left beside it is what it was, byte for byte, as long as nothing else has changed
    since; else our hooks are taken out, with the lists that they leave empty.
    """
    found = installed(text, path)
    if not found:
        return text
    wanted = {one.event: one.group for one in found if one.group is not None}
    if len(wanted) == len(found):
        for copy in backups(path):
            try:
                was = read(copy)
                if not installed(was, copy) and with_hooks(was, wanted, copy) == text:
                    return was
            except (ConfigError, InputError):
                continue
        if with_hooks(None, wanted, path) == text:
            return None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    bare = text.removeprefix("\ufeff")
    return mark + _without(bare, path, frozenset(one.event for one in found), tidy=True)


def diff(change: Change) -> str:
    """A change as a unified diff."""
    import difflib

    old, new = change.before or "", change.after or ""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def spent_backups(change: Change) -> list[Path]:
    """Copies that hold exactly what the file holds now, where nothing is to be left beside it."""
    held = []
    for copy in backups(change.path) if not change.keep and change.after is not None else ():
        try:
            if not copy.is_symlink() and read(copy) == change.after == read(change.path):
                held.append(copy)
        except InputError:
            continue
    return held


def same_backup(change: Change) -> Path | None:
    """A copy of what is there now that an earlier installation left."""
    for copy in backups(change.path):
        try:
            if read(copy) == change.before:
                return copy
        except InputError:
            continue
    return None


def _scanned(text: str, path: Path) -> tuple[str, Node]:
    bare = text.removeprefix("\ufeff")
    return bare, scan(bare, str(path))


def _events(text: str, root: Node, path: Path) -> Node | None:
    """The object of all hooks. Raises ConfigError when it has another shape than the agent reads."""
    hooks = root.child(HOOKS)
    if hooks is None:
        return None
    if hooks.keys is None:
        raise _shape(text, hooks, path, "`hooks` is no object of events")
    for name, list_ in zip(hooks.keys, hooks.children, strict=True):
        if text[list_.start] != "[":
            raise _shape(text, list_, path, f"`hooks.{name}` is no list")
    return hooks


def _shape(text: str, node: Node, path: Path, what: str) -> ConfigError:
    line = text.count("\n", 0, node.start) + 1
    return ConfigError(what, path=str(path), line=line, hint="mend the file by hand; nothing was changed")


def _hooks(text: str, root: Node, path: Path) -> list[tuple[tuple[int, int, int], Installed]]:
    """All hooks with their place: number of the event, of the group in it, of the hook in that."""
    hooks = _events(text, root, path)
    found: list[tuple[tuple[int, int, int], Installed]] = []
    if hooks is None or hooks.keys is None:
        return found
    for e, (name, list_) in enumerate(zip(hooks.keys, hooks.children, strict=True)):
        for g, group in enumerate(list_.children):
            runs = group.child(HOOKS)
            for h, run in enumerate(runs.children if runs is not None else ()):
                value = json.loads(text[run.start : run.end])
                command = value.get("command") if isinstance(value, dict) else None
                if isinstance(command, str):
                    alone = runs is not None and len(runs.children) == 1
                    whole = json.loads(text[group.start : group.end]) if alone else None
                    found.append(((e, g, h), Installed(name, command, whole)))
    return found


def _with(text: str, name: str, group: Mapping[str, Any], path: Path) -> str:
    root = scan(text, str(path))
    hooks = _events(text, root, path)
    if hooks is None:
        return added(text, root, {name: [group]}, HOOKS)
    list_ = hooks.child(name)
    return added(text, hooks, [group], name) if list_ is None else added(text, list_, group)


def _without(
    text: str, path: Path, events: frozenset[str], *, tidy: bool, emptied: frozenset[str] = frozenset()
) -> str:
    """The text without our hooks of these events. tidy: also without the lists that this leaves empty, and those of
    the events that were emptied before."""
    while True:
        hooks_ = _hooks(*_scanned(text, path), path)
        found = [place for place, one in hooks_ if one.event in events and is_ours(one.command)]
        if not found:
            break
        text = _taken_out(text, *found[-1], path)
    if not tidy:
        return text
    for name in sorted(events | emptied):
        root = scan(text, str(path))
        hooks = _events(text, root, path)
        if hooks is not None and hooks.keys is not None and (list_ := hooks.child(name)) and not list_.children:
            text = removed(text, hooks, hooks.keys.index(name))
    root = scan(text, str(path))
    hooks = _events(text, root, path)
    if events | emptied and hooks is not None and root.keys is not None and not hooks.children:
        text = removed(text, root, root.keys.index(HOOKS))
    return text


def _taken_out(text: str, event: int, group: int, hook: int, path: Path) -> str:
    hooks = _events(text, scan(text, str(path)), path)
    assert hooks is not None
    list_ = hooks.children[event]
    runs = list_.children[group].child(HOOKS)
    assert runs is not None
    if len(runs.children) > 1:
        return removed(text, runs, hook)
    return removed(text, list_, group)

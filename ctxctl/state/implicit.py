"""Implicit state (requirement S5): what the newest turns or the current step rely on, but nothing that is saved holds.

Three kinds: files of our own making that a call uses, ids of what runs, and findings that are only pointed at. Rather a
few that are sure than many: whoever gets a false alarm at each resume stops reading them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from ctxctl.facts import tools
from ctxctl.facts.files import CREATED, DELETED, WRITTEN, of_patch, of_script
from ctxctl.facts.shell import commands
from ctxctl.model.state import AgentState, TailBlock
from ctxctl.state.hashes import resolved
from ctxctl.state.held import HEX, Held, held_by
from ctxctl.state.pointers import unheld
from ctxctl.state.shown import shown
from ctxctl.trace.atoms import kind_of, words

MOST = 10
"""Warnings of a state."""

_SYSTEM = ("/dev/", "/proc/", "/sys/", "/usr/", "/bin/", "/sbin/", "/lib", "/etc/", "/opt/", "/snap/", "/System/")
"""Folders that are a machine's, and no session's."""
_ID_KEYS = frozenset(
    (
        *("session_id", "sessionid", "shell_id", "shellid", "bash_id", "process_id", "processid", "pid", "task_id"),
        *("terminal_id", "terminalid", "job_id", "jobid", "agent_id", "agentid", "container_id", "tab_id", "thread_id"),
    )
)
"""Arguments by which tools name what was started before: `write_stdin` of Codex, `BashOutput` and `KillShell` of Claude
Code, terminals of editors, browsers."""
_STOPS = frozenset(("kill", "wait", "strace", "lsof", "renice", "gdb"))
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX_USERS = frozenset(("git", "docker", "podman", "kubectl", "nerdctl"))
_FOLLOWED = 2000
"""Characters of a command that are looked at."""


@dataclass(frozen=True, slots=True)
class Implicit:
    """One such thing. kind: path, id or finding; what: it, in its own words; message: what relies on it; hint: how to
    make it explicit."""

    kind: Literal["path", "id", "finding"]
    what: str
    message: str
    hint: str


def implicit(state: AgentState, base: str | None = None) -> tuple[Implicit, ...]:
    """What the tail and the current step rely on and neither state nor tail holds, each once, in the order of use.
    base: the working folder, whose files whoever goes on will find; None to look at the state alone."""
    saved = held_by(state)
    found: dict[tuple[str, str], Implicit] = {}
    for one in (*_calls(state.tail, saved, base), *_step(state, saved, base), *_findings(state)):
        found.setdefault((one.kind, one.what), one)
    return tuple(found.values())[:MOST]


@dataclass(slots=True)
class _Use:
    """What a call does. needs: paths that must be there before; makes: paths that it makes; shows: paths whose content
    its result holds; ids: what it names of what was started before."""

    needs: list[str]
    makes: list[str]
    shows: list[str]
    ids: list[str]


def _calls(tail: Sequence[TailBlock], saved: Held, base: str | None) -> Iterator[Implicit]:
    for at, block in enumerate(tail):
        if block.kind == "tool_call":
            use = _use(block)
            name = shown(block.tool_name or "a call")
            for path in use.needs:
                if path not in use.makes and not saved.has_path(path) and not _is_there(path, base):
                    yield Implicit(
                        "path",
                        path,
                        f"{name} uses {shown(path)}, and nothing that is saved says what it is",
                        f"note what {shown(path)} is and how it came about: `ctxctl notes add done TEXT`",
                    )
            for id_ in use.ids:
                if not saved.has_id(id_):
                    yield Implicit(
                        "id",
                        id_,
                        f"{name} refers to {shown(id_)}, and nothing that is saved says where that comes from",
                        f"note what {shown(id_)} is, or that it is over: `ctxctl notes add issue TEXT`",
                    )
            for path in (*use.makes, *(use.shows if _answered(tail, at) else ())):
                saved.path(path)
        else:
            saved.text(block.text)


def _answered(tail: Sequence[TailBlock], at: int) -> bool:
    return any(block.kind == "tool_result" for block in tail[at + 1 :])


def _use(block: TailBlock) -> _Use:
    use = _Use([], [], [], [])
    name = block.tool_name or ""
    kind = tools.kind_of(name)
    given = _given(block)
    if kind in (tools.TODO, tools.ASK):
        return use
    if kind in (tools.SHELL, None) and given is not None:
        for key, value in given.items():
            if key.lower() in _ID_KEYS and isinstance(value, (str, int)) and not isinstance(value, bool):
                id_ = str(value).strip()
                if id_ and len(id_) <= 80 and not any(c.isspace() for c in id_):
                    use.ids.append(id_)
    if kind == tools.SHELL:
        script = tools.script_of(given)[0] if given is not None else (block.target or "")
        _script(script[:_FOLLOWED], use)
    elif kind == tools.PATCH:
        use.makes += [touch.path for touch in of_patch(block.text)]
    elif kind in (tools.WRITE, tools.EDIT, tools.EDITOR, tools.READ):
        path = tools.path_of(given) if given is not None else block.target
        if path:
            whole = kind == tools.WRITE or (kind == tools.EDITOR and (given or {}).get("command") == "create")
            into = use.makes if whole else use.shows if kind == tools.READ else use.needs
            into.append(path.lstrip("…"))
    return use


def _given(block: TailBlock) -> dict[str, Any] | None:
    """The arguments of a call; None where they were cut."""
    try:
        value = orjson.loads(block.text[len(block.tool_name or "") + 1 :].encode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _script(script: str, use: _Use) -> None:
    parts = commands(script)
    for touch in of_script(parts, {}):
        if touch.action in (WRITTEN, CREATED, DELETED):
            use.makes.append(touch.path)
        elif touch.action == "read":
            use.shows.append(touch.path)
    for command in parts:
        operands = command.operands
        if command.name in ("mkdir", "touch", "mktemp", "ls", "find", "stat", "file", "wc", "test", "[", "cd", "rm"):
            use.makes += operands  # it makes them, or asks whether they are there
        elif command.name in _STOPS:
            use.ids += [word for word in operands if word.isascii() and word.isdigit() and len(word) > 1]
        elif command.name in _HEX_USERS:
            for word in operands:
                cut = re.split(r"[.^~:]", word)[0]
                if HEX.fullmatch(cut) or _UUID.fullmatch(cut):
                    use.ids.append(cut)
        else:
            use.needs += [word for word in _run(command.name, command.words) if _is_own(word)]


def _run(name: str, given: Sequence[str]) -> Iterator[str]:
    """Words of a command that are files: the program itself where it is named by its path, and its operands."""
    if given and "/" in given[0]:
        yield given[0]
    if name in ("echo", "printf", "export", "grep", "rg", "sed", "awk", "ssh", "curl", "wget", "pip", "npm", "cargo"):
        return
    for word in given[1:]:
        if not word.startswith("-") and "=" not in word:
            yield word.split("::")[0]


_TEMPORARY = ("/tmp/", "/var/tmp/", "/private/tmp/", "/dev/shm/")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,7}$")


def _is_own(word: str) -> bool:
    """Whether a word is a file that a session can have made: with an extension, or in a folder for temporary files."""
    if set(word) & set("*?$`{}<>|:@") or kind_of(word.strip(".-").removeprefix("./")) != "path":
        return False
    return word.startswith(_TEMPORARY) or (_EXTENSION.search(word) is not None and not word.startswith(_SYSTEM))


def _is_there(path: str, base: str | None) -> bool:
    """Whether a path is a file of the working folder: whoever goes on finds it there."""
    if base is None:
        return False
    where = resolved(path, base)
    return where.startswith(f"{base.rstrip('/')}/") and os.path.isfile(where)


def _step(state: AgentState, saved: Held, base: str | None) -> Iterator[Implicit]:
    """Paths that the current step names. The tail is in `saved` by now."""
    current = state.current_subtask
    if current is None:
        return
    for word in sorted(words(current.text), key=current.text.find):
        # a plain name may be a product's, and a new file's name is what the step is about
        if kind_of(word) != "path" or word.startswith(_SYSTEM) or not ("/" in word and "." in word.rsplit("/", 1)[-1]):
            continue
        if f"//{word.lstrip('/')}" in current.text or _is_new(current.text, word):
            continue
        if saved.has_path(word) or _is_there(word, base):
            continue
        yield Implicit(
            "path",
            word,
            f"the current step names {shown(word)}, and nothing else that is saved does",
            f"note what is known of {shown(word)}: `ctxctl notes add plan TEXT`",
        )


_NEW = re.compile(r"\b(?:add|create|write|make|generate|new|introduce|export|save|put|draft|emit)\b", re.IGNORECASE)


def _is_new(text: str, word: str) -> bool:
    return _NEW.search(text, 0, max(0, text.find(word))) is not None


def _findings(state: AgentState) -> Iterator[Implicit]:
    for phrase, where in unheld(state):
        yield Implicit(
            "finding",
            phrase,
            f"{where} says {shown(phrase)!r}, and nothing that is saved holds what that was",
            "write it down: `ctxctl notes add lesson TEXT`",
        )

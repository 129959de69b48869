"""Files that a session read or modified, from its tool calls."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from ctxctl.facts.shell import UNCLEAR, Command, join
from ctxctl.facts.tools import EDIT, EDITOR, READ, WRITE, content_of, path_of
from ctxctl.model.summary import FileFact

READING, CREATED, WRITTEN, EDITED, DELETED, RESTORED = "read", "created", "written", "edited", "deleted", "restored"

_HEADER = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+?)[ \t]*\r?$", re.MULTILINE)
_PAGERS = frozenset(("cat", "head", "tail", "nl", "less", "more", "bat"))
_PYTHONS = re.compile(r"^(?:python|pypy)[\d.]*$")
_OPENED = re.compile(
    r"""\bopen\(\s*(?:(?P<q>['"])(?P<path>[^'"\n]+)(?P=q)|(?P<name>[A-Za-z_]\w*))\s*,\s*(?:mode\s*=\s*)?['"][wax]"""
    r"""|\bPath\(\s*(?P<q2>['"])(?P<path2>[^'"\n]+)(?P=q2)\s*\)\.write_(?:text|bytes)\("""
)
_NAMED = re.compile(r"""^[ \t]*([A-Za-z_]\w*)\s*=\s*(?:Path\()?(['"])([^'"\n]+)\2""", re.MULTILINE)


ALIASES = 256
"""Other names of files that are carried to the next reading."""


class Touch(NamedTuple):
    """What a call does to a file. folder: where a relative path starts, as far as known. part: position among the
    script's commands, None for a call that succeeds or fails as a whole. into: `rm -r`: everything below."""

    action: str
    path: str
    folder: str = ""
    hash: str | None = None
    part: int | None = None
    below: bool = False


def digest(content: str) -> str:
    """SHA-256 of a text as UTF-8, in hex."""
    return sha256(content.encode("utf-8", "replace")).hexdigest()


def of_tool(kind: str, given: dict[str, Any]) -> list[Touch]:
    """What a call of a file tool does."""
    path = path_of(given)
    if path is None:
        return []
    if kind == READ:
        return [Touch(READING, path)]
    if kind == WRITE:
        content = content_of(given)
        return [Touch(WRITTEN, path, "", digest(content) if content is not None else None)]
    if kind == EDIT:
        return [Touch(EDITED, path)]
    if kind == EDITOR:
        command = given.get("command")
        if command == "view":
            return [Touch(READING, path)]
        if command == "create":
            content = content_of(given)
            return [Touch(WRITTEN, path, "", digest(content) if content is not None else None)]
        return [Touch(EDITED, path)]
    return []


def of_patch(patch: str, folder: str = "", part: int | None = None) -> list[Touch]:
    """What a patch of Codex's `apply_patch` does."""
    found: list[Touch] = []
    headers = list(_HEADER.finditer(patch))
    for at, match in enumerate(headers):
        action, path = match.group(1), match.group(2)
        if action == "Add File":
            end = headers[at + 1].start() if at + 1 < len(headers) else len(patch)
            lines = [line[1:] for line in patch[match.end() : end].split("\n") if line.startswith("+")]
            whole = "".join(f"{line}\n" for line in lines)
            found.append(Touch(CREATED, path, folder, digest(whole), part))
        elif action == "Update File":
            found.append(Touch(EDITED, path, folder, None, part))
        elif action == "Delete File":
            found.append(Touch(DELETED, path, folder, None, part))
        elif found:  # the file goes on under another name
            found[-1] = found[-1]._replace(action=DELETED)
            found.append(Touch(CREATED, path, folder, None, part))
    return found


def of_script(parts: list[Command], scripts: dict[str, list[str]]) -> list[Touch]:
    """What a shell script clearly does. scripts: files that Python programs written earlier write, by the program's
    path; programs that this script writes are added."""
    found: list[Touch] = []
    for at, command in enumerate(parts):
        for action, path, hash_, below in _of_command(command, scripts):
            if path and path[-1] not in "/-" and not UNCLEAR.search(path) and not path.startswith(("/dev/", "http")):
                found.append(Touch(action, path, command.folder, hash_, at, below))
    return found


Done = tuple[str, str, str | None, bool]


def _of_command(command: Command, scripts: dict[str, list[str]]) -> Iterator[Done]:
    name, words = command.name, command.words
    if name in ("apply_patch", "applypatch"):
        patch = command.doc if command.doc is not None else "\n".join(words[1:])
        yield from ((touch.action, touch.path, touch.hash, False) for touch in of_patch(patch))
        return
    if command.writes:
        literal = command.doc if command.literal and name == "cat" and len(words) == 1 else None
        for append, path in command.writes:
            if literal is not None and path.endswith(".py"):
                scripts[path] = written_by(literal)
            yield EDITED if append else WRITTEN, path, digest(literal) if literal and not append else None, False
    if name in ("sed", "gsed", "perl"):
        yield from _in_place(command)
    elif name == "tee":
        append = "-a" in words or "--append" in words
        yield from ((EDITED if append else WRITTEN, path, None, False) for path in command.operands)
    elif name in ("rm", "unlink"):
        below = any(word.startswith("-") and ("r" in word or "R" in word) for word in words)
        yield from ((DELETED, path.rstrip("/"), None, below) for path in command.operands)
    elif name in ("mv", "cp") and len(command.operands) > 1:
        yield from _moved(command, name == "mv")
    elif name == "touch":
        yield from ((CREATED, path, None, False) for path in command.operands)
    elif name == "git":
        yield from _git(words)
    elif name in _PAGERS and not command.writes and command.doc is None:
        yield from ((READING, path, None, False) for path in command.operands if not path.isdigit())
    elif _PYTHONS.match(name):
        yield from ((WRITTEN, path, None, False) for path in _python(command, scripts))


def _in_place(command: Command) -> Iterator[Done]:
    """`sed -i`, `perl -pi -e`: the files behind the expression. `sed -n`: what it reads."""
    edits, given, files, skip = False, False, [], False
    for word in command.words[1:]:
        if skip:
            skip = False
        elif word.startswith("--in-place") or (word.startswith("-") and not word.startswith("--") and "i" in word[1:4]):
            edits = True
            if command.name == "perl" and word.endswith("e"):
                skip = given = True
        elif word in ("-e", "-f", "--expression", "--file"):
            skip = given = True
        elif not word.startswith("-"):
            files.append(word)
    files = [word for word in files if word] if edits else files  # `sed -i ''`
    if not given:
        files = files[1:]
    if edits:
        yield from ((EDITED, path, None, False) for path in files)
    elif command.name == "sed" and not command.writes:
        yield from ((READING, path, None, False) for path in files)


def _moved(command: Command, away: bool) -> Iterator[Done]:
    *sources, target = command.operands
    if not away and any(word.startswith("-") and ("r" in word or "R" in word or "a" in word) for word in command.words):
        return  # whole folders
    folder = target.endswith("/") or target in (".", "..") or len(sources) > 1
    for source in sources:
        if away:
            yield DELETED, source, None, False
        yield CREATED, join(target.rstrip("/"), source.rsplit("/", 1)[-1]) if folder else target, None, False


def _git(words: list[str]) -> Iterator[Done]:
    operands = [word for word in words[2:] if not word.startswith("-")]
    action = words[1] if len(words) > 1 else ""
    if action == "rm" and "--cached" not in words:
        yield from ((DELETED, path, None, False) for path in operands)
    elif action == "mv" and len(operands) == 2:
        yield DELETED, operands[0], None, False
        yield CREATED, operands[1], None, False
    elif (action == "restore" or (action == "checkout" and "-b" not in words)) and "--staged" not in words:
        behind = words[words.index("--") + 1 :] if "--" in words else operands
        yield from ((RESTORED, path, None, False) for path in behind)


def written_by(program: str) -> list[str]:
    """Files that a Python program writes under a name that stands in it."""
    found: list[str] = []
    if "open(" in program or ".write_" in program:
        names = {match[1]: match[3] for match in _NAMED.finditer(program)}
        for match in _OPENED.finditer(program):
            path = match["path"] or match["path2"] or names.get(match["name"] or "")
            if path and path not in found:
                found.append(path)
    return found


def _python(command: Command, scripts: dict[str, list[str]]) -> list[str]:
    if command.doc is not None:
        return written_by(command.doc)
    for at, word in enumerate(command.words[1:], 1):
        if word == "-c":
            return written_by(command.words[at + 1]) if at + 1 < len(command.words) else []
        if not word.startswith("-"):
            return scripts.get(word.removeprefix("./"), [])
    return []


class FileLog:
    """Collects what was done to files, and folds it to one fact per file."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, Touch]] = []
        self._root = ""
        self._aliases: dict[str, str] = {}

    def add(self, number: int, touches: list[Touch]) -> None:
        """Take what a call did. number: of its block."""
        for touch in touches:
            if not self._root and touch.folder.startswith("/"):
                self._root = touch.folder
            self._seen.append((number, touch))

    def carry(self, gone: Container[int], before: tuple[FileFact, ...] = ()) -> dict[str, Any]:
        """What `go_on` needs: under which other names files are known, the newest ones."""
        facts, names = self._fold(gone, before)
        aliases = [(name, path) for name, path in names.items() if name != path and path in facts][-ALIASES:]
        rooted = [path for name, path in aliases if self._root and name == join(self._root, path)]
        return {
            "root": self._root,
            "rooted": rooted,
            "aliases": {name: path for name, path in aliases if not self._root or name != join(self._root, path)},
        }

    def go_on(self, carried: dict[str, Any]) -> None:
        """Go on where `carry` was asked, before the first call."""
        self._root = carried["root"]
        self._aliases = {join(self._root, path): path for path in carried["rooted"]} | carried["aliases"]

    def fold(self, gone: Container[int], before: tuple[FileFact, ...] = ()) -> tuple[FileFact, ...]:
        """The files, in the order in which they came up. before: of an earlier summary."""
        return tuple(self._fold(gone, before)[0].values())

    def _fold(self, gone: Container[int], before: tuple[FileFact, ...]) -> tuple[dict[str, FileFact], dict[str, str]]:
        """The files by path, and the paths by every name that they were called."""
        facts = {fact.path: fact for fact in before}
        names = {path: path for path in facts}
        names |= {name: path for name, path in self._aliases.items() if path in facts and name not in names}
        for number, touch in self._seen:
            if number in gone:
                continue
            shown, full = self._names(touch)
            if touch.below:
                for path, fact in facts.items():
                    if path.startswith((f"{shown}/", f"{full}/")) and fact.role == "modified":
                        facts[path] = _changed(fact, DELETED, None)
            path = names.get(shown) or names.get(full) or shown
            known = facts.get(path)
            if touch.action == READING:
                if known is None:
                    facts[path] = FileFact(path, "read", (READING,))
            elif touch.action == RESTORED or touch.below:
                if known is not None and known.role == "modified":
                    facts[path] = _changed(known, touch.action, None)
                continue
            else:
                facts[path] = _changed(known or FileFact(path, "modified"), touch.action, touch.hash)
            names[shown] = names[full] = path
        return facts, names

    def _names(self, touch: Touch) -> tuple[str, str]:
        """A file's name as the session would say it, and from the root of the file system where that is known."""
        full = join(touch.folder, touch.path)
        if full.startswith("/") and self._root and touch.folder != self._root and not touch.path.startswith("/"):
            return full.removeprefix(f"{self._root}/"), full
        return join("", touch.path) if touch.folder.startswith("/") else full, full


def _changed(fact: FileFact, action: str, hash_: str | None) -> FileFact:
    actions = fact.actions if fact.role == "modified" else ()
    return FileFact(fact.path, "modified", actions if action in actions else (*actions, action), hash_)

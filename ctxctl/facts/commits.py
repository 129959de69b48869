"""Commits that a session made: what `git commit` printed, its message otherwise."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import NamedTuple

from ctxctl.facts.shell import Command
from ctxctl.facts.todos import folded
from ctxctl.model.summary import Commit
from ctxctl.model.text import shortened

_PRINTED = re.compile(r"^\[[^\]\n]{1,200}? ([0-9a-f]{7,40})\] (.*?)[ \t]*\r?$", re.MULTILINE)
_NOTHING = re.compile(
    r"nothing to commit|no changes added to commit|nothing added to commit|^(?:fatal|error): |Aborting commit"
    r"|did not match any file",
    re.MULTILINE,
)
_GLOBAL = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace"))
LONGEST = 200


class Asked(NamedTuple):
    """A `git commit` of a script. message: its first line, empty where an editor or a file gives it."""

    message: str
    amend: bool


def asked(parts: list[Command]) -> list[Asked]:
    """The commits that a script makes."""
    found = []
    for command in parts:
        if command.name == "git" and "commit" in command.words:
            words = _behind(command.words)
            if words and words[0] == "commit" and "--dry-run" not in words:
                found.append(Asked(_message(words, command.doc), "--amend" in words))
    return found


def _behind(words: list[str]) -> list[str]:
    """What follows git's own options."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GLOBAL else 1
    return words[at:]


def _message(words: list[str], doc: str | None) -> str:
    for at, word in enumerate(words[1:], 1):
        if word in ("-F", "--file") and doc is not None:
            return _subject(doc)
        if word == "-m" or word == "--message" or (re.fullmatch(r"-[a-zA-Z]*m", word) and not word.startswith("--")):
            return _subject(words[at + 1]) if at + 1 < len(words) else ""
        if word.startswith("--message="):
            return _subject(word.partition("=")[2])
    return ""


def _subject(message: str) -> str:
    return next((shortened(line.strip(), LONGEST) for line in message.split("\n") if line.strip()), "")


class CommitLog:
    """Collects commits in order; one that was amended is replaced."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, Commit, bool, bool]] = []

    def add(
        self, number: int, turn: int, wanted: list[Asked], text: str, failed: bool, *, shrunk: bool = False
    ) -> None:
        """Take the commits of a call. text: what it printed, or what is left of that (shrunk)."""
        printed = _PRINTED.findall(text)
        for at, (message, amend) in enumerate(wanted):
            if at < len(printed):
                self._seen.append(
                    (number, Commit(shortened(printed[at][1], LONGEST) or message, printed[at][0], turn), amend, shrunk)
                )
            elif not failed and not printed and message and not _NOTHING.search(text):
                self._seen.append((number, Commit(message, None, turn), amend, shrunk))

    def fold(
        self, gone: Container[int], before: Iterable[Commit] = (), *, own: Iterable[Commit] = ()
    ) -> tuple[Commit, ...]:
        """The commits, oldest first. before: those of earlier summaries; the calls of some may still be there. own:
        those of what was read before, which may still be amended."""
        found = list(before)
        told = len(found)
        found.extend(commit for commit in own if commit not in found)
        for number, commit, amend, shrunk in self._seen:
            if number in gone:
                continue
            known = any(_same(other, commit, shrunk) for other in found)
            if amend and found and (not known or len(found) > told):
                found.pop()
                told = min(told, len(found))
            if not known:
                found.append(commit)
        return tuple(found)


def _same(one: Commit, other: Commit, shrunk: bool) -> bool:
    """Whether both are one commit. Where git's words are gone, its message must do."""
    if one.id and other.id:
        return one.id.startswith(other.id) or other.id.startswith(one.id)
    return (shrunk or one.id == other.id) and folded(one.message) == folded(other.message)

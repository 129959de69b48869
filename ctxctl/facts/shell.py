"""Shell scripts as agents write them: cut into simple commands, with what each one writes.

Not a shell: variables, globs, functions and substitutions are not expanded, and what depends on them is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ctxctl.model.text import shortened

LONGEST = 200_000
"""Characters of a script that are read."""
MOST = 2_000
"""Tokens of a script that are read."""
DEEPEST = 3
"""How deep scripts in scripts (`bash -c '...'`) are followed."""

# A word is made of quoted and plain runs. The first alternative is how agents pass messages of several lines:
# the quotes in such a text do not end it.
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\\\n|\#(?<![^\s]\#)[^\n]*)
    |(?P<doc><<(?!<)-?[ \t]*(?P<quote>['"\\]?)(?P<end>[\w.-]+)['"]?)
    |(?P<op>&&|\|\||;;|\|&|[;|\n()]|&(?![>\d]))
    |(?P<to>(?:\d|&)?>>?(?:&(?:\d|-))?|>\||<<<|<)
    |(?P<word>(?:"\$\(cat\ <<-?[ ]*['"]?(?P<tag>\w+)['"]?\n(?s:.*?)\n[ \t]*(?P=tag)[ \t]*\n?[ \t]*\)"
      |'[^']*'|"(?:[^"\\]|\\.)*"|\$\((?:[^()'"]|'[^']*'|"(?:[^"\\]|\\.)*")*\)|\\.|[^\s;&|<>()'"\\])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(
    r"""(?P<message>"\$\(cat\ <<-?[ ]*['"]?(?P<tag>\w+)['"]?\n(?P<body>.*?)\n[ \t]*(?P=tag)[ \t]*\n?[ \t]*\)")
    |'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)|(?P<plain>[^'"\\]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\([$`"\\\n])')
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SKIPPED = frozenset(
    ("then", "do", "else", "if", "elif", "while", "until", "{", "!", "time", "sudo", "nohup", "command")
)
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
UNCLEAR = re.compile(r"[$*?`{}\n]|\[.*[*!-].*\]")
"""What makes a path one that only a running shell knows."""


@dataclass(slots=True)
class Command:
    """A simple command. words: without quotes, wrappers (`sudo`, `FOO=1`) left out. raw: as written, without
    redirections. writes: (append, path) of each redirection into a file. doc: its here-document; literal: whether that
    is taken as it stands. after: the operator behind it, empty at the end. folder: what `cd` in the script said last.
    """

    words: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    writes: list[tuple[bool, str]] = field(default_factory=list)
    doc: str | None = None
    literal: bool = False
    after: str = ""
    folder: str = ""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def operands(self) -> list[str]:
        """Words behind the program that are no options."""
        return [word for word in self.words[1:] if not word.startswith("-")]


def commands(script: str, folder: str = "", depth: int = 0) -> list[Command]:
    """The simple commands of a script in order. folder: where it starts, as far as known."""
    found: list[Command] = []
    for command in _cut(shortened(script, LONGEST)):
        command.folder = folder
        if command.name == "cd" and len(command.words) > 1 and not UNCLEAR.search(command.words[1]):
            folder = join(folder, command.words[1])
        nested = _nested(command) if depth < DEEPEST else None
        if nested is not None:
            inner = commands(nested, folder, depth + 1)
            if inner:
                inner[-1].after = command.after
                found.extend(inner)
                continue
        found.append(command)
    return found


def join(folder: str, path: str) -> str:
    """A path seen from a folder; `.` and doubled slashes folded, `..` kept."""
    path = path if path.startswith(("/", "~")) or path[1:3] == ":\\" or not folder else f"{folder}/{path}"
    if "//" in path or "/./" in path or path.startswith("./"):
        parts = [part for part in path.split("/") if part not in ("", ".")]
        path = ("/" if path.startswith("/") else "") + "/".join(parts)
    return path


def _cut(script: str) -> Iterator[Command]:
    command, position, into, append = Command(), 0, False, False
    docs: list[tuple[Command, re.Pattern[str], bool]] = []
    for _ in range(MOST):
        match = _TOKEN.match(script, position)
        if match is None:
            break
        position = match.end()
        kind = match.lastgroup
        text = match.group()
        if kind == "word" or kind == "other":
            word = _plain(text)
            if into:
                into = False
                if word and not word.startswith("/dev/"):
                    command.writes.append((append, word))
            elif command.words or not (word in _SKIPPED or _ASSIGNMENT.match(text)):
                command.words.append(word)
                command.raw.append(text)
        elif kind == "to":
            into, append = ">" in text and "&" not in text[1:], ">>" in text
            if text.startswith("<"):
                into = False
        elif kind == "doc":
            indent = r"\t*" if text.startswith("<<-") else ""
            end = re.compile(rf"^{indent}{re.escape(match.group('end'))}[ \t]*$", re.MULTILINE)
            docs.append((command, end, bool(match.group("quote"))))
        elif kind == "op":
            into = False
            if text == "\n" and docs:
                position = _documents(script, position, docs)
            if command.words or command.writes:
                command.after = text
                yield command
                command = Command()
    if command.words or command.writes:
        yield command


def _documents(script: str, position: int, docs: list[tuple[Command, re.Pattern[str], bool]]) -> int:
    """Hand here-documents to their commands; where the script goes on behind them."""
    for command, end, literal in docs:
        match = end.search(script, position)
        stop = len(script) if match is None else match.start()
        command.doc, command.literal = script[position:stop], literal
        position = len(script) if match is None else min(match.end() + 1, len(script))
    docs.clear()
    return position


def _plain(text: str) -> str:
    """A word without its quotes."""
    if not any(sign in text for sign in "'\"\\"):
        return text
    parts: list[str] = []
    for match in _PART.finditer(text):
        kind = match.lastgroup
        if kind == "message":
            parts.append(match.group("body"))
        elif kind == "double":
            parts.append(_ESCAPED.sub(r"\1", match.group("double")))
        elif kind is not None:
            parts.append(match.group(kind))
    return "".join(parts)


def _nested(command: Command) -> str | None:
    """The script that a command hands to another shell."""
    if command.name not in _SHELLS:
        return None
    for at, word in enumerate(command.words[1:-1], 1):
        if word in ("-c", "-lc", "-ic"):
            return command.words[at + 1]
    return None

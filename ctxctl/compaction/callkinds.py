"""What a tool call does to the world: it reads, it checks, it works on a state of its own, or anything else."""

from __future__ import annotations

import re

from ctxctl.facts.shell import Command, commands
from ctxctl.facts.tools import SHELL, kind_of

READERS = frozenset(
    [
        "read",
        "grep",
        "glob",
        "ls",
        "cat",
        "view",
        "open",
        "fetch",
        "notebookread",
        "readfile",
        "readmanyfiles",
        "viewfile",
        "openfile",
        "listdir",
        "listdirectory",
        "listfiles",
        "findfiles",
        "filesearch",
        "searchfiles",
        "searchfile",
        "searchdir",
        "grepsearch",
        "codebasesearch",
        "searchfilecontent",
        "ripgrep",
        "search",
        "webfetch",
        "websearch",
        "fetchurl",
        "googlewebsearch",
        "tree",
        "stat",
        "lsp",
    ]
)
"""Tools of known agents that only read: lower case, letters and digits alone."""
STATEFUL = re.compile(
    r"browser|playwright|puppeteer|selenium|navigate|screenshot|webpage|computer|"
    r"(?:\b|_)sql|sqlite|postgres|mysql|mongo|database|run_?query",
    re.IGNORECASE,
)
"""Names of tools that work on a state of their own, which nothing else sees."""
PROGRAMS = frozenset(
    [
        "ls",
        "cat",
        "rg",
        "grep",
        "egrep",
        "fgrep",
        "ag",
        "find",
        "fd",
        "head",
        "tail",
        "wc",
        "tree",
        "file",
        "stat",
        "sort",
        "uniq",
        "cut",
        "nl",
        "pwd",
        "echo",
        "which",
        "type",
        "cd",
        "du",
        "df",
        "jq",
        "awk",
        "sed",
        "tr",
        "less",
        "more",
        "column",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "diff",
        "cmp",
        "strings",
        "xxd",
        "true",
        "printf",
        "date",
        "test",
        "[",
        "curl",
    ]
)
GIT = frozenset(["log", "show", "diff", "status", "blame", "grep", "ls-files", "ls-tree", "rev-parse"])
CHECKS = frozenset(["pytest", "ruff", "mypy", "flake8", "tox", "eslint", "tsc", "phpunit", "rspec"])
CHECKED = re.compile(
    r"(?:python3? -m (?:pytest|unittest|mypy)|(?:npm|pnpm|yarn) (?:run )?test|go (?:test|vet)|"
    r"cargo (?:test|check|clippy)|make test)\b"
)
WRITES = {
    "find": re.compile(r"-(?:delete|exec|execdir|ok|okdir|fprint\w*|fls)"),
    "fd": re.compile(r"-[xX]|--exec\S*"),
    "sed": re.compile(r"-[a-zA-Z]*i\S*|--in-place\S*"),
    "sort": re.compile(r"-[a-zA-Z]*o\S*|--output\S*"),
    "awk": re.compile(r"-i|.*(?:system\s*\(|>).*", re.DOTALL),
    "curl": re.compile(r"-[a-zA-Z]*[XdFToO]\S*|--(?:request|data|form|upload|output|json|remote)\S*"),
}
"""Words by which a program that reads writes all the same."""


def kind_of_call(name: str, script: str) -> str | None:
    """`read`, `check` (tests, linters), `state` (a browser, a database); None for whatever may change something that
    others see, and in doubt. script: of a shell call."""
    if kind_of(name) == SHELL:
        found = {_kind(command) for command in commands(script)} if "$(" not in script and "`" not in script else set()
        if not found or None in found:
            return None
        return "check" if "check" in found else "read"
    if STATEFUL.search(name):
        return "state"
    plain = re.sub(r"[^a-z0-9]", "", name.rpartition("__")[2].lower())
    return "read" if plain in READERS else None


def _kind(command: Command) -> str | None:
    if command.writes or command.doc is not None:
        return None
    if command.name in CHECKS or CHECKED.match(" ".join(command.words)):
        return None if any(word.startswith("--fix") for word in command.words) else "check"
    if command.name == "git":
        return "read" if command.operands[:1] and command.operands[0] in GIT else None
    if command.name not in PROGRAMS:
        return None
    writes = WRITES.get(command.name)
    return None if writes is not None and any(writes.fullmatch(word) for word in command.words[1:]) else "read"

"""Atoms: the pieces of text by which a later turn is seen to use an earlier one.

File paths, compound identifiers, numbers, error names, whole lines, and tool calls. Atoms are compared as strings, so
texts of a transcript are cut into words by a table and a split, which takes a quarter of the time of one expression.
"""

from __future__ import annotations

import re
from functools import lru_cache

import orjson

PRECISION = {"path": 0.93, "identifier": 0.90, "number": 0.94, "line": 0.99, "error": 0.74, "call": 1.0}
"""How often a reference of each class is one: against the same agent's text over other runs of one repository, on 500
public SWE-bench runs. A repeated call is one by definition."""
HEADLINE = frozenset(("path", "identifier", "number", "line", "call"))
"""Classes that the headline measures count; error names are common words of their field and too often wrong."""

SHORTEST_IDENTIFIER = 5
SHORTEST_LINE, LONGEST_LINE = 24, 200
LONGEST_WORD = 200
_KEPT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")
_WORDS = {c: " " for c in range(128) if chr(c) not in _KEPT}
_NUMBER = re.compile(r"\d{3,}")
_ERROR = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit)")
_PATH = re.compile(r"[\w.-]*(?:/[\w.-]+)+|[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}", re.ASCII)
_FILE = re.compile(
    r"[\w.-]+\.(?:py|pyi|js|jsx|ts|tsx|mjs|java|kt|go|rs|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|sh|sql|html|css|scss|vue|"
    r"md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|xml|csv|lock|log|ipynb|tf|proto|gradle|patch|diff)"
)
_COMPOUND = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+|\w*[a-z0-9]_[A-Za-z0-9]\w*|\w*_\w*[a-z]{3}\w*|\w*[a-z][A-Z]\w*")
_FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "uri", "url")
_RANGE_KEYS = ("offset", "limit", "start_line", "end_line", "start", "end", "view_range", "pages", "line", "lines")
_COMMAND_KEYS = ("command", "cmd", "script", "code")


def words(text: str) -> set[str]:
    """The words of a text that may be atoms; what is one is told by `kind_of`."""
    return {w.strip(".-") for w in text.translate(_WORDS).split()}


def lines(text: str) -> set[str]:
    """The lines of a text that are long enough to be told from others, without the space around them."""
    return {
        stripped
        for line in text.split("\n")
        if len(line) >= SHORTEST_LINE and SHORTEST_LINE <= len(stripped := line.strip()) <= LONGEST_LINE
    }


@lru_cache(maxsize=1 << 16)
def kind_of(word: str) -> str | None:
    """The class of a word, None when it is none: too short, or a plain word of a language."""
    if len(word) < 3 or len(word) > LONGEST_WORD:
        return None
    if _NUMBER.fullmatch(word):
        return "number"
    if _ERROR.fullmatch(word):
        return "error"
    if "/" in word:
        return "path" if len(word) >= SHORTEST_IDENTIFIER and any(c.isalpha() for c in word) else None
    if _FILE.fullmatch(word):
        return "path"
    if len(word) >= SHORTEST_IDENTIFIER and _COMPOUND.fullmatch(word):
        return "identifier"
    return None


def key_of(call: str) -> str | None:
    """What makes two tool calls (`NAME ARGUMENTS`) the same: the tool with its path and range, or its command, spaces
    made one; all arguments where neither is there."""
    name, _, arguments = call.partition(" ")
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict):
        path = next((parsed[k] for k in _PATH_KEYS if isinstance(parsed.get(k), str)), None)
        written = any(len(v) > LONGEST_LINE for v in parsed.values() if isinstance(v, str))
        if path is not None and not written:
            rest = [f"{k}={v}" for k, v in sorted(parsed.items()) if k in _RANGE_KEYS or k in ("pattern", "query")]
            return " ".join(("call", name, path, *rest))
        command = next((parsed[k] for k in _COMMAND_KEYS if isinstance(parsed.get(k), (str, list))), None)
        if command is not None:
            text = command if isinstance(command, str) else " ".join(map(str, command))
            return f"call {name} {' '.join(text.split())}"
    return f"call {name} {' '.join(arguments.split())}" if arguments.strip() else None


def fenced_command(text: str) -> str | None:
    """The command of an answer that calls its tool by a fenced block, as text-only agents do."""
    found = _FENCE.findall(text)
    return f"call {' '.join(found[-1].split())}" if found and found[-1].strip() else None

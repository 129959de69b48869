"""Atoms: the pieces of text by which a later turn is seen to use an earlier one.

File paths, compound identifiers, numbers, error names, whole lines, and tool calls. Atoms are compared as strings, so
texts of a transcript are cut into words by a table and a split, which takes a fraction of the time of one expression.
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
KEPT = bytes(c if c >= 128 or chr(c) in _KEPT else 32 for c in range(256))
"""A table over bytes: what no atom holds becomes a space."""
_NUMBER = re.compile(r"\d*[1-9]\d*", re.ASCII)
_ERROR = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit)")
_FILE = re.compile(
    r"[\w.-]*\w\.(?:py|pyi|js|jsx|ts|tsx|mjs|java|kt|go|rs|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|sh|sql|html|css|scss|vue|"
    r"md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|xml|csv|lock|log|ipynb|tf|proto|gradle|patch|diff)"
)
_FAILURES = ("Error", "Exception", "Warning", "Interrupt", "Exit")
_LETTERS = re.compile(r"[^\W\d_]+")
_DOTTED = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+")
_SNAKE = re.compile(r"\w*[^\W_]_+[^\W_]\w*|_+[^\W\d_]\w{3,}")
_CAMEL = re.compile(r"\w*(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})\w*")
_MAGIC = re.compile(r"__\w+__")
PLAIN = frozenset(
    (
        *("GitHub", "GitLab", "JavaScript", "TypeScript", "CoffeeScript", "OpenAI", "ChatGPT", "YouTube", "LinkedIn"),
        *("DevOps", "PyPI", "PyTorch", "NumPy", "SciPy", "LaTeX", "PostgreSQL", "MySQL", "MariaDB", "MongoDB", "NoSQL"),
        *("SQLite", "GraphQL", "WebSocket", "macOS", "iPhone", "FreeBSD"),
        *("Node.js", "Vue.js", "Next.js", "Nuxt.js", "React.js", "Express.js", "Three.js"),
    )
)
"""Names of products, which look like identifiers or files: to write one tells nothing about where it was read."""
_FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_NUMBERED = re.compile(r"^[ \t]*[0-9]{1,6}(?:\t|\u2192|[:|-])", re.MULTILINE)
_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "uri", "url")
_RANGE_KEYS = ("offset", "limit", "start_line", "end_line", "start", "end", "view_range", "pages", "line", "lines")
_COMMAND_KEYS = ("command", "cmd", "script", "code")


def words(text: str) -> set[str]:
    """The words of a text that may be atoms; what is one is told by `kind_of`. `./a/b/` is `a/b`."""
    # a table over bytes takes a tenth of the time of one over characters
    spaced = text.encode("utf-8", "surrogatepass").translate(KEPT).decode("utf-8", "surrogatepass")
    return {w.strip(".-") for w in set(f" {spaced} ".replace(" ./", " ").replace("/ ", " ").split())}


def lines(text: str) -> set[str]:
    """The lines of a text that are long enough to be told from others, without the space around them and the numbers
    that tools put in front."""
    return {
        stripped
        for line in _NUMBERED.sub("", text).split("\n")
        if len(line) >= SHORTEST_LINE and SHORTEST_LINE <= len(stripped := line.strip()) <= LONGEST_LINE
    }


@lru_cache(maxsize=1 << 16)
def kind_of(word: str) -> str | None:
    """The class of a word, None when it is none: too short, or a plain word of a language."""
    if len(word) < 3 or len(word) > LONGEST_WORD or (word.islower() and word.isalpha()) or word in PLAIN:
        return None
    # what a class can't do without is looked for before its expression is tried: most words fail there
    if word[0] in "0123456789" and _NUMBER.fullmatch(word):
        return "number"
    if word.endswith(_FAILURES) and _ERROR.fullmatch(word):
        return "error"
    if "/" in word:
        return "path" if _is_path(word) else None
    dotted = "." in word
    if dotted and _FILE.fullmatch(word):
        return "path"
    if len(word) < SHORTEST_IDENTIFIER or _MAGIC.fullmatch(word) or not _LETTERS.search(word):
        return None
    compound = (
        ("_" in word and _SNAKE.fullmatch(word)) or (dotted and _DOTTED.fullmatch(word)) or _CAMEL.fullmatch(word)
    )
    return "identifier" if compound else None


def _is_path(word: str) -> bool:
    """Whether a word with a slash is a path: not a closing tag (`/span`), nor two words of which one is to be chosen
    (`and/or`)."""
    parts = [p for p in word.split("/") if p]
    if len(word) < SHORTEST_IDENTIFIER or len(parts) < 2 or not _LETTERS.search(word):
        return False
    return len(parts) > 2 or not all(_LETTERS.fullmatch(p) for p in parts)


def call_text(call: str) -> str:
    """What a tool call (`NAME ARGUMENTS`) says: its name and the values of its arguments, without the escapes of JSON
    and the names of parameters."""
    name, _, arguments = call.partition(" ")
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return call
    values = [name]
    left = [parsed]
    while left:
        value = left.pop()
        if isinstance(value, str):
            values.append(value)
        elif isinstance(value, dict):
            left.extend(reversed(value.values()))
        elif isinstance(value, list):
            left.extend(reversed(value))
        elif value is not None:
            values.append(str(value))
    return "\n".join(values)


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

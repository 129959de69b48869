"""The text of a status line: a template, filled with what is known, as wide as is allowed."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field

DEFAULT = "{model}[ {bar} {percent}][ {tokens}[/{window}]][ {level}][ · {turns} turns][ · {cost}]"
FIELDS = {
    "model": "the model's name",
    "bar": "how full the window is, as a bar",
    "percent": "how full the window is, such as 71%",
    "tokens": "tokens of the window, such as 142k",
    "window": "its size, such as 200k",
    "left": "tokens until it is full",
    "level": "green, yellow, orange or red",
    "turns": "turns until it is full, such as ~18",
    "velocity": "tokens added per turn lately",
    "cost": "USD so far, as the agent states it",
}
"""What a template may name, each between braces."""
BAR = 10
MOST_WIDTH = 400
COLOURS = {"green": "32", "yellow": "33", "orange": "38;5;208", "red": "1;31"}
ASCII = {"▕": "[", "▏": "]", "█": "#", "░": ".", "·": "|", "…": "..."}
PIECE = re.compile(r"\{(\w*)\}|([\[\]])|([^{}\[\]]+|[{}])")


class GivenError(Exception):
    """The command line is not understood; the whole command line's machinery says why."""


@dataclass(slots=True)
class Shown:
    """What the line is made of; None: not known."""

    model: str | None = None
    tokens: int | None = None
    window: int | None = None
    utilization: float | None = None
    level: str | None = None
    turns: int | None = None
    velocity: float | None = None
    cost: float | None = None
    notes: list[str] = field(default_factory=list)


def check(template: str) -> None:
    """Raise GivenError for a template that names an unknown field or has an odd bracket."""
    depth = 0
    for name, bracket, text in PIECE.findall(template):
        depth += {"[": 1, "]": -1}.get(bracket, 0)
        if text in ("{", "}") or depth < 0:
            raise GivenError(f"--format: a {text or bracket!r} without its other half")
        if not text and not bracket and name not in FIELDS:
            raise GivenError(f"--format: unknown field {name!r}; known: {', '.join(FIELDS)}")
    if depth:
        raise GivenError("--format: a '[' without its other half")


def short_name(model: str | None) -> str | None:
    """A model's id without its maker, its family's common prefix and its date: `sonnet-4-5`."""
    if not model:
        return None
    name = re.sub(r"(-20\d{6}|-20\d\d-\d\d-\d\d|@\d+)(?=$|\[)", "", model.rpartition("/")[2])
    return name.removeprefix("claude-") or model


def line_of(
    shown: Shown, template: str = DEFAULT, *, width: int | None = None, ascii_only: bool = False, ansi: bool = False
) -> str:
    """The line: as wide as is allowed, groups dropped from its end where they don't fit."""
    from ctxctl.cli.io import can_show

    known = texts_of(shown)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = ascii_only or not can_show("█▕·…", encoding)
    width = width or _columns()
    text = fill(template, known)
    while width is not None and len(text) > width:
        shorter = _without_last_group(template)
        if shorter is None:
            text = text[: max(0, width - 1)] + "…" if width > 1 else text[:width]
            break
        template = shorter
        text = fill(template, known)
    if not text.strip():
        text = f"ctxctl: {shown.notes[0]}" if shown.notes else "ctxctl: nothing known yet"
    if ansi:
        text = coloured(text, known, shown.level)
    return "".join(ASCII.get(c, c) for c in text).encode("ascii", "replace").decode() if plain else text


def texts_of(shown: Shown) -> dict[str, str]:
    """The fields that are known, as text."""
    found: dict[str, str] = {}
    if shown.model:
        found["model"] = "".join(c for c in shown.model if c.isprintable())
    if shown.utilization is not None:
        full = max(0, min(BAR, round(shown.utilization * BAR)))
        found["bar"] = f"▕{'█' * full}{'░' * (BAR - full)}▏"
        found["percent"] = f"{shown.utilization:.0%}"
    if shown.tokens is not None:
        found["tokens"] = amount(shown.tokens)
    if shown.window is not None:
        found["window"] = amount(shown.window)
        if shown.tokens is not None:
            found["left"] = amount(max(0, shown.window - shown.tokens))
    if shown.level is not None:
        found["level"] = shown.level
    if shown.turns is not None:
        found["turns"] = f"~{shown.turns}" if shown.turns >= 0 else "0"
    if shown.velocity is not None:
        found["velocity"] = amount(round(shown.velocity))
    if shown.cost is not None:
        found["cost"] = f"${shown.cost:,.2f}"
    return found


def amount(tokens: int) -> str:
    """A number of tokens in at most five characters."""
    if tokens < 1000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1000:.0f}k" if tokens >= 9_950 else f"{tokens / 1000:.1f}k".replace(".0k", "k")
    return f"{tokens / 1e6:.1f}M".replace(".0M", "M")


def fill(template: str, known: dict[str, str]) -> str:
    """The template with its fields. What stands in square brackets is left out when a field in it is not known;
    elsewhere such a field is `?`."""
    stack: list[tuple[list[str], bool]] = [([], True)]
    for name, bracket, text in PIECE.findall(template):
        if bracket == "[":
            stack.append(([], True))
        elif bracket == "]" and len(stack) > 1:
            inner, whole = stack.pop()
            if whole:
                stack[-1][0].extend(inner)
        elif text:
            stack[-1][0].append(text)
        elif name in known:
            stack[-1][0].append(known[name])
        else:
            pieces, _ = stack[-1]
            pieces.append("?")
            stack[-1] = (pieces, len(stack) == 1)
    text = "".join(stack[0][0])
    return text if text.strip(" ?") else ""


def _without_last_group(template: str) -> str | None:
    """A template without its last outer group in brackets, None when it has none."""
    end = template.rfind("]")
    if end < 0:
        return None
    depth = 0
    for at in range(end, -1, -1):
        depth += {"]": 1, "[": -1}.get(template[at], 0)
        if not depth:
            return template[:at] + template[end + 1 :]
    return None


def coloured(text: str, known: dict[str, str], level: str | None) -> str:
    """The line with bar, share and level in the level's colour."""
    code = COLOURS.get(level or "")
    if code is None:
        return text
    for name in ("bar", "percent", "level"):
        if name in known:
            text = text.replace(known[name], f"\x1b[{code}m{known[name]}\x1b[0m", 1)
    return text


def _columns() -> int | None:
    columns = os.environ.get("COLUMNS", "")
    return min(int(columns), MOST_WIDTH) if columns.isdecimal() and int(columns) > 0 else None

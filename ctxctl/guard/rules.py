"""What a rule of the guard is: a pattern over lower-case text, and strings of which every match holds one, so that text
without them costs a search each.

Every repetition is bounded and every rule looks at a bounded surrounding of its string: time is linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["system-override", "role-confusion", "tool-call-injection", "secret-extraction", "instruction-injection"]
Severity = Literal["low", "medium", "high"]

KINDS: tuple[Kind, ...] = (
    "system-override",
    "role-confusion",
    "tool-call-injection",
    "secret-extraction",
    "instruction-injection",
)
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")

GAP = r"[\s*_\"'`,:#/>|~-]{1,12}"
"""Between two words: white space, a line's comment sign, emphasis."""

NOTATION = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]| ", re.S)
"""What a rule's pattern is made of, as far as its spaces need to know: escapes, character classes, spaces."""


@dataclass(frozen=True, slots=True)
class Rule:
    """needles: each match holds one of them (lower case). before: how many characters of a match may lie in front of
    the needle; 0 where it begins with it. after: how many from the needle's start on."""

    kind: Kind
    severity: Severity
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    before: int = 0
    after: int = 240


def rule(kind: Kind, severity: Severity, needles: str | tuple[str, ...], pattern: str, before: int = 0) -> Rule:
    """A rule from its notation: needles apart by `|` or as a tuple; a space in the pattern stands for GAP."""
    found = tuple(needles.split("|")) if isinstance(needles, str) else needles
    source = r"(?<![a-z0-9_])(?:" + NOTATION.sub(lambda m: GAP if m[0] == " " else m[0], pattern) + ")"
    return Rule(kind, severity, found, re.compile(source, re.M), before)


OVERRIDE, ROLE, CALL, SECRET, INSTRUCTION = KINDS

"""Constraints: sentences of the user, the system prompt or a summary that forbid or demand something."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxctl.model.block import Block

# Wording of prohibitions and demands in instructions, English and Chinese. Weak verbs ("should", "can") are left out:
# they mark wishes, and a fact that is shown as pinned must be one.
MARKERS = re.compile(
    r"\b(?:must(?:\s+not)?|mustn't|never|do\s+not|don't|cannot|can't|may\s+not|only|always|without|at\s+(?:most|least)|"
    r"no\s+(?:more|other|new)|required?|forbidden|keep\s+(?:the|all|every)|under\s+no|avoid|ensure)\b"
    r"|必须|不要|不得|禁止|务必|只能|不能",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"[^\n.!?。！？]*(?:[.!?](?!\s|$)[^\n.!?。！？]*)*(?:[.!?。！？]+|\n|$)")
KINDS = frozenset(("user_message", "system", "summary"))
SCANNED = 200_000
MOST_PER_BLOCK = 100
SHORTEST, LONGEST = 12, 400


@dataclass(frozen=True, slots=True)
class Constraint:
    """block: number of the block. text: the sentence."""

    block: int
    text: str


def sentences(text: str) -> list[str]:
    """The constraint sentences of a text, in order, each once."""
    found: dict[str, None] = {}
    for match in MARKERS.finditer(text[:SCANNED]):
        start = max(text.rfind("\n", 0, match.start()), *(_last_stop(text, match.start()),)) + 1
        end = SENTENCE.match(text, match.start())
        sentence = text[start : end.end() if end else match.end()].strip(" \t\r\n-*•>#")
        if SHORTEST <= len(sentence) <= LONGEST:
            found[sentence] = None
            if len(found) >= MOST_PER_BLOCK:
                break
    return list(found)


def _last_stop(text: str, before: int) -> int:
    """Position of the last sentence end before a position, -1 when there is none."""
    window = text[max(0, before - LONGEST) : before]
    last = max((m.start() for m in re.finditer(r"[.!?](?=\s)|[。！？]", window)), default=-1)
    return last + max(0, before - LONGEST) if last >= 0 else -1


class ConstraintFinder:
    """Collects constraints per thread."""

    def __init__(self) -> None:
        self.found: list[Constraint] = []

    def see(self, block: Block, number: int) -> None:
        """Take a block; user messages, system prompts and summaries matter."""
        if block.kind in KINDS:
            self.found.extend(Constraint(number, sentence) for sentence in sentences(block.text))

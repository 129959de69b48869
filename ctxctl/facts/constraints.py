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
STOP = re.compile(r"[.!?](?=\s)|[。！？\n]")
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
    """The constraint sentences of a text, in order, each once. Of a very long one nothing is taken."""
    found: dict[str, None] = {}
    done = 0
    for match in MARKERS.finditer(text[:SCANNED]):
        if match.start() < done:
            continue
        around = text[max(done, match.start() - LONGEST) : match.start()]
        start = match.start() - len(around) + max((m.end() for m in STOP.finditer(around)), default=0)
        end = SENTENCE.match(text, match.start(), match.start() + LONGEST + 1)
        done = end.end() if end is not None else match.end()
        sentence = text[start:done].strip(" \t\r\n-*•>#")
        if len(sentence.encode("utf-8", "replace")) >= SHORTEST and len(sentence) <= LONGEST:
            found[sentence] = None
            if len(found) >= MOST_PER_BLOCK:
                break
    return list(found)


class ConstraintFinder:
    """Collects constraints per thread."""

    def __init__(self) -> None:
        self.found: list[Constraint] = []

    def see(self, block: Block, number: int) -> None:
        """Take a block; user messages, system prompts and summaries matter."""
        if block.kind in KINDS:
            self.found.extend(Constraint(number, sentence) for sentence in sentences(block.text))

"""Facts that agents tell in their own words: decisions with reasons, dead ends, open issues, lessons, next steps.

Few and precise: a sentence counts only when it says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, NamedTuple

from ctxctl.facts.todos import folded
from ctxctl.model.block import Block
from ctxctl.model.summary import DecisionFact
from ctxctl.model.text import shortened

SCANNED = 20_000
"""Characters of a text that are read."""
LONGEST, SHORTEST = 300, 20
RECENT = 3
"""Open issues and next steps of the newest so many texts that state any hold; older ones are taken for settled."""

_HINTS = (
    *("ecided", "ecision", "nstead of", "ather than", "hose ", "hosen", "pted ", "oing with", "o with ", "tick with"),
    *("dn't work", "sn't work", "not work", "ead end", "tried", "ttempt", "pproach", "bandon", "everted"),
    *("oot cause", "urns out", "urned out", "esson", "nsight"),
    *(
        "till fail",
        "nresolved",
        "nown issue",
        "emaining issue",
        "pen question",
        "pen issue",
        "ollow-up",
        "TODO",
        "FIXME",
    ),
    *("ot yet ", "Next", "next step", "决定", "改用", "根本原因", "下一步", "未解决"),
)
_FENCE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_CUT = re.compile(r"(?<=[.!?])[\"'*_)`]*\s+(?=[A-Z\"'*_(`#-])|\n+|(?<=[。！？])")
_DECISION = re.compile(
    r"\b(?:I|we)(?:'ve| have)? (?:decided|chose|opted)\b|\b(?:was|been) decided\b|^\W*(?:key |design )?decisions?\b\W*:"
    r"|\b(?:I'll|I will|we'll|we will|let's|let me|I'm going to) (?:use|go with|stick with|keep|prefer)\b.*"
    r"\b(?:instead of|rather than|because|since)\b"
    r"|\b(?:I'm|I am|we're|we are|I'll be) going with\b|\b(?:I'll|let's|we'll|we will|I will) (?:go|stick) with\b"
    r"|\b(?:went with|chosen (?:approach|solution|design))\b|决定|改用",
    re.IGNORECASE,
)
_NOT_DECIDED = re.compile(
    r"\?\s*$|\b(?:not|haven't|hasn't|yet to|once|if|whether|until) (?:be )?decided\b", re.IGNORECASE
)
_WHY = re.compile(r"[,;:]?\s+(?:because(?: of)?|since|so that|as it|due to)\s+|[,，]?\s*因为", re.IGNORECASE)
_DEAD = re.compile(
    r"\b(?:tried|attempted|approach|attempt|idea)\b.*\b(?:failed|fails|did(?:n't| not) (?:work|help)"
    r"|does(?:n't| not) work)\b"
    r"|\b(?:this|that|which|it) (?:did(?:n't| not)|does(?:n't| not)|won't|will not) work\b.*"
    r"\b(?:because|since|as|due)\b"
    r"|\bdead end\b|\babandon(?:ed|ing)\b.*\b(?:approach|because|since|idea)\b"
    r"|\breverted\b.*\b(?:because|since|as it)\b",
    re.IGNORECASE,
)
_LEARNED = re.compile(
    r"\broot cause (?:is|was)\b|\bturn(?:s|ed) out\b|\blessons? learned\b"
    r"|^\W*(?:lesson|insight|learning)s?\b\W*:|根本原因",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\bstill (?:fail|broken|unresolved)\w*|\b(?:is|are|remains?) unresolved\b"
    r"|\b(?:known|remaining|open|unresolved) (?:issue|problem|question)s?\b\W*(?::| is\b| are\b)"
    r"|\bnot yet (?:implemented|done|handled|fixed|covered|supported|tested)\b"
    r"|\bneeds? (?:a )?follow-up\b|^\W*(?:TODO|FIXME)\b\W*:"
    r"|未解决",
    re.IGNORECASE,
)
_NEXT = re.compile(r"^\W*(?:next steps?\b\W*(?:is|are|:)|next[,:]|next I(?:'ll| will| need)|下一步)", re.IGNORECASE)


HELD = 100
"""Sentences that are carried to the next reading."""


class Said(NamedTuple):
    """A sentence. kind: decision, dead, learned, open, next or question. order: of the text that it stands in."""

    number: int
    kind: str
    text: str
    turn: int
    order: int


class ProseLog:
    """Collects what an agent's texts tell."""

    def __init__(self) -> None:
        self._seen: list[Said] = []
        self._order = 0
        self._question: Said | None = None

    def said(self, block: Block, number: int) -> None:
        """Take a text of an agent."""
        text = block.text
        self._question = None
        if text[-400:].rstrip().endswith(("?", "？")) and (line := _last(text)):
            self._question = Said(number, "question", line, block.turn, self._order)
        if not any(hint in text for hint in _HINTS):
            return
        self._order += 1
        for kind, sentence in sentences(text):
            self._seen.append(Said(number, kind, sentence, block.turn, self._order))

    def answered(self) -> None:
        """The user said something: a question at the end of the text before is no longer open."""
        self._question = None

    def decide(self, number: int, turn: int, text: str) -> None:
        """Take a decision that structure shows."""
        self._seen.append(Said(number, "decision", text, turn, self._order))

    def dead(self, number: int, turn: int, text: str) -> None:
        """Take a dead end that structure shows."""
        self._seen.append(Said(number, "dead", text, turn, self._order))

    def learned(self, number: int, turn: int, text: str) -> None:
        """Take a lesson that structure shows."""
        self._seen.append(Said(number, "learned", text, turn, self._order))

    def carry(self, gone: Container[int]) -> dict[str, Any]:
        """What `go_on` needs: where the texts stand, and what only holds for so many of them."""
        question = self._question if self._question is not None and self._question.number not in gone else None
        held = [said for kind in ("open", "next") for said in self._live(kind, gone)]
        return {
            "order": self._order,
            "held": [[said.kind, said.text, said.turn, said.order] for said in held[-HELD:]],
            "question": [question.text, question.turn] if question is not None else None,
        }

    def go_on(self, carried: dict[str, Any]) -> None:
        """Go on where `carry` was asked, before the first text."""
        self._order = carried["order"]
        self._seen = [Said(-1, *said) for said in carried["held"]]
        if carried["question"] is not None:
            text, turn = carried["question"]
            self._question = Said(-1, "question", text, turn, self._order)

    def _live(self, kind: str, gone: Container[int]) -> list[Said]:
        found = [said for said in self._seen if said.kind == kind and said.number not in gone]
        if kind in ("open", "next") and found:
            orders = sorted({said.order for said in found})[-(RECENT if kind == "open" else 1) :]
            found = [said for said in found if said.order in orders and said.order > self._order - 10 * RECENT]
        return found

    def told(self, kind: str, gone: Container[int]) -> list[tuple[int, str]]:
        """The sentences of a kind with the numbers of their blocks, oldest first."""
        return [(said.number, said.text) for said in self._seen if said.kind == kind and said.number not in gone]

    def fold(self, kind: str, gone: Container[int]) -> tuple[str, ...]:
        """The sentences of a kind, each once, oldest first."""
        texts = dict.fromkeys(said.text for said in self._live(kind, gone))
        if kind == "open" and self._question is not None and self._question.number not in gone:
            texts[self._question.text] = None
        return tuple(texts)

    def decisions(self, gone: Container[int]) -> tuple[DecisionFact, ...]:
        """The decisions with their reasons, each once, oldest first."""
        found: dict[str, DecisionFact] = {}
        for said in self._seen:
            if said.kind == "decision" and said.number not in gone:
                found.setdefault(said.text, decision(said.text, said.turn))
        return tuple(found.values())


def _last(text: str) -> str:
    """The question that a text ends with: its last line, of a long one the last sentence; empty when that is long too,
    since a text that is cut at its beginning no longer shows what it is about."""
    line = folded(text.rstrip().rsplit("\n", 1)[-1])
    line = line if len(line) <= LONGEST else _CUT.split(line)[-1]
    return line if len(line) <= LONGEST else ""


def decision(text: str, turn: int | None = None, *, least: int = SHORTEST) -> DecisionFact:
    """A sentence as a decision and its reason. least: characters of the decision, for it to be told from its reason."""
    match = _WHY.search(text)
    if match is None or match.start() < least:
        return DecisionFact(text, "", turn)
    return DecisionFact(text[: match.start()], text[match.end() :], turn)


def sentences(text: str) -> list[tuple[str, str]]:
    """The sentences of a text, outside of code, that tell a fact: (kind, sentence)."""
    found = []
    for sentence in _CUT.split(_FENCE.sub("", shortened(text, SCANNED))):
        if not SHORTEST <= len(sentence) <= 3 * LONGEST or not any(hint in sentence for hint in _HINTS):
            continue
        line = folded(sentence).strip(" -*•>#|").removeprefix("[ ] ").removeprefix("THOUGHT: ").replace("**", "")
        kind = _kind(line)
        if kind is not None and SHORTEST <= len(line) <= LONGEST:
            found.append((kind, line))
    return found


def _kind(line: str) -> str | None:
    if _DEAD.search(line):
        return "dead"
    if _DECISION.search(line) and not _NOT_DECIDED.search(line):
        return "decision"
    if _LEARNED.search(line):
        return "learned"
    if _NEXT.match(line):
        return "next"
    return "open" if _OPEN.search(line) and not line.lower().startswith(("if ", "should ")) else None

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
# What tells somebody to do or leave something: an imperative that opens a clause, a demand, a ban with its measure, a
# refusal. Statements with the same words ("I don't have the id", "it can't work", "errors may only be ...") are none.
_OPENS = r"(?:^|[,;:(–—-]\s*|\b(?:and|but|or|then|so|please|just|also)\s+|[*_#>\"'`]+\s*)"
_DIRECTIVE = re.compile(
    rf"{_OPENS}(?:please\s+)?(?:do\s+not|don'?t|never(?!\s+mind)|always|avoid|ensure|make\s+sure|keep\s+(?:the|all|every)"
    r"|only\s+(?:use|touch|change|edit|modify|add|run|write|read|work|make|return|respond|reply|output|replace|fix|look)"
    r"|(?:use|touch|change|edit|modify|run|respond|reply|return|output|write|test|replace)\s+(?:\S+\s+){0,4}only\b"
    r"|no\s+(?:new|other|more)\s+\w|under\s+no\b|at\s+(?:most|least)\s+\w+|without\s+\w+ing\b)"
    r"|\b(?<!\bI )(?<!\bi )(?<!there )must(?:n't|\s+not|\s+never|\s+always|\s+only)?\s+(?!have\b|ship\b)\w"
    r"|\b(?:shall|should|may|can|will)\s+(?:never|only\s+ever)\b"
    r"|\byou\s+(?:can(?:no|')t|may\s+(?:not|only)|do\s+not\s+(?:need|have)\s+to|are\s+(?:not\s+allowed|required|forbidden))\b"
    r"|\b(?:may\s+not|cannot|can't)\s+(?:exceed|change|break|depend|rely|touch|be\s+(?:changed|modified|touched|removed))\b"
    r"|\bonly\s+(?:after|when|if|with|within|inside|on)\b.*\b(?:push|commit|merge|deploy|release|run)\b"
    r"|\b(?:at\s+most|at\s+least)\s+\d"
    r"|\bwithout\s+(?:chang|break|touch|modif|add|remov|delet|edit|push|commit|install|rewrit|renam|new|any\s+new)"
    r"|\bis\s+(?:required|forbidden)\b|\bare\s+(?:required|forbidden)\b"
    r"|\b(?:I|we)\s+(?:really\s+|explicitly\s+)?(?:do\s+not|don'?t)\s+want\b"
    r"|必须|不要|不得|禁止|务必|只能|不能",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"^\W*(?:I'?m\b|I\s+(?:am|have|had|do\s+not\s+(?!want)|don'?t\s+(?!want|really\s+want)|can(?:'t|not)|noticed|heard)"
    r"|(?:[\d.]+\s+)?\w*\s*(?:error|warning)\b|\w*(?:Error|Exception)\b)",
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


def is_directive(sentence: str) -> bool:
    """Whether a sentence with such words tells what to do or not to do: most sentences of a conversation that hold one
    do not, and what a next window is told as a constraint must be one."""
    plain = sentence.replace("’", "'")
    if plain.rstrip(" \"')*").endswith(("?", "？")):
        return False
    if _TOLD.match(plain) is not None and "want" not in plain:
        return False
    return _DIRECTIVE.search(plain) is not None


class ConstraintFinder:
    """Collects constraints per thread."""

    def __init__(self) -> None:
        self.found: list[Constraint] = []

    def see(self, block: Block, number: int) -> None:
        """Take a block; user messages, system prompts and summaries matter."""
        if block.kind in KINDS:
            self.found.extend(Constraint(number, sentence) for sentence in sentences(block.text))

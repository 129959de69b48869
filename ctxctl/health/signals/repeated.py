"""What the user had to say twice."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ctxctl.facts.constraints import is_directive, sentences
from ctxctl.facts.foreign import is_foreign
from ctxctl.health.session import Session
from ctxctl.model.block import Block
from ctxctl.model.text import is_resume

LONGEST = 1_500
"""Characters of a prompt that repeats something; a longer one is a task or a paste."""
MOST = 2_000
"""Earlier sentences that are compared with, the newest."""
ALIKE = 0.6
"""Share of the words of two constraints that are the same: then one says the other again."""
FEWEST = 4
"""Words that a constraint must have for that."""
SHARED = 3
"""Words of an earlier sentence that a prompt must repeat which says that it repeats something, and half of those of the
shorter one."""
_AGAIN = re.compile(
    r"\b(?:as|like) I (?:already |have )?(?:said|told|mentioned|asked|wrote|explained)\b"
    r"|\bI(?:'ve| have)? (?:already |just )?(?:told|asked) you\b"
    r"|\bI(?:'ve| have)? already (?:said|mentioned|explained)\b"
    r"|\bhow many times\b|\bI said (?:to|not to|that|no|don'?t|never|always|only)\b"
    r"|\byou(?: keep| are still|'re still) (?:\w+ing)\b"
    r"|\byou (?:forgot|ignored|missed) (?:what|that|my|the instruction)\b"
    r"|我(?:已经)?说过|再说一[遍次]",
    re.IGNORECASE,
)
"""The user says that something was said before."""
_WORD = re.compile(r"[^\W\d_][\w-]{3,}")
_COMMON = re.compile(
    "that|this|with|from|have|been|will|would|should|could|must|when|what|which|there|their|them|they|then|than|your"
    "|only|also|just|like|into|about|please|make|sure|always|never|don't|does|said|told|asked|again|before|after|some"
    "|more|want|need|here|were|where|because|still|keep|already|think|code|file|files"
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Repeated:
    """early, late: blocks of the prompts; said, again: the sentence in each."""

    early: int
    late: int
    said: str
    again: str


def content(text: str) -> set[str]:
    """Words that tell what a sentence is about."""
    return {word for raw in _WORD.findall(text.lower()) if not _COMMON.fullmatch(word := raw.strip("-"))}


def repeated(session: Session, apart: int) -> Iterator[Repeated]:
    """Prompts that say again what an earlier one said, at least so many calls before; each once, with the closest."""
    stays = session.stays
    prompts = [(n, b) for n, b in enumerate(session.trace.blocks) if _typed(b)]
    texts: dict[str, int] = {}
    for _, block in prompts:
        texts[block.text] = texts.get(block.text, 0) + 1
    early: deque[tuple[int, str, set[str], bool]] = deque(maxlen=MOST)
    at = 0
    for number, block in prompts:
        came = stays[number].came
        while at < len(prompts) and stays[prompts[at][0]].came <= came - apart:
            early.extend(_said(*prompts[at]))
            at += 1
        if texts[block.text] > 1 or len(block.text) > LONGEST or not early:
            continue  # one that is sent twice was not answered the first time, or is a template
        if found := _closest(number, block, early):
            yield found


def _typed(block: Block) -> bool:
    told = block.text
    return block.kind == "user_message" and not (
        told.startswith(("<", "[Request", "Caveat:")) or is_resume(told) or is_foreign(told)
    )


def _said(number: int, block: Block) -> Iterator[tuple[int, str, set[str], bool]]:
    """Sentences of a prompt with their words, and whether each is a constraint."""
    directives = dict.fromkeys(sentence for sentence in sentences(block.text[: 4 * LONGEST]) if is_directive(sentence))
    for sentence in directives:
        yield number, sentence, content(sentence), True
    for raw in _SENTENCE.split(block.text[: 4 * LONGEST]):
        if len(raw) <= LONGEST and raw.strip() and raw.strip() not in directives:
            yield number, raw.strip(), content(raw), False


def _closest(number: int, block: Block, early: Iterable[tuple[int, str, set[str], bool]]) -> Repeated | None:
    best: tuple[float, int, str, str] | None = None
    if _AGAIN.search(block.text) is not None:
        words = content(block.text)
        for other, said, known, _ in early:
            shared = len(known & words)
            if shared >= SHARED and shared * 2 >= min(len(known), len(words)) and (best is None or shared > best[0]):
                best = (float(shared), other, said, block.text)
    else:
        for sentence in sentences(block.text):
            words = content(sentence)
            if len(words) < FEWEST or not is_directive(sentence):
                continue
            for other, said, known, directive in early:
                alike = len(known & words) / max(1, len(known | words))
                if directive and len(known) >= FEWEST and alike >= ALIKE and (best is None or alike > best[0]):
                    best = (alike, other, said, sentence)
    return Repeated(best[1], number, best[2], best[3]) if best is not None else None

"""Phrases that point at something said before ("the bug we found earlier", "see step 3"): is it still there?

A phrase counts as held when what is kept names the thing: an identifier, path or number of its sentence, else the noun
that is pointed at, else half of the sentence's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxctl.model.state import AgentState
from ctxctl.trace.atoms import kind_of, words

_SEEN = (
    r"found|saw|seen|identified|discovered|noticed|discussed|mentioned|noted|described|listed|shown|explained|agreed"
)
_BACK = r"above|earlier|before|previously|already"
_THING = (
    r"bug|issue|problem|error|failure|cause|root cause|culprit|fix|workaround|solution|approach|plan|design|finding|"
    r"decision|change|test|pattern|format|schema|list|table|value|number|result|option|idea|file|function|limit|trick"
)
_POINTERS = (
    # as found above; as we discussed earlier
    re.compile(rf"\bas (?:we |I |was |were )?(?:just )?(?:{_SEEN}) (?:{_BACK})\b", re.IGNORECASE),
    # the bug (that) we found earlier; the issue mentioned above
    re.compile(
        rf"\b(?:the|that|this|those|these|same) (?:[\w-]+ )?(?P<thing>{_THING})s? "
        rf"(?:(?:that |which )?(?:we|I|you) (?:had |have )?)?(?:just )?(?:{_SEEN}) (?:{_BACK})\b",
        re.IGNORECASE,
    ),
    # the same fix as before; the earlier approach
    re.compile(rf"\bthe same (?P<thing>{_THING})s? as (?:before|earlier|above|last time)\b", re.IGNORECASE),
    re.compile(r"(?:如|正如)(?:上|前)(?:文|面)?所(?:述|说|示)|(?:前面|之前|上面)(?:发现|提到|讨论|说)(?:过)?的"),
)
_NUMBERED = re.compile(
    r"\b(?:see|as in|per|like in|redo|repeat|same as|back to|continue with|according to) "
    r"(?:the )?(?P<kind>step|point|option|item|phase|finding|approach|issue|problem) #?(?P<number>\d{1,3}|[A-H])\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4,}")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_FENCED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_COMMON = frozenset(
    (
        *("that", "this", "with", "from", "have", "will", "then", "them", "they", "what", "when", "which", "where"),
        *("need", "also", "into", "only", "same", "were", "been", "does", "just", "make", "let's", "next", "here"),
        *("should", "would", "could", "there", "their", "because", "about", "after", "before", "earlier", "above"),
        *("previously", "already", "using", "apply", "now", "still", "more", "some", "like", "found", "first"),
    )
)
_LONGEST = 20_000
"""Characters of a text that are looked at."""


def unheld(state: AgentState) -> Iterator[tuple[str, str]]:
    """Phrases of the tail and of the current step whose referent is not there any more, with where they stand."""
    findings = "\n".join(_findings(state))
    said = ""
    for block in state.tail:
        text = block.text[:_LONGEST]
        if block.kind in ("assistant", "user_message"):
            for phrase, sentence, at in _pointing(text):
                before = f"{findings}\n{said}\n{text[:at]}"
                if not _holds(before, phrase, sentence):
                    yield phrase[0], f"turn {block.turn}"
        said += "\n" + text
    if state.current_subtask is not None:
        for phrase, sentence, _ in _pointing(state.current_subtask.text[:_LONGEST]):
            rest = [s.text for s in state.subtasks if s is not state.current_subtask]
            if not _holds("\n".join((findings, said, *rest)), phrase, sentence):
                yield phrase[0], "the current step"


def _findings(state: AgentState) -> Iterator[str]:
    """What a state holds of what was found out: not its goal, nor what is to be done."""
    yield from (*state.open_issues, *state.learnings, *state.errors, *state.dead_ends, *state.memory_index)
    yield state.compaction_summary
    yield from (f"{decision.what} {decision.why}" for decision in state.decisions)
    yield from (f"{subtask.text} {subtask.evidence}" for subtask in state.completed_subtasks)
    yield from (f"{run.command} {run.detail}" for run in state.tests if run.outcome == "failed")


def _pointing(text: str) -> Iterator[tuple[re.Match[str], str, int]]:
    """Each phrase of a text with its sentence, and where that begins. What is quoted as code does not count."""
    text = _FENCED.sub(lambda match: " " * len(match[0]), text)
    at = 0
    for sentence in _SENTENCE.split(text):
        begin = text.find(sentence, at)
        at = begin + len(sentence)
        for expression in (*_POINTERS, _NUMBERED):
            match = expression.search(sentence)
            if match is not None:
                yield match, sentence, begin
                break


def _holds(text: str, phrase: re.Match[str], sentence: str) -> bool:
    named = phrase.groupdict()
    if named.get("number"):
        return _has_number(text, named["kind"], named["number"])
    rest = sentence[: phrase.start()] + " " + sentence[phrase.end() :]
    known = words(text)
    special = {word for word in words(rest) if kind_of(word) is not None}
    if special:
        return bool(special & known) or any(word in text for word in special)
    folded = text.casefold()
    if named.get("thing"):
        return named["thing"].casefold() in folded
    own = {word.casefold() for word in _WORD.findall(rest)} - _COMMON
    if not own:
        return bool(text.strip())
    return 2 * sum(word[: max(4, len(word) - 2)] in folded for word in own) >= len(own)


def _has_number(text: str, kind: str, number: str) -> bool:
    """Whether a text has the numbered thing: `Step 3`, or an item `3.` or `3)` of a list."""
    item = re.escape(number)
    named = rf"\b{kind}s? #?{item}\b"
    return re.search(rf"{named}|^[ \t>*#-]*\(?{item}[.):]", text, re.IGNORECASE | re.MULTILINE) is not None

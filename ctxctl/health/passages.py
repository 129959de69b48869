"""A text as sentences that questions are answered from: which words each holds, whether it negates, what it says of the
progress of things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ctxctl.model.summary import Progress

_WORD = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)*|[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NEGATIONS = re.compile(
    r"\b(?:not|never|no longer|none|without|instead of|rather than|cannot|avoid(?:s|ed)?|reject(?:s|ed)?|"
    r"drop(?:s|ped)?|abandon(?:s|ed)?|revert(?:s|ed)?|against|undecided|except|unless)\b|n['\u2019]t\b|[\u4e0d\u6ca1]"
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?![\w])")
_NUMBERED = re.compile(r"^\s*\(?\d+[.)]\s+")
_NAME = re.compile(
    r"`(?P<code>[^`\n]{1,80})`|(?<![\w/.-])(?P<mark>(?:[\w-]*[/_.])+\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)|"
    r"(?<=[a-z,] )(?P<name>[A-Z](?:[\w./-]*\w)?)"
)
_INSTEAD = re.compile(r"\b(?:instead of|rather than|and not|but not) ((?:(?:a|an|the|any) )?[\w./-]+(?: [\w./-]+)?)")
_HEADING = re.compile(
    r"^\s*(?:\d+[.)]\s+)?(?:#{1,6}\s+(?P<marked>.+)|\*\*(?P<bold>[^*]+)\*\*:?\s*|(?P<plain>[A-Z][^.\n]{0,48}):)\s*$"
)
_DONE = re.compile(r"\b(?:done|complete[d]?|finish(?:ed)?|accomplish(?:ed)?|merged|shipped|fixed)\b|\u5b8c\u6210")
_DOING = re.compile(r"\b(?:in[ _-]progress|doing|ongoing|underway|under way|working on|current(?:ly)?|in work)\b")
_PLANNED = re.compile(
    r"\b(?:planned|pending|remaining|remains|todo(?! \d)|to[- ]do|next|open|outstanding|upcoming|not started|left|"
    r"later)\b"
)
_SIGNS = "\u2705\u2713\u2714\u2611\u2610\u23f3\u2b1c"
_BOX = re.compile(rf"^\s*(?:[-*+]|\d+[.)])?\s*(?:\[(?P<box>[ xX~/>-])\]|(?P<sign>[{_SIGNS}]))")
_BOXES: dict[str, Progress] = {
    "x": "done",
    "X": "done",
    " ": "planned",
    "~": "doing",
    "/": "doing",
    ">": "doing",
    "-": "doing",
    "\u2705": "done",
    "\u2713": "done",
    "\u2714": "done",
    "\u2611": "done",
    "\u2610": "planned",
    "\u2b1c": "planned",
    "\u23f3": "doing",
}
_STOP = (
    "the a an and or but if then else of in on at to for from by with as is are was were be been being it its this",
    "that these those there here we you he she they i me my our your their his her them us will would should can could",
    "may might must shall do does did done has have had having not no so than too very just also into about over under",
    "out up down all any each every some such only own same other more most now when while where which who whom what",
    "why how please let make made use used using via per etc",
)
STOP = frozenset(word for line in _STOP for word in line.split())
"""Words that say nothing of what a sentence is about."""
LONGEST = 400
"""Words of one passage; a longer line is no sentence."""


@lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    """A word without the endings of English that a paraphrase changes."""
    for ending in ("ingly", "edly", "ions", "ing", "ion", "ed", "es", "s", "ly"):
        if len(word) - len(ending) >= 4 and word.endswith(ending):
            word = word[: -len(ending)]
            break
    word = word.rstrip("e") if len(word) > 4 else word
    # `implementation` is `implement`, `calculation` and `calculate` the same
    return word[:-2] if len(word) >= 7 and word.endswith("at") else word


def content_words(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, without their endings; of scripts without spaces, pairs of characters."""
    found: set[str] = set()
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        if _CJK.search(word) is not None:
            found.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word not in STOP:
            found.add(_stem(word))
            if "/" in word:  # a path is known by its name too
                found.add(_stem(word.rpartition("/")[2]))
    return frozenset(found)


def names_of(text: str) -> frozenset[str]:
    """The words of a sentence that another may not replace: paths, code, products and people."""
    found = [m["code"] or m["mark"] or m["name"] for m in _NAME.finditer(text)]
    # `LO` of LO-57990 is no word of its own
    return frozenset().union(*map(content_words, found)) & content_words(text) if found else frozenset()


def numbers_of(text: str) -> frozenset[str]:
    """The numbers of a sentence, without commas. That of a list, in front, is none of it."""
    return frozenset(n.replace(",", "") for n in _NUMBER.findall(_NUMBERED.sub("", text)))


def _turned_down(text: str) -> frozenset[str]:
    """What a sentence says was not chosen: `instead of X`."""
    return frozenset().union(*(content_words(m[1]) for m in _INSTEAD.finditer(text.lower().replace("`", ""))))


def contradicts(text: str, wanted: str) -> bool:
    """Whether a text with the words of a sentence says another thing all the same: another number, another name, or
    what was chosen and what was not the other way round."""
    numbers, own = numbers_of(wanted), numbers_of(text)
    if numbers - own and own - numbers:
        return True
    names, words = names_of(wanted), content_words(text)
    if names and 2 * len(names & words) < len(names) and names_of(text) - content_words(wanted):
        return True
    return bool((_turned_down(text) - _turned_down(wanted)) & content_words(wanted))


def negates(text: str) -> bool:
    """Whether a sentence says that something is not so, or is not done."""
    return _NEGATIONS.search(text.lower()) is not None


def status_of(text: str) -> Progress | None:
    """What a line says of the progress of what it names: by its box, else by its words."""
    box = _BOX.match(text)
    if box is not None:
        return _BOXES[box["box"] or box["sign"]]
    return _status_in_words(text.lower())


def boxes(text: str) -> tuple[int, int]:
    """Of the items of a checklist how many are done, and how many there are."""
    found = [_BOXES[m["box"] or m["sign"]] for line in text.split("\n") if (m := _BOX.match(line)) is not None]
    return found.count("done"), len(found)


def _status_in_words(low: str) -> Progress | None:
    if _DOING.search(low) is not None:
        return "doing"
    if _DONE.search(low) is not None:
        return "planned" if negates(low) or "to be done" in low else "done"
    return "planned" if _PLANNED.search(low) is not None else None


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence. status: by its own words or box, else by the heading that it stands under."""

    text: str
    words: frozenset[str]
    negated: bool
    status: Progress | None


class Passages:
    """Texts that are asked."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.passages: list[Passage] = list(self._cut(texts))
        self._index: dict[str, list[int]] = {}
        for number, passage in enumerate(self.passages):
            for word in passage.words:
                self._index.setdefault(word, []).append(number)

    def _cut(self, texts: Iterable[str]) -> Iterator[Passage]:
        for text in texts:
            heading: Progress | None = None
            for line in text.split("\n"):
                if not line.strip():
                    continue
                title = _HEADING.match(line)
                if title is not None:
                    heading = _status_in_words((title["marked"] or title["bold"] or title["plain"]).lower())
                own = status_of(line) if _BOX.match(line) is not None else None
                for sentence in _SENTENCE.split(line):
                    words = content_words(sentence)
                    if words and len(words) <= LONGEST:
                        yield Passage(sentence, words, negates(sentence), own or status_of(sentence) or heading)

    def holding(self, words: frozenset[str], least: float) -> Iterator[Sequence[Passage]]:
        """Single sentences, and pairs of neighbours, that hold at least such a share of some words."""
        if not words:
            return
        counts: dict[int, int] = {}
        for word in words:
            for number in self._index.get(word, ()):
                counts[number] = counts.get(number, 0) + 1
        need = least * len(words) - 1e-9
        for number, count in sorted(counts.items()):
            if count >= need:
                yield (self.passages[number],)
        for number in sorted(counts):
            if number + 1 in counts and counts[number] < need and counts[number + 1] < need:
                one, other = self.passages[number], self.passages[number + 1]
                if len((one.words | other.words) & words) >= need:
                    yield (one, other)

"""Whether a window answers a question: without a model, exact where it must be, by content words where it may not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ctxctl.health.passages import Passage, Passages, boxes, content_words, contradicts, negates
from ctxctl.model.block import Block
from ctxctl.model.summary import Progress, SessionSummary, TestRun
from ctxctl.trace.atoms import words
from ctxctl.trace.retention import said

SAME = 0.6
"""Share of a sentence's content words that another must hold to say the same. Of 25 sentences before four recorded
compactions (two sessions) the summary of the same window held 0.67 or more of 24, and 0.27 of one that was really
gone; the summary of the other session held 0.40 at most. Few, so that the limit is no more than a sensible one."""
SHORTEST = 2
_NOT_SAID = frozenset(("tool_result", "system", "tool_definitions", "thinking"))
TAIL = 60
"""Characters of an error's line, from its end, by which its output is known."""
FIGURE = re.compile(
    r"(?<![\w./:#,-])\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:%|ms|s|kb|mb|gb|k)?(?![\w/:-]|[.,]\d)", re.IGNORECASE
)
_PASSED = re.compile(r"pass(?:ed|es|ing)?\b|green|succe(?:ed|ss)|\bok\b")
_FAILED = re.compile(r"fail(?:ed|s|ing|ures?)?\b|\bred\b|broken|errors?\b")
_NONE_FAILED = re.compile(r"\b(?:0|no|zero|without) (?:\w+ )?(?:fail\w*|errors?)")
_COUNTED = re.compile(r"\b(\d[\d,]*) (?:tests? )?(?:pass|fail|ok\b|error)")
_WISHED = re.compile(
    r"\b(?:must|should|until|ensure|make sure|verify|need to|needs to|to run|have to|expect(?:s|ed)? (?:to|that)) "
)
_DELETED = re.compile(r"\b(?:delet|remov|dropp|gone\b|rm\b|unlink)")


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. kind: one of `ctxctl.health.probes.KINDS`; answer: what counts as one, in the session's own words.
    status: of a step. exact: words one of which must stand in the answer. total: of `progress`, steps in all; `answer`
    begins with those done, and `status` whether another is in work; of a goal that is a list, its lines. gone: of a
    file, whether it was deleted.
    """

    kind: str
    question: str
    answer: str
    status: Progress | None = None
    exact: tuple[str, ...] = ()
    total: int = 0
    gone: bool = False


class Asked:
    """A window that is asked: its blocks, what they say, and the facts that are read from them. earlier: what the
    summary in front of them tells of still earlier windows; what was open or next then may be done by now."""

    def __init__(
        self, blocks: Sequence[Block], facts: SessionSummary | None = None, earlier: SessionSummary | None = None
    ) -> None:
        self.blocks = blocks
        self.facts = facts or SessionSummary()
        self.earlier = earlier or SessionSummary()

    @cached_property
    def passages(self) -> Passages:
        """What was said, without the output of tools and what was written into files and shells, since a log or a line
        of code that holds a word is no answer; nor is reasoning, which is not sent back."""
        return Passages(
            said(b)
            for b in self.blocks
            if b.kind not in _NOT_SAID and not (b.kind == "tool_call" and b.target is not None)
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Everything that may be a path or a name, anywhere."""
        found: set[str] = set()
        for block in self.blocks:
            found |= words(said(block))
        return frozenset(found)

    @cached_property
    def names(self) -> frozenset[str]:
        """The last parts of these."""
        return frozenset(word.rpartition("/")[2] for word in self.words)

    @cached_property
    def figures(self) -> frozenset[str]:
        """Figures, without commas and signs."""
        return frozenset(plain(f) for b in self.blocks if "\x00" not in b.text for f in FIGURE.findall(said(b)))


def answered(probe: Probe, window: Asked) -> bool:
    """Whether a window answers a question."""
    if probe.kind == "progress":
        return _counts(probe, window)
    if probe.kind == "step":
        return _step(probe, window)
    if probe.kind == "file":
        return _file(probe, window)
    if probe.kind == "figure":
        return all(figure in window.figures for figure in probe.exact)
    if probe.kind == "test":
        return _test(probe, window)
    if probe.kind == "error":
        return _error(probe, window)
    if probe.kind == "goal" and probe.total:  # a list: what is done of it needs no mention
        told = [_said(part, window.passages, SAME) for part in probe.answer.split("\n")]
        return told[0] or 3 * sum(told) >= len(told)
    if probe.kind in ("goal", "request"):  # its first sentence says what is wanted, the others how
        return _said(_sentences_of(probe.answer)[0], window.passages, SAME)
    return _says(probe.answer, window.passages, SAME)


def _sentences_of(text: str) -> list[str]:
    """The sentences of a text that are long enough to be known again, the text itself when none is."""
    parts = [part for part in re.split(r"(?<=[.!?;])\s+|\n+", text) if len(content_words(part)) >= SHORTEST]
    return parts or [text]


def _says(text: str, passages: Passages, least: float) -> bool:
    """Whether some passage says what a text says. A long text is asked sentence by sentence: most must be said."""
    parts = _sentences_of(text)
    told = [_said(part, passages, least) for part in parts]
    return 2 * sum(told) > len(told) or (len(told) == 2 and told[0])


def _said(sentence: str, passages: Passages, least: float) -> bool:
    wanted, negated = content_words(sentence), negates(sentence)

    def same(found: Sequence[Passage]) -> bool:
        return any(p.negated for p in found) == negated and not contradicts(" ".join(p.text for p in found), sentence)

    return any(map(same, passages.holding(wanted, least)))


def _file(probe: Probe, window: Asked) -> bool:
    if not any(name in window.words or name in window.names or _ends(name, window) for name in probe.exact):
        return False
    if not probe.gone:
        return True
    names = tuple(name.lower() for name in probe.exact)
    return any(
        _DELETED.search(low) is not None and any(name in low for name in names)
        for low in (passage.text.lower() for passage in window.passages.passages)
    )


def _error(probe: Probe, window: Asked) -> bool:
    if any(b.kind == "tool_result" and tail_of(probe.answer) in _line(b.text) for b in window.blocks):
        return True
    named = not probe.exact or any(word in window.words for word in probe.exact)
    return named and _says(probe.answer, window.passages, 0.5)


def tail_of(error: str) -> str:
    """The end of a line of an error: the tool and target in front of it don't stand in the output."""
    return error.rstrip(" .\u2026")[-TAIL:].rpartition(": ")[2]


def _line(text: str) -> str:
    return " ".join(text[-8_000:].split())


def _counts(probe: Probe, window: Asked) -> bool:
    done, total = int(probe.answer.partition(" ")[0]), probe.total
    todos = [todo for todo in window.facts.todos if todo.agent == "main"]
    if len(todos) == total and sum(todo.status == "done" for todo in todos) == done:
        return True
    if any((done, total) == boxes(b.text) for b in window.blocks if b.kind in ("summary", "assistant")):
        return True
    told = re.compile(rf"(?<![\d./-])({done}|{done + 1})\s*(?:of|/|out of)\s*(?:the\s+)?{total}(?![\d./-])")
    for passage in window.passages.passages:
        for number in told.findall(passage.text):
            # "step 5 of 8" is said of the one in work when four are done
            if int(number) == done or (probe.status == "doing" and passage.status != "done"):
                return True
    return False


def _step(probe: Probe, window: Asked) -> bool:
    wanted = content_words(probe.answer)
    for todo in window.facts.todos:
        own = content_words(todo.text)
        if own and len(own & wanted) >= 0.8 * max(len(own), len(wanted)):
            return todo.status == probe.status
    return any(
        any(passage.status == probe.status for passage in found) for found in window.passages.holding(wanted, SAME)
    )


def _ends(path: str, window: Asked) -> bool:
    return "/" in path and any(word.endswith(f"/{path}") for word in window.words if path[-4:] == word[-4:])


def outcome(run: TestRun) -> str:
    """A run of tests as an answer."""
    return f"{run.outcome}{f': {run.detail}' if run.detail else ''}"


def plain(figure: str) -> str:
    """A figure without commas and signs."""
    return figure.replace(",", "").lstrip("$").lower()


def _test(probe: Probe, window: Asked) -> bool:
    passed = probe.answer.startswith("passed")
    for run in window.facts.tests:
        if outcome(run) == probe.answer:
            return True
    for passage in window.passages.passages:
        low = passage.text.lower()
        if "test" not in low and not any(figure in low for figure in probe.exact):
            continue
        counts = {plain(n) for n in _COUNTED.findall(low)}
        if (counts and probe.exact and not counts & set(probe.exact)) or _WISHED.search(low) is not None:
            continue
        fails = _FAILED.search(_NONE_FAILED.sub("", low)) is not None
        if passed and _PASSED.search(low) is not None and not fails and not passage.negated:
            return True
        if not passed and fails:
            return True
    return False

"""Questions that a window can answer, and whether another text still answers them (requirement H5).

They are made from the facts of the window itself, with no knowledge of what came later, and are answered without a
model: what must be exact (paths, figures, names) is looked for word for word, sentences by their content words, and a
sentence that negates answers no question about one that does not, nor a plan one about what is done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ctxctl.health.passages import Passages, content_words, negates
from ctxctl.model.block import Block
from ctxctl.model.summary import Progress, SessionSummary, TestRun
from ctxctl.model.text import shortened
from ctxctl.trace.atoms import kind_of, words
from ctxctl.trace.retention import said

KINDS = (
    *("goal", "request", "constraint", "decision", "progress", "step", "file", "test", "error", "figure", "issue"),
    "next",
)
"""Kinds of questions, in the order in which reports list them."""
MOST = {"constraint": 6, "decision": 8, "step": 8, "file": 12, "error": 4, "figure": 6, "issue": 5, "next": 3}
"""Questions of a kind at most: the newest, since they are what the next turns need."""
FOUND = frozenset(("file", "error", "figure"))
"""Kinds whose answers were found in the window word for word, so that it need not be asked."""
SAME = 0.6
"""Share of a sentence's content words that another must hold to say the same. A summary of a sentence keeps about two
thirds of them in the summaries that agents wrote in recorded sessions."""
LONGEST = 60
"""Words of a sentence that are asked for: of a long prompt its beginning says what is wanted."""
SHORTEST = 2
_FIGURE = re.compile(r"(?<![\w./:#-])\$?\d[\d,]*(?:\.\d+)?(?:%|ms|s|kb|mb|gb|k)?(?![\w/:-]|\.\d)", re.IGNORECASE)
_TOLD = frozenset(("user_message", "assistant", "summary"))
_NONE = re.compile(r"(?:no|none|nothing)\b", re.IGNORECASE)
_PASSED = re.compile(r"pass(?:ed|es|ing)?\b|green|succe(?:ed|ss)|\bok\b")
_FAILED = re.compile(r"fail(?:ed|s|ing|ures?)?\b|\bred\b|broken|errors?\b")
_NONE_FAILED = re.compile(r"\b(?:0|no|zero|without) (?:\w+ )?(?:fail\w*|errors?)")


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. kind: one of KINDS; answer: what counts as one, in the session's own words. status: of a step.
    exact: words one of which must stand in the answer. total: of `progress`, steps in all; `answer` holds those done,
    and `status` whether another is in work.
    """

    kind: str
    question: str
    answer: str
    status: Progress | None = None
    exact: tuple[str, ...] = ()
    total: int = 0


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
        """What was said, without the output of tools: that a log holds a word is no answer."""
        return Passages(said(b) for b in self.blocks if b.kind not in ("tool_result", "system", "tool_definitions"))

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
        return frozenset(_plain(f) for b in self.blocks if "\x00" not in b.text for f in _FIGURE.findall(said(b)))


def probes_of(window: Asked) -> list[Probe]:
    """The questions that a window answers."""
    return [probe for probe in _probes(window) if probe.kind in FOUND or answered(probe, window)]


def answered(probe: Probe, window: Asked) -> bool:
    """Whether a window answers a question."""
    if probe.kind == "progress":
        return _counts(probe, window)
    if probe.kind == "step":
        return _step(probe, window)
    if probe.kind == "file":
        return any(name in window.words or name in window.names or _ends(name, window) for name in probe.exact)
    if probe.kind == "figure":
        return all(figure in window.figures for figure in probe.exact)
    if probe.kind == "test":
        return _test(probe, window)
    if probe.kind == "error":
        exact = not probe.exact or any(word in window.words for word in probe.exact)
        return exact and _says(probe.answer, window.passages, 0.5, results=window)
    if probe.kind in ("goal", "request"):  # its first sentence says what is wanted, the others how
        return _said(_sentences_of(probe.answer)[0], window.passages, SAME)
    return _says(probe.answer, window.passages, SAME)


def _probes(window: Asked) -> Iterator[Probe]:
    facts = window.facts
    goal = _goal(window)
    if goal:
        yield Probe("goal", "What is the task?", _beginning(goal))
    if facts.requests and facts.requests[-1] != goal:
        yield Probe("request", "What did the user ask for last?", _beginning(facts.requests[-1]))
    for text in (*facts.success_criteria, *facts.constraints)[-MOST["constraint"] :]:
        yield Probe("constraint", "What must be kept to?", _beginning(text))
    for decision in facts.decisions[-MOST["decision"] :]:
        yield Probe("decision", "What was decided?", _beginning(decision.what))
    todos = [todo for todo in facts.todos if todo.agent == "main"]
    still = [todo for todo in todos if todo.status != "done"]
    if len(todos) > 1 and still:  # a plan that was carried out is no news
        doing: Progress | None = "doing" if any(todo.status == "doing" for todo in still) else None
        done = str(len(todos) - len(still))
        yield Probe("progress", "How many steps of how many are done?", done, doing, total=len(todos))
    for todo in sorted(still, key=lambda todo: todo.status != "doing")[: MOST["step"]]:
        yield Probe("step", f"Is this in work, or planned: {_short(todo.text)}?", todo.text, todo.status)
    modified = [f.path for f in facts.files if f.role == "modified"]
    counts = Counter(path.rpartition("/")[2] for path in modified)
    for path in modified[-MOST["file"] :]:
        name = path.rpartition("/")[2]
        parent = "/".join(path.split("/")[-2:])
        exact = (path, parent) if counts[name] > 1 or len(name) < 5 else (path, parent, name)
        yield Probe("file", "Which file was changed?", path, exact=exact)
    run = next((t for t in reversed(facts.tests) if t.outcome != "unknown"), None)
    if run is not None:
        yield Probe("test", f"How did `{_short(run.command)}` end?", _outcome(run), exact=_counted(run))
    for error in facts.errors[-MOST["error"] :]:
        names = tuple(sorted(w for w in words(error) if kind_of(w) in ("error", "path", "identifier")))
        yield Probe("error", "What fails and is not solved?", error, exact=names)
    for figure, sentence in _figures(window.blocks):
        yield Probe(
            "figure", f"Which figure: {_short(sentence.replace(figure, '...'))}", figure, exact=(_plain(figure),)
        )
    for text in [t for t in facts.open_issues if t not in window.earlier.open_issues][-MOST["issue"] :]:
        yield Probe("issue", "What is open?", _beginning(text))
    steps = [t for t in facts.next_steps if t not in window.earlier.next_steps and not _NONE.match(t)]
    for text in steps[: MOST["next"]]:
        yield Probe("next", "What comes next?", _beginning(text))


def _goal(window: Asked) -> str:
    """The task, as the summary in front states it: the prompts behind one are about parts of it. Without one, the first
    prompt."""
    if not any(block.kind == "summary" for block in window.blocks):
        return window.facts.goal
    lines = iter(window.earlier.earlier)
    if not window.earlier.goal and any("Primary Request" in line for line in lines):  # Claude Code's first section
        return next(lines, "").strip(" -*")
    return window.earlier.goal


def _beginning(text: str) -> str:
    return " ".join(text.split()[:LONGEST])


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), 120)


def _plain(figure: str) -> str:
    return figure.replace(",", "").lstrip("$").lower()


def _sentences_of(text: str) -> list[str]:
    """The sentences of a text that are long enough to be known again, the text itself when none is."""
    parts = [part for part in re.split(r"(?<=[.!?;])\s+|\n+", text) if len(content_words(part)) >= SHORTEST]
    return parts or [text]


def _says(text: str, passages: Passages, least: float, results: Asked | None = None) -> bool:
    """Whether some passage says what a text says. A long text is asked sentence by sentence: most must be said."""
    parts = _sentences_of(text)
    said_parts = sum(_said(part, passages, least) for part in parts)
    if said_parts * 2 > len(parts) or (len(parts) == 2 and said_parts == 1 and _said(parts[0], passages, least)):
        return True
    return results is not None and any(text[:80] in b.text for b in results.blocks if b.kind == "tool_result")


def _said(sentence: str, passages: Passages, least: float) -> bool:
    wanted, negated = content_words(sentence), negates(sentence)
    return any(any(passage.negated for passage in found) == negated for found in passages.holding(wanted, least))


def _counts(probe: Probe, window: Asked) -> bool:
    done, total = int(probe.answer), probe.total
    todos = [todo for todo in window.facts.todos if todo.agent == "main"]
    if len(todos) == total and sum(todo.status == "done" for todo in todos) == done:
        return True
    # "step 5 of 8" is said of the one in work when four are done
    counts = f"(?:{done}|{done + 1})" if probe.status == "doing" else str(done)
    told = re.compile(rf"(?<!\d){counts}\s*(?:of|/|out of)\s*(?:the\s+)?{total}(?!\d)")
    return any(told.search(passage.text) for passage in window.passages.passages)


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


def _outcome(run: TestRun) -> str:
    return f"{run.outcome}{f': {run.detail}' if run.detail else ''}"


def _counted(run: TestRun) -> tuple[str, ...]:
    return tuple(_plain(f) for f in _FIGURE.findall(run.detail) if not f.lower().endswith("s"))[:3]


def _test(probe: Probe, window: Asked) -> bool:
    passed = probe.answer.startswith("passed")
    for run in window.facts.tests:
        if _outcome(run) == probe.answer:
            return True
    for passage in window.passages.passages:
        low = passage.text.lower()
        if "test" not in low and not any(figure in low for figure in probe.exact):
            continue
        fails = _FAILED.search(_NONE_FAILED.sub("", low)) is not None
        if passed and _PASSED.search(low) is not None and not fails and not passage.negated:
            return True
        if not passed and fails:
            return True
    return False


def _figures(blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    """Figures that were said more than once, in what people and the agent wrote, with the newest sentence: those that
    matter. Small ones, years and lists of line numbers say little."""
    counts: Counter[str] = Counter()
    newest: dict[str, tuple[str, str]] = {}
    for block in blocks:
        if block.kind not in _TOLD:
            continue
        seen: set[str] = set()
        for sentence in _sentences(block.text):
            for figure in _FIGURE.findall(sentence):
                plain = _plain(figure)
                if len(re.sub(r"\D", "", plain)) >= 3 or not plain[-1].isdigit():
                    seen.add(plain)
                    newest.pop(plain, None)
                    newest[plain] = figure, sentence
        counts.update(seen)
    told = [item for plain, item in newest.items() if counts[plain] > 1]
    yield from told[-MOST["figure"] :]


def _sentences(text: str) -> Iterable[str]:
    inside = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield from re.split(r"(?<=[.!?])\s+", line)

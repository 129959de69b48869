"""Questions that a window can answer (requirement H5).

They are made from the facts of the window itself, with no knowledge of what came later, a few of each kind: what is
newest, or was said again. Whether another text still answers them is in `ctxctl.health.answers`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ctxctl.facts.tools import EDIT, EDITOR, PATCH, WRITE, arguments
from ctxctl.facts.tools import kind_of as does
from ctxctl.health.answers import FIGURE, Asked, Probe, answered, outcome, plain, tail_of
from ctxctl.health.passages import content_words
from ctxctl.model.block import Block
from ctxctl.model.summary import Progress, SessionSummary, TestRun
from ctxctl.model.text import shortened
from ctxctl.trace.atoms import kind_of, words

KINDS = (
    *("goal", "request", "constraint", "decision", "progress", "step", "file", "test", "commit", "error", "figure"),
    *("issue", "lesson", "next"),
)
"""Kinds of questions, in the order in which reports list them."""
MOST = {
    **{"request": 3, "constraint": 6, "decision": 8, "step": 8, "file": 12, "commit": 3, "error": 4, "figure": 6},
    **{"issue": 5, "lesson": 4, "next": 3},
}
"""Questions of a kind at most: the newest, since they are what the next turns need."""
FOUND = frozenset(("file", "figure"))
"""Kinds whose answers were found in the window word for word, so that it need not be asked."""
LONGEST = 60
"""Words of a text that are asked for: of a long prompt its beginning says what is wanted."""
SHORTEST = 3
"""Content words of a request: `yes, do that` is no question without what it answers."""
RECENT = 10
"""Turns after which a failure that nobody spoke of was of no matter."""
_TOLD = frozenset(("user_message", "assistant", "summary"))
_NONE = re.compile(r"(?:no|none|nothing)\b", re.IGNORECASE)
_APPROVED = "the user approved the plan: "
_SECTION = re.compile(r"^\s*\d+[.)]\s+\S.*:\s*$")
_OWN = "/.claude/plans/"
"""Where a client keeps plans of its own, which it puts in again after a compaction."""
_POINTS = re.compile(
    r"\b(?:lines?|rows?|slice|index|offset|at|around|near|before|after|between|from|to|until)\s+(?:line\s+)?[`(~]*$",
    re.IGNORECASE,
)
"""In front of a number that is a place in a file: what moves with the next edit is no figure to keep."""
_TOOK = re.compile(r"\d\.\d+m?s$", re.IGNORECASE)
_CHANGES = frozenset((EDIT, WRITE, PATCH))


def probes_of(window: Asked) -> list[Probe]:
    """The questions that a window answers."""
    return [probe for probe in _probes(window) if (probe.kind in FOUND and not probe.gone) or answered(probe, window)]


def _probes(window: Asked) -> Iterator[Probe]:
    facts = window.facts
    yield from _wanted(window)
    for text in (*facts.success_criteria, *facts.constraints)[-MOST["constraint"] :]:
        yield Probe("constraint", "What must be kept to?", _beginning(text))
    for decision in facts.decisions[-MOST["decision"] :]:
        if decision.what.startswith(_APPROVED):
            yield Probe("decision", "Which plan was approved?", _beginning(decision.what[len(_APPROVED) :]))
        else:
            yield Probe("decision", "What was decided?", _beginning(decision.what))
    yield from _plan(facts)
    yield from _changed(facts)
    run = next((t for t in reversed(facts.tests) if t.outcome != "unknown"), None)
    if run is not None and not _edited_since(window.blocks, run.turn):  # else it tells of what is not there any more
        yield Probe("test", f"How did `{_short(run.command)}` end?", outcome(run), exact=_counted(run))
    for commit in facts.commits[-MOST["commit"] :]:
        yield Probe("commit", "What was committed?", _beginning(commit.message))
    yield from _errors(window)
    for figure, sentence in _figures(window.blocks):
        question = f"Which figure: {_short(sentence.replace(figure, '...'))}"
        yield Probe("figure", question, figure, exact=(plain(figure),))
    for text in [t for t in facts.open_issues if t not in window.earlier.open_issues][-MOST["issue"] :]:
        yield Probe("issue", "What is open?", _beginning(text))
    for text in (*facts.learnings, *facts.dead_ends)[-MOST["lesson"] :]:
        yield Probe("lesson", "What was learned?", _beginning(text))
    steps = [t for t in facts.next_steps if t not in window.earlier.next_steps and not _NONE.match(t)]
    for text in steps[: MOST["next"]]:
        yield Probe("next", "What comes next?", _beginning(text))


def _wanted(window: Asked) -> Iterator[Probe]:
    goal = _goal(window)
    if len(content_words("\n".join(goal))) > 1:  # `hi` is no task
        yield Probe("goal", "What is the task?", "\n".join(map(_beginning, goal)), total=len(goal) if goal[1:] else 0)
    asked = [t for t in window.facts.requests if [t] != goal and len(content_words(t)) >= SHORTEST]
    for text in asked[-MOST["request"] :]:
        last = text == window.facts.requests[-1]
        yield Probe("request", f"What did the user ask for{' last' if last else ''}?", _beginning(text))


def _goal(window: Asked) -> list[str]:
    """The task, as the summary in front states it: the prompts behind one are about parts of it. Without one, the first
    prompt. Several lines when the summary lists it."""
    if not any(block.kind == "summary" for block in window.blocks):
        return [window.facts.goal] if window.facts.goal else []
    lines = iter(window.earlier.earlier)
    if window.earlier.goal or not any("Primary Request" in line for line in lines):
        return [window.earlier.goal] if window.earlier.goal else []
    found: list[str] = []  # Claude Code's first section
    for line in lines:
        if _SECTION.match(line):
            break
        if len(content_words(line)) >= SHORTEST:
            found.append(line.strip(" -*"))
    return found


def _plan(facts: SessionSummary) -> Iterator[Probe]:
    todos = [todo for todo in facts.todos if todo.agent == "main"]
    still = [todo for todo in todos if todo.status != "done"]
    if len(todos) > 1 and still:  # a plan that was carried out is no news
        doing: Progress | None = "doing" if any(todo.status == "doing" for todo in still) else None
        done = f"{len(todos) - len(still)} of {len(todos)}"
        yield Probe("progress", "How many steps of how many are done?", done, doing, total=len(todos))
    for todo in sorted(still, key=lambda todo: todo.status != "doing")[: MOST["step"]]:
        yield Probe("step", f"Is this in work, or planned: {_short(todo.text)}?", todo.text, todo.status)


def _changed(facts: SessionSummary) -> Iterator[Probe]:
    modified = [f for f in facts.files if f.role == "modified" and _OWN not in f.path]
    counts = Counter(f.path.rpartition("/")[2] for f in modified)
    for file in modified[-MOST["file"] :]:
        name = file.path.rpartition("/")[2]
        parent = "/".join(file.path.split("/")[-2:])
        exact = (file.path, parent) if counts[name] > 1 or len(name) < 5 else (file.path, parent, name)
        gone = bool(file.actions) and file.actions[-1] == "deleted"
        yield Probe("file", f"Which file was {'deleted' if gone else 'changed'}?", file.path, exact=exact, gone=gone)


def _edited_since(blocks: Sequence[Block], turn: int | None) -> bool:
    """Whether a file was changed by a tool for that after a turn."""
    for block in reversed(blocks):
        if turn is None or block.turn <= turn:
            return False
        if block.kind == "tool_call" and block.tool_name:
            tool = does(block.tool_name)
            if tool in _CHANGES or (tool == EDITOR and (arguments(block) or {}).get("command") != "view"):
                return True
    return False


def _counted(run: TestRun) -> tuple[str, ...]:
    return tuple(plain(f) for f in FIGURE.findall(run.detail) if not f.lower().endswith("s"))[:3]


def _errors(window: Asked) -> Iterator[Probe]:
    """Failures that are new, or that somebody spoke of."""
    last = window.blocks[-1].turn if window.blocks else 0
    new = "\n".join(
        " ".join(b.text[-8_000:].split()) for b in window.blocks if b.kind == "tool_result" and b.turn > last - RECENT
    )
    for error in window.facts.errors[-MOST["error"] :]:
        names = tuple(sorted(w for w in words(error) if kind_of(w) in ("error", "path", "identifier")))
        tail = tail_of(error)
        if tail in new or any(tail in b.text for b in window.blocks if b.kind in _TOLD):
            yield Probe("error", "What fails and is not solved?", error, exact=names)


def _beginning(text: str) -> str:
    """The first words of a text, in its lines: a title is a sentence of its own."""
    left, kept = LONGEST, []
    for line in text.split("\n"):
        found = line.split()[:left]
        left -= len(found)
        if found:
            kept.append(" ".join(found))
    return "\n".join(kept)


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), 120)


def _figures(blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    """Figures that were said more than once, in what people and the agent wrote, with the newest sentence: those that
    matter. Small ones, numbers of lines and how long something took say little, and so does what nobody has spoken
    of since the first half, or since the summary."""
    counts: Counter[str] = Counter()
    newest: dict[str, tuple[str, str, int]] = {}
    places: set[str] = set()
    for number, block in enumerate(blocks):
        if block.kind not in _TOLD:
            continue
        seen: set[str] = set()
        at = len(blocks) if block.kind == "user_message" else -1 if block.kind == "summary" else number
        for sentence in _sentences(block.text):
            for match in FIGURE.finditer(sentence):
                figure = match[0]
                value = plain(figure)
                if figure.isdigit() and _POINTS.search(sentence[: match.start()]) is not None:
                    places.add(value)
                if _matters(value):
                    seen.add(value)
                    at = max(at, newest.pop(value, ("", "", -1))[2])
                    newest[value] = figure, sentence, at
        counts.update(seen)
    # 412 beside 413: lines that were counted off
    places.update(v for v in newest if v.isdigit() and not newest.keys().isdisjoint((str(int(v) - 1), str(int(v) + 1))))
    told = [
        (figure, text)
        for value, (figure, text, at) in newest.items()
        if value not in places and counts[value] > 1 and 2 * at >= len(blocks)
    ]
    yield from told[-MOST["figure"] :]


def _matters(value: str) -> bool:
    if value == "100%" or _TOOK.search(value) is not None:
        return False
    return len(re.sub(r"\D", "", value)) >= 3 or not value[-1].isdigit()


def _sentences(text: str) -> Iterable[str]:
    inside = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield from re.split(r"(?<=[.!?])\s+", line)

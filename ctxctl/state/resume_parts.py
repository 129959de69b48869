"""The parts of a resume prompt: what each says, where that comes from, and what of it matters most."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ctxctl.facts import layout, resumed
from ctxctl.facts.todos import folded
from ctxctl.model.block import MAIN
from ctxctl.model.state import AgentState, FileState, Subtask, TailBlock
from ctxctl.model.summary import SessionSummary
from ctxctl.model.text import clean, shortened
from ctxctl.state.checks import Check
from ctxctl.state.files import sanitized
from ctxctl.state.validate import StateWarning

NEWEST = 5
"""Decisions, completed and remaining subtasks that are shown (requirement S4)."""
FEW = 3
"""Errors and links that are shown."""
EVIDENCE = 400
"""Characters of the evidence of the current step at most: the step itself is never cut."""
BRIEF = 400
"""Characters of a block of the tail that has no place as a whole."""
STALE_NAMED = 10
TOLD = ("missing_goal", "no_current", "stale_files", "transcript_newer")
"""Warnings that say what a prompt shows anyhow."""
_WORD, _HASH = re.compile(r"[\w-]+"), re.compile(r"[0-9a-f]{12,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


@dataclass(slots=True)
class Draft:
    """A part while its items are chosen. lines: its items as they will stand; order: their numbers, what matters most
    first; total: how many there are in the state. side: which of them are shown where not all are. counted: whether the
    heading always tells how many there are. brief: shorter forms of items. fixed: never cut."""

    title: str
    source: str
    lines: list[str]
    order: list[int] = field(default_factory=list)
    total: int = 0
    side: str = ""
    counted: bool = False
    brief: dict[int, str] = field(default_factory=dict)
    fixed: bool = False
    taken: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.order = self.order or list(range(len(self.lines)))
        self.total = self.total or len(self.lines)
        if self.fixed:
            self.taken = dict(enumerate(self.lines))

    @property
    def missing(self) -> int:
        """How many items are left out."""
        return self.total - len(self.taken)

    def text(self) -> str:
        """The part as it stands now, empty where nothing of it does."""
        if not self.taken:
            return ""
        shown = ""
        if not self.fixed and (self.counted or self.missing):
            shown = f", {self.side if self.missing else ''}{len(self.taken)} of {self.total}"
        head = f"## {self.title}{shown} (from: {self.source})\n"
        return head + "".join(self.taken[at] for at in sorted(self.taken))


def safe(text: str, *, tool_output: bool = False) -> str:
    """A text as it may go into a window: without credentials and payloads, without what steers a terminal."""
    return sanitized(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", clean(text)), tool_output=tool_output)


def one_line(text: str) -> str:
    """A text as one safe line."""
    return folded(safe(text))


def next_step(state: AgentState) -> str:
    """What comes after the current step, or is to be begun where there is none: the first planned subtask of the main
    agent, else of any, else what the agent announced. Empty where nothing is planned."""
    planned = [s for s in state.remaining_subtasks if s.status == "planned"]
    chosen = next((s for s in planned if s.agent == MAIN), planned[0] if planned else None)
    if chosen is not None:
        return one_line(chosen.text)
    if state.subtasks and state.current_subtask is None and not state.remaining_subtasks:
        return ""  # all is done, so that what was announced is too
    current = folded(state.current_subtask.text) if state.current_subtask is not None else ""
    return next((one_line(text) for text in state.next_steps if folded(text) not in ("", current)), "")


def drafts(
    state: AgentState, checks: Iterable[Check], stale: Collection[str], warnings: Iterable[StateWarning]
) -> Iterator[Draft]:
    """All parts that say something, in their order. The first ones are fixed."""
    yield from _core(state)
    here = SessionSummary(
        open_issues=_texts(state.open_issues),
        decisions=tuple(
            type(d)(one_line(d.what), one_line(d.why)) for d in state.decisions[-NEWEST:] if folded(d.what)
        ),
        tests=tuple(
            type(r)(one_line(r.command), r.outcome, folded(safe(r.detail, tool_output=True)))
            for r in state.tests
            if r.outcome != "unknown"
        ),
        commits=tuple(type(c)(one_line(c.message), c.id) for c in state.commits[-NEWEST:]),
        dead_ends=_texts(state.dead_ends),
        learnings=_texts(state.learnings),
        errors=tuple(folded(safe(text, tool_output=True)) for text in state.errors[-FEW:]),
        artifacts=_texts(state.artifacts[-FEW:]),
    )
    sections = {section.title: section.items for section in layout.sections(here, False)}

    def same(title: str, key: str, total: int = 0, source: str | None = None) -> Iterator[Draft]:
        items = sections.get(title, ())
        if items:
            yield _listed(title, source or source_of(state, key), items, total=total, newest=True)

    yield from _environment(checks, stale, warnings)
    yield from _asked(state)
    yield from same(resumed.ISSUES, "open_issues")
    yield from _summary(state)
    yield from same(resumed.FAILING, "tests")
    yield from same(resumed.DECISIONS, "decisions", sum(1 for d in state.decisions if folded(d.what)))
    yield from same(resumed.LEARNINGS, "learnings")
    yield from same(resumed.DEAD, "dead_ends")
    yield from same(resumed.TESTS, "tests")
    yield from same(resumed.COMMITS, "commits", len(state.commits))
    yield from _subtasks(state, resumed.DONE, state.completed_subtasks, newest=True)
    yield from _subtasks(state, resumed.REMAINING, state.remaining_subtasks, newest=False)
    yield from _files(state, stale)
    yield from same(resumed.ERRORS, "errors", len(state.errors))
    yield from same(resumed.LINKS, "artifacts", len(state.artifacts))
    titles = [one_line(title) for title in state.memory_index if not _told(state, title)]
    if titles := [title for title in titles if title]:
        yield _listed(resumed.NOTES, "notes", titles, newest=True)
    yield from _tail(state)


def _core(state: AgentState) -> Iterator[Draft]:
    """What is never cut (requirement S4), with the next step."""
    goal = safe(state.task_goal).strip()
    quoted = _quoted(goal) if goal else ["(not known: ask the user)\n"]
    yield Draft(resumed.GOAL, source_of(state, "task_goal"), quoted, fixed=True)
    for title, key, texts in (
        (resumed.CRITERIA, "success_criteria", state.success_criteria),
        (resumed.CONSTRAINTS, "constraints", state.constraints),
    ):
        if lines := [f"- {text}\n" for text in _texts(texts)]:
            yield Draft(title, source_of(state, key), lines, fixed=True)
    current = state.current_subtask
    if current is None:
        lines = [f"{resumed.NO_DOING}\n"]
    else:
        lines = [f"{resumed.DOING}{one_line(current.text)}\n"]
        lines.append(f"{resumed.ID}{resumed.subtask_name(current.id, current.agent)}\n")
        if evidence := one_line(current.evidence):
            lines.append(f"Evidence: {shortened(evidence, EVIDENCE)}\n")
    if total := len(state.subtasks):
        lines.append(f"Progress: {len(state.completed_subtasks)} of {total} done\n")
    following = next_step(state)
    lines.append(f"{resumed.NEXT}{following}\n" if following else f"{resumed.NO_NEXT}\n")
    source = source_of(state, "subtasks") if current is None else _by(state, [current])
    yield Draft(resumed.STEP, source, lines, fixed=True)


def _environment(checks: Iterable[Check], stale: Collection[str], warnings: Iterable[StateWarning]) -> Iterator[Draft]:
    """What is not as it was at the checkpoint."""
    warnings = tuple(warnings)
    told = next((warning.message for warning in warnings if warning.code == "stale_files"), "")
    if stale and not told:
        named = [f"`{path}`" for path in list(stale)[:STALE_NAMED]]
        more = f" and {len(stale) - STALE_NAMED} more" if len(stale) > STALE_NAMED else ""
        told = f"changed since the checkpoint: {', '.join(named)}{more}"
    found = [f"{c.name}: {c.detail}" for c in checks if c.ok is False and not (told and c.name == "files")]
    found += [f"{told} (read again before use)"] if told else []
    found += [warning.message for warning in warnings if warning.level != "info" and warning.code not in TOLD]
    lines = list(dict.fromkeys(one_line(text) for text in found if folded(text)))
    if lines:
        yield _listed(resumed.FOUND, "checks made now", lines)


def _asked(state: AgentState) -> Iterator[Draft]:
    """What the user said last, and whether the agent's answer to it stands at the end of the transcript."""
    text = one_line(state.newest_request or (state.requests[-1] if state.requests else ""))
    if not text:
        return
    answered = state.current_subtask is None and state.tail and state.tail[-1].kind == "assistant"
    line = f"- {text}\n" + ("(it was answered)\n" if answered else "")
    draft = Draft(resumed.ASKED, source_of(state, "requests"), [line])
    if len(text) > BRIEF:
        draft.brief[0] = line.replace(text, f"{shortened(text, BRIEF).rstrip()}…", 1)
    yield draft


def _told(state: AgentState, title: str) -> bool:
    """Whether a note stands in the state as a fact already."""
    text = folded(title.partition("] ")[2] or title)
    facts = (
        *(d.what for d in state.decisions),
        *state.open_issues,
        *state.learnings,
        *(s.text for s in state.subtasks),
    )
    return any(folded(fact).startswith(text) or text.startswith(folded(fact)) for fact in facts if folded(fact))


def _summary(state: AgentState) -> Iterator[Draft]:
    # what an agent or a model wrote may quote tool output, but rewriting it would change what was decided
    text = safe(state.compaction_summary).strip()
    lines = [line for line in _quoted(text) if line.strip() != ">"] if text else []
    if lines:
        by_hand = "summary" in state.set_by_hand
        source = "set by hand" if by_hand else "a compaction in the transcript, older than the rest"
        yield Draft(resumed.SUMMARY, source, lines)


def _subtasks(state: AgentState, title: str, subtasks: Sequence[Subtask], *, newest: bool) -> Iterator[Draft]:
    if not subtasks:
        return
    chosen = subtasks[-NEWEST:] if newest else subtasks[:NEWEST]
    items = [resumed.subtask_line(s.id, s.agent, s.status, one_line(s.text)) for s in chosen]
    draft = _listed(title, _by(state, chosen), items, total=len(subtasks), newest=newest)
    draft.side, draft.counted = "last " if newest else "first ", True
    yield draft


def _files(state: AgentState, stale: Collection[str]) -> Iterator[Draft]:
    modified = [file for file in state.environment.files if file.role == "modified" and file.path]
    items = [_file(file) + (resumed.STALE if file.path in stale else "") for file in modified]
    if items:
        draft = _listed(resumed.FILES, source_of(state, "environment"), items, newest=True)
        draft.order.sort(key=lambda at: modified[at].path not in stale)
        yield draft


def _file(file: FileState) -> str:
    """A file as a typed summary has it. Whatever its name holds, it is one line."""
    path = sanitized(clean(file.path), tool_output=False)
    plain = path.isprintable() and path == folded(path) and "`" not in path
    actions = ", ".join(action for action in file.actions if _WORD.fullmatch(action))
    hash_ = file.sha256 or file.written or ""
    return "".join(
        (
            f"`{path}`" if plain else json.dumps(path),
            f": {actions}" if actions else "",
            f"; sha256 {hash_[: layout.HASH]}" if _HASH.fullmatch(hash_) else "",
        )
    )


def _tail(state: AgentState) -> Iterator[Draft]:
    blocks = [block for block in state.tail if block.kind != "thinking" and block.text.strip()]
    if not blocks:
        return
    lines, brief = [], {}
    for at, block in enumerate(blocks):
        text = safe(block.text, tool_output=block.kind == "tool_result").strip()
        lines.append(_block(block, text))
        short = shortened(text, BRIEF).rstrip()
        if len(short) < len(text):
            brief[at] = _block(block, f"{short.removesuffix('…')}…")
    order = list(range(len(lines)))[::-1]
    yield Draft(resumed.TAIL, source_of(state, "tail"), lines, order, side="last ", brief=brief)


def _block(block: TailBlock, text: str) -> str:
    what = one_line(" ".join(part for part in (block.kind, block.tool_name, block.target) if part))
    return f"- turn {block.turn}, {what}:\n" + "".join(_quoted(text))


def _listed(title: str, source: str, items: Sequence[str], *, total: int = 0, newest: bool = False) -> Draft:
    order = list(range(len(items)))
    draft = Draft(title, source, [f"- {item}\n" for item in items], order[::-1] if newest else order)
    draft.total = max(total, len(items))
    draft.side = "last " if newest else ""
    return draft


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for text in texts if (line := one_line(text)))


def _quoted(text: str) -> list[str]:
    """Each line of a text behind `> `, whatever it takes for the end of a line."""
    return [f"> {line}".rstrip() + "\n" for line in text.splitlines()]


_ALIASES = {"task_goal": "goal", "success_criteria": "criteria", "open_issues": "issues", "subtasks": "todos"}


def source_of(state: AgentState, key: str) -> str:
    """Where a field of a state comes from, in a few words."""
    if {key, _ALIASES.get(key, key)} & set(state.set_by_hand):
        return "set by hand"
    return _transcript(state)


def transcript_of(state: AgentState) -> str:
    """A short name of the transcript that the state was last told by, empty for none."""
    read = state.transcript
    return one_line((read.id or "")[:8] or os.path.basename(read.path))


def _transcript(state: AgentState) -> str:
    return "transcript" if state.transcript.id or state.transcript.path else "the state file"


def _by(state: AgentState, subtasks: Iterable[Subtask]) -> str:
    words = {"transcript": _transcript(state), "hand": "set by hand", "note": "notes"}
    return ", ".join(dict.fromkeys(words[s.by] for s in subtasks))

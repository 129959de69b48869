"""Whether windows that began with a resume went on where the last one had stopped (requirement O4).

Only what can be seen for certain counts as a failure; a window that did nothing yet is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxctl.facts import tools
from ctxctl.facts.results import output
from ctxctl.facts.todos import TodoLog, folded, todo_list
from ctxctl.health.session import Session
from ctxctl.health.signals.beginnings import Beginning, asked_in, beginnings, blocks_in, facts_of
from ctxctl.health.signals.calls import Call, calls_of, text_of
from ctxctl.model.block import Block
from ctxctl.model.summary import SessionSummary, Todo
from ctxctl.model.text import RESUME
from ctxctl.trace.atoms import words

LOOKED = 10
"""Calls of a window that are looked at: what went wrong with a resume shows at its beginning."""
LEAST = 2
"""Answers from which on a window that shows nothing wrong counts as one that went on well."""
SPOKEN = 3
"""Answers among which the agent asks what it was doing."""

LOST = re.compile(
    r"\bwhat (?:was I|were (?:we|you)|I was|we were) (?:just |currently )?"
    r"(?:doing|working on|asked to do|trying to do)\b[^.\n]{0,80}\?"
    r"|\b(?:could|can|would) you (?:please )?"
    r"(?:remind me|(?:tell me (?:again )?|clarify )what (?:we|I|you) (?:were|was))\b"
    r"|\bI(?:'m| am)? (?:do not|don't|no longer|not) (?:have|see|recall|remember|sure)[^.\n]{0,40}\b"
    r"(?:what (?:we|I) (?:were|was) (?:doing|working)|(?:context|memory|record) (?:of|about|from) "
    r"(?:what|our|any|the (?:previous|earlier|prior|last)|previous|earlier|prior))\b"
    r"|\bI(?:'ve| have)? lost (?:the |my )?(?:context|track of what)\b"
    r"|我(?:们)?(?:刚才|之前)(?:在)?做(?:的是)?什么|请(?:您|你)?提醒我",
    re.IGNORECASE,
)
"""The agent says that it does not know any more what it was doing."""
_IDLE = re.compile(
    r"\bwhat (?:would you like|do you want) me to (?:do|work on|help|tackle)\b[^.\n]{0,60}\?"
    r"|\bwhat should I (?:do|work on)(?: next| now)?\?|\bhow (?:can|may) I (?:help|assist) you\b[^.\n]{0,40}\?",
    re.IGNORECASE,
)
"""It asks for work. Wrong where work was going on."""
_REMINDED = re.compile(
    r"\b(?:that'?s|this is) not what (?:we|you) were (?:doing|working on|supposed to)\b"
    r"|^(?:no|stop|wait|hey|but|hm+)\b[^\n]{0,60}\b(?:we|you) (?:were (?:just |already |still )?"
    r"(?:working on|in the middle of|supposed to)|(?:have |'ve )?already (?:did|done|finished|fixed|wrote))\b"
    r"|\byou(?:'ve| have)? forgot(?:ten)? (?:what|the (?:task|goal|plan))\b"
    r"|\bwhy are you (?:doing|starting|redoing|repeating)\b[^.\n]{0,60}\bagain\b|\byou(?:'re| are) starting over\b",
    re.IGNORECASE,
)
"""The user has to say what the agent was at."""
_NOTHING_LEFT = re.compile(r"nothing (?:added )?to commit|working tree clean", re.IGNORECASE)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LONGEST = 1_000
"""Characters of a reminder; what is longer is a task of its own."""
_SAME_LIST = 0.5
"""Share of a list's items that stand on the list before: then it is the same one."""
_OWN = 3
"""Items of a list that may show another goal."""

_MEMO = "health.resumes"
_Wrong = tuple[str, tuple[int, ...]]
ASKED = "asked what it had been doing"


@dataclass(frozen=True, slots=True)
class Resumed:
    """A window that began with a resume. turn: its first call, as the trace counts; ok: whether it went on where the
    last one had stopped; why: what was wrong, in words behind `the agent ...`, empty where nothing was. block: number
    of the resume in the trace; signs: blocks that show what was wrong; own: it is ctxctl's resume prompt."""

    turn: int
    ok: bool
    why: str = ""
    block: int = 0
    signs: tuple[int, ...] = ()
    own: bool = False


def resumes_of(session: Session) -> list[Resumed]:
    """Every window of the main thread that began with a resume and can be judged, in order. Worked out once per
    session."""
    memo = session.trace.memo
    if _MEMO not in memo:
        memo[_MEMO] = _judged(session, beginnings(session))
    found: list[Resumed] = memo[_MEMO]
    return found


def _judged(session: Session, starts: Sequence[Beginning]) -> list[Resumed]:
    judge = _Judge(session)
    found = []
    for start in starts:
        answers = len({block.turn for _, block in judge.written(start, start.end)})
        wrong = judge.wrong(start)
        if wrong is None and answers < LEAST:
            continue
        why, signs = wrong or ("", ())
        own = RESUME in session.trace.blocks[start.block].text
        found.append(Resumed(start.turn, wrong is None, why, start.block, signs, own))
    return found


class _Judge:
    """Looks at the beginnings of windows, in order: what was done before is carried from one to the next."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._calls = calls_of(session)
        self._at = 0
        self._made: dict[str, Call] = {}
        self._changed: dict[str, int] = {}
        self._log, self._listed = TodoLog(), 0
        self._lists = [
            (block.turn if block.role == "assistant" else session.stays[number].came, number, block)
            for number, block in enumerate(session.trace.blocks)
            if block.kind in ("tool_call", "tool_result") and tools.kind_of(block.tool_name or "") == tools.TODO
        ]

    def written(self, start: Beginning, end: int) -> list[tuple[int, Block]]:
        """What the agent wrote in the first calls of a window."""
        last = min(start.turn + LOOKED, end)
        return [
            pair for pair in blocks_in(self._session, start.turn, last) if pair[1].kind in ("assistant", "tool_call")
        ]

    def wrong(self, start: Beginning) -> _Wrong | None:
        """What was wrong with a window, and the blocks that show it."""
        asked = asked_in(self._session, start, min(start.turn + LOOKED, start.end))
        free = min((came for came, _ in asked), default=start.end)  # from here on the agent does what it is asked
        told = facts_of(self._session, start)
        before = self._list_before(start.turn) or told.todos
        return (
            self._repeats(start)
            or self._asks(start, told, free)
            or self._reminded(start, asked)
            or self._reopens(start, before, free)
            or self._strays(start, before, free)
        )

    def _asks(self, start: Beginning, told: SessionSummary, free: int) -> _Wrong | None:
        """The agent asks what it was doing, or for work although some was going on."""
        busy = self._interrupted(start) or bool(told.next_steps) or any(t.status != "done" for t in told.todos)
        answers = [pair for pair in self.written(start, free) if pair[1].kind == "assistant"]
        for number, block in answers[:SPOKEN]:
            text = _FENCE.sub("", block.text)
            if LOST.search(text) is not None:
                return ASKED, (number,)
            if busy and _IDLE.search(text) is not None:
                return "asked what to do although work was going on", (number,)
        return None

    def _interrupted(self, start: Beginning) -> bool:
        """Whether the window before ended with results that the agent had not answered."""
        return start.cut and any(
            block.kind == "tool_result" for _, block in blocks_in(self._session, start.turn, start.turn + 1)
        )

    def _reminded(self, start: Beginning, asked: Sequence[tuple[int, int]]) -> _Wrong | None:
        """The first thing that the user says in the new window is what the agent was at."""
        for came, number in asked[:1]:
            text = self._session.trace.blocks[number].text.strip()
            if came > start.turn and len(text) < _LONGEST and _REMINDED.search(text) is not None:
                return "went on with something else, and the user had to say what the task is", (number,)
        return None

    def _repeats(self, start: Beginning) -> _Wrong | None:
        """A change that was made before is made again, word for word: an edit that can't apply a second time, the same
        file written with the same content, a commit with nothing left to commit."""
        found: _Wrong | None = None
        last = min(start.turn + LOOKED, start.end)
        while self._at < len(self._calls) and self._calls[self._at].turn < last:
            call = self._calls[self._at]
            self._at += 1
            before = self._made.get(call.key)
            earlier = before is not None and before.turn < start.turn <= call.turn
            if found is None and before is not None and earlier and self._done_again(call, before):
                said = f"repeated what it had done in turn {self._session.turn_number(before.turn):,}: {call.shown}"
                found = said, (before.block, call.block)
            if not call.failed and call.result is not None and (call.changes or "git commit" in call.key):
                self._made[call.key] = call
                self._changed.update(dict.fromkeys(call.changes, call.block))
        return found

    def _done_again(self, call: Call, before: Call) -> bool:
        if call.does in (tools.EDIT, tools.EDITOR, tools.PATCH):
            return call.failed and not call.waits
        if call.does == tools.WRITE:
            same = all(self._changed.get(path) == before.block for path in call.changes)
            return bool(call.changes) and not call.failed and same
        return "git commit" in call.key and _NOTHING_LEFT.search(output(text_of(self._session, call))) is not None

    def _reopens(self, start: Beginning, before: Sequence[Todo], free: int) -> _Wrong | None:
        """An item of the to-do list that was done is not any more, and nobody asked for that."""
        done = {folded(todo.text) for todo in before if todo.status == "done"}
        every = {folded(todo.text) for todo in before}
        for number, items in self._lists_in(start, free):
            shared = sum(folded(item.text) in every for item in items)
            again = [item.text for item in items if item.status != "done" and folded(item.text) in done]
            if again and shared >= _SAME_LIST * len(items):
                return f"took up again what was done: {_short(again[0])}", (number,)
        return None

    def _strays(self, start: Beginning, before: Sequence[Todo], free: int) -> _Wrong | None:
        """A new list that shares no word with what was left to do."""
        if all(todo.status == "done" for todo in before):
            return None
        known = _content(" ".join(todo.text for todo in before))
        known |= _content(self._session.trace.blocks[start.block].text)
        for number, items in self._lists_in(start, free):
            # words of scripts without spaces can't be told apart
            readable = len(items) >= _OWN and all(item.text.isascii() for item in items)
            if readable and not any(_content(item.text) & known for item in items):
                return f"went on with something else: {_short(items[0].text)}", (number,)
        return None

    def _lists_in(self, start: Beginning, end: int) -> Iterator[tuple[int, Sequence[Todo]]]:
        for number, block in self.written(start, end):
            if block.kind == "tool_call" and tools.kind_of(block.tool_name or "") == tools.TODO:
                items = todo_list(tools.arguments(block) or {}, block.thread)
                if items:
                    yield number, items

    def _list_before(self, turn: int) -> tuple[Todo, ...]:
        """The agent's own list as it stood when the last window ended."""
        while self._listed < len(self._lists):
            at, number, block = self._lists[self._listed]
            if at > turn or (at == turn and block.kind == "tool_call"):
                break
            self._listed += 1
            if block.kind == "tool_call":
                self._log.call(block, number)
            else:
                self._log.result(block, block.is_error)
        return self._log.fold(())


def _content(text: str) -> set[str]:
    """Words that may say what a task is about."""
    return {word.lower() for word in words(text) if len(word) > 3}


def _short(text: str) -> str:
    text = folded(text)
    return text if len(text) <= 60 else text[:59].rstrip() + "…"

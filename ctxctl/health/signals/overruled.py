"""What the user told the agent to do otherwise, and where it did it again all the same.

Only what can be told by name counts: an identifier, a path or a program that the user names as the one not to use. To
take something out, to look for it or to talk about it is no use of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ctxctl.facts import tools
from ctxctl.facts.tools import arguments
from ctxctl.health.session import Session
from ctxctl.health.signals.calls import Call, calls_of
from ctxctl.model.block import Block
from ctxctl.trace.atoms import kind_of

LONGEST = 1_500
"""Characters of a prompt that corrects; a longer one is a task or a paste."""
_NAME = r"[`'\"]?([\w@][\w@./+-]{1,60})[`'\"]?"
_SAYS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:use|switch to|go with|let'?s use|take|prefer)\s+(?:\S+\s+){1,4}?(?:instead of|rather than|not)\s+"
        + _NAME,
        r"\b(?:do not|don'?t|never|stop|no longer)\s+(?:use|using|call|calling|import|importing|run|running)\s+"
        + _NAME,
        rf"用[^。\n]{{1,30}}(?:而不是|代替|不要用)\s*{_NAME}",
        rf"不要(?:再)?(?:使用|用|调用)\s*{_NAME}",
    )
)
_WHOLE = re.compile(
    r"\s*(?:$|[^\w\s-]|-\s"
    r"|(?:any ?more|again|here|please|at all|ever|anywhere|now|because|since|as|or|and|but|so|use|it)\b"
    r"|(?:in|for|on) (?:this|the|our|any) (?:project|repo|repository|codebase|code|session|task)\b)|\s*\n",
    re.IGNORECASE,
)
"""What may follow the name. With anything else one way of its use is meant: `git push`, `make without -j`, `npm
before the tests pass`."""
_NEW = ("new_string", "new_str", "newText", "new_text", "content", "file_text", "newString")
_OLD = ("old_string", "old_str", "oldText", "old_text", "oldString")
_TAKES_OUT = re.compile(r"\b(?:uninstall|remove|rm|purge|stop|kill|grep|rg|which|type|--version|-v)\b")
_WORDS = frozenset(("the", "that", "this", "it", "any", "a", "an", "my", "our", "your", "those", "these", "them"))
_MEMO = "health.overruled"
FEWEST = 3
"""Calls between the correction and the use: what was under way when it came is no relapse."""


@dataclass(frozen=True, slots=True)
class Overruled:
    """name: what should not be used. said: the sentence of the user. ban: the block that says so; again: that of the
    call that used it all the same; earlier: that of the agent's newest use before, where it is in the window now, else
    None; texts: a passage of each."""

    name: str
    said: str
    ban: int
    again: int
    text: str
    earlier: int | None = None
    earlier_text: str = ""


def banned(text: str) -> Iterator[tuple[str, str]]:
    """What a prompt says not to use, with the sentence."""
    if len(text) > LONGEST:
        return
    for pattern in _SAYS:
        for match in pattern.finditer(text):
            name = match[1].strip(".-")
            whole = match[1] != name or not match[0].isascii() or _WHOLE.match(text, match.end()) is not None
            if whole and len(name) > 1 and name.lower() not in _WORDS:
                start = max(text.rfind(mark, 0, match.start()) for mark in (". ", "\n", "! ", "? ")) + 1
                end = re.compile(r"[.!?](?=\s|$)|\n").search(text, match.end())
                yield name, " ".join(text[start : end.end() if end is not None else len(text)].split())


def overruled(session: Session) -> list[Overruled]:
    """Every such relapse, the first of each ban. Worked out once per session."""
    memo = session.trace.memo
    if _MEMO not in memo:
        memo[_MEMO] = list(_overruled(session))
    found: list[Overruled] = memo[_MEMO]
    return found


def _overruled(session: Session) -> Iterator[Overruled]:
    stays = session.stays
    prompts = [(n, b) for n, b in enumerate(session.trace.blocks) if b.kind == "user_message"]
    known: dict[str, _Named] = {}
    for number, block in prompts:
        for name, sentence in banned(block.text):
            if name not in known:
                known[name] = _named(session, name, prompts)
            of, came = known[name], stays[number].came
            later = bisect_right(of.prompts, number)
            allowed = of.allowed[later] if later < len(of.prompts) else len(session.trace.turns) + 1
            at = bisect_left(of.worked, came + FEWEST, key=_turn)
            if at == len(of.worked) or of.worked[at][0].turn >= allowed:
                continue
            call, text = of.worked[at]
            before = bisect_left(of.there, came, key=_turn)
            first, earlier = of.there[before - 1] if before else (None, "")
            yield Overruled(
                name, sentence, number, call.block, text, first.block if first is not None else None, earlier
            )


@dataclass(frozen=True, slots=True)
class _Named:
    """Where a name comes up. worked: calls that use it and did not fail, with a passage; there: those that are in the
    window now; prompts: numbers of the prompts that name it; allowed: of each, the first call that reads it or a later
    one: the user may have come back to it."""

    worked: Sequence[tuple[Call, str]]
    there: Sequence[tuple[Call, str]]
    prompts: Sequence[int]
    allowed: Sequence[int]


def _named(session: Session, name: str, prompts: Sequence[tuple[int, Block]]) -> _Named:
    blocks, stays = session.trace.blocks, session.stays
    uses = [(call, text) for call in calls_of(session) if (text := _uses(blocks[call.block], call, name)) is not None]
    word = _word(name)
    told = [n for n, block in prompts if name in block.text and word.search(block.text) is not None]
    came = accumulate((stays[n].came for n in reversed(told)), min)
    return _Named(
        [use for use in uses if not use[0].failed],
        [use for use in uses if stays[use[0].block].left is None],
        told,
        [*came][::-1],
    )


def _turn(use: tuple[Call, str]) -> int:
    return use[0].turn


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")


def _uses(block: Block, call: Call, name: str) -> str | None:
    """How a call uses a name: as the program of a command, or in text that an edit puts in; None where it does not."""
    plain = kind_of(name) not in ("identifier", "path")
    if call.does == tools.SHELL:
        if name in call.programs and _TAKES_OUT.search(call.shown) is None:
            return call.shown
        return None
    if plain or call.does not in (tools.EDIT, tools.WRITE, tools.EDITOR):
        return None
    if name not in block.text:
        return None
    given = arguments(block) or {}
    word = _word(name)
    for key in _NEW:
        new = given.get(key)
        if isinstance(new, str) and (match := word.search(new)) is not None:
            if any(isinstance(given.get(old), str) and word.search(str(given[old])) for old in _OLD):
                return None
            start, end = new.rfind("\n", 0, match.start()) + 1, new.find("\n", match.end())
            return new[start : end if end >= 0 else len(new)].strip()
    return None

"""Whole content where a part would have done (requirement O6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ctxctl.facts import tools
from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.bounded import costliest
from ctxctl.health.signals.calls import Call, content_of
from ctxctl.health.signals.loads import Load, loads_of, used_lines
from ctxctl.model.finding import Finding

SHARE = 0.15
"""Of the lines of a result, the most that may have been of use."""
AROUND = 3
"""Lines before and after a used one that were of use with it."""
FEWEST = 40
"""Lines of a result from which on a part of it can be asked for."""
NOTABLE = 0.05
"""Of the fullest request; sparing less is no more than a hint."""
_LISTS = frozenset(("ls", "find", "tree", "fd", "du"))
_LIMITS = ('"head_limit"', '"limit"', '"max_results"', '"count"', '"page_size"')
_FINDS = frozenset(("grep", "rg", "egrep", "fgrep", "ag"))
_CUTS = frozenset(("head", "tail", "sed", "awk", "jq", "cut", "wc"))


@DETECTORS.register("whole_content")
class WholeContent(Detector):
    """Signal: a large result (2,000 tokens) that at least 5 requests held, of which at most 15 % of the lines were of
    use: they, or one of 3 lines beside them, hold a path, identifier, number or line that a later turn wrote, or a word
    that the answers after it said and nobody had said before. Calls that asked for a part already are left out. Of a
    command's output that nothing at all was used of, only its end was of use; of what was looked up, `unused_load`
    speaks.
    """

    code = "whole_content"
    level = "warning"
    signal = "a large result of which later turns used at most 15 % of the lines"
    fix = "ask for metadata, matching lines, or a range: grep -n, Read with offset and limit, head, tail, a jq path"

    def find(self, session: Session) -> Iterator[Finding]:
        found = [part for load in loads_of(session) if (part := _used_part(session, load)) is not None]
        yield from costliest((part.spared, partial(self._told, session, part)) for part in found)

    def _told(self, session: Session, part: _Part) -> Finding:
        load, lines, count = part.load, part.lines, part.count
        call, turn = load.call, session.turn_number(load.call.turn)
        used = f"at most {len(lines):,} of its {count:,} lines show" if lines else f"none of its {count:,} lines shows"
        instead = _instead(session, call, part.near)
        block, peak = session.trace.blocks[call.block], session.analysis.peak
        quotes = [quote(block, turn, call.shown)]
        if lines and call.result is not None:
            texts = content_of(session, call).split("\n")
            shown = [line for line in lines if any(atom in texts[line] for atom in load.atoms)]
            quotes += [quote(session.trace.blocks[call.result], turn, texts[line]) for line in shown[:2]]
        small = peak is not None and part.spared < NOTABLE * peak.tokens
        return self.finding(
            f"`{call.shown}` returned {load.tokens:,} tokens; {used} up in later turns: {instead} would have done",
            turns=[turn],
            line=block.source.line,
            quotes=quotes,
            counts={"tokens": load.tokens, "lines": count, "used_lines": len(lines)},
            level="info" if small else None,
            hint=f"instead of the whole: {instead.rstrip(',')}",
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """What was of use of a load: lines (from 0) of count, near: with those around them; spared: tokens of the rest."""

    load: Load
    lines: list[int]
    near: set[int]
    count: int
    spared: float


def _used_part(session: Session, load: Load) -> _Part | None:
    """None unless only a small part of a load was of use."""
    call = load.call
    looked_up = call.kind == "read"
    if (looked_up and not load.used) or not (looked_up or call.does == tools.SHELL) or _partial(session, call):
        return None
    count = content_of(session, call).count("\n") + 1
    if count < FEWEST:
        return None
    lines = used_lines(session, load, int(SHARE * count))
    near = {at for line in lines for at in range(max(0, line - AROUND), min(count, line + AROUND + 1))}
    if len(near) > SHARE * count or (looked_up and not lines):
        return None
    return _Part(load, lines, near, count, load.tokens * (1 - len(near) / count))


def _partial(session: Session, call: Call) -> bool:
    """Whether a call asked for a part already."""
    asked = any(name in session.trace.blocks[call.block].text for name in _LIMITS) and call.does is None
    part = any(reading.part and not reading.part.startswith("nl") for reading in call.reads)
    return asked or part or any(program in _CUTS for program in call.programs)


def _instead(session: Session, call: Call, near: set[int]) -> str:
    """The narrower call, to be typed."""
    if call.does in (tools.READ, tools.EDITOR) and near:
        return f"grep -n, then {call.name} with offset and limit (lines {_ranges(near)})"
    text = content_of(session, call)[:1]
    if call.reads:
        if text in ("{", "["):
            return f"jq with a path into {call.reads[0].path}"
        return f"grep -n PATTERN {call.reads[0].path}, then sed -n 'FIRST,LASTp'"
    names = set(call.programs)
    if names & _LISTS:
        return "a list of one folder (ls DIR), or of names that match (find -name PATTERN),"
    if names & _FINDS or call.name.lower() in ("grep", "search"):
        return "the names of the files first (grep -l), or a narrower pattern or folder,"
    if call.does == tools.SHELL:
        return "less output (a quiet option, or | tail -n 30)"
    return "the matching passage, or fields by name,"


def _ranges(near: set[int], most: int = 3) -> str:
    """Ranges of lines, from 1: `20-27, 310-316`."""
    found: list[list[int]] = []
    for line in sorted(near):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    told = ", ".join(f"{first + 1}-{last + 1}" for first, last in found[:most])
    return f"{told}, ..." if len(found) > most else told

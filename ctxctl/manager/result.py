"""What compacting a file gave: everything that is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxctl.formats.base import FORMATS
from ctxctl.formats.draft import Normalised
from ctxctl.manager.session import CompactedSession, Goal
from ctxctl.model.edits import SUMMARY
from ctxctl.model.text import is_summary, stands_for_many
from ctxctl.model.transcript import Diagnostic
from ctxctl.trace.retention import Retention, retained, said


@dataclass(frozen=True, slots=True)
class Compaction:
    """One file.

    goal: as it was asked for; `done.goal` may be lower, by what the written file held beyond the plan. counts: what the
    sanitizer took out. rates: prices of a cache read and write as multiples of the input price. proved: tokens of the
    written file as it reads back, its overhead included. contract: outcomes of artifacts and validators. session_id: of
    the session that was written. declined: it would not pay back what it costs the cache. command:
    what to type to carry it out.
    """

    path: str
    done: CompactedSession
    goal: Goal
    counts: Mapping[str, int]
    helper: Any
    settings: Any
    rates: tuple[float, float] | None
    retention: Retention | None = None
    proved: int | None = None
    normalised: Normalised = field(default_factory=Normalised)
    notes: Sequence[Diagnostic] = ()
    output: str | None = None
    backup: str | None = None
    recall_id: str | None = None
    written: tuple[str, ...] = ()
    contract: Sequence[Any] = ()
    session_id: str | None = None
    declined: bool = False
    command: str = ""

    @property
    def met(self) -> bool:
        """Whether the target was met."""
        return self.done.compacted.met

    @property
    def after(self) -> int:
        """Tokens of the window after: as the written file reads back, else as planned, with what the file holds beyond
        the plan."""
        if self.proved is not None:
            return self.proved
        return self.done.compacted.after + self.goal.tokens - self.done.goal.tokens

    @property
    def broken(self) -> bool:
        """Whether the contract does not hold, so that nothing was written."""
        return any(not outcome.ok and outcome.required for outcome in self.contract)

    @property
    def changed(self) -> bool:
        """Whether anything was compacted or evicted."""
        return bool(self.done.outcome) and self.done.compacted.freed > 0 and not self.declined

    def pays(self, turns: int, red: float) -> bool:
        """Whether the cache is paid back within so many further calls. Above red nobody asks."""
        even = self.done.compacted.break_even(*self.rates) if self.rates is not None else None
        return even is None or even <= turns or self.done.compacted.before >= red * self.goal.size

    def measured(self) -> Compaction:
        """With what the window retained of what it held."""
        live, outcome = self.done.live.blocks, self.done.outcome
        left = [said(block) for n, block in live.items() if n in outcome.gone or n in outcome.changed]
        both = (said(live[n]) for n in outcome.live if n not in outcome.changed)
        new = [change.text for change in outcome.changed.values()]
        return replace(self, counts=dict(self.counts), retention=retained(left, new, both, named=False))

    def texts_after(self) -> list[str]:
        """Texts of the window after, in order."""
        blocks, outcome = self.done.live.blocks, self.done.outcome
        return [outcome.changed[n].text if n in outcome.changed else said(blocks[n]) for n in outcome.live]

    def kept_facts(self) -> dict[str, float | None]:
        """Share of the session's decisions and of its plan that the window after still holds, word for word."""
        after = "\n".join(self.texts_after())
        told = {
            "decisions": [d.what for d in self.done.facts.decisions],
            "todos": [t.text for t in self.done.facts.todos],
        }
        return {k: sum(t in after for t in texts) / len(texts) if texts else None for k, texts in told.items()}

    def expected(self, renamed: Mapping[tuple[int, int], str]) -> list[tuple[str, str, str | None]]:
        """Kind, text and call id of each block of the window after, in order: what the written file must read back
        as. renamed: ids that its writer made unique, by line of the block and index in it."""
        blocks, outcome = self.done.live.blocks, self.done.outcome
        found: list[tuple[str, str, str | None]] = []
        first: int | None = None
        for number in outcome.live:
            block, change = blocks[number], outcome.changed.get(number)
            call_id = renamed.get((block.source.line, block.source.index), block.call_id)
            if change is None:
                found.append((block.kind, block.text, call_id))
            else:
                if change.summary and first is None:
                    first = len(found)
                unnamed = block.kind == "tool_result" and block.role == "user" and stands_for_many(change.text)
                spoken = unnamed or (block.kind == "user_message" and is_summary(change.text))
                kind = SUMMARY if change.summary or spoken else block.kind
                found.append((kind, change.text, None if change.summary else call_id))
        if first is not None and FORMATS.get(self.done.live.transcript.format).summary_first:
            found.insert(0, found.pop(first))
        return found

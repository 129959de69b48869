"""What a detector is."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ctxctl.guard.sanitize import sanitize
from ctxctl.health.session import Session
from ctxctl.model.block import Block
from ctxctl.model.finding import Evidence, Finding, FindingLevel, Quote
from ctxctl.model.text import clean, shortened
from ctxctl.registry import Registry

QUOTED = 160
"""Characters of a quote."""


class Detector(ABC):
    """Finds one failure mode. code: its name, in JSON and for --fail-on. level: of its findings; `info` while its
    precision on real sessions is not known to be 0.8 or better. signal: what it looks for, in one sentence; fix: what
    to do, which every finding gives as its hint. Anything that is told must follow from what the session holds."""

    code: ClassVar[str]
    level: ClassVar[FindingLevel] = "info"
    signal: ClassVar[str]
    fix: ClassVar[str]

    def find(self, session: Session) -> Iterator[Finding]:
        """What is wrong within one session, in the order of turns."""
        yield from ()

    def note(self, session: Session) -> Any:
        """What `over` needs of a session: a small value, since sessions are let go; None for nothing."""
        return None

    def over(self, notes: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Finding]]:
        """What is wrong across sessions: the path of the session that shows it, and the finding. notes: path and note
        of each session that has one, in the order of the command line."""
        yield from ()

    def finding(
        self,
        message: str,
        *,
        turn: int | None = None,
        line: int | None = None,
        turns: Sequence[int] = (),
        quotes: Sequence[Quote] = (),
        counts: Mapping[str, float] | None = None,
        level: FindingLevel | None = None,
        hint: str | None = None,
    ) -> Finding:
        """A finding of this detector. turns: all that it is about; the first stands for it unless `turn` does."""
        at = turn if turn is not None else (turns[0] if turns else None)
        evidence = Evidence(tuple(turns), tuple(quotes), dict(counts or {}))
        return Finding(self.code, level or self.level, _plain(message), _plain(hint or self.fix), at, line, evidence)


DETECTORS: Registry[type[Detector]] = Registry("detector", "ctxctl.health.detectors", "ctxctl.detectors")


def _plain(text: str) -> str:
    """One line without credentials: calls and errors stand in it."""
    return " ".join(sanitize(clean(text)).text.split())


def quote(block: Block, turn: int, text: str | None = None) -> Quote:
    """A passage of a block, by default its beginning: one line, shortened, without credentials, since it goes into
    reports and logs of CI."""
    said = _plain(shortened(block.text if text is None else text, 4 * QUOTED))
    return Quote(turn, block.source.line, shortened(said, QUOTED))

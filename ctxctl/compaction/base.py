"""What every compaction strategy is: it returns edits, and changes and counts nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ctxctl.compaction.options import CompactionOptions
from ctxctl.model.edits import Edits
from ctxctl.model.summary import SessionSummary
from ctxctl.model.window import Window
from ctxctl.registry import Registry

STRATEGIES: Registry[type[Strategy]] = Registry("strategy", "ctxctl.compaction", "ctxctl.compaction")


class Writes(Protocol):
    """Whatever writes summaries by a model (`ctxctl.compaction.helper.Helper`)."""

    def write(self, task: str, goal: str, material: str, most: int) -> str | None:
        """A text of at most `most` tokens, shorter than the material; None when the extractive text is to be used.

        task: a strategy's name, which has a prompt. goal: what the session is about. material: all of what is
        replaced, however long.
        """


@dataclass(frozen=True, slots=True)
class Scene:
    """What a strategy is told.

    window: as it is now; to be read only. target: tokens that the window should hold at most, its overhead included.
    size: tokens of the model's window. count: tokens of a text of some kind. facts: what the session so far says of its
    task, for the typed summary. helper: a model, None without one. clean: the sanitizer, for texts that must fit a
    size. frame: tokens of a message's frame; framed: blocks that carry that of theirs. recall: how what is replaced can
    be brought back, as a command for people, empty when it can't. utilization: before the cascade began.
    """

    window: Window
    target: int
    size: int
    count: Callable[[str, str], int]
    facts: Callable[[], SessionSummary]
    options: CompactionOptions
    helper: Writes | None = None
    clean: Callable[[str], str] = str
    frame: int = 0
    framed: Container[int] = frozenset()
    recall: str = ""
    utilization: float = 0.0

    @property
    def over(self) -> int:
        """Tokens by which the window is above the target; 0 or less when it is met."""
        return self.window.tokens - self.target

    def measure(self, number: int, text: str, *, summary: bool = False) -> int:
        """Tokens of a text that stands for a block, the frame of a message included where it has one. summary: it
        becomes a message of its own."""
        framed = summary or number in self.framed
        kind = "summary" if summary else self.window.block(number).kind
        return self.count(text, kind) + (self.frame if framed else 0)

    def text(self, number: int) -> str:
        """A block's own text, whatever stands for it in the window."""
        return self.window.block(number).text


class Strategy:
    """Decides what is replaced, by what. One object serves one run or one live session.

    What it may touch: every resident unit but pinned ones (`window.fixed`) and those of `window.protected()`;
    a summary that stands in the window it may merge. A unit goes or stays as a whole; where a text is shortened the
    block keeps its call. The engine sanitises each text, applies the edits and counts.

    The first line of the docstring says what it is; `Model:` says what a model changes; `Fit:` when to use it.
    """

    name: ClassVar[str] = ""
    group: ClassVar[str] = "strategy"
    """`strategy`, or `control` (to hold others against)."""

    def plan(self, scene: Scene) -> Edits:
        """The edits that bring the window towards the target; empty when there is nothing to do."""
        raise NotImplementedError

"""What every compaction strategy is: it returns edits, and changes and counts nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ctxctl.compaction.clean import keyless
from ctxctl.compaction.options import CompactionOptions
from ctxctl.model.block import Block
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
    be brought back, as a command for people, empty when it can't. utilization: before the cascade began. keyless: what
    `told` returned.
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
    keyless: dict[int, Block] = field(default_factory=dict)

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

    def told(self, number: int) -> Block:
        """A block as parts of it may be told: without credentials that single lines would not show."""
        block = self.keyless.get(number)
        if block is None:
            block = self.keyless[number] = keyless(self.window.block(number), self.clean)
        return block


def own_target(names: Sequence[str], size: int) -> int | None:
    """The default target of a single strategy, None for several of them and where it has none."""
    return STRATEGIES.get(names[0]).default_target(size) if len(names) == 1 else None


class Strategy:
    """Decides what is replaced, by what. One object serves one run or one live session.

    What it may touch: every resident unit but pinned ones (`window.fixed`) and those of `window.protected()`;
    a summary that stands in the window it may merge. A unit goes or stays as a whole; where a text is shortened the
    block keeps its call. The engine sanitises each text, applies the edits and counts.

    The first line of the docstring says what it is; `Model:` says what a model changes; `Fit:` when to use it.
    """

    name: ClassVar[str] = ""
    group: ClassVar[str] = "strategy"
    """`strategy`, `control` (to hold others against), or `last resort`: it alone may shorten results that no call has
    answered yet, once nothing else helps."""

    @classmethod
    def default_target(cls, size: int) -> int | None:
        """Tokens above which it acts, down to as many, where no target is given and it runs alone; None where those are
        the ones of the settings. size: tokens of the model's window."""
        return None

    def plan(self, scene: Scene) -> Edits:
        """The edits that bring the window towards the target; empty when there is nothing to do."""
        raise NotImplementedError

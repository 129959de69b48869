"""What every eviction policy is: it decides, and changes and counts nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ctxctl.eviction.options import EvictionOptions
from ctxctl.model.edits import Edits, Replace
from ctxctl.model.text import MARK
from ctxctl.model.unit import Trace
from ctxctl.model.window import Window
from ctxctl.registry import Registry

POLICIES: Registry[type[Policy]] = Registry("policy", "ctxctl.eviction", "ctxctl.eviction")

CHARACTERS_PER_TOKEN = 4


def roughly(text: str, kind: str) -> int:
    """Tokens of a text where no counter is given."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a policy is told of its surroundings. window: tokens of the model's window; count: tokens of a text of some
    kind, for what a policy puts in; options: settings of the room; output: tokens reserved for an answer;
    model: its name, None where it is not known. mark: how the texts begin that stand for something longer. compaction:
    settings of the room above, which reads them itself, None for its defaults; helper: a model that writes summaries
    there."""

    window: int
    count: Callable[[str, str], int] = roughly
    options: EvictionOptions = field(default_factory=EvictionOptions)
    output: int = 8192
    model: str | None = None
    mark: str = MARK
    compaction: object | None = None
    helper: Any = None


@dataclass(frozen=True, slots=True)
class NoParameters:
    """A policy without parameters."""


class Policy:
    """Decides what leaves. A ranking policy scores units, and the engine evicts from the lowest score up when the
    window is too full; a rule says by itself when to act and what to change; some do both.

    The first line of the docstring says what it is; `Complexity:`, `Strength:`, `Weakness:` and `Fit:` follow.
    """

    name: ClassVar[str] = ""
    Parameters: ClassVar[type[Any]] = NoParameters
    group: ClassVar[str] = "policy"
    """`policy`, `ceiling` (sees the future or the recording) or `control` (to hold others against)."""
    ranks: ClassVar[bool] = True
    needs_recording: ClassVar[bool] = False
    """Whether it is of no use without a trace, which only `prepare` shows it."""
    at_each_add: ClassVar[bool] = False
    """Whether its rule runs whenever a block comes in, and not only before a call."""
    reason: ClassVar[str] = ""
    """Why a ranked unit goes, where that is not the policy's name."""
    limit: float | None = None
    """Tokens that its rule keeps the window within; None when it keeps to no number."""

    def __init__(self, setting: Setting, parameters: Any = None) -> None:
        self.setting = setting
        self.parameters = self.Parameters() if parameters is None else parameters

    def prepare(self, trace: Trace) -> None:
        """See the whole trace before it is replayed. Ceilings alone use it."""

    def follow(self, window: Window) -> None:
        """Told before each call. Ceilings keep their place in the future by it."""

    def score(self, window: Window, units: Sequence[int]) -> list[float]:
        """How much each unit is worth keeping; the lowest goes first."""
        return [0.0] * len(units)

    def ties(self, window: Window, units: Sequence[int]) -> list[int]:
        """Among equal scores the lowest of these goes first; by default the oldest."""
        entered = window.entered
        return [entered[u] for u in units]

    def parts(self, window: Window, unit: int) -> dict[str, float]:
        """What the score of a unit is made of (requirement E10)."""
        return {self.name: self.score(window, [unit])[0]}

    def merge(self, window: Window, protected: set[int]) -> Edits:
        """What can be made smaller without losing anything, before units are ranked. It may be asked without the answer
        being carried out: the next answer is the same then."""
        return Edits()

    def rule(self, window: Window) -> Edits:
        """What to change before a call whatever the level, by a rule of the policy's own."""
        return Edits()

    def record(self, window: Window, block: int) -> Replace | None:
        """How a block is cut down as it comes in, None when it stays as it is."""
        return None

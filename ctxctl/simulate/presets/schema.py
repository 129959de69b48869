"""What a preset says: when an agent's runtime acts, where it cuts, and what the old part becomes. Values only.

A preset is data: every number in it is a fact about the runtime, from the sources that it names. `assumptions` lists
what the sources do not say or a transcript does not show, where that could move the trigger, the boundary or a size;
`notes` what moves nothing: readings, names, and defaults that a user could set. Tokens, characters and bytes are whole
numbers; ratios are shares of the model's window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ctxctl.simulate.presets.amounts import Cut, Estimator, Files, Limit, Sizes
from ctxctl.simulate.presets.operations import (
    ClearBudget,
    ClearByRule,
    ClearOld,
    CompactTurns,
    DedupeReads,
    Drop,
    DropThinking,
    Extract,
    Truncate,
    TruncateInputs,
)

Size = Literal["low", "typ", "high"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When something happens.

    kind: `tokens` (at least `limit`, or more than it where `above`), `messages` or `events` (at least `count`, or
    more), `call` (before every call), `record` (when a block comes in), `exchange_end` (a new user message came: what
    was before it), `idle` (more than `minutes` since the last call), `overflow` (the request is longer than the
    window), `never`. min_messages: not with fewer. finished: what came before the current exchange alone is counted
    and touched. not_twice: not when nothing but a compaction has happened since. any_of: one of them is
    enough.
    """

    kind: Literal["tokens", "messages", "events", "call", "record", "exchange_end", "idle", "overflow", "never"]
    limit: Limit | None = None
    above: bool = False
    count: int = 0
    minutes: float = 0
    min_messages: int = 0
    finished: bool = False
    not_twice: bool = False
    any_of: tuple[Trigger, ...] = ()

    def __post_init__(self) -> None:
        if (self.kind == "tokens") != (self.limit is not None):
            raise ValueError("a trigger of kind tokens has a limit, no other has")
        if (self.kind in ("messages", "events")) != (self.count > 0):
            raise ValueError("a trigger of kind messages or events has a count, no other has")
        if (self.kind == "idle") != (self.minutes > 0):
            raise ValueError("a trigger of kind idle has minutes, no other has")


@dataclass(frozen=True, slots=True)
class Step:
    """One operation; exactly one is set. when: its own trigger, else the preset's."""

    when: Trigger | None = None
    clear_by_rule: ClearByRule | None = None
    clear_old: ClearOld | None = None
    clear_budget: ClearBudget | None = None
    truncate: Truncate | None = None
    truncate_inputs: TruncateInputs | None = None
    drop_thinking: DropThinking | None = None
    dedupe_reads: DedupeReads | None = None
    drop: Drop | None = None
    extract: Extract | None = None
    compact_turns: CompactTurns | None = None

    def __post_init__(self) -> None:
        if self.name == "":
            raise ValueError("a step has exactly one operation")

    @property
    def name(self) -> str:
        """Its operation; empty when there is none, or more than one."""
        named = [n for n in OPERATIONS if getattr(self, n) is not None]
        return named[0] if len(named) == 1 else ""


OPERATIONS = (
    "clear_by_rule",
    "clear_old",
    "clear_budget",
    "truncate",
    "truncate_inputs",
    "drop_thinking",
    "dedupe_reads",
    "drop",
    "extract",
    "compact_turns",
)


@dataclass(frozen=True, slots=True)
class Summary:
    """The old part becomes a summary that a model writes.

    declared: the most that the runtime lets it have, None where it says nothing. assumed: sizes to replay with. role:
    of its message. calls: that it takes. shares_prefix: whether the request for it goes on with the very
    conversation, under the same system prompt and tools, so that a cache can serve what was sent before. ack: a
    fixed answer behind it. split: sizes of a second summary when the cut lies within an exchange. latest_user: the
    last user message is put behind it, `text` or `any`. new_exchange_after: a prompt that has just come in is no
    part of it and stands behind it. tail_as_text: the kept part becomes text in the summary's message, results cut
    to so many characters and tail_suffix. carry_tool, carry_bytes: arguments of the newest call of a tool come
    along. reject_larger: one that is longer than what it stands for is refused, and from then on only the steps
    run. again_above: the result is summarised once more while it is above the trigger, at most so many times.
    files: that come in again behind it. hard_reset: when the window is full and there is no part to cut, everything
    is summarised.
    """

    cut: Cut
    assumed: Sizes
    declared: int | None = None
    role: Literal["system", "user", "assistant"] = "user"
    calls: int = 1
    shares_prefix: bool = False
    ack: str | None = None
    split: Sizes | None = None
    latest_user: Literal["", "any", "text"] = ""
    new_exchange_after: bool = False
    tail_as_text: int | None = None
    tail_suffix: str = ""
    carry_tool: str = ""
    carry_bytes: int = 0
    reject_larger: bool = False
    again_above: int = 0
    files: Files | None = None
    hard_reset: bool = False


Pair = Literal[
    "none",
    "content_only",
    "walk_back_to_call",
    "snap_forward_user",
    "snap_back_user",
    "snap_forward_assistant",
    "snap_forward_non_observation",
    "never_cut_at_result",
    "atomic_units",
    "repair_after",
    "removed_range_ends_on_assistant",
    "head_ends_with_assistant",
    "cut_at_assistant",
    "drop_all_non_user",
    "drop_everything_before_boundary",
]


@dataclass(frozen=True, slots=True)
class Preset:
    """What one runtime does to its context window.

    class_ (`class` in the file): `deterministic`, or `summary` where a model writes what stays. confidence: `source`
    (read in its source), `docs`, `reported` (by third parties). date: when it was read. unit: what boundaries count.
    results: whether each tool result is a message of its own, or one user message holds those of a response. system:
    whether the system prompt is one of the messages. persist: false where a copy of the request is edited, so that the
    trigger goes on counting the original. default_on: false where it has to be switched on. missing_result: what stands
    for a result that was lost. assumptions: what could move the trigger, the boundary or a size and is not known for
    sure; notes: what moves nothing. unsupported: why it can't be replayed.
    """

    id: str
    runtime: str
    class_: Literal["deterministic", "summary"]
    confidence: Literal["source", "docs", "reported"]
    sources: tuple[str, ...]
    date: str
    about: str
    trigger: Trigger | None = None
    pair: Pair = "content_only"
    unit: Literal["message", "item", "event"] = "message"
    results: Literal["own", "joined"] = "own"
    system: bool = True
    estimator: Estimator = field(default_factory=Estimator)
    steps: tuple[Step, ...] = ()
    summary: Summary | None = None
    persist: bool = True
    default_on: bool = True
    missing_result: str | None = None
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unsupported: str | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise ValueError(f"{self.id}: a preset names its sources")
        if self.unsupported is not None:
            return
        if self.trigger is None:
            raise ValueError(f"{self.id}: a preset has a trigger or says why it is unsupported")
        if not self.steps and self.summary is None:
            raise ValueError(f"{self.id}: a preset does something or says why it is unsupported")
        if (self.summary is not None) != (self.class_ == "summary"):
            raise ValueError(f"{self.id}: a summary makes the class summary, and nothing else does")

    @property
    def exact(self) -> bool:
        """Whether the replay does what the runtime would have done, as far as the sources and a transcript tell."""
        return self.replay == "exact"

    @property
    def replay(self) -> Literal["exact", "assumed", "sized", "unsupported"]:
        """How far the replay can be trusted: exact; by the runtime's rules with an assumption in them; with summaries
        whose size is assumed; or not replayed at all."""
        if self.unsupported is not None:
            return "unsupported"
        if self.class_ == "summary":
            return "sized"
        return "assumed" if self.assumptions else "exact"

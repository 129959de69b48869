"""What a preset can do to the window, one value per operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxctl.simulate.presets.amounts import Cut, Limit

Measure = Literal["characters", "bytes", "tokens"]


@dataclass(frozen=True, slots=True)
class ClearByRule:
    """Results become a placeholder by rules (octos). stale_after: user messages since; larger_than: bytes;
    superseded: the same part of the same file was read again.
    between: rules that also run within an exchange. pin_files: newest reads of so many files touched last stay."""

    stale_after: int | None = None
    larger_than: int | None = None
    superseded: bool = False
    between: tuple[Literal["stale", "oversized", "superseded"], ...] = ("stale", "oversized", "superseded")
    pin_files: int = 0
    read_tools: tuple[str, ...] = ()
    write_tools: tuple[str, ...] = ()
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ClearOld:
    """All but the newest `keep_last` results (and the first `keep_first`) become a placeholder. keep_events: instead,
    those within the newest so many events. polling: the newest count is held to steps of so many. min_saving: tokens.
    tokens: of the placeholder where its text is not known."""

    keep_last: int = 0
    keep_first: int = 0
    keep_events: int | None = None
    polling: int = 1
    tools: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    min_saving: int = 0
    placeholder: str | None = None
    tokens: int = 8


@dataclass(frozen=True, slots=True)
class ClearBudget:
    """From the newest back, `protect` tokens of results stay; the one that crosses and all older go, if that frees
    `minimum` tokens (more: above it). skip_messages, skip_exchanges: newest that are not looked at. preview: what stays
    is the head and tail, of `preview_lines` lines for shells and `preview_characters` characters otherwise."""

    protect: int
    minimum: int
    more: bool = False
    skip_messages: int = 0
    skip_exchanges: int = 0
    exempt: tuple[str, ...] = ()
    stop_at_cleared: bool = False
    placeholder: str = ""
    preview_lines: int = 0
    preview_characters: int = 0
    shells: tuple[str, ...] = ()
    if_smaller: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Results longer than `limit` (at: or as long) keep `head` and `tail` of their measure, with `marker` between them.

    head_lines, tail_lines: lines instead. max_lines: also a limit; whole lines then stay, `from_end` tools' last ones.
    select: `all`, `before_user` (older than the last user message), `budget` (from the newest back, those after
    `budget` tokens of results). marker, header, suffix: with {n} left out, {total} tokens, {lines} of the original.
    """

    limit: int
    measure: Measure = "characters"
    at: bool = False
    head: int = 0
    tail: int = 0
    head_lines: int = 0
    tail_lines: int = 0
    max_lines: int | None = None
    tools: tuple[str, ...] = ()
    from_end: tuple[str, ...] = ()
    select: Literal["all", "before_user", "budget"] = "all"
    budget: int = 0
    header: str = ""
    marker: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class TruncateInputs:
    """Arguments of calls longer than `longer_than` characters are cut to `head`; those in the newest `keep` stay."""

    longer_than: int
    head: int
    suffix: str
    keep: Limit


@dataclass(frozen=True, slots=True)
class DropThinking:
    """Reasoning leaves, but for that of the newest `keep_turns` assistant messages that have some."""

    keep_turns: int = 1


@dataclass(frozen=True, slots=True)
class DedupeReads:
    """All but the newest read of a file become a notice. enough: share of characters saved that makes the next step
    needless."""

    read_tools: tuple[str, ...]
    notice: str
    enough: float


@dataclass(frozen=True, slots=True)
class Drop:
    """The old part leaves; notice: a user message in its place, {n} messages left. repeat: until the window fits."""

    cut: Cut
    notice: str | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Extract:
    """The old part becomes first lines, without a model (octos). budget: tokens of the whole prompt; the extract may
    have what is left of it, or `budget` itself where `own`. stop: share of its budget at which it ends. whole: it is
    taken from the whole prompt, and the old part leaves. merged: it becomes part of the system prompt.
    min_keep: messages that stay when the tail alone is too long and the oldest of it leave."""

    cut: Cut
    budget: Limit
    own: bool = False
    stop: float = 0.4
    whole: bool = False
    prefix: str = ""
    merged: bool = False
    min_keep: int = 2


@dataclass(frozen=True, slots=True)
class CompactTurns:
    """What users typed stays; of the latest exchange the newest messages that fit `target`, of older ones the last
    answer if it still fits, the newest first (Cline). What left becomes a notice behind its prompt: files, commands
    (cut to `command` characters) and the last `answers` texts. long_target: from `long_pairs` pairs of a user's and an
    assistant's message on."""

    target: Limit
    long_target: Limit
    long_pairs: int
    answers: int
    command: int
    read_tools: tuple[str, ...]
    edit_tools: tuple[str, ...]
    shells: tuple[str, ...]

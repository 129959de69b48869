"""Numbers of a preset: limits, estimators, boundaries, sizes.

Tokens, characters and bytes are whole numbers; ratios are shares of the model's window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of tokens, told from the window and the answer reserve.

    base: `tokens`, or `ratio` of the window, over `divide`; less `minus`, and less the reserve (the model's longest
    answer, at most `reserve_most` and at least `reserve_least`) where `reserve` is set. Then within `at_least` and
    `at_most`. Instead: the smallest of `lowest`, the largest of `highest`; `windows` has the value for windows of
    exactly that size, `beyond` for windows above `beyond_window`, `of_model` for models with `model` in their names.
    whole: rounded down by the runtime itself.
    """

    tokens: int | None = None
    ratio: float | None = None
    divide: float = 1.0
    minus: int = 0
    reserve: bool = False
    reserve_most: int | None = None
    reserve_least: int | None = None
    at_least: int | None = None
    at_most: int | None = None
    lowest: tuple[Limit, ...] = ()
    highest: tuple[Limit, ...] = ()
    windows: dict[int, int] = field(default_factory=dict)
    beyond_window: int | None = None
    beyond: Limit | None = None
    model: str = ""
    of_model: Limit | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Estimator:
    """How the runtime tells the length of a prompt.

    kind: `window` (a tokenizer: the tokens of the replay's own window), `last_usage` (input and output of the last
    call), `last_prompt` (its input), `usage_and_rest` (the last usage, and an estimate of what came since), or
    `estimate` (all by estimate). An estimate is `measure` / `per`, rounded per message (per item where the preset's
    unit is one); per_anthropic: `per` for Anthropic's models; non_ascii: tokens of a character beyond ASCII
    instead; long_from: texts above so many characters are characters / `per` throughout; json: of the message as
    JSON; apart: each text of a message by itself (content, a call's name, its arguments), its ASCII and other
    characters each rounded down, at least 1, reasoning not counted (octos). per_message: added to each; image:
    tokens of a picture. messages_only: system prompt and tools are not counted. margin: factor on the sum; scaled:
    the estimate is scaled by last usage / estimate of what that covered.
    """

    kind: Literal["window", "last_usage", "last_prompt", "usage_and_rest", "estimate"] = "window"
    measure: Literal["characters", "bytes"] = "characters"
    per: float = 4.0
    per_anthropic: float | None = None
    round: Literal["up", "down", "nearest", "none"] = "none"
    non_ascii: float | None = None
    long_from: int | None = None
    json: bool = False
    apart: bool = False
    per_message: int = 0
    image: int | None = None
    document: int | None = None
    margin: float = 1.0
    scaled: bool = False
    messages_only: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """Which part is old; the newest part stays, counted in units of the preset (messages, items, events).

    kind: `everything`; `newest` (`count` units stay); `tokens` (the newest that fit `limit`, or, with reach, until they
    reach it; at least `count`); `blocks` (until they have `limit` tokens and `count` texts, at most `most` tokens);
    `characters` (`share` of the JSON stays); `share` (`share` of the units stays); `half` (octos: `count` - 1 units
    stay, and more while they are within half of `limit`); `middle` (Cline: half of the rest goes, in pairs, or three
    quarters); `front` (the older `share` goes, an even number); `essential` (OpenHands: system, first user message and
    the newer half of the rest stay); `progressive` (Letta: the older `share` goes, then `step` more, until `limit` is
    met); `chat` (aider: less than half of `limit` stays, nothing when `count` or fewer would be summarised); `users`
    (Codex: user messages, newest first, within `limit`; with reach the one that crosses loses its middle).
    head: units in front that stay, system messages among them; head_prompt: up to the first user message. system:
    false where system messages are counted like others. fits_half: above this limit, what stays is within half of it
    (OpenHands). latest_exchange: it stays whole. minimum_share: to cut less than this share of the units is no cut.
    """

    kind: Literal[
        "everything",
        "newest",
        "tokens",
        "blocks",
        "characters",
        "share",
        "half",
        "middle",
        "front",
        "essential",
        "progressive",
        "chat",
        "users",
    ]
    count: int = 0
    head: int = 0
    limit: Limit | None = None
    most: int | None = None
    reach: bool = False
    share: float = 0.0
    step: float = 0.0
    system: bool = True
    fits_half: Limit | None = None
    minimum_share: float = 0.0
    latest_exchange: bool = False
    head_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens that something which a model writes is taken to have: to be swept, not facts."""

    low: int
    typ: int
    high: int


@dataclass(frozen=True, slots=True)
class Files:
    """Files that come in again beside a summary: the newest reads of so many, each and together cut to tokens."""

    most: int
    each: int
    total: int
    read_tools: tuple[str, ...]

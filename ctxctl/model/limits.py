"""What is known of a model: its window, its prices and its image rule, looked up by any name a transcript gives it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LONG = re.compile(r"\[1m\]$|(?<![a-z])(?P<claude>claude[a-z0-9.-]*)[-:]1m$")  # Claude Code writes [1m], Copilot -1m

IMAGE_RULES = (
    "anthropic",
    "anthropic-high",
    "openai-tile",
    "openai-tile-5",
    "openai-patch",
    "openai-patch-mini",
    "openai-patch-nano",
    "openai-patch-o4-mini",
    "gemini",
    "gemini-3",
)
"""How a model counts images; `ctxctl.tokens.image_tokens` knows each of them."""


DEFAULT_WINDOW = 128_000
"""Tokens of a window of which nothing is known, where a figure is needed all the same: a live loop, a plan, a
simulation. What analyzes a recorded session leaves such a window unknown."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model. Tokens are whole numbers, prices USD per million tokens; None: the source does not say.

    window: tokens that a request may hold by default (the prompt alone, where the maker reserves the answer apart:
    OpenAI from GPT-5 on). long_window: the larger window that some sessions ran with (a beta header, a [1m] suffix, a
    plan); None where there is only one. output: most tokens of one answer.

    long_input_price, long_output_price: what a request costs as a whole once its prompt is longer than long_from
    tokens; None where one price holds for every length. Cache prices rise there by the same factor as the input price.
    Where a maker has more than two steps these are the second. cache_write_price: entries kept 5 minutes,
    cache_write_1h_price: kept an hour; None where storing costs no more than reading anew.

    image_rule: one of IMAGE_RULES, by which `ctxctl.tokens` counts images. date: day of the figures (ISO).
    """

    id: str
    window: int | None = None
    long_window: int | None = None
    output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    cache_write_1h_price: float | None = None
    long_input_price: float | None = None
    long_output_price: float | None = None
    image_rule: str | None = None
    date: str | None = None
    long_from: int | None = None


_REGION = r"(?:(?:us-gov|us|eu|apac|jp|au|ca|in|sa|me|global)\.)?"
_MAKERS = "anthropic|amazon|meta|mistral|deepseek|openai|qwen|google|cohere|minimax|moonshotai|moonshot|zai|nvidia|xai"
_PREFIXES = (
    re.compile(r"^.*/"),  # openrouter/google/, models/, accounts/fireworks/models/, an ARN up to its last slash
    re.compile(r"^[a-z][a-z0-9_.-]*:(?=[a-z~])"),  # pydantic-ai writes anthropic:claude-..., google-gla:gemini-...
    re.compile(rf"^{_REGION}(?:{_MAKERS})\."),  # Bedrock: us.anthropic.claude-...
    re.compile(r"^(?:openrouter|databricks|bedrock|vertex|azure|anthropic)--?(?=[a-z])"),
)
_SUFFIXES = (
    re.compile(r":(?:free|beta|nitro|floor|online|exacto|thinking)$"),  # not :batch and :extended, which cost otherwise
    re.compile(r"@(?:20\d{6}|default|latest|00\d)$"),  # Vertex
    re.compile(r"-v\d+:\d+(?::\d+k)?$"),  # Bedrock
    re.compile(r"-v1$"),
    re.compile(r"-20\d{6}$|-20\d\d-[01]\d-[0-3]\d$"),
    re.compile(r"(?<!-20\d\d)-[01]\d-[0-3]\d$"),  # gemini-2.5-pro-preview-05-06
    re.compile(r"-00\d$"),  # gemini-1.5-pro-002
    re.compile(r"-latest$"),
    re.compile(r"-(?:thinking|non-reasoning|reasoning)$"),
)
# Only these makers' ids carry the effort as a suffix; elsewhere -medium and -max are models of their own.
_EFFORT = re.compile(r"^((?:claude|gpt|codex|gemini|grok|o\d).*?)[-:](?:none|minimal|low|medium|high|xhigh|max)$")
_CLAUDE_FAMILY_LAST = re.compile(r"^claude-(\d(?:[.-]\d)?)-(opus|sonnet|haiku|fable|mythos)(?![a-z])(.*)$")
_CLAUDE_FAMILY_FIRST = re.compile(r"^claude-(opus|sonnet|haiku)-(3(?:[.-][57])?)(?![0-9])(.*)$")
_LONGEST = 300  # an ARN has 150; whatever is longer is no name, and cutting it up takes quadratic time
_DOT = re.compile(r"(?<=\d)\.(?=\d)")
_DASH = re.compile(r"(?<=\d)-(?=\d(?!\d))")  # a version has single digits; a date does not


def names_long_window(model: str) -> bool:
    """True if the name itself asks for the long window (`claude-opus-4-6[1m]`).

    A bare name says nothing: Claude Code strips the mark before it writes most records.
    """
    return LONG.search(model.strip().lower()) is not None


def candidates(model: str) -> list[str]:
    """Ids to try for a name, the most literal first: the name in lower case, then with less and less decoration.

    Decoration is a provider prefix, a date, a version of the hosting service, a tag after a colon, an effort, and dots
    or dashes between version numbers. Nothing that names another model is cut off (`gpt-4-turbo` never yields
    `gpt-4`), so an id is right when it is in the table exactly. Empty for a blank name and for `<synthetic>`.
    """
    name = model.strip().lower()
    if not name or name.startswith("<"):
        return []
    if name.startswith("ft:") or "/ft:" in name or len(name) > _LONGEST:  # a fine-tuned model has its own price
        return [name]
    found: dict[str, None] = {name: None}
    queue = [name]
    for form in queue:
        for shorter in _shorten(form):
            if shorter and shorter not in found:
                found[shorter] = None
                queue.append(shorter)
    spelled: dict[str, None] = {}
    for form in queue:
        for spelling in (form, *spellings(form)):
            spelled.setdefault(spelling)
    return list(spelled)


def _shorten(form: str) -> Iterator[str]:
    """The form with one decoration less, once for each decoration that it has."""
    for pattern in _PREFIXES:
        yield pattern.sub("", form, count=1)
    yield LONG.sub(lambda match: match["claude"] or "", form, count=1)
    for pattern in _SUFFIXES:
        yield pattern.sub("", form, count=1)
    if effort := _EFFORT.match(form):
        yield effort[1]


def spellings(form: str) -> Iterator[str]:
    """An id as other tools write it: dots for dashes in versions, Claude's family before or after its version."""
    yield _DOT.sub("-", form)
    yield _DASH.sub(".", form)
    if last := _CLAUDE_FAMILY_LAST.match(form):
        yield f"claude-{last[2]}-{_DOT.sub('-', last[1])}{last[3]}"
    if first := _CLAUDE_FAMILY_FIRST.match(form):
        yield f"claude-{_DOT.sub('-', first[2])}-{first[1]}{first[3]}"


class ModelTable:
    """Rows by model id, found by any decorated name. Immutable; `ctxctl.settings.models` reads and merges them."""

    def __init__(self, rows: Mapping[str, ModelRow], aliases: Mapping[str, str] | None = None) -> None:
        """rows: by id, in lower case. aliases: other name -> id of a row.

        Raises ValueError when an alias names no row or is itself the id of one.
        """
        self._rows = dict(rows)
        self._aliases = dict(aliases or {})
        for alias, target in self._aliases.items():
            if target not in self._rows:
                raise ValueError(f"alias {alias!r} names no model: {target!r}")
            if alias in self._rows:
                raise ValueError(f"alias {alias!r} is also a model")

    @property
    def date(self) -> str | None:
        """Day of the newest row (ISO), None for a table without dates."""
        return max((row.date for row in self._rows.values() if row.date), default=None)

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other name -> id, a copy."""
        return dict(self._aliases)

    def rows(self) -> tuple[ModelRow, ...]:
        """All rows in the order of their ids."""
        return tuple(self._rows[key] for key in sorted(self._rows))

    def find(self, model: str | None) -> ModelRow | None:
        """The row of a name, or None: an unknown model is never guessed from a similar one."""
        for name in candidates(model) if model else ():
            row = self._rows.get(self._aliases.get(name, name))
            if row is not None:
                return row
        return None

    def suggest(self, model: str) -> list[str]:
        """At most three known ids that look like the name, the likeliest first (for a did-you-mean)."""
        import difflib

        known = [*self._rows, *self._aliases]
        scores: dict[str, float] = {}
        for name in candidates(model):
            for match in difflib.get_close_matches(name, known, n=3, cutoff=0.6):
                score = difflib.SequenceMatcher(None, name, match).ratio()
                target = self._aliases.get(match, match)
                scores[target] = max(score, scores.get(target, 0.0))
        return sorted(scores, key=lambda key: (-scores[key], key))[:3]

"""Each runtime's own estimate of how long a prompt is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor

from ctxctl.model.window import Window
from ctxctl.simulate.presets.amounts import Estimator
from ctxctl.simulate.presets.items import Item
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.schema import Preset

MOST_SCALE = 1.25
"""langchain-core `count_tokens_approximately` keeps its factor within 1 and this."""
ANTHROPIC = "claude"
"""What the names of Anthropic's models have in common."""
_WHOLE: dict[str, Callable[[float], float]] = {
    "up": ceil,
    "down": floor,
    "nearest": lambda value: floor(value + 0.5),
    "none": float,
}


def measure_of(estimator: Estimator, model: str | None = None) -> Callable[[str, str, int], float]:
    """(text, kind, tokens in the window) -> size of a block, not yet rounded. model: its name, None when unknown."""
    anthropic = estimator.per_anthropic is not None and ANTHROPIC in (model or "").lower()
    per = estimator.per_anthropic if anthropic and estimator.per_anthropic is not None else estimator.per
    if estimator.kind == "window":
        return lambda text, kind, tokens: float(tokens)

    def size(text: str, kind: str, tokens: int) -> float:
        if kind in ("image", "document") and not text:
            told = estimator.image if kind == "image" else estimator.document
            return float(tokens if told is None else told)
        if estimator.apart:
            return _apart(text, kind)
        if estimator.json:
            return len(json.dumps(text, ensure_ascii=False)) / per
        if estimator.measure == "bytes":
            return (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) / per
        if estimator.long_from is not None and len(text) > estimator.long_from:
            return len(text) / per
        if estimator.non_ascii is None or text.isascii():
            return len(text) / per
        ascii_ = sum(c < "\x80" for c in text)
        return ascii_ / per + (len(text) - ascii_) * estimator.non_ascii

    return size


def rough_tokens(text: str) -> int:
    """octos: a quarter of the ASCII characters and two thirds of the others, each rounded down; at least 1."""
    if text.isascii():
        return max(1, len(text) // 4)
    ascii_ = sum(c < "\x80" for c in text)
    return max(1, ascii_ // 4 + (len(text) - ascii_) * 2 // 3)


def _apart(text: str, kind: str) -> float:
    """What a block adds to a message of octos: media and reasoning nothing."""
    if kind in ("image", "document", "thinking"):
        return 0.0
    if kind != "tool_call":
        return float(rough_tokens(text))
    name, _, told = text.partition(" ")
    return float(rough_tokens(name) + rough_tokens(told))


class Estimate:
    """Lengths of groups and prompts, as the preset's runtime tells them."""

    def __init__(self, preset: Preset, model: str | None = None) -> None:
        self.preset = preset
        self._estimator = preset.estimator
        self._round = _WHOLE[preset.estimator.round]
        self.measure = measure_of(preset.estimator, model)

    def item(self, item: Item) -> float:
        """A message of one block."""
        return self._round(item.size) + self._estimator.per_message

    def items(self, items: Iterable[Item]) -> float:
        """One message of these items."""
        if self._estimator.apart:
            items = list(items)
            silent = all(i.kind in ("tool_call", "thinking", "image", "document") for i in items)
            return sum(i.size for i in items) + (silent and bool(items)) + self._estimator.per_message
        return self._round(sum(i.size for i in items)) + self._estimator.per_message

    def group(self, group: Group) -> float:
        """One message."""
        if group.size is None:
            group.size = self.items(group.items)
        return group.size

    def text(self, text: str) -> float:
        """One message of a text."""
        return self._round(self.measure(text, "user_message", 0)) + self._estimator.per_message

    def groups(self, groups: Iterable[Group]) -> float:
        """Several messages."""
        return sum(self.group(g) if g.size is None else g.size for g in groups)

    def prompt(self, window: Window, groups: Sequence[Group], apart: Sequence[Item]) -> float:
        """The length of the next request. apart: what is in no group and sent all the same."""
        kind = self._estimator.kind
        if kind == "last_usage":
            return window.prompt + window.output
        if kind == "last_prompt":
            return window.prompt
        if kind == "usage_and_rest" and window.prompt:
            return window.prompt + window.output + self._fresh(window, groups)
        total = self.groups(groups)
        if not self._estimator.messages_only:
            total += window.overhead + sum(i.size for i in apart)
        if self._estimator.scaled and window.prompt and (covered := total - self._fresh(window, groups)):
            total *= min(MOST_SCALE, max(1.0, (window.prompt + window.output) / covered))
        return total * self._estimator.margin

    def _fresh(self, window: Window, groups: Sequence[Group]) -> float:
        """What came in since the last call, but for its answer."""
        found = 0.0
        for group in reversed(groups):
            if group.side == "assistant":
                continue
            if not group.items or group.items[-1].turn < window.turn:
                break
            found += self.group(group)
        return found

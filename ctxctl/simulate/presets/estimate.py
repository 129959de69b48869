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
_WHOLE: dict[str, Callable[[float], float]] = {
    "up": ceil,
    "down": floor,
    "nearest": lambda value: floor(value + 0.5),
    "none": float,
}


def measure_of(estimator: Estimator) -> Callable[[str, str, int], float]:
    """(text, kind, tokens in the window) -> size of a block, not yet rounded."""
    if estimator.kind == "window":
        return lambda text, kind, tokens: float(tokens)

    def size(text: str, kind: str, tokens: int) -> float:
        if kind in ("image", "document") and not text:
            told = estimator.image if kind == "image" else estimator.document
            return float(tokens if told is None else told)
        if estimator.json:
            return len(json.dumps(text, ensure_ascii=False)) / estimator.per
        if estimator.measure == "bytes":
            return (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) / estimator.per
        if estimator.long_from is not None and len(text) > estimator.long_from:
            return len(text) / estimator.per
        if estimator.non_ascii is None or text.isascii():
            return len(text) / estimator.per
        ascii_ = sum(c < "\x80" for c in text)
        return ascii_ / estimator.per + (len(text) - ascii_) * estimator.non_ascii

    return size


class Estimate:
    """Lengths of groups and prompts, as the preset's runtime tells them."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._estimator = preset.estimator
        self._round = _WHOLE[preset.estimator.round]
        self.measure = measure_of(preset.estimator)

    def item(self, item: Item) -> float:
        """A message of one block."""
        return self._round(item.size) + self._estimator.per_message

    def items(self, items: Iterable[Item]) -> float:
        """One message of these items."""
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
        total = window.overhead + self.groups(groups) + sum(i.size for i in apart)
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

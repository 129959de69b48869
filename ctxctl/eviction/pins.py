"""What never leaves the window: pins by rule, by tag, and by what a block is (requirement E8)."""

from __future__ import annotations

import re
from collections.abc import Callable

from ctxctl.eviction.options import EvictionOptions, Rule
from ctxctl.facts.pins import KINDS as TAGGED
from ctxctl.facts.pins import OPEN, spans
from ctxctl.facts.resumed import given
from ctxctl.model.block import Block

MEDIA = ("image", "document")
ALWAYS = ("system", "tool_definitions")


class Matcher:
    """A rule that was made ready to be asked."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._path = re.compile(rule.path) if rule.path is not None else None
        self._regex = re.compile(rule.regex) if rule.regex is not None else None

    def fits(self, block: Block) -> bool:
        """Whether all conditions hold for a block."""
        rule = self._rule
        return (
            (rule.kind is None or rule.kind == block.kind)
            and (rule.role is None or rule.role == block.role)
            and (rule.tool is None or rule.tool == block.tool_name)
            and (rule.block is None or rule.block in (block.id, block.call_id))
            and (self._path is None or (block.target is not None and self._path.search(block.target) is not None))
            and (self._regex is None or self._regex.search(block.text) is not None)
        )


def pins_of(options: EvictionOptions) -> Callable[[Block], str | None]:
    """Why a block is pinned, None when it is not: asked for each block as it arrives."""
    kinds = {kind: kind for kind in (*ALWAYS, *options.protected_types)}
    matchers = [Matcher(rule) for rule in options.pin]
    task: list[str] = []

    def reason(block: Block) -> str | None:
        if block.kind in kinds:
            return block.kind
        message = f"{block.thread} {block.message}"
        if options.pin_task and task[:1] in ([], [message]) and _states_task(block):
            task[:] = [message]
            return "task"
        if task and block.kind in MEDIA and block.call_id is None and task[0] == message:
            return "task"  # a picture or document that came with it
        if block.pinned:
            return "pinned"
        if block.kind in TAGGED and OPEN in block.text and spans(block.text)[0]:
            return "preserve"
        for matcher in matchers:
            if matcher.fits(block):
                return "rule"
        return None

    return reason


def _states_task(block: Block) -> bool:
    """Whether a block may state the task, if it is the first that does: what a user typed, or a resume prompt, which
    tells the task of the windows before."""
    if block.kind == "user_message" and block.exchange >= 1 and block.text.strip():
        return True
    return given(block) is not None

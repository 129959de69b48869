"""The provider's own clearing of tool results, as a request block for the same settings (requirement C14, second tier).

Anthropic context editing, `clear_tool_uses_20250919` (docs.claude.com, context editing; fields as in
anthropic-sdk-python types/beta/beta_clear_tool_uses_20250919_edit_param.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.options import EvictionOptions, Rule

EDIT = "clear_tool_uses_20250919"
KEEP = 3
"""Newest tool uses that stay; the provider's default."""
WINDOW = 200_000
"""Tokens of the window where the settings name none: that of the provider's models without a beta header."""
RESULTS = (None, "tool_result", "tool_call")


def context_management(
    options: CompactionOptions, eviction: EvictionOptions, size: int | None = None, *, keep: int = KEEP
) -> dict[str, Any]:
    """`{"context_management": {"edits": [...]}}` for a window of so many tokens.

    The trigger is where the cascade begins, `clear_at_least` the saving that a step must bring to be worth breaking the
    cached prefix, and tools that a pin names as a whole are excluded. See `not_carried` for other pins.
    """
    trigger = max(1, floor(min(options.cascade, default=1.0) * (size or WINDOW)))
    edit: dict[str, Any] = {
        "type": EDIT,
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": keep},
    }
    if options.minimum_saving > 0:
        edit["clear_at_least"] = {"type": "input_tokens", "value": options.minimum_saving}
    if tools := sorted({rule.tool for rule in eviction.pin if rule.tool is not None and _whole_tool(rule)}):
        edit["exclude_tools"] = tools
    return {"context_management": {"edits": [edit]}}


def not_carried(pins: Sequence[Rule]) -> list[Rule]:
    """Pins of tool results that the provider's block can't hold: by path, text or block."""
    return [rule for rule in pins if not _whole_tool(rule) and rule.kind in RESULTS and rule.role in (None, "tool")]


def _whole_tool(rule: Rule) -> bool:
    return (
        rule.tool is not None
        and rule.path is None
        and rule.regex is None
        and rule.block is None
        and rule.kind in RESULTS
        and rule.role in (None, "tool")
    )

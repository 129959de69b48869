"""The provider's block for the same settings."""

from __future__ import annotations

import pytest

from ctxctl.compaction.context_management import context_management, not_carried
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.options import EvictionOptions, Rule


def test_defaults() -> None:
    assert context_management(CompactionOptions(), EvictionOptions()) == {
        "context_management": {
            "edits": [
                {
                    "type": "clear_tool_uses_20250919",
                    "trigger": {"type": "input_tokens", "value": 150_000},
                    "keep": {"type": "tool_uses", "value": 3},
                    "clear_at_least": {"type": "input_tokens", "value": 1_000},
                }
            ]
        }
    }


def test_settings_and_pins() -> None:
    pins = (
        Rule(tool="Skill"),
        Rule(tool="Memory", kind="tool_result"),
        Rule(tool="Read", path="x"),
        Rule(regex="y"),
        Rule(kind="user_message"),
    )
    options = CompactionOptions(cascade={0.5: "progressive", 0.9: "conversation"}, minimum_saving=0)
    (edit,) = context_management(options, EvictionOptions(pin=pins), 100_000, keep=5)["context_management"]["edits"]
    assert edit["trigger"]["value"] == 50_000 and edit["keep"]["value"] == 5
    assert edit["exclude_tools"] == ["Memory", "Skill"] and "clear_at_least" not in edit
    assert not_carried(pins) == [pins[2], pins[3]]


def test_the_provider_s_client_knows_the_fields() -> None:
    params = pytest.importorskip("anthropic.types.beta")
    (edit,) = context_management(CompactionOptions(), EvictionOptions())["context_management"]["edits"]
    assert set(edit) <= set(params.BetaClearToolUses20250919EditParam.__annotations__)

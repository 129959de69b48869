"""The JSON Schema for editors: valid itself, and of one mind with the loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ctxctl.errors import ConfigError
from ctxctl.settings.load import load, load_settings
from ctxctl.settings.paths import config_file
from ctxctl.settings.schema import json_schema

SCHEMA = json_schema()


def accepts(text: str) -> bool:
    """Whether the schema accepts a YAML text, as an editor reads it: keys are text."""
    tree = json.loads(json.dumps(yaml.safe_load(text)))
    return bool(Draft202012Validator(SCHEMA).is_valid(tree))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA))["$ref"] == SCHEMA["$ref"]
    assert SCHEMA["$schema"].endswith("2020-12/schema")


def test_the_shipped_file() -> None:
    assert accepts(config_file("ctxctl.yaml").read_text(encoding="utf-8"))


GOOD = [
    "max_context_tokens: 128000",
    "max_context_tokens: 200k",
    "max_context_tokens: '1.5M'",
    "pressure_thresholds: {yellow: 0.4}",
    "pressure: {act_at: watermark, velocity_window: 8}",
    "eviction: {policy: type_based}",
    "eviction: {policy: sliding, type_ttl: {thinking: 2}, protected_types: [system]}",
    "compression: {cascade: {0.75: tool_result_summarization, 0.95: sub_agent}}",
    "compaction: {cascade: {0.5: notes, 1.0: delegate}, notes_file: n.md}",
    "budget: {allocations: {tool_results: 0.1}}",
    "cross_window: {state_file: s.json}",
    "health_monitoring: {metrics: [utilization], alerts: {eviction_warning: 7}}",
    "models: {mine: {window: 64000, in: 1.0, aliases: [m]}}",
    "contract: {artifacts: [{name: goal, text: no axios}, {name: api, file: a.ts, required: false}]}",
    "contract: {validators: [{name: t, command: [pytest, -q], timeout: 5}, {name: l, command: make lint}]}",
    "{}",
]
BAD = [
    "presure: {}",
    "pressure: {watermrk: 0.5}",
    "pressure: 5",
    "max_context_tokens: 0",
    "max_context_tokens: large",
    "max_context_tokens: true",
    "pressure_thresholds: {red: 1.5}",
    "pressure_thresholds: {red: 0}",
    "pressure_thresholds: {red: high}",
    "pressure_thresholds: {red: true}",
    "pressure_thresholds: {red: null}",
    "pressure: {act_at: oranje}",
    "pressure: {velocity_window: 1}",
    "eviction: {policy: hybird}",
    "eviction: {type_ttl: {thinking: 0}}",
    "compaction: {cascade: {1.5: notes}}",
    "compaction: {cascade: {0: notes}}",
    "compaction: {cascade: {0.5: progresive}}",
    "budget: {allocations: {tools: 0.1}}",
    "cross_window: {state_file: ''}",
    "health_monitoring: {metrics: [utilisation]}",
    "contract: {artifacts: [{name: goal, text: x, requierd: false}]}",
    "contract: {artifacts: [{text: x}]}",
    "contract: {validators: [{name: t, command: 5}]}",
    "contract: {validators: [{name: t, command: x, timeout: 0}]}",
    "contract: {validators: [{name: t}]}",
    "eviction: {pin: [{tol: x, kind: system}]}",
    "models: {mine: 5}",
    "[]",
]


@pytest.mark.parametrize("text", GOOD)
def test_good_files(project: Path, text: str) -> None:
    path = project / "x.yaml"
    path.write_text(text, encoding="utf-8")
    load_settings(path)
    assert accepts(text)


@pytest.mark.parametrize("text", BAD)
def test_bad_files(project: Path, text: str) -> None:
    path = project / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError):
        load_settings(path)
    assert not accepts(text)


def test_every_setting_is_in_the_schema_with_a_type() -> None:
    definitions: dict[str, Any] = SCHEMA["$defs"]

    def node(at: dict[str, Any]) -> dict[str, Any]:
        return definitions[at["$ref"].rpartition("/")[2]] if "$ref" in at else at

    for key, _, _ in load().flat():
        at = node(SCHEMA)
        for step in key.split("."):
            at = node(at)
            if "properties" not in at:
                break
            at = at["properties"][step]
        assert at, key

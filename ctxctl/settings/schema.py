"""All settings as one value, the aliases that users may write, and the JSON Schema of the file."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import Meta

from ctxctl.budgets.gate_options import GateOptions
from ctxctl.budgets.options import BudgetOptions
from ctxctl.compaction.options import CompactionOptions
from ctxctl.eviction.options import EvictionOptions
from ctxctl.health.options import HealthOptions
from ctxctl.manager.options import ManagerOptions
from ctxctl.pressure.options import PressureOptions, PressureThresholds
from ctxctl.state.contract_options import ContractOptions
from ctxctl.state.options import StateOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting. max_context_tokens: the window; None: told from the transcript or the model table."""

    max_context_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=10**9)] | None,
        Meta(description="context window in tokens; unset: from the transcript or the model"),
    ] = None
    pressure_thresholds: PressureThresholds = field(default_factory=PressureThresholds)
    pressure: PressureOptions = field(default_factory=PressureOptions)
    manager: ManagerOptions = field(default_factory=ManagerOptions)
    eviction: EvictionOptions = field(default_factory=EvictionOptions)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    cross_window: StateOptions = field(default_factory=StateOptions)
    contract: ContractOptions = field(default_factory=ContractOptions)
    health_monitoring: HealthOptions = field(default_factory=HealthOptions)
    gates: GateOptions = field(default_factory=GateOptions)
    models: Annotated[
        dict[str, dict[str, Any]], Meta(description="rows of your own for the model table, by model id")
    ] = field(default_factory=dict)


SIZES = (
    ("max_context_tokens",),
    ("gates", "max_peak"),
    ("gates", "max_tokens"),
    ("gates", "max_total"),
    ("health_monitoring", "skeleton_tokens"),
)
"""Settings that take a number of tokens as `200k` too."""
SECTION_ALIASES = {"compression": "compaction"}
POLICY_ALIASES = {
    "type_ttl": "type-ttl",
    "type_based": "type-ttl",
    "sliding": "sliding-window",
    "sliding_window": "sliding-window",
    "priority_tiers": "priority-tiers",
}
STRATEGY_ALIASES = {
    "tool_results": "tool-results",
    "tool_result_summarization": "tool-results",
    "conversation_compaction": "conversation",
    "note_taking": "notes",
    "sub_agent": "delegate",
}


def canonical(tree: dict[Any, Any]) -> dict[Any, Any]:
    """A tree of settings with every alias replaced; ValueError when a section stands under both of its names."""
    found = dict(tree)
    for alias, name in SECTION_ALIASES.items():
        if alias in found:
            if name in found:
                raise ValueError(f"{alias}: the section stands again as {name!r}; keep one of them")
            found[name] = found.pop(alias)
    eviction = found.get("eviction")
    if isinstance(eviction, dict) and isinstance(eviction.get("policy"), str):
        policy = eviction["policy"]
        found["eviction"] = {**eviction, "policy": POLICY_ALIASES.get(policy, policy)}
    compaction = found.get("compaction")
    if isinstance(compaction, dict) and isinstance(compaction.get("cascade"), dict):
        steps = {
            key: STRATEGY_ALIASES.get(step, step) if isinstance(step, str) else step
            for key, step in compaction["cascade"].items()
        }
        found["compaction"] = {**compaction, "cascade": steps}
    return found


def section_type(cls: Any, key: str) -> Any:
    """The dataclass of a section, None for a plain value."""
    hint = get_type_hints(cls).get(key)
    options = [hint, *get_args(hint)]
    return next((h for h in options if isinstance(h, type) and is_dataclass(h)), None)


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the settings file, for editors. Aliases are allowed, unknown keys are not."""
    schema: dict[str, Any] = msgspec.json.schema(Settings)
    definitions = schema["$defs"]
    for definition in definitions.values():
        if definition.get("type") == "object" and "properties" in definition:
            definition["additionalProperties"] = False
            if not definition.get("required"):
                definition.pop("required", None)
    root = definitions["Settings"]
    for alias, name in SECTION_ALIASES.items():
        root["properties"][alias] = root["properties"][name]
    policy = definitions["EvictionOptions"]["properties"]["policy"]
    policy["enum"] = [*policy["enum"], *POLICY_ALIASES]
    for *section, key in SIZES:
        home = definitions[type(getattr(Settings(), section[0])).__name__] if section else root
        plain = home["properties"][key]
        whole = {name: plain.pop(name) for name in ("type", "minimum", "maximum") if name in plain}
        written = {"type": "string", "pattern": r"^\d[\d_]*(\.\d+)?[kKmM]?$"}
        plain["anyOf"] = [*([whole] if whole else []), *plain.get("anyOf", []), written]
    cascade = definitions["CompactionOptions"]["properties"]["cascade"]
    cascade["additionalProperties"]["enum"] = [*cascade["additionalProperties"]["enum"], *STRATEGY_ALIASES]
    cascade["propertyNames"] = {"type": "string", "pattern": r"^(0?\.\d+|1(\.0*)?)$"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ctxctl settings", **schema}

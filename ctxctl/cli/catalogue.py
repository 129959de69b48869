"""What `ctxctl list policies`, `strategies`, `presets` and `detectors` show."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from typing import Any

from ctxctl.reports.document import Column, Fact, Report, Table
from ctxctl.reports.plot import plural

ABOUT = ("complexity", "strength", "weakness", "fit")
_PART = re.compile(r"^(Complexity|Strength|Weakness|Fit|Model): (.*?)(?=^\w+: |\Z)", re.MULTILINE | re.DOTALL)


def policies() -> list[dict[str, Any]]:
    """Every eviction policy: what its docstring says, and its parameters with type and default."""
    import inspect

    from ctxctl.eviction.base import POLICIES

    rows: list[dict[str, Any]] = []
    for name, cls in POLICIES:
        text = inspect.getdoc(cls) or ""
        parts = {match[1].lower(): " ".join(match[2].split()) for match in _PART.finditer(text)}
        parameters = [
            {"name": f.name, "type": _type(str(f.type)), "default": f.default} for f in fields(cls.Parameters)
        ]
        about = " ".join(text.split("\n\n")[0].split())
        rows.append({"name": name, "group": cls.group, "about": about, **parts, "parameters": parameters})
    order = {"policy": 0, "ceiling": 1, "control": 2}
    return sorted(rows, key=lambda row: (order.get(row["group"], 3), row["name"]))


def _type(annotation: str) -> str:
    """`Annotated[int, Meta(ge=0)]` as `int`."""
    inner = re.match(r"Annotated\[([^,\[]+)", annotation)
    return (inner[1] if inner else annotation).replace(" | None", "")


def policy_report(rows: list[dict[str, Any]], verbose: bool) -> Report:
    """A line per policy, or with `verbose` all that is known of each."""
    if not verbose:
        table = Table(
            plural(len(rows), "policy").replace("policys", "policies"),
            (Column("name"), Column("group"), Column("what", flexible=True, prose=True)),
            tuple((r["name"], r["group"], r["about"]) for r in rows),
            "-v says where each is strong, weak and fits, and its parameters (written as mask:keep=10,every=5)",
        )
        return Report("list", "ctxctl list policies", tables=(table,))
    facts = []
    for row in rows:
        facts.append(Fact(row["name"], row["about"], "" if row["group"] == "policy" else row["group"]))
        facts += [Fact(f"  {part}", row[part]) for part in ABOUT if row.get(part)]
        if row["parameters"]:
            facts.append(Fact("  parameters", ", ".join(_shown(p) for p in row["parameters"])))
    return Report("list", "ctxctl list policies", facts=tuple(facts))


def _shown(parameter: dict[str, Any]) -> str:
    default = parameter["default"]
    if default is None:
        return f"{parameter['name']} ({parameter['type']}, as set)"
    return f"{parameter['name']}={default:g}" if isinstance(default, float) else f"{parameter['name']}={default!r}"


def strategies() -> list[dict[str, Any]]:
    """Every compaction strategy: what its docstring says."""
    import inspect

    from ctxctl.compaction.base import STRATEGIES

    rows: list[dict[str, Any]] = []
    for name, cls in STRATEGIES:
        text = inspect.getdoc(cls) or ""
        parts = {match[1].lower(): " ".join(match[2].split()) for match in _PART.finditer(text)}
        about = " ".join(text.split("\n\n")[0].split())
        rows.append({"name": name, "group": cls.group, "about": about, **parts})
    return sorted(rows, key=lambda row: (row["group"] != "strategy", row["name"]))


def strategy_report(rows: list[dict[str, Any]], verbose: bool) -> Report:
    """A line per strategy; with `verbose` what a model changes, and when to use it."""
    note = "without --strategy, `ctxctl compact` goes through tool-results, progressive and conversation as needed"
    if not verbose:
        table = Table(
            plural(len(rows), "strategy").replace("strategys", "strategies"),
            (Column("name"), Column("what", flexible=True, prose=True)),
            tuple((r["name"], r["about"] if r["group"] == "strategy" else f"{r['group']}: {r['about']}") for r in rows),
            note,
        )
        return Report("list", "ctxctl list strategies", tables=(table,))
    facts = []
    for row in rows:
        facts.append(Fact(row["name"], row["about"], "" if row["group"] == "strategy" else row["group"]))
        facts += [Fact(f"  {part}", row[part]) for part in ("model", "fit") if row.get(part)]
    return Report("list", "ctxctl list strategies", note, facts=tuple(facts))


def presets() -> list[dict[str, Any]]:
    """Every preset of a known runtime: where it is from, and whether it replays exactly."""
    from ctxctl.settings.presets import load_presets

    return [
        {
            "name": preset.id,
            "runtime": preset.runtime,
            "replay": preset.replay,
            "confidence": preset.confidence,
            "about": preset.about,
            "sources": list(preset.sources),
            "date": str(preset.date),
            "assumptions": list(preset.assumptions),
            "notes": list(preset.notes),
            "unsupported": preset.unsupported,
        }
        for preset in load_presets().values()
    ]


def preset_report(rows: list[dict[str, Any]], verbose: bool) -> Report:
    """A line per preset; with `verbose` sources and reasons."""
    count = Counter(r["replay"] for r in rows)
    note = (
        f"{count['exact']} replay exactly, {count['assumed']} by their rules with an assumption where the sources are "
        f"silent, {count['sized']} are sized: a model summary of a given size; {count['unsupported']} not supported"
    )
    if not verbose:
        table = Table(
            plural(len(rows), "preset"),
            (Column("name"), Column("replay"), Column("what", flexible=True, prose=True)),
            tuple((r["name"], r["replay"], r["about"]) for r in rows),
            f"{note}; -v shows sources and assumptions",
        )
        return Report("list", "ctxctl list presets", tables=(table,))
    facts = []
    for row in rows:
        facts.append(Fact(row["name"], row["about"], f"{row['replay']}, {row['confidence']}, {row['date']}"))
        facts.append(Fact("  runtime", row["runtime"]))
        facts += [Fact("  source", source) for source in row["sources"]]
        facts += [Fact("  assumed", text) for text in row["assumptions"]]
        facts += [Fact("  note", text) for text in row["notes"]]
        if row["unsupported"]:
            facts.append(Fact("  unsupported", row["unsupported"]))
    return Report("list", "ctxctl list presets", note, facts=tuple(facts))


def detectors() -> list[dict[str, Any]]:
    """What `health` looks for: its alerts and detectors."""
    from dataclasses import asdict

    from ctxctl.health.codes import rules

    return [{"name": rule.code, **asdict(rule)} for rule in rules()]


def detector_report(rows: list[dict[str, Any]], verbose: bool) -> Report:
    """A line per code, or with `verbose` also what to do."""
    if not verbose:
        table = Table(
            plural(len(rows), "code"),
            (Column("code"), Column("level"), Column("what is looked for", flexible=True, prose=True)),
            tuple((r["code"], r["level"], r["signal"]) for r in rows),
            "--fail-on CODE makes `ctxctl health` exit 1 on one, --ignore CODE leaves it out; -v says what to do",
        )
        return Report("list", "ctxctl list detectors", tables=(table,))
    facts = []
    for row in rows:
        facts.append(Fact(row["code"], row["signal"], f"{row['kind']}, {row['level']}"))
        facts.append(Fact("  do", row["fix"]))
    return Report("list", "ctxctl list detectors", facts=tuple(facts))

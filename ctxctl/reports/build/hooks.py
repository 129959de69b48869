"""The report of `hook status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxctl.reports.document import Column, Fact, Finding, Report, Table


def hooks_report(result: Mapping[str, Any]) -> Report:
    """Where hooks are installed, what keeps them from running, and what they did last."""
    rows = []
    findings = []
    for place in result["files"]:
        commands = dict.fromkeys(hook["command"] for hook in place["hooks"])
        events = ", ".join(hook["event"] for hook in place["hooks"])
        rows.append((place["agent"], place["scope"], events or "-", "; ".join(commands) or "-", place["path"]))
        if place["error"]:
            findings.append(Finding("warning", "unreadable", place["error"], "the agent can't read it either"))
    for agent, why in result["switched_off"].items():
        findings.append(Finding("warning", "switched_off", f"{agent} runs no hooks at all: {why}"))
    for missing in result["not_found"]:
        findings.append(Finding("warning", "not_found", f"there is no program {missing}", "install the hooks again"))
    columns = ("agent", "scope", "events", "command")
    table = Table(
        "Hooks of ctxctl", (*(Column(name) for name in columns), Column("settings file", flexible=True)), tuple(rows)
    )
    facts = [Fact("Log", result["log"] or "off")]
    facts += [Fact("Last" if n == 0 else "", line) for n, line in enumerate(result["last"])]
    steps = () if any(place["hooks"] for place in result["files"]) else ("ctxctl hook install claude-code",)
    return Report("hook", "hooks", facts=tuple(facts), tables=(table,), findings=tuple(findings), next_steps=steps)

"""Summaries that other agents write when they compact: their lines, and facts that their structure gives away."""

from __future__ import annotations

import re

from ctxctl.facts.todos import folded
from ctxctl.model.summary import DecisionFact, SessionSummary
from ctxctl.model.text import SUMMARIES, shortened

MOST, LONGEST = 80, 400
"""Lines, and characters of a line, that are kept."""

# Claude Code; Codex (codex-rs/core/templates/compact/summary_prefix.md); Gemini CLI; Cline
_STARTS = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "You were originally given instructions from a user over one or more turns",
    "<state_snapshot>",
    "<SYSTEM_NOTICE>\nEarlier context was compacted",
    "<conversation-summary>",
)
_PREAMBLE = re.compile(
    r"^(?:This session is being continued|Another language model started|The summary below covers"
    r"|Please continue the conversation|If you need specific details from before|Continue with the last task"
    r"|Analysis:$|Summary:$|<[/\w-]+>$|Here is the summary)"
)
_ANALYSIS = re.compile(
    r"^(?:<analysis>.*?</analysis>|Analysis:\n.*?(?=^(?:Summary:|<summary>|1\. Primary Request)))", re.M | re.S
)
_FENCE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(?:#{1,6}\s+|\d{1,2}\.\s+)?\**([A-Z][A-Za-z /&-]{2,50}?)\**:\**$|^#{1,6}\s+(\S.{0,60}?):?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(.*\S)\s*$")
_FIELDS = {
    "all user messages": "requests",
    "user messages": "requests",
    "pending tasks": "open_issues",
    "open issues": "open_issues",
    "unresolved questions": "open_issues",
    "open questions": "open_issues",
    "optional next step": "next_steps",
    "next step": "next_steps",
    "next steps": "next_steps",
    "constraints": "constraints",
    "user preferences": "constraints",
    "decisions": "decisions",
    "key decisions": "decisions",
    "learnings": "learnings",
    "lessons learned": "learnings",
}
"""Sections whose items are facts of a kind; those of other sections stay lines."""
_NOTHING = re.compile(r"^(?:none\b|n/a\b|no (?:pending|open|explicit)\b|nothing\b)", re.IGNORECASE)


def is_foreign(text: str) -> bool:
    """Whether an agent's own compaction wrote the text."""
    return text.lstrip().startswith(_STARTS)


def parse(text: str) -> SessionSummary:
    """The facts and lines of a summary of unknown form."""
    for mark in SUMMARIES:
        text = text.removeprefix(mark)
    lines: list[str] = []
    facts: dict[str, list[str]] = {}
    name = None
    for raw in _FENCE.sub("", _ANALYSIS.sub("", text)).split("\n"):
        line = raw.strip()
        if not line or _PREAMBLE.match(line) or line.startswith(SUMMARIES):
            continue
        heading = _HEADING.match(raw.rstrip())
        if heading is not None:
            name = _FIELDS.get((heading[1] or heading[2]).strip().lower())
            if name is None:
                lines.append(line.lstrip("#").strip())  # a heading of its own in ours would be taken for one
            continue
        if name is None:
            lines.append(shortened(raw.rstrip(), LONGEST))
        elif name == "next_steps":
            facts.setdefault(name, []).append(shortened(folded(line).rstrip(":"), LONGEST))
            name = None  # what follows explains it
        elif (bullet := _BULLET.match(line)) is not None:
            item = shortened(folded(bullet[1]).strip('"'), LONGEST)
            if item and not _NOTHING.match(item):
                facts.setdefault(name, []).append(item)
    return SessionSummary(
        constraints=tuple(facts.get("constraints", ())),
        requests=tuple(facts.get("requests", ())),
        decisions=tuple(DecisionFact(item) for item in facts.get("decisions", ())),
        open_issues=tuple(facts.get("open_issues", ())),
        learnings=tuple(facts.get("learnings", ())),
        next_steps=tuple(facts.get("next_steps", ())),
        earlier=tuple(lines[:MOST]),
    )

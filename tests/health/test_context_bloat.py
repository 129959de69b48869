"""Early instructions that a full window misses."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.context_bloat import ContextBloat
from ctxctl.health.signals.repeated import _said
from ctxctl.model.finding import Finding

EARLY = "Port the scheduler. Never change the public signatures in the api folder, other teams import them."
AGAIN = "As I said, the public signatures in the api folder stay as they are."


def found(session: ClaudeSession) -> list[Finding]:
    return list(ContextBloat().find(session.examine()))


def filled(
    folder: Path,
    *,
    early: str = EARLY,
    late: str = AGAIN,
    tokens: int = 150_000,
    calls: int = 12,
    model: str = "claude-sonnet-4-5-20250929",
    command: str | None = None,
) -> ClaudeSession:
    """An instruction, many calls, and what the user says when the window is full."""
    session = ClaudeSession(folder, model=model)
    session.user(early)
    for number in range(calls):
        share = 20_000 + (tokens - 20_000) * (number + 1) // calls
        session.bash(f"make part-{number}", lines_of(20, f"part{number}"), prompt=share)
    session.answer("The scheduler is ported.", prompt=tokens)
    session.user(late)
    if command is not None:
        session.bash(command, "ok", prompt=tokens)
    session.answer("I see.", prompt=tokens)
    return session


def test_an_instruction_that_had_to_be_repeated_is_told(tmp_path: Path) -> None:
    (finding,) = found(filled(tmp_path))
    assert finding.evidence is not None
    assert finding.evidence.counts["utilization"] == pytest.approx(0.75, abs=0.01)
    early, late = finding.evidence.quotes
    assert early.text.startswith("Never change the public signatures")
    assert late.text == AGAIN
    assert "75% full" in finding.message


def test_so_is_a_constraint_in_nearly_the_same_words(tmp_path: Path) -> None:
    said = "Never change the public signatures in the api folder, please, other teams import them."
    assert len(found(filled(tmp_path, late=said))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": 120_000},
        {"calls": 5},
        {"late": "Thanks. Now the documentation, please."},
        {"late": "As I said, tomorrow is a holiday here."},
        {"late": EARLY},
        {"late": "Never change the database schema of the billing service without asking me."},
        {"model": "a-model-without-a-window"},
    ],
    ids=["not full", "too near", "another request", "nothing of it", "sent twice", "another constraint", "no window"],
)
def test_it_goes_with_its_cause(tmp_path: Path, change: dict[str, str]) -> None:
    assert found(filled(tmp_path, **change)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "command", "count"), [(150_000, "npm ci", 1), (120_000, "npm ci", 0), (150_000, "pnpm install", 0)]
)
def test_an_instruction_that_was_broken(tmp_path: Path, tokens: int, command: str, count: int) -> None:
    early = "Port the scheduler. Don't use npm, this is a pnpm workspace."
    session = filled(tmp_path, early=early, late="Now the documentation.", tokens=tokens, command=command)
    findings = found(session)
    assert len(findings) == count
    assert all("'npm'" in finding.message for finding in findings)


def test_what_a_compaction_took_away_is_said(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user(EARLY)
    for number in range(12):
        session.bash(f"make part-{number}", "ok")
    session.compact("The scheduler is being ported.")
    session.answer("I go on.", prompt=150_000)
    session.user(AGAIN)
    session.answer("I see.", prompt=150_000)
    (finding,) = found(session)
    assert "a compaction had taken out" in finding.message


def test_sentences_are_compared_in_the_order_of_the_text(tmp_path: Path) -> None:
    rules = [f"Never change the file {name} in the folder {name}." for name in ("api", "core", "jobs", "web", "docs")]
    session = filled(tmp_path, early=" ".join(rules)).examine()
    early = next(b for b in session.trace.blocks if b.kind == "user_message")
    assert [said for _, said, _, directive in _said(0, early) if directive] == rules

"""Budgets of real sessions: components add up to the window, shares are shares, money is that of `analyze`."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_readers import TRANSCRIPTS, claude_calls

from ctxctl import load_models
from ctxctl.budgets.components import RESERVE
from ctxctl.budgets.cost import session_cost
from ctxctl.errors import CtxctlError
from ctxctl.health.budgeted import budget_of_session
from ctxctl.health.session import Examining, Session, examine

MOST_UNEXPLAINED = 0.25
"""Share of the window that no component explains. Above it only where a client put back files after a compaction
without writing them down, and in files that were made by hand for other tests."""
BY_HAND = frozenset(("edge_cases.jsonl", "session-alpha.jsonl"))


@pytest.fixture(scope="module")
def sessions(transcripts: Path) -> list[Session]:
    found = []
    for path in sorted(p for p in TRANSCRIPTS.glob("*/*") if p.is_file()):
        try:
            found.append(examine(str(path), load_models(), Examining()))
        except CtxctlError:
            continue
    assert len(found) > 50
    return found


def test_components_add_up(sessions: list[Session]) -> None:
    for session in sessions:
        budget = budget_of_session(session)
        used = [c.used for c in budget.components if c.component != RESERVE]
        assert all(tokens is None or tokens >= 0 for tokens in used), session.path
        if budget.total_used is None:
            continue
        assert budget.total_used == sum(tokens or 0 for tokens in used) + (budget.unexplained or 0), session.path
        assert budget.total_used == session.analysis.context.tokens
        if Path(session.path).name not in BY_HAND:
            assert abs(budget.unexplained or 0) <= MOST_UNEXPLAINED * budget.total_used, session.path


def test_the_window_is_what_an_independent_reader_finds(sessions: list[Session]) -> None:
    compared = 0
    for session in sessions:
        context = session.analysis.context
        if session.transcript.format != "claude-code" or context.pending or not context.reported:
            continue
        assert budget_of_session(session).total_used == claude_calls(Path(session.path)).context, session.path
        compared += 1
    assert compared > 5


def test_money(sessions: list[Session]) -> None:
    priced = 0
    for session in sessions:
        money = budget_of_session(session).money
        whole = session_cost(session.transcript.usage, session.table, session.transcript.model)
        assert (money.total is None) == (whole is None), session.path
        if money.total is None or whole is None:
            continue
        priced += 1
        assert money.total == pytest.approx(whole, rel=1e-9)
        for share in (money.unreferenced_share, money.cache_read_share, money.cache_write_share):
            assert share is None or 0 <= share <= 1, session.path
    assert priced > 40

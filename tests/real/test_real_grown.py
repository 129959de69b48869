"""Real sessions, read as they grew: after several readings the facts are those of one over the whole."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from real_readers import paths

from ctxctl.errors import CtxctlError
from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import Block
from ctxctl.model.state import Position
from ctxctl.model.summary import SessionSummary
from ctxctl.trace.grown import read_grown

SESSIONS = [*paths("claude-code"), *paths("codex"), *paths("message-per-line")]
COUNTS = ("turn", "exchange", "line", "offset", "size", "compactions", "newest", "mark", "reading", "leaves", "id")


def read(path: Path, before: Position | None, base: SessionSummary) -> tuple[Position, SessionSummary, str]:
    facts = SessionFacts()

    def fresh(position: Position | None) -> Callable[[Block, int], None]:
        nonlocal facts
        facts = SessionFacts()
        if position is not None:
            facts.seed(base, position.carry)
        return facts.see

    grown = read_grown(str(path), before, fresh)
    carry = json.loads(json.dumps(facts.carry(grown.gone)))
    stored = json.loads(json.dumps({**asdict(grown.position), "carry": carry}))
    return Position(**{**stored, "leaves": tuple(stored["leaves"])}), facts.summary(grown.gone), grown.why


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.name)
def test_a_real_session_as_it_grew(session: Path, transcripts: Path, tmp_path: Path) -> None:
    data = session.read_bytes()
    path = tmp_path / session.name
    path.write_bytes(data)
    try:
        position, summary, _ = read(path, None, SessionSummary())
    except CtxctlError:
        pytest.skip("not a session that ctxctl reads")
    chance = random.Random(session.name)
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    for _ in range(4 if len(data) < 1_000_000 else 2):
        cuts = {
            chance.choice(ends) if ends and chance.random() < 0.5 else chance.randrange(1, len(data)) for _ in "abc"
        }
        at, base = None, SessionSummary()
        for cut in [*sorted(cuts - {len(data)}), len(data)]:
            path.write_bytes(data[:cut])
            try:
                at, base, _ = read(path, at, base)
            except CtxctlError:
                assert at is None, cut
        for field in fields(SessionSummary):
            assert getattr(base, field.name) == getattr(summary, field.name), (field.name, cuts)
        for name in COUNTS:
            assert getattr(at, name) == getattr(position, name), (name, cuts)

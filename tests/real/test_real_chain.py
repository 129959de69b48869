"""Real sessions compacted again and again: what the newest summary tells is what the whole session held."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from chat_views import SUMMARY, view
from compact_many import once
from told_facts import same_facts, told_by

from ctxctl.facts.session import SessionFacts
from ctxctl.formats.read import scan
from ctxctl.model.block import MAIN, Block
from ctxctl.model.summary import SessionSummary

NAMES = {
    "long-conversation.jsonl": True,
    "entire-cd-95adddad32-0.jsonl": False,
    "entire-f5-c0586f2fba-0.jsonl": True,
}
"""Sessions, and whether a summary comes about: of one, shorter outputs alone lead to what must stay."""
SHARES = (80, 70, 60, 50, 30, 20)


def facts_of(path: Path) -> SessionSummary:
    facts = SessionFacts()
    number = -1

    def see(block: Block) -> None:
        nonlocal number
        number += 1
        if block.thread == MAIN:
            facts.see(block, number)

    scan(str(path), see)
    return facts.summary()


@pytest.mark.parametrize("name", list(NAMES))
def test_shorter_and_shorter(name: str, transcripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    path = transcripts / "claude-code" / name
    whole = facts_of(path)
    first = None
    told = 0
    for share in SHARES:
        after = tmp_path / f"{uuid.UUID(int=share)}.jsonl"
        size = first or 0
        if not first:
            code, out, err = once(["compact", "--json", "--dry-run", "--to", "100%", str(path)])
            assert code == 0, err
            size = first = json.loads(out)["result"]["before_tokens"]
        line = ["compact", "--json", "--no-recall", "--force", "--to", str(size * share // 100), "-o", str(after)]
        code, out, err = once([*line, str(path)])
        if code == 5:  # what is pinned and the newest answers are all that is left
            break
        assert code == 0, err
        path = after
        same_facts(whole, facts_of(path))
        told += summary_holds(whole, path)
    assert bool(told) is NAMES[name]


def summary_holds(whole: SessionSummary, path: Path) -> int:
    texts = [p.text for m in view(path, "claude-code").messages for p in m.parts]
    summaries = [t for t in texts if t.startswith(f"{SUMMARY} turns ")]
    assert len(summaries) <= 1
    for text in summaries:
        assert text.count(SUMMARY) == 1
        assert not any(line.startswith("> ##") for line in text.split("\n"))
        told = told_by(text)
        assert {item.split("`")[1] for item in told.items.get("Files modified", ())} <= {f.path for f in whole.files}
        open_ = {t.text for t in whole.todos if t.status != "done"}
        assert {item[4:] for item in told.items.get("Todos", ())} <= {" ".join(t.split()) for t in open_}
        assert told.turns[1] <= whole.turns[1]
    return len(summaries)

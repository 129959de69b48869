"""Stores of a few blocks, and what is in them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctxctl.state.recall import RecallStore

# no package here: test modules find what stands beside them (synthetic_task, state_runs) by its name
sys.path.insert(0, str(Path(__file__).parent))

NOW = "2026-11-30T10:15:00.000Z"
ORIGINAL = [b'{"n":1}\r\n', b"\xef\xbb\xbfnot \xff utf-8\n", b"", b"x" * 3_000_000 + b"\n", b"torn"]
TEXTS = {
    "1.0": ("user_message", None, None, "migrate billing from axios to fetch"),
    "2.0": ("tool_call", "Read", "/srv/app/src/app.ts", '{"file_path":"/srv/app/src/app.ts"}'),
    "3.0": ("tool_result", "Read", "/srv/app/src/app.ts", "import axios from 'axios'\nexport const app = 1\n" * 40),
    "4.1": ("tool_result", "Bash", "npm test -- test/app.test.ts", "1 failing: rate limit \U0001f600 exceeded"),
    "5.0": ("tool_result", "Bash", None, "修复登录错误 done \ud83d half\x00zero"),
}


def fill(store: RecallStore, *, now: str = NOW, strategy: str = "tool-results") -> str:
    """A run with ORIGINAL and TEXTS."""
    id_ = store.begin(source="/w/big.jsonl", format="claude-code", transcript_id="s1", strategy=strategy, now=now)
    for block, (kind, tool, target, text) in TEXTS.items():
        line = int(block.split(".")[0])
        store.block(
            id=block,
            line=line,
            kind=kind,
            tool=tool,
            target=target,
            turn=line,
            tokens=len(text) // 4,
            reason=f"older than {line}",
            text=text,
            call_id=f"toolu_{line}" if tool else None,
        )
    store.original(iter(ORIGINAL))
    return id_


@pytest.fixture(scope="session")
def kept() -> SimpleNamespace:
    """What `made` puts in: now, original, texts; and fill(store)."""
    return SimpleNamespace(now=NOW, original=ORIGINAL, texts=TEXTS, fill=fill)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Makes a store, or adds a run to it: `made(now=...)` gives its path."""

    def make(**options: str) -> Path:
        path = tmp_path / "small.jsonl.recall.db"
        with RecallStore(path, mode_of=None) as store:
            fill(store, **options)
            store.commit(str(tmp_path / "small.jsonl"), hashlib.sha256(b"small").hexdigest())
        return path

    return make

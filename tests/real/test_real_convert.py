"""Every handed session in every format: it reads back as what it was, and is a chat that may be sent."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxctl.errors import CtxctlError, NothingFoundError, UsageError
from ctxctl.formats import read
from ctxctl.formats.convert.order import NO_RESULT
from ctxctl.formats.convert.run import convert
from ctxctl.model.transcript import Transcript

TARGETS = ("anthropic-messages", "openai-chat", "openai-chat-message", "claude-code", "codex", "mini-swe-agent")
FOLDERS = ("claude-code", "codex", "openai-chat", "message-per-line", "mini-swe-agent")
ALL = [path for folder in FOLDERS for path in sys.modules["real_readers"].paths(folder)]


def texts(found: Transcript, numbers: Any) -> Counter[str]:
    """Texts of what was said and of results; cleared results as the model sees them."""
    kinds = ("user_message", "memory_injection", "summary", "assistant", "system", "tool_result")
    shown: Counter[str] = Counter()
    for n in numbers:
        block = found.blocks[n]
        if block.kind in kinds and block.text.strip() and n not in found.cleared:
            shown[block.text] += 1
    return shown


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_converts_to_everything(path: Path, transcripts: Path, tmp_path: Path) -> None:
    try:
        original = read(str(path), companions=False)
    except CtxctlError:
        pytest.skip("not a transcript that is read")
    numbers = range(len(original.blocks)) if original.conversations else original.live
    calls = Counter(original.blocks[n].tool_name for n in numbers if original.blocks[n].kind == "tool_call")
    for target in TARGETS:
        try:
            found = convert(str(path), target, now="2026-05-01T08:00:00.000Z")
        except NothingFoundError:
            assert not any(original.blocks[n].kind != "system" for n in numbers)
            continue
        except UsageError:
            assert original.conversations
            continue
        out = tmp_path / f"{target}{'.traj.json' if target == 'mini-swe-agent' else '.jsonl'}"
        out.write_bytes(found.data)
        back = read(str(out))
        assert back.format == target
        again = range(len(back.blocks)) if back.conversations or target == "codex" else back.live
        was, now = texts(original, numbers), texts(back, again)
        lost = was - now
        assert sum(lost.values()) <= found.losses.get("calls and results that repeat earlier ones", 0), lost
        added = now - was
        for made in (NO_RESULT, "[Old tool result content cleared]", "[image omitted]", "[document omitted]"):
            added.pop(made, None)
        assert not added or found.losses.get("no user message at the start: one was added")
        if "calls and results that repeat earlier ones" not in found.losses:
            assert Counter(back.blocks[n].tool_name for n in again if back.blocks[n].kind == "tool_call") == calls

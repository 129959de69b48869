"""The ledger of contract checks: JSON lines that are only ever added to, each with the version of its schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from ctxctl.model.text import clean
from ctxctl.state.contract import Checked
from ctxctl.state.files import append_whole, appending, time_stamp

SCHEMA = "ctxctl.ledger/1"


def append(
    path: Path,
    outcomes: Sequence[Checked],
    *,
    now: datetime | str,
    transcript_id: str | None = None,
    recall_id: str | None = None,
    output: str | None = None,
    mode_of: str | None = None,
) -> None:
    """Append one line per outcome, all of a check in one piece. now: a time, ISO 8601 as text. output: the compacted
    transcript.

    Safe with others that append at the same time; nothing is touched for no outcomes. A new file is no wider than
    `mode_of`. Raises InputError when it can't be written.
    """
    if not outcomes:
        return
    head = {
        "schema": SCHEMA,
        "time": time_stamp(now),
        "transcript": transcript_id,
        "recall_id": recall_id,
        "output": output,
    }
    lines = [json.dumps({**head, **asdict(outcome)}, ensure_ascii=False, separators=(",", ":")) for outcome in outcomes]
    with appending(path, mode_of=mode_of) as file:
        append_whole(path, file, clean("\n".join(lines) + "\n").encode())

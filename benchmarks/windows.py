"""Commands over the state of a task: a hook's answer to a session that grew, and resuming from its state."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

GROWN = 20_000_000
"""Bytes that the session grew by since its checkpoint."""


def prepare(ctxctl: list[str], large: Path, folder: Path) -> dict[str, list[str]]:
    """A state that was taken 20 MB before the end of a session, and the commands to be measured. Each run starts from a
    copy of that state."""
    session, base, work = folder / "session.jsonl", folder / "base", folder / "work"
    base.mkdir()
    work.mkdir()
    with open(large, "rb") as source, open(session, "wb") as target:
        size = 0
        for line in source:
            target.write(line)
            size += len(line)
            if size >= large.stat().st_size - GROWN:
                break
        target.flush()
        subprocess.run([*ctxctl, "checkpoint", "-q", str(session), "--state-dir", str(base)], check=True, stdout=-3)
        target.write(source.read())
    events = {"PreCompact": {"trigger": "auto"}, "SessionStart": {"source": "compact"}}
    made = {}
    for name, more in events.items():
        event = folder / f"{name}.json"
        given = {"session_id": "bench", "transcript_path": str(session), "cwd": str(work), "hook_event_name": name}
        event.write_text(json.dumps({**given, **more}))
        run = shlex.join([*ctxctl, "hook", "run", "claude-code", "--state-dir", str(work)])
        reset = f"rm -rf {shlex.quote(str(work))} && cp -r {shlex.quote(str(base))} {shlex.quote(str(work))}"
        # a hook that fails is quiet and quick: both answers are looked at
        state = shlex.quote(str(work / "agent_state.json"))
        proof = "grep -q additionalContext" if name == "SessionStart" else f"grep -q '\"state_version\": 2' {state}"
        then = "|" if name == "SessionStart" else "&&"
        hook = f"CTXCTL_HOOK_LOG=off {run} < {shlex.quote(str(event))}"
        made[name] = ["bash", "-c", f"{reset} && {hook} {then} {proof}"]
    made["checkpoint"] = [*ctxctl, "checkpoint", "-q", str(session), "--dry-run", "--state-dir", str(base)]
    made["resume"] = [*ctxctl, "resume", "-q", str(base)]
    return made

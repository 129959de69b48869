"""Names of session files: what id a file's name says, and what name its agent looks for."""

from __future__ import annotations

from pathlib import Path

from ctxctl.cli.io import Streams


def session_of(target: str, output: Path | None) -> str | None:
    """The id of the session by the name of its file, as the agents name theirs: a Claude Code session by the whole
    stem, a Codex rollout by the uuid at its end. None leaves it to the writer."""
    import re

    stem = output.name.partition(".")[0] if output is not None else ""
    if target == "claude-code":
        return stem or None
    found = re.search(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", stem)
    return found[0] if found else None


def hint_name(target: str, session: str, output: Path, streams: Streams) -> None:
    """Say how the agent finds what was written, where its name does not say so already."""
    if target == "claude-code":
        import uuid

        try:
            uuid.UUID(session)
        except ValueError:
            streams.note(
                f"hint: Claude Code resumes files that are named by a uuid; {uuid.uuid5(uuid.NAMESPACE_URL, session)!s}"
                ".jsonl would be one"
            )
    elif target == "codex" and not output.name.startswith("rollout-"):
        streams.note(f"hint: Codex resumes files named rollout-YYYY-MM-DDThh-mm-ss-{session}.jsonl")

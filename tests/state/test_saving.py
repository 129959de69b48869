"""A checkpoint from beginning to end: what is asked for is done, what was set by hand holds, no credential is kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxctl.errors import RefusedError
from ctxctl.state import compacted
from ctxctl.state.by_hand import ByHand
from ctxctl.state.clean import unclean
from ctxctl.state.options import StateOptions
from ctxctl.state.saving import Saved, Wish, checkpoint, preview

LATER = datetime.now(UTC) + timedelta(hours=1)
KEY = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
OPTIONS = StateOptions()


class Session:
    """A session file of Claude Code."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, 0

    def add(self, role: str, *content: dict[str, Any]) -> None:
        """Append a record."""
        at = self.lines = self.lines + 1
        message: dict[str, Any] = {"role": role, "content": list(content)}
        if role == "assistant":
            message |= {"id": f"msg_{at}", "type": "message", "model": "claude-sonnet-4-5"}
            message["usage"] = {"input_tokens": 1, "output_tokens": 1}
        record = {
            "parentUuid": f"u{at - 1}" if at > 1 else None,
            "uuid": f"u{at}",
            "isSidechain": False,
            "cwd": str(self.path.parent),
            "sessionId": "11111111-2222-4333-8444-555555555555",
            "version": "2.0.0",
            "type": role,
            "timestamp": f"2026-11-30T10:{at:02d}:00.000Z",
            "message": message,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def say(self, text: str, role: str = "assistant") -> None:
        self.add(role, {"type": "text", "text": text})

    def call(self, name: str, given: dict[str, Any], result: str | None = None, *, failed: bool = False) -> None:
        id_ = f"toolu_{self.lines}"
        self.add("assistant", {"type": "tool_use", "id": id_, "name": name, "input": given})
        if result is not None:
            self.add("user", {"type": "tool_result", "tool_use_id": id_, "content": result, "is_error": failed})


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session(tmp_path / "session.jsonl")
    made.say("Please fix the flaky test of the login.", "user")
    return made


def save(folder: Path, path: Path | None = None, **more: Any) -> Saved:
    return checkpoint(Wish(str(path) if path is not None else None, **more), folder, OPTIONS, datetime.now(UTC))


def test_no_credential_goes_into_any_file(tmp_path: Path, session: Session) -> None:
    """Also not into what reading on needs: sentences that hold for a while, errors, calls without a result."""
    session.call("Bash", {"command": f"curl -H 'x: {KEY}' x"}, f"error: bad key {KEY} was rejected", failed=True)
    session.say(f"It is still unresolved why {KEY} fails. Next: I will try {KEY} again.")
    todos = [{"content": f"Log in with {KEY}", "status": "in_progress", "activeForm": "x"}]
    session.call("TodoWrite", {"todos": todos})
    session.call("Bash", {"command": f"TOKEN={KEY} pytest -q && git commit -m 'use {KEY}'"})
    session.say(f"Shall I use {KEY} from now on?")
    (tmp_path / "agent_notes.md").write_text(f"## [2026-11-30 10:00:00] LESSON\nthe key is {KEY}\n---\n")
    for _ in range(2):
        saved = save(tmp_path, session.path)
        for path in saved.written:
            assert KEY not in Path(path).read_text(), path
        session.say("more")
    assert saved.state.memory_index and saved.state.transcript.carry["held"]


def test_a_look_at_the_state_takes_it_as_it_stands(tmp_path: Path, session: Session) -> None:
    """`--require-clean` alone: the progress file goes with the state in the file, not with one made now."""
    save(tmp_path, session.path)
    seen = preview(Wish(), tmp_path, OPTIONS, LATER)
    assert (seen.state.state_version, seen.written) == (1, ())
    assert not unclean(seen.state, tmp_path, OPTIONS)
    (tmp_path / "agent_progress.md").write_text("old")
    assert [one.code for one in unclean(seen.state, tmp_path, OPTIONS)] == ["progress_outdated"]


def test_a_preview_is_refused_as_the_checkpoint_would_be(tmp_path: Path, session: Session) -> None:
    save(tmp_path, session.path)
    assert preview(Wish(str(session.path), if_version=1), tmp_path, OPTIONS, LATER).state.state_version == 2
    with pytest.raises(RefusedError, match="version 1, not 0"):
        preview(Wish(str(session.path), if_version=0), tmp_path, OPTIONS, LATER)


def test_a_working_folder_set_by_hand_holds(tmp_path: Path, session: Session) -> None:
    """Also beside a transcript that states its own, and over what is read later."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    saved = save(tmp_path, session.path, by_hand=ByHand((("cwd", str(elsewhere)),)))
    assert saved.state.environment.cwd == str(elsewhere)
    session.say("more")
    assert save(tmp_path, session.path).state.environment.cwd == str(elsewhere)


def test_what_is_asked_after_a_compaction_in_place_is_taken(tmp_path: Path, session: Session) -> None:
    """The compacted file has fewer prompts and turns than the state has seen."""
    for at in range(10):
        session.say(f"Now please handle part number {at} of it.", "user")
        session.say("Handled as asked.")
    before = save(tmp_path, session.path).state
    session.path.unlink()
    session.say("Please fix the flaky test of the login.", "user")
    session.say("Parts 0 to 9 are handled.")
    compacted.after(str(session.path), tmp_path, OPTIONS, datetime.now(UTC))
    session.say("One more thing: write the changelog, please.", "user")
    session.say("It is written.")
    after = save(tmp_path, session.path).state
    assert after.window_id == before.window_id + 1
    assert after.requests == (*before.requests, "One more thing: write the changelog, please.")
    assert after.transcript.carry["turns"][1] == before.transcript.carry["turns"][1] + 1

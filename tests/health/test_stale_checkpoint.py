"""Sessions that begin from what holds no longer, as their transcript and their state file tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession

from ctxctl.health.detectors.stale_checkpoint import StaleCheckpoint
from ctxctl.health.session import Examining
from ctxctl.model.finding import Finding
from ctxctl.model.state import AgentState, Environment, FileState, Position
from ctxctl.state.record import dumps

HEAD, OTHER = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d", "ffee3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
CODE = "def total(rows):\n    return sum(row.amount for row in rows)"
SUMMARY = f"""1. Primary Request and Intent: fix the totals.

3. Files and Code Sections:
   - src/totals.py
     Holds the sum, as of now:
{CODE}
   - src/rows.py: reads the rows
   - src/later.py will be created
   - git_head: {HEAD}"""
TOTALS, ROWS, LATER = (f"/code/app/src/{name}.py" for name in ("totals", "rows", "later"))
GONE = "<tool_use_error>File does not exist.</tool_use_error>"
MODIFIED = "<tool_use_error>File has been modified since read, either by the user or by a linter.</tool_use_error>"
NOT_FOUND = "<tool_use_error>String to replace not found in file.</tool_use_error>"


def found(session: ClaudeSession, state: Path | None = None) -> list[Finding]:
    options = Examining(state=str(state) if state is not None else None)
    return list(StaleCheckpoint().find(session.examine(options)))


def resumed(folder: Path) -> ClaudeSession:
    session = ClaudeSession(folder)
    session.user("Fix the totals.")
    session.bash("ls src", "rows.py totals.py")
    session.compact(SUMMARY)
    return session


def edit(session: ClaudeSession, path: str, old: str, said: str) -> None:
    session.call("Edit", {"file_path": path, "old_string": old, "new_string": "pass"}, said, error=True)


def test_all_that_shows_in_one_window_is_one_finding(tmp_path: Path) -> None:
    session = resumed(tmp_path)
    session.bash("git rev-parse HEAD", OTHER)
    session.call("Read", {"file_path": ROWS}, GONE, error=True)
    edit(session, TOTALS, CODE, NOT_FOUND)
    session.answer("The files have changed.")
    (finding,) = found(session)
    assert finding.evidence is not None
    assert finding.evidence.counts == {"changed": 0, "text": 1, "gone": 1, "head": 1}
    assert "src/rows.py was gone" in finding.message
    assert f"{HEAD[:12]} -> {OTHER[:12]}" in finding.message
    assert "src/totals.py" in finding.hint


def test_a_file_that_changed_before_it_was_read(tmp_path: Path) -> None:
    session = resumed(tmp_path)
    edit(session, TOTALS, "return sum", MODIFIED)
    session.answer("I read it again.")
    (finding,) = found(session)
    assert "src/totals.py had changed since" in finding.message


def reads_first(session: ClaudeSession) -> None:
    """What changed after the agent itself read it is not the resume's fault."""
    session.read(TOTALS, CODE)
    edit(session, TOTALS, "return sum", MODIFIED)


def same_head(session: ClaudeSession) -> None:
    session.bash("git rev-parse --short HEAD", HEAD[:7])


def own_commit(session: ClaudeSession) -> None:
    session.bash("git commit -am 'fix'", "[main ffee3c4] fix")
    session.bash("git rev-parse HEAD", OTHER)


def other_log(session: ClaudeSession) -> None:
    session.bash("git log --oneline -3 -- docs", f"{OTHER[:7]} docs")


def not_there_yet(session: ClaudeSession) -> None:
    session.call("Read", {"file_path": LATER}, GONE, error=True)


def not_named(session: ClaudeSession) -> None:
    session.call("Read", {"file_path": "/code/app/src/guess.py"}, GONE, error=True)
    edit(session, "/code/app/src/other.py", "x = 12345678", MODIFIED)


def own_text(session: ClaudeSession) -> None:
    edit(session, TOTALS, "def total(rows: list) -> int:\n    return 0", NOT_FOUND)


@pytest.mark.parametrize("does", [reads_first, same_head, own_commit, other_log, not_there_yet, not_named, own_text])
def test_what_is_none(tmp_path: Path, does: object) -> None:
    session = resumed(tmp_path)
    assert callable(does)
    does(session)
    session.answer("I see.")
    assert found(session) == []


def test_without_a_resume_nothing_can_be_stale(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user(f"Fix the totals.\n{SUMMARY}")
    session.call("Read", {"file_path": ROWS}, GONE, error=True)
    edit(session, TOTALS, CODE, NOT_FOUND)
    session.answer("The files have changed.")
    assert found(session) == []


class Saved:
    """A session, its working folder, and the state that was saved from it."""

    def __init__(self, folder: Path) -> None:
        from hashlib import sha256

        self.folder = folder
        self.cwd = folder / "app"
        self.cwd.mkdir()
        self.outside = folder / "outside.txt"
        for path in (self.cwd / "a.py", self.cwd / "b.py", self.outside):
            path.write_text("x = 1\n")
        self.session = ClaudeSession(folder, cwd=str(self.cwd))
        self.session.user("Fix it.")
        self.session.bash("ls", "a.py b.py")
        self.session.answer("Fixed.")
        digest = sha256(b"x = 1\n").hexdigest()
        names = ("a.py", "b.py", str(self.outside), "../outside.txt")
        self.state = AgentState(
            task_goal="Fix it.",
            saved_at="2026-05-11T10:00:00+00:00",
            environment=Environment(
                cwd=str(self.cwd), files=tuple(FileState(name, "modified", ("edited",), digest, 6) for name in names)
            ),
            transcript=Position(
                id="session", path=str(self.session.path), size=self.session.save().stat().st_size, turn=2
            ),
        )

    def findings(self) -> list[Finding]:
        path = self.folder / "agent_state.json"
        path.write_bytes(dumps(self.state))
        return found(self.session, path)


def test_a_state_that_holds(tmp_path: Path) -> None:
    assert Saved(tmp_path).findings() == []


def test_files_that_changed_or_went(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    (saved.cwd / "a.py").write_text("x = 2\n")
    (saved.cwd / "b.py").unlink()
    (finding,) = saved.findings()
    assert "1 changed: a.py" in finding.message
    assert "1 gone: b.py" in finding.message
    assert finding.evidence is not None
    assert finding.evidence.counts == {"changed": 1, "missing": 1}


def test_what_lies_outside_of_the_working_folder_is_not_read(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.outside.write_text("x = 2\n")
    assert saved.findings() == []


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.outside.write_text("x = 2\n")
    (saved.cwd / "a.py").unlink()
    (saved.cwd / "a.py").symlink_to(saved.outside)
    assert saved.findings() == []


def test_a_transcript_that_has_gone_on(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session.user("And the tests.")
    saved.session.answer("They pass.")
    (finding,) = saved.findings()
    assert "1 calls, " not in finding.message
    assert "1 call, " in finding.message
    assert f"ctxctl checkpoint {saved.session.path}" in finding.hint


def test_the_state_of_another_session_says_nothing(tmp_path: Path) -> None:
    from dataclasses import replace

    saved = Saved(tmp_path)
    (saved.cwd / "a.py").write_text("x = 2\n")
    saved.state = replace(saved.state, transcript=replace(saved.state.transcript, id="another"))
    assert saved.findings() == []


@pytest.mark.parametrize("content", [b"", b"{}", b"no json"])
def test_a_broken_state_is_none(tmp_path: Path, content: bytes) -> None:
    saved = Saved(tmp_path)
    path = tmp_path / "agent_state.json"
    path.write_bytes(content)
    assert found(saved.session, path) == []

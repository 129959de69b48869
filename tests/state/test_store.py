"""The state's file: one writer at a time, whole or not at all, links and permissions kept."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from ctxctl.errors import InputError, RefusedError
from ctxctl.model.state import AgentState, Subtask
from ctxctl.state.files import locked
from ctxctl.state.progress import render
from ctxctl.state.store import StateStore


def store(folder: Path, wait: float = 0.2) -> StateStore:
    return StateStore(folder / "agent_state.json", folder / "agent_progress.md", wait)


def test_both_files_and_nothing_else(tmp_path: Path) -> None:
    one = store(tmp_path)
    assert one.load() is None
    with one.updating() as update:
        update.save(AgentState(state_version=1, task_goal="x"))
    assert one.load() == AgentState(state_version=1, task_goal="x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["agent_progress.md", "agent_state.json"]


def test_another_writer_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    start = time.monotonic()
    with locked(tmp_path, wait=0), pytest.raises(RefusedError) as raised, store(tmp_path).updating():
        pass
    assert 0.15 < time.monotonic() - start < 5
    assert "another process" in str(raised.value)
    with store(tmp_path).updating():
        pass


def test_a_version_that_does_not_match_is_refused(tmp_path: Path) -> None:
    one = store(tmp_path)
    with one.updating(if_version=0) as update:
        update.save(AgentState(state_version=1))
    before = one.path.read_bytes()
    with pytest.raises(RefusedError, match="version 1, not 0"), one.updating(if_version=0):
        pass
    assert one.path.read_bytes() == before


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    left = tmp_path / ".agent_state.json.abc.tmp"
    left.write_text("{")
    foreign = tmp_path / ".other.json.abc.tmp"
    foreign.write_text("{")
    with store(tmp_path).updating():
        pass
    assert not left.exists() and foreign.exists()


def test_a_damaged_state_is_never_written_over_but_set_aside_on_demand(tmp_path: Path) -> None:
    one = store(tmp_path)
    one.path.write_text('{"task_goal": "x"')
    with pytest.raises(InputError), one.updating():
        pass
    with one.updating(discard=True) as update:
        assert update.state is None and update.discarded is not None
        update.save(AgentState(task_goal="y"))
    assert update.discarded.read_text() == '{"task_goal": "x"'
    assert one.load() == AgentState(task_goal="y")


def test_links_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "agent_state.json").symlink_to("real/state.json")
    private = tmp_path / "t.jsonl"
    private.write_text("{}")
    private.chmod(0o600)
    one = store(tmp_path)
    with one.updating() as update:
        update.save(AgentState(), mode_of=str(private))
    assert (tmp_path / "agent_state.json").is_symlink()
    for name in ("real/state.json", "agent_progress.md"):
        assert stat.S_IMODE(os.stat(tmp_path / name).st_mode) == 0o600
    os.chmod(tmp_path / "agent_progress.md", 0o640)
    with one.updating() as update:
        update.save(AgentState())
    assert stat.S_IMODE(os.stat(tmp_path / "agent_progress.md").st_mode) == 0o640


def test_an_earlier_tasks_state_gets_a_free_name(tmp_path: Path) -> None:
    one = store(tmp_path)
    with one.updating() as update:
        assert update.set_aside() is None
        update.save(AgentState(window_id=3))
        first, second = update.set_aside(), update.set_aside()
    assert first is not None and second is not None
    assert (first.name, second.name) == ("agent_state.window-3.json", "agent_state.window-3-1.json")


def test_the_progress_file() -> None:
    state = AgentState(
        window_id=2,
        task_goal="Move to fetch\nand keep the proxy",
        saved_at="2026-11-30T10:00:00+00:00",
        completed_subtasks=(Subtask("s1", "client", "done"),),
        current_subtask=Subtask("s2", "re\ntries", "doing", evidence="no result yet of: Bash npm test"),
        remaining_subtasks=(Subtask("s3", "docs", "planned"), Subtask("s4", "types", "doing")),
        open_issues=("who owns billing?",),
    )
    assert render(state) == (
        "# Agent Progress - Window 2\n\n"
        "**Goal:** Move to fetch\n> and keep the proxy\n\n"
        "**Saved:** 2026-11-30T10:00:00+00:00\n\n"
        "**Done:** 1 of 4\n\n"
        "## Completed\n- [x] client (s1)\n\n"
        "## Current: re tries (s2)\n- no result yet of: Bash npm test\n\n"
        "## Remaining\n- [ ] docs (s3)\n- [ ] types (s4) (in work)\n\n"
        "## Open Issues\n- [!] who owns billing?\n"
    )


@pytest.mark.parametrize("linked", [False, True])
def test_what_somebody_else_wrote_is_never_replaced_by_the_progress_file(tmp_path: Path, linked: bool) -> None:
    """Neither a file of that name, nor one that a link leads to; nor is the state written then."""
    place = tmp_path / "agent_progress.md"
    other = tmp_path / "other.txt" if linked else place
    other.write_text("export PATH=/bin\n")
    if linked:
        place.symlink_to("other.txt")
    with pytest.raises(InputError, match="no progress file"), store(tmp_path).updating():
        pass
    assert other.read_text() == "export PATH=/bin\n" and not (tmp_path / "agent_state.json").exists()
    other.write_text(render(AgentState()))
    with store(tmp_path).updating() as update:
        update.save(AgentState(state_version=1, task_goal="x"))
    assert place.read_text() == render(AgentState(state_version=1, task_goal="x")) and place.is_symlink() == linked

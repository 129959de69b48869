"""What is not clean when a window closes."""

from __future__ import annotations

import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from ctxctl.model.state import AgentState, Environment, Position, Service, Subtask
from ctxctl.state.clean import unclean
from ctxctl.state.options import StateOptions
from ctxctl.state.progress import render


def state_in(folder: Path, **more: object) -> AgentState:
    around = Environment(cwd=str(folder), **more)  # type: ignore[arg-type]
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    current = Subtask("s1", "go on", "doing")
    return AgentState(task_goal="g", environment=around, current_subtask=current, saved_at=stamp)


def codes(state: AgentState, folder: Path, **rest: bool) -> list[tuple[str, str]]:
    return [(item.code, item.what) for item in unclean(state, folder, **rest)]


def test_all_clean_although_work_goes_on(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    state = state_in(tmp_path)
    (tmp_path / "agent_progress.md").write_text(render(state))
    (tmp_path / "agent_state.json").write_text("{}")
    assert unclean(state, tmp_path) == ()


def test_each_uncommitted_file(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    state = state_in(tmp_path)
    (tmp_path / "agent_progress.md").write_text(render(state))
    (tmp_path / "b").write_text("")
    (tmp_path / "a\nb").write_text("")
    assert codes(state, tmp_path) == [("uncommitted", "a\\nb"), ("uncommitted", "b")]
    assert "commit it" in str(unclean(state, tmp_path)[0])


def test_the_progress_file(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    assert codes(state, tmp_path) == [("progress_missing", "agent_progress.md")]
    (tmp_path / "agent_progress.md").write_text(render(state) + "by hand\n")
    assert codes(state, tmp_path) == [("progress_outdated", "agent_progress.md")]
    (tmp_path / "agent_progress.md").write_text(render(state).replace("go on", "go in"))
    assert codes(state, tmp_path) == [("progress_outdated", "agent_progress.md")]
    (tmp_path / "p.md").write_text(render(state))
    assert unclean(state, tmp_path, StateOptions(progress_file="p.md")) == ()


def test_services_left_running(tmp_path: Path) -> None:
    with socket.socket() as server, socket.socket() as held:
        server.bind(("127.0.0.1", 0))
        server.listen()
        held.bind(("127.0.0.1", 0))
        port, closed = server.getsockname()[1], held.getsockname()[1]
        given = (Service("web", port=port), Service("db", port=closed), Service("job", command="true"))
        state = state_in(tmp_path, services=given)
        (tmp_path / "agent_progress.md").write_text(render(state))
        assert codes(state, tmp_path) == [("service_running", f"web: port {port} answers on 127.0.0.1")]
        assert [what.split(":")[0] for _, what in codes(state, tmp_path, run_commands=True)] == ["web", "job"]


def test_a_transcript_that_went_on(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("x" * 10)
    made = state_in(tmp_path)
    state = AgentState(
        task_goal="g",
        environment=made.environment,
        saved_at=made.saved_at,
        transcript=Position(path=str(tmp_path / "s.jsonl"), size=4),
    )
    (tmp_path / "agent_progress.md").write_text(render(state))
    ((code, what),) = codes(state, tmp_path)
    assert code == "transcript_newer" and what.endswith("6 bytes newer than the checkpoint")


def test_a_gate_does_not_pass_what_it_did_not_see(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".git" / "index").write_bytes(b"garbage")
    state = state_in(tmp_path)
    (tmp_path / "agent_progress.md").write_text(render(state))
    ((code, what),) = codes(state, tmp_path)
    assert code == "git_unknown" and what


def test_a_task_of_another_machine_closes_in_the_states_folder(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    state = state_in(tmp_path / "nowhere")
    (tmp_path / "agent_progress.md").write_text(render(state))
    assert codes(state, tmp_path) == []
    (tmp_path / "left.txt").write_text("")
    assert codes(state, tmp_path) == [("uncommitted", "left.txt")]

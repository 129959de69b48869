"""What agents write to a hook and what it answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.adapters.hooks import log
from ctxctl.adapters.hooks.base import ANY, HookEvent, block, context, parse, registry
from ctxctl.adapters.hooks.bringing import both, pointer
from ctxctl.adapters.hooks.project import state_folder
from ctxctl.errors import InputError
from ctxctl.model.state import AgentState, Subtask

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_an_event_of_claude_code() -> None:
    event = parse(
        b'{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/repo","permission_mode":"default",'
        b'"hook_event_name":"PreCompact","trigger":"auto","custom_instructions":""}'
    )
    assert event == HookEvent("PreCompact", "s", "/t.jsonl", "/repo", trigger="auto")


def test_an_event_of_codex() -> None:
    event = parse(
        b'{"session_id":"s","turn_id":"7","transcript_path":null,"cwd":"/repo","hook_event_name":"Stop","model":"m",'
        b'"permission_mode":"default","stop_hook_active":true,"last_assistant_message":null}'
    )
    assert event == HookEvent("Stop", "s", None, "/repo", stop_active=True)


NO_EVENT = [b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"hook_event_name": 3}', b"\xff", b"[" * 90_000]
FIELD = st.sampled_from(["cwd", "source", "stop_hook_active", "agent_id", "x"])


@pytest.mark.parametrize("data", NO_EVENT)
def test_what_is_no_event(data: bytes) -> None:
    with pytest.raises(InputError):
        parse(data)


@given(st.dictionaries(FIELD, st.none() | st.integers() | st.text() | st.lists(st.text())))
def test_fields_of_any_kind(more: dict[str, Any]) -> None:
    event = parse(json.dumps({**more, "hook_event_name": "Stop"}).encode())
    assert event.cwd is None or event.cwd == more["cwd"]
    assert event.stop_active is False


def test_answers_are_one_line_of_ascii_json() -> None:
    out = context("SessionStart", "zwei\nZeilen ü \ud83d")
    assert out.count(b"\n") == 1 and out.isascii()
    assert json.loads(out)["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert json.loads(block("why")) == {"decision": "block", "reason": "why"}


def test_every_agent_has_its_limits() -> None:
    for name in ("claude-code", "codex"):
        agent = registry.get(name)
        assert agent.name == name and set(agent.defaults) <= set(agent.events)
        for spec in agent.events.values():
            assert spec.deadline < spec.timeout
    assert registry.get("claude-code").measured("\U0001f600") == 2
    assert registry.get("codex").measured("ü") == 2


def test_both_limits_hold() -> None:
    measure = both(len, lambda text: 2 * len(text), 100, 50)
    assert measure("x" * 25) <= 100 < measure("x" * 26)
    assert both(len, len, 10, 1000)("x" * 11) == 11


def test_the_pointer_is_short_whatever_the_state() -> None:
    state = AgentState(task_goal="goal " * 9000, current_subtask=Subtask("s1", "step " * 9000, "doing"))
    text = pointer(state, Path("/p/agent_state.json"), Path("/p/agent_progress.md"))
    assert text.startswith("[CONTEXT_WINDOW_RESUME]\n") and "/p/agent_state.json" in text
    assert ANY.measured(text) < 2000


class TestStateFolder:
    def at(self, cwd: Path | None, given: Path | None = None, agent: str = "claude-code", **environment: str) -> Path:
        event = HookEvent("Stop", cwd=str(cwd) if cwd else None)
        protocol = registry.get(agent) if agent else ANY
        return state_folder(event, protocol, given, "agent_state.json", environment)

    def test_the_working_folder(self, tmp_path: Path) -> None:
        assert self.at(tmp_path) == tmp_path

    def test_a_state_further_up_in_the_repository(self, tmp_path: Path) -> None:
        inner = tmp_path / "repo" / "src"
        inner.mkdir(parents=True)
        (tmp_path / "repo" / ".git").mkdir()
        assert self.at(inner) == inner
        (tmp_path / "agent_state.json").write_text("{}")
        assert self.at(inner) == inner
        (tmp_path / "repo" / "agent_state.json").write_text("{}")
        assert self.at(inner) == tmp_path / "repo"

    def test_the_project_that_the_agent_names(self, tmp_path: Path) -> None:
        inner = tmp_path / "project" / "src"
        inner.mkdir(parents=True)
        assert self.at(inner, CLAUDE_PROJECT_DIR=str(tmp_path / "project")) == tmp_path / "project"
        assert self.at(inner, CLAUDE_PROJECT_DIR=str(tmp_path / "other")) == inner
        assert self.at(inner, CLAUDE_PROJECT_DIR="relative") == inner

    def test_an_agent_that_went_out_of_its_project(self, tmp_path: Path) -> None:
        project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
        (project / "src").mkdir(parents=True)
        elsewhere.mkdir()
        named = {"CLAUDE_PROJECT_DIR": str(project)}
        (elsewhere / "agent_state.json").write_text("{}")
        assert self.at(elsewhere, **named) == project
        assert self.at(None, **named) == project
        (project / "state").mkdir()
        assert self.at(elsewhere, Path("state"), **named) == project / "state"
        (elsewhere / ".git").mkdir()  # another repository is no worktree
        assert self.at(elsewhere, **named) == project
        # the variable is that of one agent
        for agent in ("codex", ""):
            assert self.at(elsewhere, agent=agent, **named) == elsewhere

    @pytest.mark.parametrize("place", ["worktree", "project/.claude/worktrees/x"])
    def test_an_agent_that_went_on_in_a_worktree(self, tmp_path: Path, place: str) -> None:
        project, worktree = tmp_path / "project", tmp_path / place
        (project / ".git").mkdir(parents=True)
        (worktree / "src").mkdir(parents=True)
        (worktree / ".git").write_text(f"gitdir: {project}/.git/worktrees/x\n")
        (project / "agent_state.json").write_text("{}")
        named = {"CLAUDE_PROJECT_DIR": str(project)}
        assert self.at(worktree, **named) == worktree == self.at(worktree / "src", **named)
        # one in which the agent was started is its project
        inside = {"CLAUDE_PROJECT_DIR": str(worktree / "src")}
        assert self.at(worktree, **inside) == worktree / "src" == self.at(tmp_path, **inside)

    def test_a_submodule_is_part_of_its_project(self, tmp_path: Path) -> None:
        module = tmp_path / "project" / "module"
        module.mkdir(parents=True)
        (tmp_path / "project" / ".git").mkdir()
        (module / ".git").write_text("gitdir: ../.git/modules/module\n")
        assert self.at(module, CLAUDE_PROJECT_DIR=str(tmp_path / "project")) == tmp_path / "project"

    def test_given(self, tmp_path: Path) -> None:
        (tmp_path / "state").mkdir()
        assert self.at(tmp_path, Path("state")) == tmp_path / "state"
        assert self.at(None, tmp_path / "state") == tmp_path / "state"

    def test_none_is_made(self, tmp_path: Path) -> None:
        for cwd, folder in ((tmp_path / "no", None), (tmp_path, Path("no")), (None, None)):
            with pytest.raises(InputError):
                self.at(cwd, folder)
        assert list(tmp_path.iterdir()) == []


class TestLog:
    def test_where(self, tmp_path: Path) -> None:
        assert log.log_path({"XDG_STATE_HOME": "/s"}) == Path("/s/ctxctl/hook.log")
        assert log.log_path({"CTXCTL_HOOK_LOG": "off", "XDG_STATE_HOME": "/s"}) is None
        assert log.log_path({"CTXCTL_HOOK_LOG": "/x.log"}) == Path("/x.log")

    def test_it_is_bounded_and_private(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "hook.log"
        for number in range(2000):
            log.write(path, f"entry {number}\n" + "x" * 300, NOW)
        assert path.stat().st_size <= log.MOST
        assert path.stat().st_mode & 0o777 == 0o600
        assert log.last(path, 2) == [f"{NOW.isoformat()} entry 1999", f"{NOW.isoformat()} entry 1998"]
        assert path.read_text().startswith(NOW.isoformat())

    def test_one_that_cant_be_written_is_no_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        log.write(tmp_path / "file" / "hook.log", "x", NOW)
        log.write(None, "x", NOW)
        assert log.last(tmp_path / "none", 3) == [] == log.last(None, 3)

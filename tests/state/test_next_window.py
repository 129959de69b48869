"""Which transcript is the next window of a task, and which one begins another."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.state import AgentState
from ctxctl.model.text import RESUME, RESUME_END
from ctxctl.state.options import StateOptions
from ctxctl.state.saving import Wish, checkpoint

NOW = datetime(2026, 11, 30, tzinfo=UTC)


class Session:
    """A session of Claude Code that is written as it goes."""

    def __init__(self, path: Path, minute: int) -> None:
        self.path, self.minute, self.last, self.count = path, minute, None, 0

    def _write(self, type_: str, message: Any, **more: Any) -> None:
        self.count += 1
        uuid = f"{self.path.stem[:8]:0<8}-0000-4000-8000-{self.count:012d}"
        record = {
            "parentUuid": self.last,
            "isSidechain": False,
            "cwd": "/srv/app",
            "sessionId": self.path.stem,
            "type": type_,
            "message": message,
            "uuid": uuid,
            "timestamp": f"2026-05-01T10:{self.minute:02d}:{self.count:02d}.000Z",
            **more,
        }
        self.last = uuid
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def user(self, text: str, **more: Any) -> None:
        self._write("user", {"role": "user", "content": text}, **more)

    def says(self, text: str) -> None:
        self._answer([{"type": "text", "text": text}])

    def todos(self, *items: tuple[str, str], result: str | None = "ok") -> None:
        todos = [{"content": text, "status": status, "activeForm": text} for text, status in items]
        id_ = f"toolu_{self.path.stem}_{self.count}"
        self._answer([{"type": "tool_use", "id": id_, "name": "TodoWrite", "input": {"todos": todos}}])
        if result is not None:
            part = {"type": "tool_result", "tool_use_id": id_, "content": result, "is_error": result != "ok"}
            self._write("user", {"role": "user", "content": [part]})

    def _answer(self, content: list[Any]) -> None:
        id_ = f"msg_{self.path.stem}_{self.count}"
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": id_, "role": "assistant", "model": "claude-x", "content": content, "usage": usage}
        self._write("assistant", message, requestId=f"req_{id_}")


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., Session]:
    made: list[Session] = []

    def make(name: str) -> Session:
        made.append(Session(tmp_path / f"{name}.jsonl", len(made)))
        return made[-1]

    return make


def save(session: Session, **more: Any) -> AgentState:
    folder = session.path.parent / "state"
    folder.mkdir(exist_ok=True)
    return checkpoint(Wish(str(session.path), **more), folder, StateOptions(), NOW).state


def told(state: AgentState) -> dict[str, str]:
    return {s.text: s.status for s in state.subtasks}


def test_unrelated_sessions_are_tasks_of_their_own(begin: Any, tmp_path: Path) -> None:
    for number, goal in enumerate(("Write a poem about rivers", "Fix the CSV parser", "Draft an email to Kim"), 1):
        session = begin(f"s{number}")
        session.user(goal)
        session.todos((f"{goal}: begin", "in_progress"), (f"{goal}: end", "pending"))
        state = save(session)
        assert state.task_goal == goal
        assert set(told(state)) == {f"{goal}: begin", f"{goal}: end"}
        assert state.window_id == state.state_version == number
    assert sorted(p.name for p in (tmp_path / "state").glob("agent_state.window-*.json")) == [
        "agent_state.window-1.json",
        "agent_state.window-2.json",
    ]


PROMPT = f"{RESUME}\nBackground from window 1.\n## Goal (from: transcript)\n> Port billing\n{RESUME_END}\n"


def first(begin: Any) -> Session:
    session: Session = begin("first")
    session.user("Port billing")
    session.todos(("client", "completed"), ("retries", "in_progress"), ("docs", "pending"))
    save(session)
    return session


@pytest.mark.parametrize("way", ["typed", "typed with a request", "put in, go on", "same goal", "same item", "told so"])
def test_the_next_window(begin: Any, way: str) -> None:
    first(begin)
    session = begin("second")
    if way.startswith("typed"):
        session.user(PROMPT + ("\nThen the docs, please." if "request" in way else ""))
    elif way == "put in, go on":
        session.user(PROMPT, isMeta=True)
        session.user("ok, continue")
    else:
        session.user("Port billing" if way == "same goal" else "Do the rest of it")
    session.says("On it.")
    if way == "same item":
        session.todos(("retries", "completed"), ("docs", "in_progress"))
    state = save(session, same_task=way == "told so")
    assert state.task_goal == "Port billing" and state.window_id == 2
    status = "done" if way == "same item" else "doing"
    assert told(state) == {"client": "done", "retries": status, "docs": "doing" if status == "done" else "planned"}


def test_a_hook_that_brought_the_prompt_in_does_not_make_another_request_the_same_task(begin: Any) -> None:
    first(begin)
    session = begin("second")
    session.user(PROMPT, isMeta=True)
    session.user("Forget that for now: write a poem about rivers.")
    session.says("Rivers run.")
    state = save(session)
    assert state.task_goal.startswith("Forget that") and told(state) == {}


def test_sessions_that_take_turns(begin: Any) -> None:
    one = begin("one")
    one.user("Port billing")
    one.todos(("first", "completed"), ("second", "in_progress"), ("third", "pending"))
    save(one)
    other = begin("two")
    other.user("Port billing")
    other.todos(("first", "completed"), ("second", "completed"), ("third", "in_progress"))
    assert told(save(other)) == {"first": "done", "second": "done", "third": "doing"}
    one.minute = 50
    one.user("thanks")
    assert told(save(one)) == {"first": "done", "second": "done", "third": "doing"}


@pytest.mark.parametrize("result", [None, "The user doesn't want to proceed with this tool use."])
def test_a_list_that_was_not_written_finishes_nothing(begin: Any, result: str | None) -> None:
    session = begin("s")
    session.user("Port billing")
    session.todos(("client", "in_progress"))
    save(session)
    session.todos(("client", "completed"), ("phantom", "completed"), result=None)
    found = told(save(session))
    assert found["client"] == "doing" and found.get("phantom") != "done"
    if result is not None:
        id_ = json.loads(session.path.read_text(encoding="utf-8").splitlines()[-1])["message"]["content"][0]["id"]
        part = {"type": "tool_result", "tool_use_id": id_, "content": result, "is_error": True}
        session._write("user", {"role": "user", "content": [part]})
        session.says("All right.")
        assert told(save(session)) == {"client": "doing"}


def test_a_document_read_again_keeps_the_newest_of_its_lists(tmp_path: Path) -> None:
    path, folder = tmp_path / "chat.json", tmp_path / "state"
    folder.mkdir()
    messages = [{"role": "user", "content": "Port billing"}, {"role": "assistant", "content": "Yes."}]
    for number in range(70):
        messages += [
            {"role": "user", "content": f"also port module number {number}"},
            {"role": "assistant", "content": "Done."},
        ]
    path.write_text(json.dumps({"messages": messages}))
    once = checkpoint(Wish(str(path)), folder, StateOptions(), NOW).state
    again = checkpoint(Wish(str(path)), folder, StateOptions(), NOW).state
    assert again.requests == once.requests and once.requests[-1] == "also port module number 69"
    assert again.window_id == 1


def test_another_conversation_in_the_same_file_is_another_task(tmp_path: Path) -> None:
    path, folder = tmp_path / "request.json", tmp_path / "state"
    folder.mkdir()
    for number, goal in enumerate(("Write a poem about rivers", "Fix the CSV parser of the exporter"), 1):
        path.write_text(
            json.dumps({"messages": [{"role": "user", "content": goal}, {"role": "assistant", "content": "Yes."}]})
        )
        state = checkpoint(Wish(str(path)), folder, StateOptions(), NOW).state
        assert (state.task_goal, state.window_id) == (goal, number)


def test_what_was_written_into_the_file_by_hand_outlives_a_reading_of_the_whole(tmp_path: Path) -> None:
    path, folder = tmp_path / "request.json", tmp_path / "state"
    folder.mkdir()
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Fix the CSV parser"}]}))
    checkpoint(Wish(str(path)), folder, StateOptions(), NOW)
    file = folder / "agent_state.json"
    value = json.loads(file.read_text())
    value["decisions"].append({"what": "keep the old quoting", "why": "files from 2019"})
    file.write_text(json.dumps(value))
    state = checkpoint(Wish(str(path)), folder, StateOptions(), NOW).state
    assert [d.what for d in state.decisions] == ["keep the old quoting"]

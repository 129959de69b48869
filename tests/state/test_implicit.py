"""Implicit state: what is relied on and held nowhere, and near misses that must not be reported."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from ctxctl.model.state import AgentState, Environment, FileState, Subtask, TailBlock
from ctxctl.model.summary import Commit, DecisionFact
from ctxctl.state.implicit import MOST, implicit

TASK = AgentState(task_goal="port the parser to the new grammar")


def call(name: str, turn: int = 5, **given: Any) -> TailBlock:
    text = f"{name} {json.dumps(given)}"
    target = given.get("file_path") or given.get("command")
    return TailBlock(turn, "tool_call", "assistant", text, name, target if isinstance(target, str) else None)


def result(text: str, turn: int = 6) -> TailBlock:
    return TailBlock(turn, "tool_result", "user", text, "Bash")


def says(text: str, turn: int = 5) -> TailBlock:
    return TailBlock(turn, "assistant", "assistant", text)


def asks(text: str) -> TailBlock:
    return TailBlock(5, "user_message", "user", text)


def found(*tail: TailBlock, **state: Any) -> list[tuple[str, str]]:
    return [(one.kind, one.what) for one in implicit(replace(TASK, tail=tail, **state))]


def step(text: str, *tail: TailBlock, **state: Any) -> list[tuple[str, str]]:
    return found(*tail, current_subtask=Subtask("s1", text, "doing"), **state)


def with_file(path: str) -> dict[str, Any]:
    return {"environment": Environment(cwd="/w", files=(FileState(path, "modified"),))}


def test_nothing_said_nothing_found() -> None:
    assert implicit(AgentState()) == ()


# paths that calls use

RUN = call("Bash", command="python /tmp/exp/run7.py --fast")


def test_a_script_that_nothing_names() -> None:
    assert found(RUN) == [("path", "/tmp/exp/run7.py")]
    assert found(call("Bash", command="cd /w && ./scratch/bisect.sh")) == [("path", "./scratch/bisect.sh")]
    assert found(call("shell", command=["bash", "-lc", "node gen/build.mjs"])) == [("path", "gen/build.mjs")]


def test_what_holds_a_path() -> None:
    assert found(RUN, **with_file("/tmp/exp/run7.py")) == []
    assert found(RUN, compaction_summary="wrote /tmp/exp/run7.py, which times it") == []
    assert found(RUN, learnings=("run7.py needs --fast",)) == []
    assert found(RUN, completed_subtasks=(Subtask("s1", "write run7.py", "done"),)) == []
    assert found(says("run7.py measures it"), RUN) == []
    assert found(asks("run /tmp/exp/run7.py"), RUN) == []
    assert found(result("exp/run7.py\nexp/run8.py", 4), RUN) == []
    assert found(call("Write", file_path="/tmp/exp/run7.py", content="x"), RUN) == []
    assert found(call("Bash", command="cat > /tmp/exp/run7.py <<'E'\nx\nE\npython /tmp/exp/run7.py")) == []
    assert found(call("Bash", command="cp a.py /tmp/exp/run7.py && python /tmp/exp/run7.py"), **with_file("a.py")) == []


def test_its_own_result_does_not_hold_it() -> None:
    assert found(RUN, result("Traceback: /tmp/exp/run7.py line 3")) == [("path", "/tmp/exp/run7.py")]


def test_another_file_of_a_similar_name_does_not_hold_it() -> None:
    assert found(RUN, **with_file("/tmp/other/run7.py")) == [("path", "/tmp/exp/run7.py")]
    assert found(RUN, **with_file("/tmp/exp/run77.py")) == [("path", "/tmp/exp/run7.py")]
    assert found(RUN, **with_file("exp/run7.py")) == []


def test_a_file_that_is_edited_but_that_no_state_knows() -> None:
    edit = call("Edit", file_path="/w/src/lost.py", old_string="a", new_string="b")
    assert found(edit) == [("path", "/w/src/lost.py")]
    assert found(edit, **with_file("src/lost.py")) == []
    assert found(call("Read", file_path="/w/src/lost.py"), result("1\tx"), edit) == []


def test_a_file_that_is_read_in_the_tail_is_held_by_it() -> None:
    assert found(call("Read", file_path="/w/src/x.py"), result("1\tx = 1")) == []


@pytest.mark.parametrize(
    "command",
    [
        "ls /tmp/exp/run7.py; test -f /tmp/exp/run7.py",
        "mkdir -p /tmp/exp/out.d",
        "grep -rn foo src/x.py",
        "/usr/bin/python3 -c 'print(1)'",
        "cat /etc/hosts.conf",
        "git log origin/main..feature/x.y",
        "pip install some/pkg.whl",
        "curl https://example.org/a/b.json",
        "pytest -q",
        "echo see docs/readme.md",
        "go test ./...",
        "npm run build",
        "python run-$N.py",
        "python 'odd {x}.py'",
        "docker run image/name:1.2",
        "make -C build all",
        "ssh host /tmp/x.sh",
    ],
)
def test_near_misses_of_paths(command: str) -> None:
    assert found(call("Bash", command=command)) == []


def test_a_test_of_a_known_file_by_its_node() -> None:
    assert found(call("Bash", command="pytest tests/test_a.py::test_b"), **with_file("tests/test_a.py")) == []


def test_a_call_that_was_cut_is_told_by_its_target() -> None:
    cut = TailBlock(
        5, "tool_call", "assistant", 'Bash {"command":"python /tmp/r.py aaa…', "Bash", "python /tmp/r.py aaa"
    )
    assert found(cut) == [("path", "/tmp/r.py")]
    write = TailBlock(5, "tool_call", "assistant", 'Write {"content":"python /tmp/q.py…', "Write", "/w/a.py")
    assert found(write) == []


def test_content_that_is_written_is_no_use() -> None:
    assert found(call("Write", file_path="/w/a.sh", content="python /tmp/never.py\nkill 4711")) == []


# ids


def test_a_session_that_was_started_before() -> None:
    poll = call("write_stdin", session_id=48213, chars="")
    assert found(poll) == [("id", "48213")]
    assert found(result("Process running with session ID 48213", 4), poll) == []
    assert found(poll, result("session 48213 closed")) == [("id", "48213")]
    assert found(poll, open_issues=("the server runs as session 48213",)) == []


@pytest.mark.parametrize("key", ["bash_id", "shell_id", "task_id", "terminalId", "process_id", "agentId"])
def test_ids_by_the_names_of_arguments(key: str) -> None:
    assert found(call("BashOutput", **{key: "bash_17"})) == [("id", "bash_17")]
    assert found(result("running in background with ID: bash_17", 4), call("BashOutput", **{key: "bash_17"})) == []
    assert found(result("running in background with ID: bash_170", 4), call("BashOutput", **{key: "bash_17"})) == [
        ("id", "bash_17")
    ]


def test_processes_that_are_ended() -> None:
    assert found(call("Bash", command="kill -9 31337 && sleep 1")) == [("id", "31337")]
    assert found(result("[1] 31337", 4), call("Bash", command="kill 31337")) == []
    assert found(call("Bash", command="kill %1; kill $PID; pkill -f server")) == []


def test_hashes() -> None:
    show = call("Bash", command="git show 84c5473e")
    assert found(show) == [("id", "84c5473e")]
    assert found(show, commits=(Commit("fix", "84c5473"),)) == []
    assert found(show, environment=Environment(git_head="84c5473e17064fb0380f0b6f1ff4a277fb0e6888")) == []
    assert found(result("84c5473e first", 4), show) == []
    assert found(call("Bash", command="git diff 84c5473e..HEAD~2 -- a.py"), **with_file("a.py")) == [("id", "84c5473e")]
    assert found(call("Bash", command="docker logs 3f2a9bc81d20")) == [("id", "3f2a9bc81d20")]


@pytest.mark.parametrize(
    "command", ["git show HEAD~3", "git checkout decade", "git log -5 20240101", "git switch added"]
)
def test_near_misses_of_hashes(command: str) -> None:
    assert found(call("Bash", command=command)) == []


def test_todo_tools_name_items_of_the_list() -> None:
    assert found(call("TaskUpdate", taskId="7", status="completed")) == []
    assert found(call("TodoWrite", todos=[{"id": "3f2a9bc81d20", "content": "python /tmp/x.py"}])) == []


@pytest.mark.parametrize("given", [{"session_id": ""}, {"session_id": None}, {"pid": True}, {"task_id": "two words"}])
def test_values_that_are_no_ids(given: dict[str, Any]) -> None:
    assert found(call("Poll", **given)) == []


# findings


@pytest.mark.parametrize(
    "text",
    [
        "Now I fix the bug we found earlier.",
        "As found above, the tokenizer drops the last byte.",
        "I'll apply the same workaround as before.",
        "Next: redo step 3 with the flag.",
        "Use the approach we discussed previously for load_table.",
        "如上所述,继续。",
    ],
)
def test_findings_that_are_only_pointed_at(text: str) -> None:
    assert [kind for kind, _ in found(says(text))] == ["finding"]
    assert [kind for kind, _ in step(text)] == ["finding"]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Now I fix the bug we found earlier.", "the bug: read_all stops at NUL"),
        ("As found above, the tokenizer drops the last byte.", "tokenizer: the last byte is dropped"),
        ("I'll apply the same workaround as before.", "workaround: pin numpy"),
        ("Next: redo step 3 with the flag.", "plan:\n1. survey\n2. port\n3. measure"),
        ("Next: redo step 3 with the flag.", "Step 3: measure"),
        ("Use the approach we discussed previously for load_table.", "load_table gets chunks"),
    ],
)
def test_findings_that_are_held(text: str, held: str) -> None:
    assert found(says(held, 4), says(text)) == []
    assert found(result(held, 4), says(text)) == []
    assert found(says(text), learnings=(held,)) == []
    assert found(says(text), decisions=(DecisionFact(held),)) == []
    assert step(text, says(held)) == []
    assert found(says(f"{held}\n\n{text}")) == []


@pytest.mark.parametrize(
    "text",
    [
        "The test failed earlier than expected.",
        "See the table above the fold.",
        "I have found the bug.",
        "Let me look at step by step results.",
        "This is as good as before.",
        "Run `grep 'as found above'` in the docs.",
        "```\nas found above, x\n```",
        "Fix the bug in the parser before the release.",
        "The option above 3 is fine.",
        "Continue with the plan.",
        "per item cost",
    ],
)
def test_near_misses_of_findings(text: str) -> None:
    assert found(says(text)) == []
    assert step(text) == []


def test_a_finding_of_another_thing_does_not_hold_it() -> None:
    assert found(says("Fix the bug we found earlier in parse_header."), learnings=("a bug in login_form",)) != []


def test_tool_output_points_at_nothing() -> None:
    assert found(result("as found above, the same error as before")) == []


# the current step


def test_a_path_that_only_the_current_step_names() -> None:
    assert step("port src/lex/rules.py to the new grammar") == [("path", "src/lex/rules.py")]
    assert step("port src/lex/rules.py", **with_file("/w/src/lex/rules.py")) == []
    assert step("port src/lex/rules.py", says("rules.py has 40 rules")) == []
    assert step("port src/lex/rules.py", call("Read", file_path="/w/src/lex/rules.py"), result("x")) == []


@pytest.mark.parametrize(
    "text",
    [
        "write docs/new.md",
        "read https://example.org/a/b.html",
        "move to Node.js and/or TypeScript",
        "check 1/2 of it",
        "edit rules",
        "look at /etc/hosts.allow",
        "add a test in tests/test_new.py",
    ],
)
def test_near_misses_of_the_current_step(text: str) -> None:
    assert step(text) == []


# bounds


def test_each_is_reported_once_and_not_too_many() -> None:
    assert found(RUN, RUN) == [("path", "/tmp/exp/run7.py")]
    assert len(found(*[call("Bash", command=f"python /tmp/x{n}.py") for n in range(50)])) == MOST


def test_hostile_texts_are_quick() -> None:
    import time

    start = time.perf_counter()
    for text in (
        "as we " * 20000,
        "the same " * 20000,
        "a" * 100000,
        "((((" * 20000,
        "see the step " * 9000,
        "` " * 50000,
    ):
        found(says(text), call("Bash", command=text))
        step(text)
    assert time.perf_counter() - start < 5


@over(st.text(), st.text(), st.text())
def test_any_text_is_taken(name: str, text: str, target: str) -> None:
    blocks = [TailBlock(1, kind, "assistant", text, name, target) for kind in ("tool_call", "assistant", "tool_result")]
    step(text, *blocks)
    step(text, call("Bash", command=text), call("Edit", file_path=target), call(name, session_id=target))

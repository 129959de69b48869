"""Calls and thoughts that lead nowhere."""

from __future__ import annotations

import json
from pathlib import Path

from sessions import ClaudeSession, examined, lines_of

from ctxctl.health.detectors.repeated_calls import RepeatedCalls
from ctxctl.health.detectors.runaway_loop import RunawayLoop
from ctxctl.model.finding import Finding

MISSING = "Exit code 1\nModuleNotFoundError: No module named 'yaml'"


def found(session: ClaudeSession) -> list[Finding]:
    return list(RunawayLoop().find(session.examine()))


def started(folder: Path) -> ClaudeSession:
    session = ClaudeSession(folder)
    session.user("Make the build pass.")
    return session


def test_a_failing_call_retried_three_times(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(3):
        session.bash("python build.py", MISSING, error=True)
        session.bash(f"ls dist/{number}", "empty.txt")
    (finding,) = found(session)
    assert finding.evidence is not None and finding.evidence.turns == (1, 3, 5)
    assert "failed 3 times with the same error" in finding.message
    assert "ModuleNotFoundError: No module named 'yaml'" in finding.message
    assert any("ModuleNotFoundError" in quote.text for quote in finding.evidence.quotes)
    assert finding.evidence.counts["tokens"] > 30


def test_a_loop_that_ends_at_the_second_try_is_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    session.bash("python build.py", MISSING, error=True)
    session.bash("python build.py", MISSING, error=True)
    session.bash("pip install pyyaml", "Successfully installed pyyaml")
    session.bash("python build.py", "built")
    assert found(session) == []


def test_a_retry_after_a_real_change_is_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(5):
        session.bash("python build.py", MISSING, error=True)
        session.edit("build.py", f"import a{number}", f"import b{number}")
    assert found(session) == []


def test_another_error_is_progress(tmp_path: Path) -> None:
    session = started(tmp_path)
    for name in ("yaml", "toml", "attr", "rich"):
        session.bash("python build.py", MISSING.replace("yaml", name), error=True)
    assert found(session) == []


def test_a_user_who_comes_in_makes_it_another_try(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(4):
        session.bash("python build.py", MISSING, error=True)
        session.answer("It fails.")
        session.user("I installed something, try again.")
    assert found(session) == []


def test_edits_of_one_file_that_keep_failing(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(4):
        given = {"file_path": "src/a.py", "old_string": f"x = {number}", "new_string": "x = 9"}
        session.call("Edit", given, "<tool_use_error>String to replace not found in file.</tool_use_error>", error=True)
    (finding,) = found(session)
    assert "Edit on src/a.py failed 4 times" in finding.message


def test_output_that_only_grows(tmp_path: Path) -> None:
    session = started(tmp_path)
    for size in (50, 100, 160, 320):
        session.call("mcp__logs__fetch", {"service": "api"}, lines_of(size))
    (finding,) = found(session)
    assert "returned ever larger output" in finding.message
    assert "tail -n" in finding.hint


def test_output_that_grows_and_shrinks_is_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    for size in (50, 320, 100, 330):
        session.call("mcp__logs__fetch", {"service": "api"}, lines_of(size))
    assert found(session) == []


def test_two_calls_in_turn_without_progress(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(3):
        session.edit("src/a.py", "x = 1", "x = 2")
        session.edit("src/a.py", "x = 2", "x = 1")
    (finding,) = found(session)
    assert "were called in turn, 3 times with the same outcomes" in finding.message
    assert list(RepeatedCalls().find(session.examine())) == []


def test_two_calls_in_turn_with_new_outcomes_are_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(6):
        session.bash("make step", f"step {number} done")
        session.bash("make status", f"{6 - number} steps left")
    assert found(session) == []


def thought(session: ClaudeSession, sizes: tuple[int, ...]) -> ClaudeSession:
    for number, size in enumerate(sizes):
        session.call("Read", {"file_path": f"src/{number}.py"}, f"x = {number}", thinking=lines_of(size, "idea"))
    return session


def test_reasoning_that_only_grows(tmp_path: Path) -> None:
    (finding,) = found(thought(started(tmp_path), (10, 20, 40, 80, 160, 320)))
    assert "reasoning grew with each of 6 answers" in finding.message
    assert finding.evidence is not None and finding.evidence.counts["answers"] == 6


def test_reasoning_that_comes_to_an_end_is_none(tmp_path: Path) -> None:
    assert found(thought(started(tmp_path), (10, 20, 40, 320, 30, 320))) == []


def test_what_is_a_loop_in_two_ways_is_told_once(tmp_path: Path) -> None:
    session = started(tmp_path)
    for size in (50, 100, 160, 320):
        session.bash("python build.py", f"{MISSING}\n{lines_of(size, 'frame')}", error=True)
    (finding,) = found(session)
    assert "failed 4 times with the same error" in finding.message


def test_output_of_failures_that_only_grows(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number, size in enumerate((50, 100, 160, 320)):
        session.bash("make all", f"Exit code 2\nError: {number} targets failed\n{lines_of(size, 'frame')}", error=True)
    (finding,) = found(session)
    assert "failed each time and returned ever larger output" in finding.message


def test_a_failure_without_words(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(3):
        session.bash("./run.sh", "Exit code 7", error=True)
    (finding,) = found(session)
    assert finding.message.endswith(" tokens")


def test_thinking_in_a_message_of_another_role_is_no_error(tmp_path: Path) -> None:
    def message(role: str, *content: dict[str, str]) -> dict[str, object]:
        return {"role": role, "content": list(content)}

    said, thinking = {"type": "text", "text": "Go on."}, {"type": "thinking", "thinking": "So far.", "signature": "s"}
    messages = [
        message("user", said),
        message("assistant", thinking, said),
        message("user", said),
        message("user", thinking),
    ]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"model": "claude-opus-4-5", "max_tokens": 100, "messages": messages}))
    assert list(RunawayLoop().find(examined(path))) == []

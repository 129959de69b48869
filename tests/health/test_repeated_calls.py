"""The same call with the same result."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.repeated_calls import RepeatedCalls
from ctxctl.model.finding import Finding

HITS = lines_of(20, "hit")


def found(session: ClaudeSession) -> list[Finding]:
    return list(RepeatedCalls().find(session.examine()))


def started(folder: Path) -> ClaudeSession:
    session = ClaudeSession(folder)
    session.user("Find all uses of the parser.")
    return session


def test_three_times_the_same(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(3):
        session.call("Grep", {"pattern": "parser", "path": "src"}, HITS)
        session.bash(f"ls src/{number}", f"file_{number}.py")  # what only looks changes nothing
    (finding,) = found(session)
    assert finding.evidence is not None
    assert finding.evidence.turns == (1, 3, 5) and finding.turn == 5
    assert finding.evidence.counts["calls"] == 3
    assert "was called 3 times (turns 1, 3 and 5) with the same result" in finding.message


def test_twice_is_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(2):
        session.call("Grep", {"pattern": "parser", "path": "src"}, HITS)
    assert found(session) == []


def test_durations_do_not_make_a_result_another(tmp_path: Path) -> None:
    session = started(tmp_path)
    for seconds in ("0.12", "0.31", "1.05"):
        session.bash("pytest -q", f"42 passed in {seconds}s")
    (finding,) = found(session)
    assert "`Bash pytest -q` was called 3 times" in finding.message


def test_tests_run_again_after_an_edit_are_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(5):
        session.bash("pytest -q", "42 passed in 0.12s")
        session.edit("src/parser.py", f"a{number}", f"b{number}")
    assert found(session) == []


def test_an_unknown_command_in_between_is_a_reason_to_look_again(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(5):
        session.call("Grep", {"pattern": "parser", "path": "src"}, HITS)
        session.bash(f"python migrate.py --step {number}", "done")
    assert found(session) == []


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "sleep 30; cat build.log"}),
        ("Bash", {"command": "kubectl get pods -n shop"}),
        ("Bash", {"command": "gh run view 1234"}),
        ("Bash", {"command": "curl -sf localhost:8000/healthz"}),
        ("BashOutput", {"bash_id": "b1"}),
        ("mcp__ci__get_build_status", {"id": 7}),
        ("mcp__browser__snapshot", {}),
    ],
)
def test_waiting_is_none(tmp_path: Path, tool: str, given: dict[str, object]) -> None:
    session = started(tmp_path)
    for _ in range(6):
        session.call(tool, given, "still running")
    assert found(session) == []


def test_other_results_are_none(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(5):
        session.call("Grep", {"pattern": "parser", "path": "src"}, f"{HITS}\nsrc/new_{number}.py")
    assert found(session) == []


def test_a_new_request_of_the_user_is_a_reason_to_look_again(tmp_path: Path) -> None:
    session = started(tmp_path)
    for number in range(5):
        session.bash("git status", "nothing to commit")
        session.answer("Clean.")
        session.user(f"I changed file {number}. And now?")
    assert found(session) == []


def test_what_has_left_the_window_may_be_fetched_again(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(5):
        session.call("Grep", {"pattern": "parser", "path": "src"}, HITS)
        session.compact("Looking for the parser.")
    session.answer("Found.")
    assert found(session) == []


def test_failures_belong_to_another_detector(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(5):
        session.bash("make lint", "make: *** No rule to make target 'lint'.", error=True)
    assert found(session) == []


def test_many_readings_of_a_file_belong_to_another_detector(tmp_path: Path) -> None:
    session = started(tmp_path)
    for _ in range(4):
        session.read("src/parser.py", HITS)
    assert len(found(session)) == 1
    session.read("src/parser.py", HITS)
    assert found(session) == []

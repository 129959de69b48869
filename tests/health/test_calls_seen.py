"""The calls of a session as detectors see them."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import ClaudeSession, examined, lines_of

from ctxctl.health.detectors.base import DETECTORS
from ctxctl.health.detectors.runaway_loop import RunawayLoop
from ctxctl.health.signals.bounded import listed
from ctxctl.health.signals.calls import Call, calls_of, in_window

MINE = ("jit_thrash", "repeated_calls", "runaway_loop", "reload", "unused_load", "whole_content", "preload")


def calls(session: ClaudeSession) -> list[Call]:
    return calls_of(session.examine())


def test_what_calls_read_and_change(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go.")
    session.read("/code/app/src/a.py", "x = 1")
    session.call("Read", {"file_path": "src/a.py", "offset": 10, "limit": 5}, "y = 1")
    session.bash("cd /code/app && nl -ba src/a.py | sed -n '1,20p'", "1\tx = 1")
    session.edit("/code/app/src/a.py", "x", "y")
    session.bash("sed -i s/x/y/ src/a.py", "")
    session.bash("rm -f src/b.py && echo done > log.txt", "")
    found = calls(session)
    assert [[r.path for r in c.reads] for c in found] == [["src/a.py"], ["src/a.py"], ["src/a.py"], [], [], []]
    assert [r.part for c in found for r in c.reads] == ["", "offset=10 limit=5", "nl -ba | sed -n 1,20p"]
    assert [c.changes for c in found] == [(), (), (), ("src/a.py",), ("src/a.py",), ("src/b.py", "log.txt")]
    assert [c.alters for c in found] == [False, False, False, True, True, True]


def test_how_calls_ended(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go.")
    session.bash("pytest", "Exit code 2\nImportError: no module", error=True)
    session.bash("grep -rn nothing src", "Exit code 1", error=True)
    session.bash("rm -rf /", "The user doesn't want to proceed with this tool use.", error=True)
    session.call("mcp__db__lookup", {"id": 1}, "Error: no such row")
    session.call("mcp__db__lookup", {"id": 1}, "Error handling in this module\n" + lines_of(100))
    assert [(c.failed, c.refused) for c in calls(session)] == [
        (True, False),
        (False, False),  # nothing found is an answer
        (True, True),
        (True, False),
        (False, False),
    ]


def test_scripts_in_fences_are_calls(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"role": "system", "content": "You run one fenced script per answer."},
        {"role": "user", "content": "Fix it."},
    ]
    for _ in range(3):
        rows.append({"role": "assistant", "content": "THOUGHT: look\n\n```bash\ncat src/a.py\n```"})
        rows.append({"role": "user", "content": "<returncode>0</returncode>\n<output>\nx = 1\n</output>"})
    path = tmp_path / "run.traj.json"
    path.write_text(json.dumps({"trajectory_format": "mini-swe-agent-1", "info": {}, "messages": rows}))
    found = calls_of(examined(path))
    assert [(c.name, c.kind, [r.path for r in c.reads]) for c in found] == [("shell", "read", ["src/a.py"])] * 3
    assert len({c.key for c in found}) == 1 and all(c.result is not None and not c.failed for c in found)


def test_parallel_calls_find_their_own_results(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go.")
    one, two = session.answer(calls=[("Read", {"file_path": "a"}), ("Read", {"file_path": "b"})])
    session.result(two, "text of b")
    session.result(one, "text of a")
    session.answer("Done.")
    seen = session.examine()
    texts = [seen.trace.blocks[c.result or 0].text for c in calls_of(seen)]
    assert texts == ["text of a", "text of b"]
    assert all(in_window(seen, c, 2) and not in_window(seen, c, 1) for c in calls_of(seen))


def test_credentials_stay_out_of_messages(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "Zx9" * 20
    session = ClaudeSession(tmp_path)
    session.user("Go.")
    for _ in range(3):
        session.bash(
            f"curl -X POST -H 'x-api-key: {secret}' https://a.example", f"Exit code 1\nError: {secret}", error=True
        )
    (finding,) = RunawayLoop().find(session.examine())
    assert secret not in repr(finding) and "\n" not in finding.message


def test_turns_are_listed_briefly() -> None:
    assert listed([4]) == "turn 4"
    assert listed([4, 4, 9]) == "turns 4 and 9"
    assert listed(range(1, 21)) == "turns 1, 2, 3, ... and 20"


TOOLS = ("Read", "Bash", "Edit", "Write", "Grep", "apply_patch", "TodoWrite", "mcp__x__get", "str_replace_editor", "")
VALUES = st.one_of(
    st.text(max_size=20),
    st.integers(),
    st.none(),
    st.lists(st.text(max_size=5), max_size=3),
    st.sampled_from(("cat a", "a.py")),
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(("file_path", "path", "command", "cmd", "offset", "content", "input", "view_range", "pattern")),
    VALUES,
    max_size=3,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(TOOLS), ARGUMENTS, st.text(max_size=60), st.booleans()), max_size=8))
def test_whatever_calls_hold_no_detector_fails(
    tmp_path: Path, made: list[tuple[str, dict[str, object], str, bool]]
) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Go.")
    for tool, arguments, result, failed in made * 3:
        session.call(tool, arguments, result, error=failed)
    seen = session.examine()
    for code in MINE:
        detector = DETECTORS.get(code)()
        again = DETECTORS.get(code)()
        note = detector.note(seen)
        first = [*detector.find(seen), *(f for _, f in detector.over([("p", note)] * 5 if note is not None else []))]
        assert first == [*again.find(seen), *(f for _, f in again.over([("p", note)] * 5 if note is not None else []))]
        assert all(f.code == code and f.message and f.hint for f in first)

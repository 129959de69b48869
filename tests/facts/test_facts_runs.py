"""Test runs, commits and errors."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.facts.runners import runs_tests
from ctxctl.facts.tests import judge
from ctxctl.model.summary import Commit


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q tests",
        "python -m pytest",
        "python3.11 -X dev -m unittest discover",
        "uv run pytest",
        "uv run --group dev pytest -q",
        "poetry run python -m pytest",
        "coverage run -m pytest",
        "timeout 60 pytest",
        "go test ./...",
        "cargo test --all",
        "cargo nextest run",
        "npm test",
        "npm run test:unit",
        "npm t",
        "pnpm --filter @a/b test",
        "yarn workspace web test",
        "yarn jest",
        "npx vitest run",
        "npx --yes jest",
        "make test",
        "make -j4 check",
        "mise run test",
        "just test-all",
        "tox -e py311",
        "./mvnw -q verify",
        "mvn -Dx=y test",
        "./gradlew :app:testDebugUnitTest",
        "bundle exec rspec spec",
        "vendor/bin/phpunit",
        "ctest --output-on-failure",
        "dotnet test",
        "./tests/runtests.py queries",
        "python tests/runtests.py queries",
        "bin/test sympy/core",
        "python manage.py test app",
        "bazel test //...",
        "deno test",
        "npx playwright test",
    ],
)
def test_what_runs_tests(command: str) -> None:
    assert runs_tests(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "grep pytest .",
        "pip install pytest",
        "npm run lint",
        "npm run check-types",
        "npm run build",
        "go build ./...",
        "cat test.py",
        "python test.py",
        "make build",
        "cargo build",
        "git checkout test",
        "ls tests",
        "uv pip install pytest",
        "mkdir test",
        "npm install --save-dev jest",
    ],
)
def test_what_does_not(command: str) -> None:
    assert not runs_tests(command.split())


@pytest.mark.parametrize(
    ("text", "outcome", "detail"),
    [
        ("==== 3 failed, 412 passed in 4.31s ====", "failed", "3 failed, 412 passed in 4.31s"),
        ("412 passed, 2 warnings in 4.31s", "passed", "412 passed, 2 warnings in 4.31s"),
        ("1 passed in 0.1s\n1 error in 0.2s", "failed", "1 error in 0.2s"),
        ("Ran 3 tests in 0.1s\n\nFAILED (failures=1, errors=2)", "failed", "FAILED (failures=1, errors=2)"),
        ("Ran 3 tests in 0.1s\n\nOK (skipped=1)", "passed", "OK (skipped=1)"),
        ("--- FAIL: TestX (0.0s)\nFAIL\nFAIL\tpkg\t0.1s\nFAIL", "failed", "--- FAIL: TestX (0.0s)"),
        ("ok  \tpkg/a\t0.1s\nok  \tpkg/b\t(cached)", "passed", "ok pkg/b (cached)"),
        ("Tests:       1 failed, 5 passed, 6 total", "failed", "Tests: 1 failed, 5 passed, 6 total"),
        (" Tests  245 passed (245)", "passed", "Tests 245 passed (245)"),
        (
            "test result: ok. 5 passed; 0 failed; 0 ignored; finished in 0.01s",
            "passed",
            "test result: ok. 5 passed; 0 failed; 0 ignored; finished in 0.01s",
        ),
        ("test result: FAILED. 4 passed; 1 failed;", "failed", "test result: FAILED. 4 passed; 1 failed;"),
        ("  5 passing (20ms)\n  1 failing", "failed", "1 failing"),
        (
            "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
            "passed",
            "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
        ),
        ("5 examples, 0 failures", "passed", "5 examples, 0 failures"),
        ("5 examples, 1 failure", "failed", "5 examples, 1 failure"),
        ("OK (5 tests, 10 assertions)", "passed", "OK (5 tests, 10 assertions)"),
        ("100% tests passed, 0 tests failed out of 5", "passed", "100% tests passed, 0 tests failed out of 5"),
        ("80% tests passed, 1 tests failed out of 5", "failed", "80% tests passed, 1 tests failed out of 5"),
        (
            "tests finished: 41 passed, 2 exceptions, \nin 0.26 seconds",
            "failed",
            "tests finished: 41 passed, 2 exceptions,",
        ),
        ("nothing to tell", "unknown", ""),
    ],
)
def test_figures(text: str, outcome: str, detail: str) -> None:
    assert judge(text, None) == (outcome, detail)


def test_the_exit_status_decides() -> None:
    assert judge("", 0) == ("passed", "")
    assert judge("1 passed in 0.1s\nFail Required test coverage of 90% not reached", 2) == ("failed", "")
    assert judge("python: No module named pytest", 1) is None
    assert judge("bash: pytest: command not found", 127) is None


def test_the_newest_run_of_each_command(script: Any) -> None:
    script.bash("pytest -q 2>&1 | tail -5", "1 failed in 0.1s")
    script.bash("cd /w && pytest -q", "2 passed in 0.1s")
    script.bash("go test ./... && echo done", "ok  \tx\t1s\ndone")
    script.bash("npm test && npm run lint", "lint: error", error=True)
    script.bash("pytest --version", "pytest 8")
    runs = [(run.command, run.outcome) for run in script.summary().tests]
    assert runs == [("pytest -q", "passed"), ("go test ./...", "passed"), ("npm test", "unknown")]


def test_runs_that_go_on(script: Any) -> None:
    script.call("exec_command", {"cmd": "pytest"}, "Chunk ID: 1\nProcess running with session ID 77\nOutput:\n...")
    script.call("write_stdin", {"session_id": 77, "chars": ""}, "Process exited with code 1\nOutput:\n2 failed in 3s")
    (run,) = script.summary().tests
    assert (run.command, run.outcome, run.detail) == ("pytest", "failed", "2 failed in 3s")


def test_commits(script: Any) -> None:
    script.bash(
        "git add -A && git commit -m 'First thing'", "[main (root-commit) 1234567] First thing\n 1 file changed"
    )
    script.bash('git commit -m "$(cat <<\'EOF\'\nSecond "thing"\n\nBody\nEOF\n)"', '[a/b 89abcde] Second "thing"')
    script.bash("git commit -qm 'Silent one'")
    script.bash("git commit -m 'Nothing'", "nothing to commit, working tree clean", error=True)
    script.bash("git log --grep commit", "commit 777")
    script.call(
        "shell",
        {"command": ["bash", "-lc", "git commit -am x"]},
        '{"output":"[dev fedcba9] x\\n 1 file","metadata":{"exit_code":0}}',
    )
    found = [(commit.id, commit.message) for commit in script.summary().commits]
    assert found == [("1234567", "First thing"), ("89abcde", 'Second "thing"'), (None, "Silent one"), ("fedcba9", "x")]
    script.bash("git commit --amend --no-edit", "[dev 0000001] y")
    assert script.summary().commits[-1] == Commit("y", "0000001", script.turn)


def test_errors_until_they_are_solved(script: Any) -> None:
    script.bash("go build ./...", "Exit code 1\n# pkg\na.go:1: undefined: x", error=True)
    script.bash("python a.py", "Traceback (most recent call last):\n  File\nValueError: bad input", error=True)
    script.bash("grep nothing .", "", error=True)
    assert script.summary().errors == (
        "Bash go build ./...: a.go:1: undefined: x",
        "Bash python a.py: ValueError: bad input",
    )
    script.bash("go build ./...")
    assert script.summary().errors == ("Bash python a.py: ValueError: bad input",)


def test_what_the_user_refused_is_no_error(script: Any) -> None:
    script.bash(
        "rm -rf /",
        "The user doesn't want to proceed with this tool use. The user said: never delete things",
        error=True,
    )
    summary = script.summary()
    assert summary.errors == ()
    assert summary.dead_ends == ("the user refused: Bash rm -rf /",)
    assert summary.learnings == ("the user corrected: never delete things",)

"""What a call does to the world, and that in doubt it is not taken for reading."""

from __future__ import annotations

import pytest

from ctxctl.compaction.callkinds import kind_of_call

READ = [
    "ls -la src",
    "cd /repo && cat a.py | head -50",
    "bash -lc 'rg -n \"def main\" src | wc -l'",
    "grep -rn 'a > b' src 2>/dev/null",
    "sed -n 1,40p a.py",
    "find . -name '*.py' -type f 2>&1 | sort",
    "git log --oneline -5 && git diff HEAD~1",
    "git -P show abc:src/a.py",
    "FOO=1 grep x y; echo done",
    "curl -s https://example.org/page",
    "awk '{print $1}' f",
]
OTHER = [
    "",
    "rm -rf build",
    "cat a > b",
    "echo x >> notes.md",
    "sed -i s/a/b/ f",
    "sed -ni.bak s/a/b/ f",
    "find . -name '*.pyc' -delete",
    "find . -exec rm {} +",
    "git commit -m x",
    "git checkout main",
    "ls; git push",
    "python script.py",
    "cat $(rm x)",
    "echo `rm x`",
    "tee f < g",
    "curl -X POST https://example.org",
    "curl -o f https://example.org",
    "cat <<EOF > f\nx\nEOF",
    "sort -o f f",
    "xargs rm",
    "ruff check --fix .",
]
CHECK = [
    "pytest -q tests",
    "python -m pytest tests/a.py | tail -5",
    "cd x && npm test",
    "go test ./...",
    "ruff check .",
]


@pytest.mark.parametrize("script", READ)
def test_scripts_that_read(script: str) -> None:
    assert kind_of_call("Bash", script) == "read"


@pytest.mark.parametrize("script", OTHER)
def test_scripts_that_may_change_something(script: str) -> None:
    assert kind_of_call("exec_command", script) is None


@pytest.mark.parametrize("script", CHECK)
def test_scripts_that_check(script: str) -> None:
    assert kind_of_call("bash", script) == "check"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "read") for name in ("Read", "Grep", "Glob", "LS", "read_file", "list_directory", "WebFetch", "view")),
        ("mcp__files__read_file", "read"),
        ("mcp__playwright__browser_click", "state"),
        ("execute_sql", "state"),
        ("puppeteer_navigate", "state"),
        *((name, None) for name in ("Edit", "Write", "Task", "TodoWrite", "apply_patch", "unknown", "")),
    ],
)
def test_tools(name: str, kind: str | None) -> None:
    assert kind_of_call(name, "") == kind

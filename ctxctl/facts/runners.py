"""Which commands run tests: test programs, and the test tasks of build tools and package managers."""

from __future__ import annotations

import re

RUNNERS = frozenset(
    (
        *("pytest", "py.test", "nosetests", "nose2", "trial", "tox", "nox", "jest", "vitest", "mocha", "ava", "karma"),
        *("rspec", "phpunit", "pest", "ctest", "gotestsum", "ginkgo", "cargo-nextest", "bats", "busted", "kotest"),
        *("runtests.py", "runtests", "run_tests.py", "run-tests.sh", "run_tests.sh"),
    )
)
"""Programs that do nothing but run tests."""
_TASKS = re.compile(r"^(?:test|tests|spec|e2e)(?:[:_-][\w:.-]*)?$|^check$|^[\w./-]*:test[\w:-]*$")
"""Names that tasks of npm, make, mise, just ... have when they run tests."""
_ACTIONS = {
    "go": ("test",),
    "cargo": ("test", "nextest", "t"),
    "dotnet": ("test",),
    "swift": ("test",),
    "mix": ("test",),
    "deno": ("test",),
    "bazel": ("test",),
    "dart": ("test",),
    "flutter": ("test",),
    "zig": ("test",),
    "sbt": ("test",),
    "lein": ("test",),
    "stack": ("test",),
    "cabal": ("test",),
    "hatch": ("test",),
    "rails": ("test", "spec"),
    "rake": ("test", "spec"),
    "composer": ("test",),
    "playwright": ("test",),
    "cypress": ("run",),
    "mvn": ("test", "verify", "integration-test"),
    "mvnw": ("test", "verify", "integration-test"),
}
_TASKED = frozenset(
    (
        *("npm", "pnpm", "yarn", "bun", "make", "gmake", "just", "task", "mise", "gradle", "gradlew", "turbo", "nx"),
        *("lerna", "invoke", "inv", "poe", "pdm"),
    )
)
_WRAPPERS = {
    "npx": 0,
    "bunx": 0,
    "uv": 1,
    "poetry": 1,
    "pipenv": 1,
    "rye": 1,
    "hatch": 1,
    "pdm": 1,
    "bundle": 1,
    "coverage": 1,
    "xvfb-run": 0,
    "timeout": -1,
    "gtimeout": -1,
    "env": 0,
    "nice": 0,
    "stdbuf": 0,
    "dotenv": 0,
}
"""Programs that run another: how many words (`run`, `exec`) stand between; -1: options, then one word."""
_MODULES = frozenset(("pytest", "unittest", "nose", "nose2", "tox", "nox", "trial", "twisted.trial", "django"))
_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*$")
_TAKES = frozenset(("-C", "--dir", "-w", "--workspace", "--filter", "-F", "--prefix", "--cwd", "-f", "-p"))


def runs_tests(words: list[str]) -> bool:
    """Whether a command runs tests."""
    for _ in range(4):  # a wrapper may run a wrapper
        if not words:
            return False
        name = words[0].rsplit("/", 1)[-1].removesuffix(".cmd")
        if name in RUNNERS or words[0].endswith("bin/test"):
            return True
        rest = words[1:]
        if _PYTHON.match(name):
            return _python(rest)
        if name in _ACTIONS and (action := _first(rest)) is not None and rest[action] in _ACTIONS[name]:
            return True
        if name in _ACTIONS and name in ("mvn", "mvnw"):
            return any(word in _ACTIONS[name] for word in rest)
        if name in _TASKED and _task(name, rest):
            return True
        if name not in _WRAPPERS:
            return False
        words = _behind(rest, _WRAPPERS[name])
    return False


def _first(words: list[str]) -> int | None:
    """Position of the first word that is no option."""
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word in _TAKES:
            skip = True
        elif not word.startswith(("-", "+")):
            return at
    return None


def _python(words: list[str]) -> bool:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            behind = words[at + 1 :]
            if behind[:1] == ["coverage"]:
                return runs_tests(["coverage", *behind[1:]])
            return bool(behind) and (behind[0] in _MODULES) and (behind[0] != "django" or "test" in behind)
        at += 2 if words[at] in ("-X", "-W") else 1
    if at >= len(words):
        return False
    script, rest = words[at].rsplit("/", 1)[-1], words[at + 1 :]
    if script in ("setup.py", "manage.py"):
        return "test" in rest
    return script in RUNNERS or words[at].endswith("bin/test")


def _task(name: str, words: list[str]) -> bool:
    at = _first(words)
    if at is None:
        return False
    task = words[at]
    if task in ("run", "r", "run-script", "exec", "x", "workspace", "workspaces"):
        behind = words[at + 1 :]
        if task == "workspace":
            behind = behind[1:]
        nxt = _first(behind)
        if nxt is None:
            return False
        if task in ("exec", "x"):
            return runs_tests(behind[nxt:])
        if behind[nxt] == "run":
            return _task(name, behind[nxt:])
        task = behind[nxt]
        if name in ("uv", "pdm") and runs_tests(behind[nxt:]):
            return True
    elif name in ("pnpm", "yarn", "bun") and task in RUNNERS:
        return True
    if name in ("gradle", "gradlew"):
        return any(_TASKS.match(word) or word.endswith("Test") for word in words)
    if name in ("npm",) and task == "t":
        return True
    return any(_TASKS.match(word) for word in ([task] if name not in ("make", "gmake") else words))


def _behind(words: list[str], between: int) -> list[str]:
    at = 0
    while at < len(words) and (words[at].startswith("-") or "=" in words[at]):
        at += 1
    if between > 0 and words[at : at + 1] != ["run"] and words[at : at + 1] != ["exec"]:
        return []
    at += abs(between)
    while at < len(words) and (words[at].startswith("-") or "=" in words[at]):
        if words[at] == "-m":
            return ["python", *words[at:]]
        at += 2 if words[at] in ("--with", "--group", "--extra", "-p", "--python") else 1
    return words[at:]

"""Hooks come into settings that people wrote, and go again, and nothing else moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.adapters.hooks.base import registry
from ctxctl.adapters.hooks.install import (
    chosen_events,
    groups,
    installed,
    is_ours,
    others,
    with_hooks,
    without_hooks,
)
from ctxctl.adapters.hooks.places import command_line, settings_path
from ctxctl.errors import ConfigError, UsageError

HERE = Path("settings.json")
CLAUDE, CODEX = registry.get("claude-code"), registry.get("codex")
COMMAND = "ctxctl hook run claude-code"
WANTED = groups(CLAUDE, CLAUDE.defaults, COMMAND, "")

TIDY = """{
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh"}]}
        ],
        "PreCompact": [
            {
                "hooks": [{"type": "command", "command": "mine.sh", "timeout": 5}]
            }
        ]
    },
    "env": {"A": "1",   "B": "\\u00fc"},
    "permissions": {"allow": ["Read(/x/**)"], "deny": []}
}
"""
INLINE = '{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}'
WINDOWS = '{\r\n\t"a": 1,\r\n\t"hooks": {\r\n\t\t"Stop": [ ]\r\n\t}\r\n}'


def pairs(text: str) -> Any:
    """A document with the order of its keys."""
    return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=lambda items: items)


def events(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text.removeprefix("\ufeff"))["hooks"]
    return value


@pytest.mark.parametrize("text", [TIDY, INLINE, '{"a": 1}', '{\n  "a": [1,\n 2]\n}', "\ufeff" + TIDY])
def test_all_else_stays_byte_for_byte(text: str) -> None:
    after = with_hooks(text, WANTED, HERE)
    assert events(after)["PreCompact"][-1] == WANTED["PreCompact"]
    assert events(after)["SessionStart"] == [WANTED["SessionStart"]]
    assert without_hooks(after, HERE) == text
    position = 0
    for character in text:  # nothing was taken away or moved: the old text is a subsequence
        position = after.index(character, position) + 1


def test_style_of_the_file_is_kept() -> None:
    after = with_hooks(TIDY, WANTED, HERE)
    assert '\n        "SessionStart": [\n            {\n                "matcher"' in after
    assert with_hooks(INLINE, WANTED, HERE).count("\n") == 0
    windows = with_hooks(WINDOWS, WANTED, HERE)
    assert "\n" not in windows.replace("\r\n", "") and '\r\n\t\t"SessionStart": [\r\n\t\t\t{' in windows
    assert '"B": "\\u00fc"' in after


def test_twice_is_once() -> None:
    after = with_hooks(TIDY, WANTED, HERE)
    assert with_hooks(after, WANTED, HERE) == after


def test_what_is_asked_for_replaces_what_was_installed() -> None:
    first = with_hooks(TIDY, WANTED, HERE)
    stop = groups(
        CLAUDE, ("SessionStart", "Stop"), "/opt/ctxctl hook run claude-code", "ctxctl hook run x --require-clean"
    )
    second = with_hooks(first, stop, HERE)
    assert [(one.event, one.command) for one in installed(second, HERE)] == [
        ("SessionStart", "/opt/ctxctl hook run claude-code"),
        ("Stop", "ctxctl hook run x --require-clean"),
    ]
    assert events(second)["PreCompact"] == events(TIDY)["PreCompact"]
    assert with_hooks(second, WANTED, HERE).count("hook run") == 2
    assert without_hooks(second, HERE) == TIDY


def test_a_hook_of_ours_among_others_goes_alone() -> None:
    alone = '{"type": "command", "command": "a"}'
    ours = '{"type": "command", "command": "ctxctl hook run"}'
    text = '{"hooks": {"Stop": [{"hooks": [%s]}]}}'
    assert without_hooks(text % f"{alone}, {ours}", HERE) == text % alone
    assert without_hooks(text % f"{ours}, {alone}", HERE) == text % alone


def test_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    after = with_hooks(None, WANTED, path)
    assert after.endswith("}\n") and list(json.loads(after)) == ["hooks"]
    assert without_hooks(after, path) is None
    assert without_hooks(after.replace("{", '{\n  "a": 1,', 1), path) == '{\n  "a": 1\n}\n'


@pytest.mark.parametrize("was", ["{}\n", "{ }", '{"hooks": {}}', WINDOWS, '{\n  "hooks": {"SessionStart": []}\n}\n'])
def test_the_copy_tells_what_was_there(was: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.with_name("settings.json.bak").write_bytes(was.encode())
    assert without_hooks(with_hooks(was, WANTED, path), path) == was


def test_a_copy_of_something_else_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.with_name("settings.json.bak").write_text('{"old": true}')
    assert without_hooks(with_hooks('{"new": 1}', WANTED, path), path) == '{"new": 1}'


@pytest.mark.parametrize(
    "text, line, word",
    [
        ('{\n  // mine\n  "a": 1\n}', 2, "comment"),
        ('{\n  "a": 1,\n}', 3, "no JSON"),
        ('{\n  "a": 1', 2, "no JSON"),
        ("[1]", 1, "object"),
        ('{\n "hooks": []\n}', 2, "`hooks`"),
        ('{\n "hooks": {\n  "Stop": {}\n }\n}', 3, "`hooks.Stop`"),
        ('{\n "a": 1,\n "a": 2\n}', 3, "twice"),
        ("[" * 100_000, 1, "deep"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(text: str, line: int, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_hooks(text, WANTED, HERE)
    assert (caught.value.path, caught.value.line) == ("settings.json", line)
    assert word in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    "command, ours",
    [
        ("ctxctl hook run codex", True),
        ("'/opt/my tools/ctxctl' hook run", True),
        ("/usr/bin/python3 -m ctxctl hook run claude-code --require-clean", True),
        (r'"C:\Program Files\ctxctl.exe" hook run claude-code', True),
        ("ctxctl hook status", False),
        ("myctxctl hook run", False),
        ("ctxctl analyze", False),
        ("ctxctl hook runner", False),
        ("  ctxctl  hook   run  ", True),
        (r"C:\tools\ctxctl.exe hook run claude-code", True),
        ("python -m ctxctl hook run --state-dir='a; b'", True),
        ("ctxctl hook run codex 2>> '/tmp/my log'", True),
        ("/usr/bin/backup.sh; ctxctl hook run claude-code; notify done", False),
        ("ctxctl hook run claude-code && notify done", False),
        ("ctxctl hook run claude-code||true", False),
        ("ctxctl hook run claude-code | tee log", False),
        ("ctxctl hook run claude-code &", False),
        ("(ctxctl hook run claude-code)", False),
        ("ctxctl hook run claude-code\nnotify done", False),
        ("ctxctl hook run --state-dir=$(mine)", False),
        ("ctxctl hook run `mine`", False),
        ("mine.sh ctxctl hook run", False),
        ("A=1 ctxctl hook run codex", False),
        ("echo 'ctxctl hook run'", False),
        ("bash -c 'ctxctl hook run claude-code'", False),
        ("python script.py -m ctxctl hook run", False),
        ("ctxctl hook run 'cut off", False),
        (r"ctxctl hook run \"; notify done\"", False),
        ("", False),
    ],
)
def test_which_commands_are_ours(command: str, ours: bool) -> None:
    assert is_ours(command) is ours


def test_what_calls_ctxctl_among_other_things_is_left_and_told() -> None:
    mine = "/usr/bin/backup.sh; ctxctl hook run claude-code; notify done"
    was = json.dumps({"hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": mine}]}]}}, indent=2)
    assert installed(was, HERE) == [] and [one.command for one in others(was, HERE)] == [mine]
    after = with_hooks(was, WANTED, HERE)
    assert [group["hooks"][0]["command"] for group in events(after)["PreCompact"]] == [mine, COMMAND]
    assert without_hooks(after, HERE) == was
    assert [one.command for one in others(after, HERE)] == [mine]


def test_the_command_is_ours_in_every_scope() -> None:
    for scope in ("project", "local", "user"):
        line = command_line(CLAUDE, scope, clean=True, state_dir="my state")  # type: ignore[arg-type]
        assert is_ours(line) and line.endswith("--require-clean --state-dir 'my state'")


def test_events_and_scopes_that_there_are_not() -> None:
    with pytest.raises(UsageError, match="PreCompac"):
        chosen_events(CLAUDE, ["PreCompac"], clean=False)
    with pytest.raises(UsageError, match="local"):
        settings_path(CODEX, "local", Path("/p"), {})
    assert chosen_events(CODEX, [], clean=True) == ("SessionStart", "PreCompact", "Stop")
    assert settings_path(CODEX, "user", Path("/p"), {"CODEX_HOME": "/c"}) == Path("/c/hooks.json")
    assert settings_path(CLAUDE, "project", Path("/p"), {}) == Path("/p/.claude/settings.json")


LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
KEY = st.text(max_size=6)
JSON = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3))
RUN = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=9)})
GROUP = st.fixed_dictionaries({"hooks": st.lists(RUN, max_size=2)}, optional={"matcher": st.text(max_size=5)})
EVENT = st.sampled_from(["SessionStart", "PreCompact", "Stop", "Other"])
HOOKS = st.dictionaries(EVENT, st.lists(GROUP, min_size=1, max_size=2), min_size=1)


@given(
    st.dictionaries(KEY.filter(lambda key: key != "hooks"), JSON, max_size=4),
    st.none() | HOOKS,
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.booleans(),
)
def test_any_settings_come_back(rest: dict[str, Any], hooks: Any, indent: Any, ascii_only: bool) -> None:
    value = rest if hooks is None else {**rest, "hooks": hooks}
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    after = with_hooks(text, WANTED, HERE)
    expected = {**value, "hooks": {**(hooks or {})}}
    for name, group in WANTED.items():
        expected["hooks"][name] = [*expected["hooks"].get(name, []), group]
    assert pairs(after) == pairs(json.dumps(expected))
    assert with_hooks(after, WANTED, HERE) == after
    back = without_hooks(after, HERE)
    assert back == text or (not value and back is None)

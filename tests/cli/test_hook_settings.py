"""`ctxctl hook install`, `uninstall`, `status`: nothing is written that was not shown and wanted."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

WAS = '{\n    "model": "opus",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}\n}\n'


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    return tmp_path / ".claude" / "settings.local.json"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["install", "uninstall", "status", "run"])
def test_help_has_examples(ctxctl: Run, command: str) -> None:
    done = ctxctl("hook", command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"ctxctl hook {command}" in done.out.partition("Example")[2]


def test_without_a_terminal_nothing_is_written(ctxctl: Run, tmp_path: Path) -> None:
    done = ctxctl("hook", "install", "claude-code")
    assert done.code == 1 and "--yes" in done.err
    assert '+    "PreCompact": [' in done.out and done.out.startswith("--- /dev/null\n")
    assert snapshot(tmp_path) == {} and not (tmp_path / ".claude").exists()


def test_a_dry_run_writes_nothing(ctxctl: Run, settings: Path, tmp_path: Path) -> None:
    settings.write_text(WAS)
    done = ctxctl("hook", "install", "claude-code", "--dry-run")
    assert done.code == 0 and "nothing was written" in done.err
    assert snapshot(tmp_path) == {".claude/settings.local.json": WAS.encode()}
    patched = subprocess.run(
        ["git", "apply", "-p0", "--unsafe-paths", "-"], cwd=tmp_path, input=done.raw, capture_output=True
    )
    assert patched.returncode in (0, 1, 128)  # absolute names: what counts is that the hunks are well formed
    assert b"corrupt" not in patched.stderr and b"fragment" not in patched.stderr


def test_install_and_back(ctxctl: Run, settings: Path, tmp_path: Path) -> None:
    settings.write_text(WAS)
    settings.chmod(0o640)
    done = ctxctl("hook", "install", "claude-code", "--yes")
    assert done.code == 0 and f"wrote {settings}" in done.err
    assert settings.with_name("settings.local.json.bak").read_text() == WAS
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    hooks = json.loads(settings.read_text())["hooks"]
    assert list(hooks) == ["Stop", "SessionStart", "PreCompact"]
    assert [run["timeout"] for run in hooks["PreCompact"][0]["hooks"]] == [10]
    held = snapshot(tmp_path)

    again = ctxctl("hook", "install", "claude-code", "--yes")
    assert again.code == 0 and again.out == "" and "installed already" in again.err
    assert snapshot(tmp_path) == held

    back = ctxctl("hook", "uninstall", "claude-code", "--yes")
    assert back.code == 0 and settings.read_text() == WAS
    copy = settings.with_name("settings.local.json.bak")
    assert not copy.exists() and f"removed {copy}" in back.err  # git ignores the settings file alone
    assert snapshot(tmp_path) == {".claude/settings.local.json": WAS.encode()}
    once_more = ctxctl("hook", "uninstall", "claude-code", "--yes")
    assert once_more.code == 0 and "no hooks of ctxctl" in once_more.err


def test_a_copy_that_holds_something_else_stays(ctxctl: Run, settings: Path) -> None:
    settings.write_text(WAS)
    copies = [settings.with_name(f"settings.local.json.bak{n}") for n in ("", "1", "2")]
    copies[0].write_text('{"older": true}')
    assert ctxctl("hook", "install", "claude-code", "--yes").code == 0
    assert copies[1].read_text() == WAS
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet"'))
    back = ctxctl("hook", "uninstall", "claude-code", "--yes", "--json")
    assert back.result()["removed"] == []
    assert json.loads(settings.read_text()) == json.loads(WAS.replace("opus", "sonnet"))
    assert copies[1].read_text() == WAS and copies[0].exists()
    # what a later installation gives back goes, the others stay
    assert ctxctl("hook", "install", "claude-code", "--yes").code == 0
    assert copies[2].exists()
    back = ctxctl("hook", "uninstall", "claude-code", "--yes", "--json")
    assert back.result()["removed"] == [str(copies[2])]
    assert [copy.exists() for copy in copies] == [True, True, False]


def test_a_command_of_the_user_is_told_and_left(ctxctl: Run, settings: Path) -> None:
    mine = "backup.sh; ctxctl hook run claude-code; notify done"
    was = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": mine}]}]}}, indent=2)
    settings.write_text(was)
    for words in (("install", "--require-clean"), ("uninstall",)):
        done = ctxctl("hook", words[0], "claude-code", "--yes", *words[1:])
        assert done.code == 0 and "left alone" in done.err and mine in done.err
        assert mine in settings.read_text()
    assert settings.read_text() == was
    (file,) = [f for f in ctxctl("hook", "status", "--json").result()["files"] if f["exists"]]
    assert (file["hooks"], file["others"]) == ([], [{"event": "Stop", "command": mine}])
    assert mine in ctxctl("hook", "status").err


def test_a_file_that_the_installation_made_goes_again(ctxctl: Run, tmp_path: Path) -> None:
    assert ctxctl("hook", "install", "codex", "--yes").code == 0
    assert list(snapshot(tmp_path)) == [".codex/hooks.json"]
    assert ctxctl("hook", "uninstall", "codex", "--yes").code == 0
    assert snapshot(tmp_path) == {}


def test_options_reach_the_command(ctxctl: Run, tmp_path: Path) -> None:
    done = ctxctl(
        *("hook", "install", "claude-code", "--scope", "project", "--events", "PreCompact,SessionEnd"),
        *("--require-clean", "--state-dir", ".agent state", "--yes", "--json"),
    )
    result = done.result()
    path = tmp_path / ".claude" / "settings.json"
    assert (result["path"], result["changed"], result["backup"]) == (str(path), True, None)
    assert result["events"] == ["PreCompact", "Stop", "SessionEnd"] and result["written"] == [str(path)]
    hooks = json.loads(path.read_text())["hooks"]
    commands = {event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()}
    assert "--require-clean" in commands["Stop"] and "--require-clean" not in commands["PreCompact"]
    assert all(command.endswith("--state-dir '.agent state'") for command in commands.values())


def test_the_user_file_and_a_link_to_it(ctxctl: Run, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(WAS)
    home = tmp_path / "home" / ".claude"
    home.mkdir(parents=True)
    (home / "settings.json").symlink_to(real)
    assert ctxctl("hook", "install", "claude-code", "--scope", "user", "--yes").code == 0
    assert (home / "settings.json").is_symlink() and "hook run" in real.read_text()
    assert ctxctl("hook", "uninstall", "claude-code", "--scope", "user", "--yes").code == 0
    assert real.read_text() == WAS and (home / "settings.json").is_symlink()
    other = tmp_path / "elsewhere"
    ctxctl("hook", "install", "claude-code", "--scope", "user", "--yes", CLAUDE_CONFIG_DIR=str(other))
    assert (other / "settings.json").exists()


def test_a_damaged_file_is_left_alone(ctxctl: Run, settings: Path, tmp_path: Path) -> None:
    settings.write_text('{\n  // mine\n  "a": 1\n}\n')
    for command in ("install", "uninstall"):
        done = ctxctl("hook", command, "claude-code", "--yes")
        assert done.code == 4 and f"{settings}:2: " in done.err and done.out == ""
    assert list(snapshot(tmp_path)) == [".claude/settings.local.json"]
    status = ctxctl("hook", "status")
    assert status.code == 0 and "settings.local.json:2" in status.out


def test_what_there_is_not(ctxctl: Run) -> None:
    done = ctxctl("hook", "install", "claud-code")
    assert done.code == 2 and "claude-code" in done.err
    done = ctxctl("hook", "install", "codex", "--scope", "local")
    assert done.code == 2 and "project or user" in done.err
    done = ctxctl("hook", "install", "codex", "--events", "Stopp")
    assert done.code == 2 and "Stop?" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(ctxctl: Run, settings: Path) -> None:
    settings.parent.chmod(0o500)
    done = ctxctl("hook", "install", "claude-code", "--yes")
    assert done.code == 3 and "can't be written" in done.err


def test_status_says_what_is_where(ctxctl: Run, tmp_path: Path) -> None:
    ctxctl("hook", "install", "claude-code", "--yes")
    ctxctl("hook", "install", "codex", "--scope", "user", "--yes")
    (tmp_path / "home" / ".codex" / "config.toml").write_text("[features]\nhooks = false\n")
    (tmp_path / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    result = ctxctl("hook", "status", "--json").result()
    has = {(f["agent"], f["scope"]): [h["event"] for h in f["hooks"]] for f in result["files"]}
    assert has == {
        ("claude-code", "local"): ["SessionStart", "PreCompact"],
        ("claude-code", "project"): [],
        ("claude-code", "user"): [],
        ("codex", "project"): [],
        ("codex", "user"): ["SessionStart", "PreCompact"],
    }
    assert set(result["switched_off"]) == {"claude-code", "codex"} and result["not_found"] == []
    text = ctxctl("hook", "status").out
    assert "SessionStart, PreCompact" in text and "features.hooks = false" in text


def test_hooks_in_two_files_are_told(ctxctl: Run) -> None:
    assert "too" not in ctxctl("hook", "install", "claude-code", "--yes").err
    assert "uninstall --scope local" in ctxctl("hook", "install", "claude-code", "--scope", "project", "--yes").err


def test_a_program_that_is_gone_is_told(ctxctl: Run, settings: Path) -> None:
    settings.write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/no/where/ctxctl hook run codex"}]}]}}'
    )
    assert ctxctl("hook", "status", "--json").result()["not_found"] == ["/no/where/ctxctl"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
@pytest.mark.parametrize("answer, code, written", [("y", 0, True), ("n", 1, False), ("", 1, False)])
def test_on_a_terminal_it_asks(tmp_path: Path, answer: str, code: int, written: bool) -> None:
    import pty

    (tmp_path / ".git").mkdir()
    inner, outer = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ctxctl", "hook", "install", "codex"],
        cwd=tmp_path,
        env=environment,
        stdin=outer,
        stdout=subprocess.PIPE,
        stderr=outer,
    )
    os.close(outer)
    os.write(inner, f"{answer}\n".encode())
    out = process.communicate(timeout=30)[0]
    said = os.read(inner, 65536).decode()
    os.close(inner)
    assert process.returncode == code
    assert "[y/N]" in said and out.startswith(b"--- /dev/null")
    assert (tmp_path / ".codex" / "hooks.json").exists() is written

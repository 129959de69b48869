"""What every command has: help with examples, version, exit status, and streams that keep to their purpose."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl import __version__

Run = Callable[..., Any]

COMMANDS = [
    ("analyze",),
    ("demo",),
    ("list",),
    ("config", "show"),
    ("config", "validate"),
    ("config", "schema"),
    ("config", "path"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples(ctxctl: Run, command: tuple[str, ...]) -> None:
    done = ctxctl(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: ctxctl {' '.join(command)}" in done.out
    assert re.search(r"Examples?:", done.out)
    assert f"ctxctl {' '.join(command)}" in done.out.partition("Example")[2]
    assert "\x1b" not in done.out and not set(done.out) & set("─│╭╮╰╯")


@pytest.mark.parametrize("arguments", [("-h",), ("--help",), ("config", "-h"), ("analyze", "-h")], ids=" ".join)
def test_short_help(ctxctl: Run, arguments: tuple[str, ...]) -> None:
    done = ctxctl(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: ctxctl")


def test_help_lists_the_commands(ctxctl: Run) -> None:
    out = ctxctl("--help").out
    for command in ("analyze", "demo", "list", "config"):
        assert re.search(rf"^  {command} +\S", out, re.M)
    assert "ctxctl demo" in out and "--show-completion" in out


@pytest.mark.parametrize("arguments", [("--version",), ("-V",)])
def test_version(ctxctl: Run, arguments: tuple[str, ...]) -> None:
    done = ctxctl(*arguments)
    assert (done.code, done.out, done.err) == (0, f"ctxctl {__version__}\n", "")


def test_the_installed_script_and_the_module_are_one(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("ctxctl")
    if not script.is_file():
        pytest.skip("the script is not installed beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout == f"ctxctl {__version__}\n"


def test_without_arguments_the_help_is_shown(ctxctl: Run) -> None:
    done = ctxctl()
    assert done.code == 2
    assert "Usage: ctxctl" in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("analyse",), "No such command 'analyse'", "analyze"),
        (("analyze", "--jsn", "x"), "No such option", "--json"),
        (("analyze", "--fail-on", "purple", "x"), "purple", "known: yellow"),
        (("analyze", "--fail-on", "", "x"), "names nothing", "known: yellow"),
        (("analyze", "--fail-on", " , ", "x"), "names nothing", "known: yellow"),
        (("analyze", "--fail-on", "red,damge", "x"), "damge", "'damage'"),
        (("analyze", "--output-format", "yaml", "x"), "yaml", "--help"),
        (("analyze", "--window", "large", "x"), "'large'", None),
        (("analyze", "--window", "0", "x"), "--window", None),
        (("analyze", "--max-tokens", "-5", "x"), "-5", None),
        (("analyze", "--max-utilization", "high", "x"), "'high'", None),
        (("analyze", "--from", "codx", "x"), "unknown format 'codx'", "codex"),
        (("analyze", "-o", "report.xyz", "x"), "tells no form", "--output-format"),
        (("list", "planets"), "planets", "--help"),
        (("list",), "", "--help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_usage_errors(ctxctl: Run, arguments: tuple[str, ...], message: str, hint: str | None) -> None:
    done = ctxctl(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ") and message in done.err
    assert "Traceback" not in done.err
    if hint:
        assert hint in done.err.partition("hint: ")[2]


def test_an_error_as_json(ctxctl: Run) -> None:
    done = ctxctl("analyze", "--json", "none.jsonl")
    assert (done.code, done.out) == (3, "")
    error = json.loads(done.err)["error"]
    assert "exclude" in json.loads(ctxctl("analyze", "--json", "--output-format", "csv", "x").err)["error"]["message"]
    assert set(error) == {"code", "message", "hint", "path", "line"}
    assert (error["code"], error["path"], error["line"]) == ("input", "none.jsonl", None)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(ctxctl: Run, shell: str) -> None:
    done = ctxctl("--show-completion", shell)
    assert done.code == 0 and done.err == ""
    assert "ctxctl" in done.out and "complet" in done.out.lower()


@pytest.mark.parametrize("arguments", [("demo",), ("demo", "--json"), ("list", "models"), ("config", "schema")])
def test_a_reader_that_goes_away(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "ctxctl", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    err = child.stderr.read().decode()
    assert child.wait(60) in (0, 141)
    assert err == ""


def test_demo(ctxctl: Run) -> None:
    done = ctxctl("demo")
    assert done.code == 0 and done.err == ""
    assert "54,699 tokens" in done.out and "sawtooth" in done.out
    assert "\x1b" not in done.out
    assert all(line == line.rstrip() for line in done.out.split("\n"))
    data = ctxctl("demo", "--json").json()
    assert data["schema"] == "ctxctl.analyze/1" and data["result"]["peak"]["tokens"] == 54_699


@pytest.mark.parametrize(
    ("arguments", "variables", "coloured"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ],
)
def test_colour(ctxctl: Run, arguments: tuple[str, ...], variables: dict[str, str], coloured: bool) -> None:
    done = ctxctl("demo", *arguments, **variables)
    assert done.code == 0
    assert ("\x1b[" in done.out) is coloured


def test_an_ascii_stream_gets_ascii(ctxctl: Run) -> None:
    done = ctxctl("demo", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.code == 0 and done.out.isascii()
    assert "?" not in done.out and "#" in done.out


def test_eighty_columns_on_request(ctxctl: Run) -> None:
    out = ctxctl("demo", COLUMNS="80").out
    assert max(len(line) for line in out.split("\n")) <= 80


def test_list_formats(ctxctl: Run) -> None:
    done = ctxctl("list", "formats")
    assert done.code == 0 and done.err == ""
    for name in ("claude-code", "codex", "openai-chat", "anthropic-messages", "mini-swe-agent"):
        assert name in done.out
    rows = ctxctl("list", "formats", "--json").result()["formats"]
    assert {"name", "title", "reads", "writes"} <= set(rows[0]) and len(rows) == 6


def test_list_models(ctxctl: Run) -> None:
    rows = ctxctl("list", "models", "sonnet", "--json").result()["models"]
    assert rows and all("sonnet" in row["name"] for row in rows)
    assert all(row["window"] >= 200_000 for row in rows)
    assert "claude-sonnet-4-5" in ctxctl("list", "models", "SONNET").out


def test_list_with_nothing_to_show(ctxctl: Run) -> None:
    done = ctxctl("list", "models", "no-such-model", "--json")
    assert done.code == 0 and done.result()["models"] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("analyze", "--help"), ("list", "formats")])
def test_a_full_device(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "ctxctl", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60)
    assert done.returncode == 3
    assert done.stderr == b"error: standard output can't be written: No space left on device\n"


def test_control_characters_of_a_name_do_not_reach_the_terminal(ctxctl: Run) -> None:
    done = ctxctl("analyze", "x\x1b]31m.jsonl")
    assert done.code == 3 and "\x1b" not in done.err

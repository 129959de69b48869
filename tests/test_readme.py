"""README's commands run, its Python runs, and it names every command and option."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [re.findall(r"^\$ (.+)$", block, re.M) for block in re.findall(r"```console\n(.*?)```", README, re.S)]
SET_UP = re.findall(r"```sh\n(.+?)\n```", README)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sample_transcripts").symlink_to(ROOT / "sample_transcripts")
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """As a user types it, with the tested ctxctl first on the path and no settings of the machine."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "XDG_CONFIG_HOME": str(folder / "none")}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, timeout=60)


def test_there_are_commands() -> None:
    assert sum(map(len, BLOCKS)) >= 10


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block[0])
def test_commands_run(block: list[str], folder: Path) -> None:
    """Those of a block in their order, in one folder."""
    for command in block:
        done = run(command, folder)
        assert done.returncode == 0, f"{command}\n{done.stderr.decode()}"
        assert done.stdout or done.stderr or " > " in command or " -o " in command, command
        assert b"error" not in done.stderr, f"{command}\n{done.stderr.decode()}"


def test_set_up_is_two_lines_that_the_first_blocks_hold() -> None:
    assert len(SET_UP) == 2
    assert all("\n" not in command and "venv" in command for command in SET_UP)
    assert README.index(SET_UP[0]) < README.index(SET_UP[1]) < README.index("## What it shows")


def test_python_of_the_readme_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert b"compact now, turn 3" in done.stdout


def test_shown_report_is_what_the_demo_prints(folder: Path) -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.S)
    printed = run("ctxctl analyze sample_transcripts/axios-to-fetch.jsonl", folder).stdout.decode()
    for line in shown.strip().splitlines():
        assert line.rstrip() in printed, line


def test_every_command_and_option_is_documented(folder: Path) -> None:
    help_text = run("ctxctl --help", folder).stdout.decode()
    commands = re.findall(r"^  (\w+)  ", help_text.partition("Commands:")[2], re.M)
    assert "analyze" in commands
    for command in commands:
        assert f"ctxctl {command}" in README
    options = re.findall(
        r"(--[a-z][a-z-]+)", run("ctxctl analyze --help", folder).stdout.decode().partition("Options:")[2]
    )
    missing = {option for option in options if option not in README} - {
        "--help",
        "--subagents",
        "--output",
        "--quiet",
        "--verbose",
    }
    assert not missing


def test_last_section_is_the_changelog() -> None:
    assert re.findall(r"^## (.+)$", README, re.M)[-1] == "Changelog"


def test_no_figure_stands_without_its_command() -> None:
    assert "BENCHMARK_TABLE" not in README
    assert "benchmarks/run.py" in README

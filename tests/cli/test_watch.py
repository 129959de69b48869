"""`ctxctl watch` where users have it: beside a process that appends to the file, on a terminal, in a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ctxctl.cli.newest import folder_of_agent, newest_of
from ctxctl.cli.watch_view import ago, picture, view_line
from ctxctl.errors import InputError, UsageError
from ctxctl.health.view import View
from ctxctl.model.finding import Finding
from ctxctl.pressure.options import PressureThresholds

Run = Callable[..., Any]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")}
WRITER = """
import sys, time
source, target, first, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
lines = open(source, "rb").read().splitlines(keepends=True)[first:]
with open(target, "ab", buffering=0) as file:
    for at in range(0, len(lines), step):
        data = b"".join(lines[at : at + step])
        file.write(data[: len(data) // 2])  # torn for a moment
        time.sleep(0.02)
        file.write(data[len(data) // 2 :])
        time.sleep(0.1)
"""
SEEN = View(
    "session.jsonl",
    changed=1_796_048_663.0,
    format="claude-code",
    model="claude-sonnet-4-5-20250929",
    turn=118,
    tokens=152_000,
    reported=150_000,
    waiting=1_500,
    source="reported",
    window=200_000,
    window_source="assumed",
    utilization=0.76,
    level="orange",
    velocity=2_100.4,
    burn_rate=1_950.0,
    turns_left=22,
    minutes_left=11.6,
    cost=1.239,
    hit_rate=0.964,
    compactions=2,
    requests=131,
    curve=tuple(range(20_000, 152_000, 1_000)),
    alerts=(Finding("utilization_prepare", "info", "the window is 76% full", "prepare"),),
    last_tool="Bash",
)


def environment(folder: Path, **more: str) -> dict[str, str]:
    home = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "xdg")}
    return {**ENVIRONMENT, **home, "LANG": "C.UTF-8", "PYTHONUTF8": "1", **more}


def begin(folder: Path, *arguments: object, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ctxctl", "watch", *map(str, arguments)],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        **more,
    )


@pytest.mark.slow
def test_beside_a_writer(ctxctl: Run, tmp_path: Path, samples: Path) -> None:
    source, path = samples / "axios-to-fetch.jsonl", tmp_path / "s.jsonl"
    lines = source.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    watching = begin(tmp_path, "--json", "--interval", "0.05", "--until-idle", "1", path, **pipes)
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())["result"]
    subprocess.run([sys.executable, "-c", WRITER, source, path, "20", "25"], check=True, timeout=60)
    out, err = watching.communicate(timeout=60)
    assert (watching.returncode, err) == (0, b"")
    seen = [first, *(json.loads(line)["result"] for line in out.splitlines())]
    assert len(seen) > 3
    turns = [view["turn"] or 0 for view in seen]
    assert turns == sorted(turns) and turns[0] < turns[-1]
    whole = ctxctl("analyze", "--json", source).result()
    last = seen[-1]
    assert last["reported"] == whole["context"]["reported"]
    assert last["window"] == whole["window"]["tokens"]
    assert last["velocity"] == whole["forecast"]["velocity"]
    assert last["compactions"] == 1


@pytest.mark.slow
def test_lines_and_ends(ctxctl: Run, tmp_path: Path, samples: Path) -> None:
    path = samples / "axios-to-fetch.jsonl"
    done = ctxctl("watch", "--once", path)
    assert (done.code, done.err) == (0, "")
    name, line = done.out.splitlines()
    assert name == str(path) and "24,712/200,000 tokens, 12% green" in line and "\x1b" not in done.out
    assert ctxctl("watch", "--until-idle", "0", "--exit-on", "yellow", path).code == 0
    assert ctxctl("watch", "--exit-on", "yellow,critical", "--window", "40k", path).code == 1
    assert ctxctl("watch", "--once", "--exit-on", "utilization_prepare", "--window", "25k", path).code == 1


@pytest.mark.slow
def test_what_can_t_be_watched(ctxctl: Run, tmp_path: Path, samples: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "none").mkdir()
    path = samples / "axios-to-fetch.jsonl"
    for arguments, code, said in (
        ((), 2, "PATH"),
        (("-",), 2, "pipe"),
        (("gone.jsonl",), 3, "no such file"),
        (("other.jsonl",), 3, "not a transcript"),
        (("--once", "none"), 6, "no session"),
        (("--exit-on", "orang", path), 2, "'orange'"),
        (("--agent", "codex"), 2, "claude-code"),
        (("--agent", "claude-code"), 3, "no session of this working folder"),
    ):
        done = ctxctl("watch", *arguments)
        assert (done.code, done.out) == (code, ""), arguments
        assert said in done.err


def test_the_reader_goes_away(tmp_path: Path, samples: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = (samples / "axios-to-fetch.jsonl").read_bytes()
    path.write_bytes(data[: data.index(b"\n", 100_000) + 1])
    watching = begin(tmp_path, "--interval", "0.05", path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stdout is not None
    watching.stdout.readline()
    watching.stdout.readline()
    watching.stdout.close()
    path.write_bytes(data)
    assert watching.wait(timeout=30) == 141


def test_the_newest_session_of_a_folder_is_followed(tmp_path: Path, samples: Path) -> None:
    folder = tmp_path / "sessions" / "deep"
    folder.mkdir(parents=True)
    (folder / "history.jsonl").write_text('{"display": "no session"}\n')
    older, newer = folder / "a.jsonl", folder / "b.jsonl"
    data = (samples / "axios-to-fetch.jsonl").read_bytes()
    older.write_bytes(data)
    os.utime(older, (1_700_000_000, 1_700_000_000))
    watching = begin(tmp_path, "--json", "--interval", "0.05", tmp_path / "sessions", stdout=subprocess.PIPE)
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["result"]["path"] == str(older)
    newer.write_bytes((samples / "codex-rollout.jsonl").read_bytes())
    try:
        assert json.loads(watching.stdout.readline())["result"]["path"] == str(newer)
    finally:
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) == 0
        watching.stdout.close()


def test_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ("a.jsonl", "agent-x.jsonl", "s/subagents/agent-y.jsonl", ".hidden/z.jsonl", "t/b.jsonl", "c.txt")
    for number, name in enumerate(made):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1_000 + number, 1_000 + number))
    assert newest_of(str(tmp_path)) == str(tmp_path / "t" / "b.jsonl")
    assert newest_of(str(tmp_path), frozenset((str(tmp_path / "t" / "b.jsonl"),))) == str(tmp_path / "a.jsonl")
    assert newest_of(str(tmp_path / "nothing")) is None
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    here = tmp_path / "my_app.v2"
    here.mkdir()
    with pytest.raises(InputError):
        folder_of_agent("claude-code", here)
    kept = tmp_path / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(here.resolve()))
    kept.mkdir(parents=True)
    assert folder_of_agent("claude-code", here) == str(kept)
    with pytest.raises(UsageError):
        folder_of_agent("other", here)


# -- the terminal ------------------------------------------------------------------------------------------------------


class Terminal:
    """`ctxctl watch` on a terminal of its own."""

    def __init__(self, folder: Path, *arguments: object, columns: int = 80, **more: str) -> None:
        import pty

        self.out = b""
        self.pid, self.number = pty.fork()
        if not self.pid:  # pragma: no cover - the child
            os.chdir(folder)
            words = [sys.executable, "-m", "ctxctl", "watch", *map(str, arguments)]
            os.execve(sys.executable, words, environment(folder, TERM="xterm-256color", **more))
        self.resize(columns)

    def resize(self, columns: int, rows: int = 24) -> None:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.number, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text: str, seconds: float = 30) -> str:
        """What came since, up to a text."""
        import select

        begin, deadline = len(self.out), time.monotonic() + seconds
        while text.encode() not in self.out[begin:]:
            assert time.monotonic() < deadline, self.out[begin:].decode("utf-8", "replace")
            if select.select([self.number], [], [], 0.1)[0]:
                self.out += os.read(self.number, 1 << 16)
        return self.out[begin:].decode("utf-8", "replace")

    def end(self, number: int | None = None) -> int:
        """Ctrl-C, or a signal, and the status."""
        if number is None:
            os.write(self.number, b"\x03")
        else:
            os.kill(self.pid, number)
        with contextlib.suppress(OSError):
            while data := os.read(self.number, 1 << 16):
                self.out += data
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def make(*arguments: object, **more: Any) -> Terminal:
        made.append(Terminal(tmp_path, *arguments, **more))
        return made[-1]

    yield make
    for terminal in made:
        os.close(terminal.number)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_on_a_terminal(terminals: Callable[..., Terminal], tmp_path: Path, samples: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = (samples / "axios-to-fetch.jsonl").read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:100]))
    terminal = terminals("--interval", "0.1", path)
    first = terminal.until("last tool")
    assert "\x1b[?1049h" in first  # a screen of its own
    terminal.resize(50)
    again = terminal.until("last tool")
    bars = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", again).split("\n") if "▕" in line]
    assert bars and len(bars[-1].strip()) == 50
    with path.open("ab") as file:
        file.write(b"".join(lines[100:]))
    terminal.until("1 compaction")
    assert terminal.end() == 0
    after = terminal.out.decode("utf-8")
    assert "\x1b[?1049l" in after and "\x1b[?25h" in after  # the screen and the cursor are back
    assert "24,712/200,000 tokens" in after.rpartition("\x1b[?1049l")[2]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_the_terminal_is_left_as_it_was(terminals: Callable[..., Terminal], samples: Path) -> None:
    terminal = terminals(samples / "codex-rollout.jsonl")
    terminal.until("turn")
    assert terminal.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert terminal.out.rstrip().rpartition(b"\x1b[?1049l")[1]


def drawn(view: View, width: int = 80, height: int = 24, *, unicode: bool = True) -> Sequence[str]:
    memory = StringIO()
    console = Console(file=memory, width=width, highlight=False, emoji=False, markup=False)
    console.print(picture(view, PressureThresholds(), width, height, unicode=unicode))
    return memory.getvalue().rstrip("\n").split("\n")


def test_the_picture_fits() -> None:
    for width in (24, 40, 60, 80, 120, 300):
        for height in (4, 10, 24):
            lines = drawn(SEEN, width, height)
            assert len(lines) < height or height == 4
            assert max(map(len, lines)) <= width
    text = "\n".join(drawn(SEEN))
    for part in (
        "session.jsonl",
        "76% orange",
        "152,000 of 200,000 tokens (assumed)",
        "about 1,500 of them",
        "turn 118",
    ):
        assert part in text
    for part in ("+2,100 per turn", "full in 22 turns, about 12 min", "$1.24", "cache 96%", "the window is 76% full"):
        assert part in text
    assert "\n".join(drawn(SEEN, unicode=False)).isascii()


def test_states_are_told() -> None:
    gone = View("s.jsonl", "missing", "the file is gone; waiting for it", changed=0.0)
    assert "missing" in drawn(gone)[0] and "the file is gone" in "\n".join(drawn(gone))
    assert view_line(gone).endswith("missing: the file is gone; waiting for it")
    assert "no usage is reported yet" in "\n".join(drawn(View("s.jsonl")))
    assert view_line(View("s.jsonl", turn=3, turns_left=-1)) == "--:--:-- turn 3, full"
    assert view_line(SEEN).endswith("131 requests") is False


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "just now"), (9, "just now"), (47, "40 s ago"), (200, "3 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")],
)
def test_ago(seconds: float, text: str) -> None:
    assert ago(seconds) == text

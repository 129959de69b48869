"""Commands that write summaries: what counts as an answer, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxctl.compaction import llm
from ctxctl.compaction.llm import AskFailedError, Command


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_prompt_comes_on_stdin_and_the_answer_from_stdout() -> None:
    answer = Command(python("import sys; t = sys.stdin.read(); print(len(t), t[-3:])")).ask("prompt 日本\n" * 50_000)
    assert answer.text == "500000 日本\n\n" and answer.prompt is None


def test_a_line_goes_through_the_shell() -> None:
    assert Command("tr a-z A-Z | head -c 5").ask("hello world").text == "HELLO"


def test_a_command_need_not_read_its_prompt() -> None:
    assert Command(python("print('x')")).ask("p" * 1_000_000).text == "x\n"


FAILURES = {
    "error on stdout, status 1": (
        python("print('Error generating summary: 429'); raise SystemExit(1)"),
        "exit status 1",
    ),
    "error on stderr": (python("import sys; sys.exit('no model\\nrate limit')"), "exit status 1: rate limit"),
    "killed": (python("import os; os.kill(os.getpid(), 9)"), "signal 9"),
    "not there": (["/no/such/program"], "can't be started: No such file"),
    "not there, by the shell": ("no-such-program-here", "exit status 127"),
    "with a null byte": (["a\0b"], "can't be started"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures(case: str) -> None:
    command, why = FAILURES[case]
    with pytest.raises(AskFailedError) as caught:
        Command(command).ask("prompt")
    assert why in str(caught.value) and "Error generating" not in str(caught.value)


def test_a_time_out_ends_the_whole_process_group(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    started = time.monotonic()
    with pytest.raises(AskFailedError, match=r"no answer within 0\.5 s"):
        Command(f"(sleep 60 & echo $! > {pid}; wait) | cat", timeout=0.5).ask("p")
    assert time.monotonic() - started < 5
    assert gone(int(pid.read_text()))


def test_one_that_ignores_the_request_to_end_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(AskFailedError, match="no answer"):
        Command(python(code), timeout=0.5).ask("p")
    assert time.monotonic() - started < 5


def test_what_is_left_behind_does_not_hold_us_up(tmp_path: Path) -> None:
    started = time.monotonic()
    assert Command("sleep 60 & echo done").ask("p").text == "done\n"
    assert time.monotonic() - started < 5


def test_a_flood_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "LONGEST_OUTPUT", 1 << 20)
    with pytest.raises(AskFailedError, match="longer than 1 MiB"):
        Command("yes", timeout=30).ask("p")


def test_an_interrupt_ends_the_whole_process_group(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"from ctxctl.compaction.llm import Command; Command('sleep 60 & echo $! > {pid}; wait').ask('p')"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    for _ in range(200):
        if pid.exists() and pid.read_text().strip():
            break
        time.sleep(0.05)
    time.sleep(0.3)  # the command runs already, and Python is on its way to wait for it
    process.send_signal(signal.SIGINT)
    assert process.wait(10) != 0
    assert gone(int(pid.read_text()))


def gone(pid: int) -> bool:
    """Whether a process ended; one that nobody waited for yet counts as ended."""
    for _ in range(60):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False

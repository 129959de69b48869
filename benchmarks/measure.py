"""Whole-process timing: wall clock and peak memory of a command, as the operating system accounts them."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """Several runs. wall: their median, in seconds; peak: their largest, in MiB."""

    wall: float
    peak: float


def run_once(command: list[str]) -> tuple[float, float]:
    """Seconds and MiB of one run; its stdout is thrown away. Raises RuntimeError when it fails."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, devnull, 1)])
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    os.close(devnull)
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    scale = 1 if sys.platform == "darwin" else 1024
    return wall, usage.ru_maxrss * scale / (1 << 20)


def alternate(commands: dict[str, list[str]], runs: int) -> dict[str, Run]:
    """The commands in turn, A B A B ..., after one warm-up each: drift of the machine hits all of them alike."""
    for command in commands.values():
        run_once(command)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            seen[name].append(run_once(command))
    return {
        name: Run(statistics.median(w for w, _ in values), max(p for _, p in values)) for name, values in seen.items()
    }


def spent(command: list[str], seconds: float) -> float:
    """Processor seconds that a command took which is interrupted after so many seconds."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, devnull, 1)])
    os.close(devnull)
    time.sleep(seconds)
    os.kill(pid, signal.SIGINT)
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime

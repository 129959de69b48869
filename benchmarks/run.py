"""All measured claims of the README, as ratios within one run: `python benchmarks/run.py`.

Run it with the Python that has ctxctl installed. Sessions are made in a temporary folder unless they are given.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import windows
from measure import Run, alternate, run_once, spent
from sessions import make, make_turns

HERE = Path(__file__).parent
PYTHON = sys.executable
CTXCTL = [PYTHON, "-m", "ctxctl"]
if (Path(PYTHON).parent / "ctxctl").exists():
    CTXCTL = [str(Path(PYTHON).parent / "ctxctl")]


def row(what: str, value: str, limit: str | None, ok: bool = True) -> bool:
    """One line of the table; returns whether the goal is met. limit: None for a figure without a goal."""
    met = "" if limit is None else "yes" if ok else "NO"
    print(f"| {what} | {value} | {limit or '-'} | {met or '-'} |", flush=True)
    return ok


def baseline(kind: str, path: Path) -> list[str]:
    return [PYTHON, str(HERE / "baselines.py"), kind, str(path)]


def analyze(path: Path, *options: str) -> list[str]:
    return [*CTXCTL, "analyze", "--json", *options, str(path)]


def counted(small: Path, large: Path, larger: Path, runs: int) -> bool:
    """Every block counted: time against a bare loop, memory, and how memory grows with the file."""
    one = alternate({"ctxctl": analyze(small), "bare": baseline("bare", small)}, runs)
    a, b = one["ctxctl"], one["bare"]
    ok = row("analyze, 20 MB: wall", f"{a.wall:.2f} s", "1.0 s", a.wall <= 1.0)
    ok &= row(
        "analyze, 20 MB: against a bare loop of parse and count", f"{a.wall / b.wall:.2f}x", "2x", a.wall <= 2 * b.wall
    )
    ok &= row("analyze, 20 MB: peak memory", f"{a.peak:.0f} MiB", "150 MiB", a.peak <= 150)
    two = alternate({"ctxctl": analyze(large), "bare": baseline("bare", large)}, max(1, runs - 2))
    a, b = two["ctxctl"], two["bare"]
    ok &= row("analyze, 200 MB: wall", f"{a.wall:.2f} s", "5 s", a.wall <= 5)
    ok &= row("analyze, 200 MB: against the bare loop", f"{a.wall / b.wall:.2f}x", None)
    ok &= row("analyze, 200 MB: peak memory", f"{a.peak:.0f} MiB", "250 MiB", a.peak <= 250)
    three = alternate({"ctxctl": analyze(larger)}, max(1, runs - 2))["ctxctl"]
    growth = three.peak - a.peak
    return ok & row("analyze, growth for a further 200 MB", f"{growth:.0f} MiB", "20 MiB", growth <= 20)


def reported(large: Path, runs: int) -> bool:
    """Usage alone, against the floor and the start-up."""
    commands = {
        "reported": analyze(large, "--tokens", "reported"),
        "floor": baseline("floor", large),
        "version": [*CTXCTL, "--version"],
    }
    found = alternate(commands, runs)
    a, limit = found["reported"], 2 * found["floor"].wall + found["version"].wall
    name = "analyze --tokens reported, 200 MB: wall"
    return row(name, f"{a.wall:.2f} s", f"2x floor + --version = {limit:.2f} s", a.wall <= limit)


def replayed(small: Path | None, folder: Path, runs: int) -> bool:
    """Twelve policies at one window, and how time grows with the number of turns. Without a session one is made that
    refers to earlier content more often than agents do, and gets half a second more."""
    command = [*CTXCTL, "simulate", "--json", "--no-optimum"]
    limit = 2.5 if small is not None else 3.0
    if small is None:
        small = folder / "moving.jsonl"
        make(small, 20, 20, 200)
    one = alternate({"simulate": [*command, str(small)]}, max(1, runs - 2))["simulate"]
    ok = row("simulate, 12 policies, 20 MB: wall", f"{one.wall:.2f} s", f"{limit:g} s", one.wall <= limit)
    ok &= row("simulate, 12 policies, 20 MB: peak memory", f"{one.peak:.0f} MiB", "250 MiB", one.peak <= 250)
    few, many = folder / "few.jsonl", folder / "many.jsonl"
    make_turns(few, 10_000)
    make_turns(many, 100_000)
    walls = [run_once([*command, str(path)])[0] for path in (few, many)]
    growth = walls[1] / walls[0]
    return ok & row("simulate, 100,000 turns: against 10,000", f"{growth:.1f}x", "12x", growth <= 12)


def compacted(large: Path, folder: Path, runs: int) -> bool:
    """Compacted, written, read back and kept for recall: a session that is all in its window, and a long one."""
    whole = folder / "whole.jsonl"
    make(whole, 20, 21, window=10**9)
    output = folder / "compacted.jsonl"
    command = [*CTXCTL, "compact", "--json", "--window", "10m", "--force", "--no-recall", "-o", str(output)]
    kept = [*CTXCTL, "compact", "--json", "--window", "10m", "--force", "-o", str(folder / "kept.jsonl")]
    half = ["--to", "50%", str(whole)]
    found = alternate({"plain": [*command, *half], "kept": [*kept, *half]}, runs)
    a, b = found["plain"], found["kept"]
    ok = row("compact, 20 MB all in the window: wall", f"{a.wall:.2f} s", "1.5 s", a.wall <= 1.5)
    ok &= row("compact, the same with its recall store: wall", f"{b.wall:.2f} s", None)
    ok &= row("compact, 20 MB: peak memory", f"{b.peak:.0f} MiB", "200 MiB", b.peak <= 200)
    one = alternate({"large": [*kept, "--to", "95%", str(large)]}, max(1, runs - 2))["large"]
    ok &= row("compact, 200 MB: wall", f"{one.wall:.2f} s", None)
    return ok & row("compact, 200 MB: peak memory", f"{one.peak:.0f} MiB", "300 MiB", one.peak <= 300)


def resumed(large: Path, folder: Path, runs: int) -> bool:
    """A session of 200 MB whose state lies 20 MB behind: what a hook takes, and what does not depend on the session."""
    found = alternate(windows.prepare(CTXCTL, large, folder), runs)
    a, b = found["PreCompact"], found["SessionStart"]
    ok = row("hook before a compaction, grown by 20 MB behind 180 MB: wall", f"{a.wall:.2f} s", "1 s", a.wall <= 1)
    ok &= row("hook at the start of a session, the same: wall", f"{b.wall:.2f} s", "1 s", b.wall <= 1)
    ok &= row("the same: peak memory", f"{max(a.peak, b.peak):.0f} MiB", None)
    ok &= row("checkpoint, the same: wall", f"{found['checkpoint'].wall:.2f} s", None)
    return ok & row("resume, the same (the session is not read): wall", f"{found['resume'].wall:.2f} s", None)


def followed(large: Path, runs: int) -> bool:
    """The line that an agent draws again and again, and a watch of a session that nobody writes to."""
    commands = {
        "statusline": [*CTXCTL, "statusline", str(large)],
        "python": [PYTHON, "-c", "import orjson, dataclasses"],
        "watch": [*CTXCTL, "watch", "--once", str(large)],
    }
    found = alternate(commands, runs)
    a, b = found["statusline"], found["python"]
    ok = row("statusline, 200 MB: wall", f"{1000 * a.wall:.0f} ms", "100 ms", a.wall <= 0.1)
    ok &= row("statusline, 200 MB: against Python with orjson alone", f"{a.wall / b.wall:.1f}x", None)
    ok &= row("watch, 200 MB: until the first line", f"{found['watch'].wall:.2f} s", None)
    seconds = 20
    start, whole = (spent([*CTXCTL, "watch", str(large)], n) for n in (5, seconds + 5))
    share = max(0.0, whole - start) / seconds
    return ok & row("watch, 200 MB, nothing is written: processor", f"{share:.2%}", "1%", share <= 0.01)


def examined(small: Path, large: Path, runs: int) -> bool:
    """Budget and health, which read a session once: against analyze, which does not look for references."""
    commands = {
        "analyze": analyze(small),
        "budget": [*CTXCTL, "budget", "--json", str(small)],
        "health": [*CTXCTL, "health", "--json", str(small)],
    }
    found = alternate(commands, runs)
    ok = True
    for name, most in (("budget", 1.5), ("health", 2.5)):
        wall = found[name].wall
        ok &= row(f"{name}, 20 MB with 14 compactions: wall", f"{wall:.2f} s", f"{most} s", wall <= most)
        row(f"{name}, the same: against analyze", f"{wall / found['analyze'].wall:.1f}x", None)
    last = alternate({"health": [*CTXCTL, "health", "--json", str(large)]}, 1)["health"]
    row("health, 200 MB: wall", f"{last.wall:.1f} s", None)
    return ok & row("health, 200 MB: peak memory", f"{last.peak:.0f} MiB", "600 MiB", last.peak <= 600)


def start_up(runs: int) -> bool:
    """How long until the first letter."""
    commands = {"--version": 0.12, "--help": 0.3, "analyze --help": 0.3, "list --help": 0.3, "config --help": 0.3}
    found: dict[str, Run] = alternate({name: [*CTXCTL, *name.split()] for name in commands}, runs)
    return all(
        [
            row(f"ctxctl {n}", f"{found[n].wall:.2f} s", f"{limit} s", found[n].wall <= limit)
            for n, limit in commands.items()
        ]
    )


def models() -> bool:
    """How long the table of models takes to load, in a new interpreter each time: the first time is what counts."""
    code = (
        "import time, ctxctl.settings.models as m; t = time.perf_counter(); m.load_models(); "
        "print(time.perf_counter() - t)"
    )
    times = [float(subprocess.run([PYTHON, "-c", code], capture_output=True, check=True).stdout) for _ in range(5)]
    seconds = statistics.median(times)
    return row("the model table: load", f"{1000 * seconds:.1f} ms", "10 ms", seconds <= 0.010)


def bulk(small: Path) -> bool:
    """Bulk counting of a session's blocks against tiktoken, both warm, in this process."""
    from ctxctl import read
    from ctxctl.tokens.engines import engine
    from ctxctl.tokens.vocabulary import encoding

    texts = [block.text for block in read(str(small)).blocks if block.text]
    reference = encoding("o200k_base").encode_ordinary
    ok = True
    for name, hint, limit in (("splintr", None, 0.0), ("toktok", 1 << 30, 8.0)):
        fast = engine(size_hint=hint, prefer=name)
        ratios = []
        for _ in range(6):
            start = time.perf_counter()
            ours = sum(fast.count(texts))
            middle = time.perf_counter()
            theirs = sum(len(reference(text)) for text in texts)
            ratios.append((time.perf_counter() - middle) / (middle - start))
            assert ours == theirs, "the engines disagree"
            assert fast.name == name, f"{fast.name} counted in place of {name}"
        ratio = statistics.median(ratios[1:])
        ok &= row(
            f"bulk counting, {name}: against tiktoken",
            f"{ratio:.1f}x",
            f"{limit:g}x" if limit else None,
            ratio >= limit,
        )
    return ok


def main() -> int:
    """Print the table; status 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=Path, help="a Claude Code session of about 20 MB")
    parser.add_argument("--large", type=Path, help="one of about 200 MB")
    parser.add_argument("--larger", type=Path, help="one of about 400 MB")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, size in (("small", 20), ("large", 200), ("larger", 400)):
            files[name] = getattr(given, name) or Path(folder) / f"{name}.jsonl"
            if getattr(given, name) is None:
                make(files[name], size, size)
        print("| what | measured | goal | met |\n|---|---:|---:|---|")
        ok = counted(files["small"], files["large"], files["larger"], given.runs)
        ok &= reported(files["large"], given.runs)
        ok &= replayed(given.small, Path(folder), given.runs)
        ok &= compacted(files["large"], Path(folder), given.runs)
        ok &= resumed(files["large"], Path(folder), given.runs)
        ok &= examined(files["small"], files["large"], given.runs)
        ok &= followed(files["large"], given.runs)
        ok &= bulk(files["small"])
        ok &= models()
        ok &= start_up(given.runs)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

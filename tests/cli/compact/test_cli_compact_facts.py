"""The facts of a compacted session are those of the session, whatever it was and however often it was compacted."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from compact_many import once
from growing_sessions import Chat, Claude
from told_facts import same_facts

from ctxctl.facts.session import SessionFacts
from ctxctl.formats.read import scan
from ctxctl.model.block import MAIN, Block
from ctxctl.model.summary import SessionSummary

LONG = "\n".join(f"src/part_{n}.py:{n * 3}: value_{n} = compute_{n}({n})" for n in range(45))
TASKS = [f"Task {letter} of the work" for letter in "ABCDEF"]


def facts_of(path: Path) -> SessionSummary:
    facts = SessionFacts()
    number = -1

    def see(block: Block) -> None:
        nonlocal number
        number += 1
        if block.thread == MAIN:
            facts.see(block, number)

    scan(str(path), see)
    return facts.summary()


def edit(n: int) -> tuple[str, Any]:
    given = {"file_path": f"/w/f{n}.py", "old_string": "a", "new_string": "b"}
    return "call", ("Edit", given, f"/w/f{n}.py has been updated")


def bad_edit(n: int) -> tuple[str, Any]:
    given = {"file_path": f"/w/bad{n}.py", "old_string": "a", "new_string": "b"}
    return "call", ("Edit", given, ("failed", "<tool_use_error>String to replace not found</tool_use_error>"))


def look(n: int) -> tuple[str, Any]:
    return "call", ("Read", {"file_path": f"/w/r{n}.py"}, LONG.replace("part", f"part{n}"))


def red(n: int) -> tuple[str, Any]:
    text = LONG + f"\n{n + 1} failed, 3 passed in 0.10s"
    return "call", ("Bash", {"command": f"pytest -q tests/t{n}.py"}, ("failed", text))


def green(n: int) -> tuple[str, Any]:
    return "call", ("Bash", {"command": f"pytest -q tests/t{n}.py"}, f"{LONG}\n{n + 4} passed in 0.10s")


def commit(n: int) -> tuple[str, Any]:
    made = f"[main {0xABC0000 + n:07x}] Change number {n}\n 1 file changed"
    return "call", ("Bash", {"command": f"git commit -qam 'Change number {n}'"}, made)


def plan(n: int) -> tuple[str, Any]:
    items = [
        {"content": text, "activeForm": text, "status": ("completed", "in_progress", "pending")[(n + at) % 3]}
        for at, text in enumerate(TASKS)
    ]
    return "call", ("TodoWrite", {"todos": items}, "Todos have been modified")


def decide(n: int) -> tuple[str, Any]:
    return "assistant", f"We decided to use backend {n} because the other one is slow."


def ask(n: int) -> tuple[str, Any]:
    return "user", f"Now have a look at the part with number {n}, please."


kinds = [edit, bad_edit, look, red, green, commit, plan, decide, ask]
events = st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 12)), min_size=12, max_size=40)


@pytest.mark.slow
@pytest.mark.parametrize("session", [Claude, Chat])
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rounds=st.lists(events, min_size=2, max_size=4),
    target=st.sampled_from([900, 2000, 4000, 8000]),
    steps=st.sampled_from([(), ("conversation",), ("tool-results", "conversation"), ("progressive", "conversation")]),
)
def test_facts_outlive_compactions(
    session: Any,
    rounds: list[list[tuple[Any, int]]],
    target: int,
    steps: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as name, monkeypatch.context() as patch:
        folder = Path(name)
        patch.chdir(folder)
        (folder / ".git").mkdir()
        whole = session(folder / "5e551011-0000-4000-9000-000000000001.jsonl")
        short = session(folder / "5e551011-0000-4000-9000-000000000002.jsonl")
        opening = [("user", "Make the whole of the service faster than it is."), ("assistant", "I begin with a look.")]
        committed: set[int] = set()
        for at, made in enumerate(rounds):
            script = [*(opening if at == 0 else ()), ("user", f"Go on with round number {at}, please.")]
            for make, n in made:
                if make is not commit or n not in committed:
                    script.append(make(n))
                    committed.update({n} if make is commit else ())
            script.append(("assistant", f"That is round {at}."))
            whole.append(script)
            short.append(script)
            line = ["compact", "--json", "--no-recall", "--force", "--no-evict", "--in-place", "--to", str(target)]
            for step in steps:
                line += ["-s", step]
            code, _, err = once([*line, str(short.path)])
            assert code in (0, 5), err
            same_facts(facts_of(whole.path), facts_of(short.path))

"""Ten compactions in a row of a session that goes on between them: what is pinned, the goal and the open plan outlive
all of them, and there is never more than one summary."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from chat_views import SUMMARY, View, view
from compact_many import once
from growing_sessions import Chat, Claude
from told_facts import held, told_by
from valid_chat import violations

GOAL = "Move the billing service from axios to fetch. Success: all 45 call sites use fetch and the suite passes."
RULE = "Never touch src/legacy/gateway.ts; the vendor signs it."
NAMES = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india")
PLAN = [f"Convert module {name} of billing" for name in NAMES]
ROUNDS, TARGET = 10, 1300
ROOMY = (3000, 6000)


def output(round_: int, step: int) -> str:
    return "\n".join(
        f"src/billing/mod_{round_}_{step}/file{n}.ts:{n * 7}: export const call{n} = axios.get('/v{round_}/{n}')"
        for n in range(60)
    )


def todos(done: int) -> dict[str, Any]:
    return {
        "todos": [
            {
                "content": text,
                "status": "completed" if n < done else "in_progress" if n == done else "pending",
                "activeForm": text,
            }
            for n, text in enumerate(PLAN)
        ]
    }


def turns(round_: int) -> list[tuple[str, Any]]:
    """What happens between two compactions, as (role, what): user text, a call with its result, or an answer."""
    found: list[tuple[str, Any]] = []
    if round_ == 0:
        found.append(("user", GOAL))
        found.append(("assistant", "I will look at the call sites first."))
        found.append(("user", f"One rule: <preserve>{RULE}</preserve>"))
    found.append(("user", f"Go on with module number {round_}, please, and tell me what you changed there."))
    found.append(("call", ("TodoWrite", todos(min(round_, len(PLAN) - 1)), "Todos have been modified")))
    for step in range(4):
        path = f"/srv/app/src/billing/mod_{round_}_{step}.ts"
        found.append(("call", ("Read", {"file_path": path}, output(round_, step))))
        found.append(
            ("call", ("Edit", {"file_path": path, "old_string": "axios", "new_string": "fetch"}, f"updated {path}"))
        )
    found.append(("assistant", f"Module {round_} is converted; decided to keep the retry wrapper because calls fail."))
    return found


FAILING = "tests/test_round_{}.py"


def rich(round_: int) -> list[tuple[str, Any]]:
    """As `turns`, with a demand, a decision, a commit, and tests of which every other round's stay red."""
    found = turns(round_)
    suite = f"python -m pytest -q {FAILING.format(round_)}"
    red = "\n".join(f"E   assert {n} == {n + round_}  # {round_}" for n in range(40))
    lines = f"F.\n{red}\n1 failed, 1 passed in 0.{round_}1s"
    found.insert(-1, ("call", ("Bash", {"command": suite}, ("failed", lines))))
    if round_ % 2:
        found.insert(-1, ("call", ("Bash", {"command": suite}, f"..\n2 passed in 0.{round_}2s")))
    made = f"[main {commit(round_)}] Convert module {round_}\n 4 files changed, 4 insertions(+), 4 deletions(-)"
    found.insert(-1, ("call", ("Bash", {"command": f'git commit -qam "Convert module {round_}"'}, made)))
    found.insert(-1, ("assistant", f"We decided to keep port {7000 + round_} because the proxy of it is fixed."))
    if round_ % 3 == 1:
        found.append(("user", f"You must always keep the header X-Round-{round_} in place."))
        found.append(("assistant", "Understood."))
    return found


def commit(round_: int) -> str:
    return f"{0xA1B2C30 + round_:07x}"


def texts(of: View) -> list[str]:
    return [p.text for m in of.messages for p in m.parts]


def told(round_: int, of: View) -> None:
    """What has to be in every request."""
    everything = "\n".join(texts(of))
    assert GOAL in everything and RULE in everything
    summaries = [t for t in texts(of) if t.startswith(f"{SUMMARY} turns ")]
    # the first time, shorter outputs alone may do
    assert len(summaries) == 1 or (round_ == 0 and not summaries), [s[:80] for s in summaries]
    assert all(s.count(SUMMARY) == 1 for s in summaries)
    done = min(round_, len(PLAN) - 1)
    for text in PLAN[done:]:
        assert text in everything, text
    current = next(m for m in reversed(of.messages) if any(p.typed for p in m.parts))
    assert f"module number {round_}," in "\n".join(p.text for p in current.parts if p.typed)


def remembered(round_: int, of: View) -> None:
    """All facts so far are in the summary, in what stands beside it, or counted; and no others."""
    summaries = [t for t in texts(of) if t.startswith(f"{SUMMARY} turns ")]
    if not summaries:
        # as long as shorter outputs alone do; all calls are there
        assert round_ < ROUNDS - 3
        return
    assert len(summaries) == 1, "\n-----\n".join(summaries)
    summary = summaries[0]
    told = told_by(summary)
    beside = "\n".join(t for t in texts(of) if t != summary)
    rounds = range(round_ + 1)

    def seen(fact: str) -> bool:
        return fact in beside

    assert not told.quoted or all(line == f"> {GOAL}" for line in told.quoted)
    paths = [f"/srv/app/src/billing/mod_{r}_{step}.ts" for r in rounds for step in range(4)]
    held(told, ["Files modified"], paths, lambda item: item.split("`")[1], seen)
    red = [FAILING.format(r) for r in rounds if not r % 2]
    green = [FAILING.format(r) for r in rounds if r % 2]
    suite = re.compile(r"tests/test_round_\d+\.py")
    held(told, ["Failing tests"], red, lambda item: suite.search(item)[0], seen)  # type: ignore[index]
    held(told, ["Tests"], green, lambda item: suite.search(item)[0], seen)  # type: ignore[index]
    held(told, ["Commits"], [f"{commit(r)} Convert module {r}" for r in rounds], str, lambda f: seen(f.split()[0]))
    held(
        told,
        ["Decisions"],
        [
            *(f"We decided to keep port {7000 + r}; because the proxy of it is fixed." for r in rounds),
            *(f"Module {r} is converted; decided to keep the retry wrapper; because calls fail." for r in rounds),
        ],
        str,
        lambda fact: seen(fact.partition("; because")[0]) or fact.startswith("Module"),
    )
    rules = [f"You must always keep the header X-Round-{r} in place." for r in rounds if r % 3 == 1]
    held(told, ["Constraints"], [*rules, RULE, f"One rule: <preserve>{RULE}</preserve>", GOAL], str, seen)
    done = min(round_, len(PLAN) - 1)
    plan = [f"{'[x]' if n < done else '[>]' if n == done else '[ ]'} {text}" for n, text in enumerate(PLAN)]
    if any(p.kind == "call" and "activeForm" in p.text for m in of.messages for p in m.parts):
        plan = [
            f"[{sign}] {text}" for sign in "x> " for text in PLAN
        ]  # the newest list stands behind it, word for word
        held(told, ["Todos", "Done"], plan, str, lambda _: True)
    else:
        held(told, ["Todos"], plan[done:], str, lambda _: False)
        held(told, ["Done"], plan[:done], str, lambda _: False)


@pytest.mark.parametrize("way", ["new", "in-place", "keep-history"])
@pytest.mark.parametrize("session", [Claude, Chat])
def test_ten_in_a_row(session: Any, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(session, way, TARGET, turns, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("target", ROOMY)
@pytest.mark.parametrize("way", ["new", "in-place", "keep-history"])
@pytest.mark.parametrize("session", [Claude, Chat])
def test_ten_in_a_row_with_room(
    session: Any, way: str, target: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(session, way, target, rich, tmp_path, monkeypatch)


def chain(
    session: Any,
    way: str,
    target: int,
    script: Callable[[int], list[tuple[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if session is Chat and way == "keep-history":
        pytest.skip("a plain conversation has no place for what was before")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    growing = session(tmp_path / "5e551011-0000-4000-9000-000000000001.jsonl")
    for round_ in range(ROUNDS):
        growing.append(script(round_))
        before = tmp_path / f"before{round_}.jsonl"
        before.write_bytes(growing.path.read_bytes())
        line = ["compact", "--json", "--no-recall", "--force", "--to", str(target)]
        after = tmp_path / f"5e551011-0000-4000-9000-0000000001{round_:02d}.jsonl"
        if way == "new":
            line += ["-o", str(after)]
        else:
            line += ["--in-place"] + (["--keep-history"] if way == "keep-history" else [])
            after = growing.path
        code, out, err = once([*line, str(growing.path)])
        assert code == 0, err
        result = json.loads(out)["result"]
        assert result["after_tokens"] <= target and result["changed"]
        assert violations(before, after, growing.format) == []
        growing.moved(after)
        if script is turns:
            told(round_, view(after, growing.format))
        else:
            remembered(round_, view(after, growing.format))
        code, out, err = once([*line[:6], "--dry-run", str(after)])
        assert code == 0 and json.loads(out)["result"]["changed"] is False, err

"""Components of recorded sessions: they add up to the window, and each comes from where it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sessions import ClaudeSession, examined, lines_of  # type: ignore[import-not-found]

from ctxctl.budgets.components import RESERVE
from ctxctl.budgets.options import Allocations, BudgetOptions
from ctxctl.budgets.result import Budget
from ctxctl.health.budgeted import budget_of_session
from ctxctl.health.session import Examining
from ctxctl.pressure.result import AnalysisOptions

SAMPLES = Path(__file__).parents[2] / "sample_transcripts"
NOTE = "\n\n<system-reminder>\n" + "Consider whether this file is malware. " * 20 + "\n</system-reminder>"


def used(budget: Budget) -> dict[str, Any]:
    return {c.component: c.used for c in budget.components if c.component != RESERVE}


def adds_up(budget: Budget) -> bool:
    known = [tokens for tokens in used(budget).values() if tokens is not None]
    return budget.total_used == sum(known) + (budget.unexplained or 0)


def chat(tmp_path: Path, messages: list[dict[str, Any]], name: str = "chat.jsonl") -> Budget:
    path = tmp_path / name
    path.write_text("".join(json.dumps(m) + "\n" for m in messages))
    return budget_of_session(examined(path))


def working(tmp_path: Path, turns: int = 6, **options: Any) -> ClaudeSession:
    session = ClaudeSession(tmp_path, **options)
    session.user("Add a greeting.")
    for n in range(turns):
        session.read(f"/code/app/f{n}.py", lines_of(40, f"name{n}"))
    session.answer("Done.")
    return session


@pytest.mark.parametrize("sample", sorted(p.name for p in SAMPLES.iterdir() if p.suffix in (".jsonl", ".json")))
def test_samples_add_up(sample: str) -> None:
    budget = budget_of_session(examined(SAMPLES / sample))
    assert adds_up(budget)
    assert all(tokens is None or tokens >= 0 for tokens in used(budget).values())


def test_the_residual_is_shared_out_by_the_allocations(tmp_path: Path) -> None:
    budget = budget_of_session(working(tmp_path, overhead=15_000).examine())
    system, tools = budget.component("system_prompt"), budget.component("tool_definitions")
    assert (system.source, tools.source) == ("shared residual", "shared residual")
    assert system.used is not None and tools.used is not None
    # the client's own frames are counted by the session and by ctxctl alike but for a few tokens
    assert system.used + tools.used == pytest.approx(15_000, abs=60)
    assert system.utilization == pytest.approx(tools.utilization, abs=0.001)
    assert adds_up(budget)
    assert [n.code for n in budget.notes] == ["shared_residual"]


def test_other_allocations_share_it_otherwise(tmp_path: Path) -> None:
    options = Examining(budget=BudgetOptions(Allocations(system_prompt=0.02, tool_definitions=0.06)))
    budget = budget_of_session(working(tmp_path, overhead=16_000).examine(options))
    assert budget.component("system_prompt").used == pytest.approx(4000, abs=20)
    assert budget.component("tool_definitions").used == pytest.approx(12_000, abs=60)


def test_what_the_file_holds_is_taken_from_it(tmp_path: Path) -> None:
    request = json.loads((SAMPLES / "anthropic-request.json").read_text())
    budget = budget_of_session(examined(SAMPLES / "anthropic-request.json"))
    assert {"system", "tools"} <= request.keys()
    assert budget.component("system_prompt").source == "transcript"
    assert budget.component("tool_definitions").source == "transcript"
    assert (budget.component("system_prompt").used or 0) > 0
    assert (budget.component("tool_definitions").used or 0) > 0


def test_with_the_prompt_in_the_file_the_residual_is_the_tools() -> None:
    budget = budget_of_session(examined(SAMPLES / "codex-rollout.jsonl"))
    assert budget.component("system_prompt").source == "transcript"
    assert budget.component("tool_definitions").source == "residual"
    assert adds_up(budget)


def test_what_was_not_measured_is_none(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    budget = chat(tmp_path, said)
    assert used(budget)["system_prompt"] is None
    assert used(budget)["tool_definitions"] is None
    assert {n.code for n in budget.notes} == {"window_unknown", "not_measured"}
    assert (budget.window, budget.total_utilization, budget.turns_remaining) == (None, None, None)
    assert all(c.status is None and c.limit is None for c in budget.components)
    assert budget.money.total is None
    assert adds_up(budget)
    known = chat(tmp_path, [{"role": "system", "content": "Be kind."}, *said], "other.jsonl")
    assert (known.component("system_prompt").source, known.component("tool_definitions").used) == ("transcript", None)


def test_memory_wherever_it_stands(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Add a greeting.")
    session.read("/code/app/CLAUDE.md", lines_of(50, "rule"))
    session.read("/code/app/app.py", lines_of(50, "app") + NOTE)
    session.read("/code/app/notes.py", lines_of(5, "note") + NOTE + "\n" + lines_of(45, "note"))  # quoted in the file
    session.call("mcp__memory__search_nodes", {"query": "style"}, lines_of(30, "node"))
    session.answer("Done.")
    budget = budget_of_session(session.examine())
    assert budget.memory["instructions"] == pytest.approx(600, rel=0.5)
    assert budget.memory["tool"] == pytest.approx(400, rel=0.5)
    assert 50 < budget.memory["reminders"] < 400, "one note of about 160 tokens, not the quoted one"
    assert budget.memory["injected"] == 0
    assert budget.component("memory_injection").used == sum(budget.memory.values())
    assert adds_up(budget)


def test_what_waits_behind_the_last_call_counts(tmp_path: Path) -> None:
    session = working(tmp_path)
    before = budget_of_session(session.examine())
    session.read("/code/app/last.py", lines_of(200, "last"))
    after = budget_of_session(session.examine())
    assert (after.component("tool_results").used or 0) > (before.component("tool_results").used or 0) + 1000
    assert adds_up(after)


def test_what_a_compaction_took_does_not(tmp_path: Path) -> None:
    session = working(tmp_path, turns=10)
    full = budget_of_session(session.examine())
    session.compact("The greeting was added to ten files.")
    session.user("Go on.")
    session.answer("Done.")
    budget = budget_of_session(session.examine())
    assert (full.component("tool_results").used or 0) > 3000
    assert budget.component("tool_results").used == 0
    assert adds_up(budget)


def test_cleared_results_leave_a_placeholder(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Read these.")
    ids = [session.read(f"/code/app/f{n}.py", lines_of(80, f"name{n}")) for n in range(4)]
    session.answer("Read.")
    before = budget_of_session(session.examine())
    session.clear(*ids[:3])
    session.user("Go on.")
    session.answer("Done.")
    after = budget_of_session(session.examine())
    assert (after.component("tool_results").used or 0) == pytest.approx(
        (before.component("tool_results").used or 0) / 4 + 3 * 8, rel=0.05
    )
    assert adds_up(after)


def test_hidden_growth_is_told_as_unexplained(tmp_path: Path) -> None:
    session = working(tmp_path, turns=3)
    session.compact("Three files were read.")
    session.overhead += 9000  # files that the client put back without writing it down
    session.user("Go on.")
    session.answer("Done.")
    budget = budget_of_session(session.examine())
    assert budget.unexplained == pytest.approx(9000, abs=200)
    assert "unexplained" in {n.code for n in budget.notes}
    assert adds_up(budget)


def test_burn_rate_and_time_without_the_first_request_and_the_waits(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path, step=5)
    session.user("Count.")
    prompt = 20_000
    for n in range(12):
        if n == 6:
            session.wait(3 * 3600)  # the user went to lunch
            session.user("Go on.")
        prompt += 1000 + 10 * n
        session.bash(f"echo {n}", "x " * 100, prompt=prompt)
    session.answer("Done.", prompt=prompt + 4000)
    budget = budget_of_session(session.examine())
    grown = [1000 + 10 * n for n in range(1, 12)] + [4000]
    assert budget.burn_rate == sum(grown[-10:]) / 10
    assert budget.seconds_per_turn == 10, "a result and an answer, 5 seconds each; not the pause"
    window, reserve = 200_000, 10_000
    assert budget.total_used == prompt + 4000
    assert budget.turns_remaining == int((window - reserve - budget.total_used) // budget.burn_rate)
    assert budget.minutes_remaining == budget.turns_remaining * 10 / 60


@pytest.mark.parametrize(
    ("done", "left", "window", "act"),
    [(2, 2, 200_000, False), (2, 2, 26_000, True), (0, 3, 200_000, False), (3, 0, 26_000, False)],
)
def test_the_plan_against_the_turns_that_remain(tmp_path: Path, done: int, left: int, window: int, act: bool) -> None:
    session = working(tmp_path, turns=8)
    steps = [(f"step {n}", "completed" if n < done else "pending") for n in range(done + left)]
    session.todos(*steps)
    session.answer("Next.")
    budget = budget_of_session(session.examine(Examining(AnalysisOptions(window=window))))
    plan = budget.forecast
    assert plan is not None
    turns = budget.totals.turns
    assert (plan.remaining_steps, plan.done_steps, plan.act) == (left, done, act)
    assert plan.turns_per_step == (turns / done if done else 1)
    assert plan.turns_needed == -(-left * turns // done if done else -left)
    assert plan.reason == ("forecast" if act else None)
    if act:
        assert budget.turns_remaining is not None and budget.turns_remaining < plan.turns_needed


def test_without_a_plan_there_is_no_forecast(tmp_path: Path) -> None:
    assert budget_of_session(working(tmp_path).examine()).forecast is None


def test_statuses_follow_the_window(tmp_path: Path) -> None:
    session = working(tmp_path, overhead=12_000)
    soft = budget_of_session(session.examine(Examining(AnalysisOptions(window=150_000))))
    hard = budget_of_session(session.examine(Examining(AnalysisOptions(window=120_000))))
    assert [soft.component(n).status for n in ("system_prompt", "tool_definitions")] == ["soft", "soft"]
    assert [hard.component(n).status for n in ("system_prompt", "tool_definitions")] == ["hard", "hard"]
    assert soft.component("message_history").status == "ok"

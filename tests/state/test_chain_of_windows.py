"""A task of 200 subtasks over 10 windows: after every checkpoint the state is what is true, and each resume prompt,
within its limit, says what the next window needs to know.

Each window begins with the prompt that `ctxctl resume` printed at the end of the one before. What the prompt says is
read from its lines by the labels that it promises, without ctxctl.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from state_runs import state_of, within
from synthetic_task import DOING, DONE, GOAL, PLANNED, SyntheticTask, Truth

from ctxctl.tokens.vocabulary import encoding

BUDGETS = (4000, 1500, 600)
RULES = ("Never change the files under vendor/.", "You must not raise any timeout.")
AGENTS = {
    "todos": ("todos",),
    "tasks": ("tasks",),
    "codex": ("codex",),
    "checklist": ("checklist",),
    "mixed": ("todos", "codex", "tasks"),
}


# ---------------------------------------------------------------- what a prompt says, from its lines alone


def read_prompt(text: str) -> dict[str, Any]:
    """Goal, current and next step, and the items of each part, by the labels of the prompt."""
    lines = text.rstrip("\n").split("\n")
    assert lines[0] == "[CONTEXT_WINDOW_RESUME]", lines[0]
    assert lines[-1] == "[/CONTEXT_WINDOW_RESUME]", lines[-1]
    told: dict[str, Any] = {"goal": [], "current": [], "next": [], "parts": {}}
    title = ""
    for line in lines[1:-1]:
        if line.startswith("## "):
            title = line[3:].split(" (from: ")[0].split(",")[0]
            assert "(from: " in line, f"a part without its source: {line}"
            told["parts"][title] = []
        elif title == "Goal" and line.startswith(">"):
            told["goal"].append(line[2:])
        elif line.startswith("Current step (in progress, not finished): "):
            told["current"].append(line.split(": ", 1)[1])
        elif line.startswith("Current step: none"):
            told["current"].append(None)
        elif line.startswith("Next step: "):
            said = line.split(": ", 1)[1]
            told["next"].append(None if said == "none is planned" else said)
        elif line.startswith("- "):
            told["parts"][title].append(line[2:])
    assert len(told["current"]) == len(told["next"]) == 1, "each step is told once"
    return {**told, "goal": "\n".join(told["goal"]), "current": told["current"][0], "next": told["next"][0]}


def read_progress(text: str) -> dict[str, Any]:
    """The lists of a progress file, by the marks that requirement S2 names. Texts stand in front of ` (s1)`."""
    told: dict[str, Any] = {"done": [], "planned": [], "current": None, "window": int(text.split("\n")[0].split()[-1])}
    part = ""
    for line in text.split("\n"):
        if line.startswith("## "):
            part = line[3:]
        if line.startswith("## Current: ") and line != "## Current: (none)":
            told["current"] = line[12:].rpartition(" (s")[0]
        elif line.startswith("- [x] ") and part.startswith("Completed"):
            told["done"].append(line[6:].rpartition(" (s")[0])
        elif line.startswith("- [ ] ") and part.startswith("Remaining"):
            told["planned"].append(line[6:].removesuffix(" (in work)").rpartition(" (s")[0])
    return told


def folded(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


# ---------------------------------------------------------------- the chain


class Chain:
    """Checkpoints one after the other, each held against the truth and against the one before."""

    def __init__(self, folder: Path, task: SyntheticTask) -> None:
        self.folder = folder
        self.task = task
        self.ids: dict[str, str] = {}
        self.asked: tuple[list[str], list[str]] | None = None
        self.version = 0
        self.checkpoints = 0

    def checkpoint(self, path: Path) -> None:
        before = path.read_bytes()
        within(self.folder, "checkpoint", "-q", path).ok()
        assert path.read_bytes() == before, "a session is only read"
        self.checkpoints += 1
        state = state_of(self.folder)
        self.compare(state, self.task.truth)
        self.go_on(state)
        self.progress()

    def compare(self, state: Any, truth: Truth) -> None:
        where = f"window {self.task.number}, checkpoint {self.checkpoints}, {self.task.session.path}"
        current = self.current(state)
        done, rest = state["completed_subtasks"], state["remaining_subtasks"]
        names = [s["text"] for s in (*done, *current, *rest)]
        assert len(names) == len(set(names)), f"repeated: {[n for n in names if names.count(n) > 1][:3]}; {where}"
        assert set(names) == set(truth.items), (
            f"lost: {sorted(set(truth.items) - set(names))[:3]}, made up: {sorted(set(names) - set(truth.items))[:3]}; "
            f"{where}"
        )
        now = {s["text"]: s["status"] for s in (*done, *current, *rest)}
        wrong = {text: (now[text], truth.items[text]) for text in names if now[text] != truth.items[text]}
        assert not wrong, f"{wrong}; {where}"
        assert all(s["status"] == DONE for s in done) and all(s["status"] != DONE for s in (*current, *rest))
        assert [s["status"] for s in current] == [DOING] * bool(truth.of(DOING)), where
        assert state["window_id"] == truth.window, where
        assert state["task_goal"] == GOAL, where
        if truth.interrupted is not None and len(truth.of(DOING)) == 1:
            told = current[0]["evidence"]
            assert "interrupted" in told or "no result" in told, (current, truth.interrupted, where)
        self.facts(state, truth, where)

    def current(self, state: Any) -> list[Any]:
        """The subtask in work. Where all are done, a request of the user's may stand there, under no number."""
        current = state["current_subtask"]
        if current is None or (current["id"] == "now" and not self.open):
            return []
        return [current]

    @property
    def open(self) -> list[str]:
        return [*self.task.truth.of(DOING), *self.task.truth.of(PLANNED)]

    def facts(self, state: Any, truth: Truth, where: str) -> None:
        """Nothing that a prompt repeats is taken for something new."""
        assert [d["what"] for d in state["decisions"]] == truth.decisions, where
        assert [(c["id"], c["message"]) for c in state["commits"]] == truth.commits, where
        changed = {f["path"] for f in state["environment"]["files"] if f["role"] == "modified"}
        assert changed == truth.changed, where
        self.asked = self.asked or (state["constraints"], state["success_criteria"])
        assert (state["constraints"], state["success_criteria"]) == self.asked, where
        assert [any(text in told for told in state["constraints"]) for text in RULES] == [True, True], where
        assert state["success_criteria"] == ["All tests pass.", "No module imports the old client."], where
        assert not [text for text in state["requests"] if "CONTEXT_WINDOW_RESUME" in text], where
        assert set(state["requests"]) <= {"please go on"}, (state["requests"], where)

    def go_on(self, state: Any) -> None:
        """Versions and windows grow, ids stay with their texts and are never given twice."""
        assert state["state_version"] == self.version + 1
        self.version += 1
        current = self.current(state)
        for subtask in (*state["completed_subtasks"], *current, *state["remaining_subtasks"]):
            assert self.ids.setdefault(subtask["text"], subtask["id"]) == subtask["id"]
        assert len(set(self.ids.values())) == len(self.ids)

    def progress(self) -> None:
        truth = self.task.truth
        told = read_progress((self.folder / "agent_progress.md").read_text())
        assert told["window"] == truth.window
        assert sorted(told["done"]) == sorted(map(folded, truth.of(DONE)))
        in_work = [folded(text) for text in truth.of(DOING)]
        assert (told["current"] in in_work) if in_work else told["current"] is None or not self.open
        assert sorted(told["planned"]) == sorted(
            [*(folded(t) for t in truth.of(PLANNED)), *(t for t in in_work if t != told["current"])]
        )

    def resume(self, budget: int) -> str:
        """The prompt, which has to be within its limit and right."""
        text = within(self.folder, "resume", "--budget", budget).ok().out.decode()
        assert len(encoding("o200k_base").encode(text)) <= budget
        self.read(text)
        return text

    def read(self, text: str) -> None:
        truth = self.task.truth
        told = read_prompt(text)
        assert told["goal"] == GOAL
        in_work = [folded(t) for t in truth.of(DOING)]
        assert (told["current"] in in_work) if in_work else told["current"] is None or not self.open, told["current"]
        if len(in_work) <= 1:
            assert told["next"] == folded(self.task.next_step), (told["next"], self.task.next_step)
        for part, statuses in (("Completed", (DONE,)), ("Remaining", (PLANNED, DOING))):
            for item in told["parts"].get(part, []):
                name = item.split(": ", 1)[1]
                match = [t for t in truth.items if folded(t) == name]
                assert match and truth.items[match[0]] in statuses, item
                assert (item[:3] == "[x]") == (part == "Completed")


def chained(folder: Path, *, seed: int, agents: str, count: int, windows: int) -> Iterator[tuple[Chain, str]]:
    """Work off a task; (chain, prompt) at the end of each window."""
    task = SyntheticTask(folder, seed, count=count, windows=windows, agents=AGENTS[agents])
    chain = Chain(folder, task)
    prompt: str | None = None
    progress = ""
    for _ in range(windows):
        path = task.open(prompt, progress)
        for _ in task.work():
            chain.checkpoint(path)
        prompts = [chain.resume(budget) for budget in BUDGETS]
        prompt = prompts[task.random.randrange(len(prompts))]
        progress = (folder / "agent_progress.md").read_text()
        yield chain, prompt
    assert len(task.truth.items) == count and set(task.truth.items.values()) == {DONE}
    assert chain.checkpoints > 3 * windows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "w"
    made.mkdir()
    return made


@pytest.mark.parametrize("agents", AGENTS)
def test_forty_subtasks_over_four_windows(agents: str, folder: Path) -> None:
    for _ in chained(folder, seed=1, agents=agents, count=40, windows=4):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("agents", AGENTS)
def test_two_hundred_subtasks_over_ten_windows(agents: str, seed: int, folder: Path) -> None:
    sizes = []
    for chain, _ in chained(folder, seed=seed, agents=agents, count=200, windows=10):
        sizes.append((folder / "agent_state.json").stat().st_size)
        assert chain.task.number == len(sizes)
    assert len(sizes) == 10
    within(folder, "audit", "verify").ok()


def test_a_prompt_is_of_the_state_and_not_of_the_history(folder: Path) -> None:
    """What a session grew to does not matter: the same state gives the same prompt without any session."""
    task = SyntheticTask(folder, 5, count=40, windows=2, agents=("todos",))
    path = task.open(None)
    for _ in task.work():
        pass
    within(folder, "checkpoint", path).ok()
    with_it = within(folder, "resume").ok().out
    path.rename(folder / "elsewhere.jsonl")
    without = within(folder, "resume").ok().out
    kept = [line for line in with_it.split(b"\n") if b"transcript" not in line and path.name.encode() not in line]
    lines = without.split(b"\n")
    assert [line for line in kept if line not in lines] == []

"""The summary as text and back, within its budget, and over many compactions."""

from __future__ import annotations

import json
import re
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.facts.summary import as_json, from_json, merge, parse, render
from ctxctl.model.summary import Commit, DecisionFact, FileFact, SessionSummary, TestRun, Todo


def words(text: str) -> int:
    """A count of tokens that is quick and about right: words and signs."""
    return len(re.findall(r"\w+|[^\w\s]", text))


WHOLE = SessionSummary(
    turns=(1, 40),
    goal="Migrate to fetch.\n\nKeep the API.",
    success_criteria=("all tests pass",),
    constraints=("Never touch src/legacy.",),
    requests=("Also update the docs",),
    decisions=(DecisionFact("use fetch", "axios is large"), DecisionFact("keep the wrapper")),
    files=(
        FileFact("src/a.py", "modified", ("edited",)),
        FileFact("odd `name`\n.py", "modified", ("written",), "0123456789ab"),
        FileFact("src/b c.py", "read", ("read",)),
    ),
    todos=(
        Todo("first", "doing"),
        Todo("#2 is broken", "planned"),
        Todo("third", "planned", "main", "3"),
        Todo("theirs", "planned", "helper"),
        Todo("zero", "done"),
    ),
    tests=(TestRun("npm test", "failed", "1 failed, 2 passed"), TestRun("echo `x` | pytest", "passed")),
    commits=(Commit("Move the client", "1234567"), Commit("abcdef1 looks like an id")),
    open_issues=("Windows is not tested",),
    dead_ends=("tried a shim, failed because of streams",),
    errors=("Bash make: no rule",),
    learnings=("the server sends 204",),
    next_steps=("first", "then the docs"),
    artifacts=("https://example.org/pull/7",),
    validators=("npm test",),
    earlier=("1. Primary Request:", "   - something"),
)
GOLDEN = """\
[summary] turns 1-40
Originals: ctxctl recall out.db
## Goal
> Migrate to fetch.
>
> Keep the API.
## Success criteria
- all tests pass
## Constraints
- Never touch src/legacy.
## Todos
- [>] first
- [ ] #- #2 is broken
- [ ] #3 third
## Todos of helper
- [ ] theirs
## Files modified
- `src/a.py`: edited
- "odd `name`\\n.py": written; sha256 0123456789ab
## Decisions
- use fetch; because axios is large
- keep the wrapper
## Failing tests
- failed: `npm test`: 1 failed, 2 passed
## Open issues
- Windows is not tested
## Next steps
- then the docs
## Artifacts
- https://example.org/pull/7
## Commits
- 1234567 Move the client
- (no id) abcdef1 looks like an id
## Tests
- passed: "echo `x` | pytest"
## Requests
- Also update the docs
## Errors
- Bash make: no rule
## Learnings
- the server sends 204
## Dead ends
- tried a shim, failed because of streams
## Done
- [x] zero
## Files read
- `src/b c.py`
## Validators
- npm test
## Earlier summary
> 1. Primary Request:
>    - something"""


def test_golden_text() -> None:
    assert render(WHOLE, words, 10_000, recall="ctxctl recall out.db") == GOLDEN


def test_it_reads_back() -> None:
    back = parse(GOLDEN)
    assert back is not None
    assert replace(back, next_steps=WHOLE.next_steps) == WHOLE
    assert render(merge(WHOLE, back), words, 10_000, recall="ctxctl recall out.db") == GOLDEN


def test_another_mark() -> None:
    text = render(WHOLE, words, 10_000, mark="<< kept >>")
    assert text.startswith("<< kept >> turns 1-40\n")
    back = parse(text)
    assert back is not None
    assert back.todos == WHOLE.todos


def test_the_goal_can_stay_where_it_is() -> None:
    whole = replace(WHOLE, constraints=("Keep the API.", "Never touch src/legacy."))
    text = render(whole, words, 10_000, omit_goal=True)
    assert "Migrate" not in text
    assert "Keep the API" not in text
    assert "Never touch" in text


@pytest.mark.parametrize("most", [1, 10, 60, 100, 150, 200, 300])
@pytest.mark.parametrize("omit", [True, False])
def test_within_budget(most: int, omit: bool) -> None:
    text = render(WHOLE, words, most, recall="ctxctl recall out.db", omit_goal=omit)
    head = words("[summary] turns 1-40")
    assert words(text) <= max(most, head)
    assert text.startswith("[summary] turns 1-40")
    if most >= 60:
        assert words(text) > most // 2
        assert parse(text) is not None
        whole = words(render(WHOLE, words, 10_000, recall="ctxctl recall out.db", omit_goal=omit))
        assert most >= whole or re.search(r"\(\d+ more\)|\(left out: ", text)


def test_the_weightiest_come_first() -> None:
    many = replace(WHOLE, files=tuple(FileFact(f"src/file{n}.py", "modified", ("edited",)) for n in range(200)))
    text = render(many, words, 200, omit_goal=True)
    assert "- [>] first" in text
    assert "Never touch" in text
    assert "`src/file199.py`" in text
    assert "`src/file0.py`" not in text
    assert re.search(r"^\(\d+ more\)$", text, re.M)


def test_an_empty_summary() -> None:
    assert render(SessionSummary(), words, 100) == "[summary]"
    assert render(SessionSummary(turns=(1, 2)), words, 100) == "[summary] turns 1-2"
    assert parse("[summary] turns 1-2") == SessionSummary(turns=(1, 2))


@pytest.mark.parametrize(
    "text", ["", "hello", "# Notes\n## Goal\n> x", "About turns 1-4 I know nothing", "[cleared: Read]"]
)
def test_what_is_no_summary(text: str) -> None:
    assert parse(text) is None


def test_json_and_back() -> None:
    value = json.loads(json.dumps(as_json(WHOLE)))
    assert value["schema"] == 1
    assert from_json(value) == WHOLE
    assert from_json({**value, "later": 1, "todos": [{"text": "a", "status": "planned", "new": 2}, 7, {}]}).todos == (
        Todo("a", "planned"),
    )
    assert from_json({}) == SessionSummary()
    assert from_json({"decisions": ["as text"]}).decisions == (DecisionFact("as text"),)


CLAUDE = """This session is being continued from a previous conversation that ran out of context.
The summary below covers the earlier portion.

Analysis:
1. **First**: thinking aloud

Summary:
1. Primary Request and Intent:
   Build the thing.

2. Files and Code Sections:
   - `src/a.py`
     ```python
     x = 1
     ```
6. All user messages:
   - "build the thing for me"
   - "and test it too"

7. Pending Tasks:
   - Manual check of the feature

8. Current Work:
   Tests.

9. Optional Next Step:
   Run the linter:
   more words

Please continue the conversation from where we left it off."""


def test_summaries_of_claude_code() -> None:
    found = parse(CLAUDE)
    assert found is not None
    assert found.requests == ("build the thing for me", "and test it too")
    assert found.open_issues == ("Manual check of the feature",)
    assert found.next_steps == ("Run the linter",)
    assert [line.strip() for line in found.earlier] == [
        *("1. Primary Request and Intent:", "Build the thing.", "2. Files and Code Sections:", "- `src/a.py`"),
        *("8. Current Work:", "Tests.", "more words"),
    ]
    assert (found.files, found.todos, found.tests, found.commits) == ((), (), (), ())


@pytest.mark.parametrize(
    "text",
    [
        "Another language model started to solve this problem and produced a summary of it.\n\n"
        "## Key decisions\n- use x\n",
        "[摘要] 之前的工作\n## Key decisions\n- use x",
        "[summary] turns 1-4: something else\n## Key decisions\n- use x",
    ],
)
def test_summaries_of_others(text: str) -> None:
    found = parse(text)
    assert found is not None
    assert [fact.what for fact in found.decisions] == ["use x"]


def test_foreign_lines_are_bounded() -> None:
    found = parse("[摘要]\n" + "\n".join(f"line {n} " + "x" * 1000 for n in range(1000)))
    assert found is not None
    assert len(found.earlier) == 80
    assert max(map(len, found.earlier)) <= 400


def test_a_session_that_was_compacted_before(script: Any) -> None:
    script.add("summary", "user", render(WHOLE, words, 10_000))
    script.call("Edit", {"file_path": "src/new.py"}, "ok")
    script.call("TaskUpdate", {"taskId": "3", "status": "completed"}, "ok")
    script.bash("npm test", "3 passed")
    found = script.summary()
    assert found.goal == WHOLE.goal
    assert found.turns == (1, 44)
    assert {fact.path for fact in found.files} == {fact.path for fact in WHOLE.files} | {"src/new.py"}
    assert {(todo.text, todo.status) for todo in found.todos if todo.id == "3"} == {("third", "done")}
    assert [run.outcome for run in found.tests if run.command == "npm test"] == ["passed"]
    assert found.commits == WHOLE.commits
    assert "[summary]" not in render(found, words, 10_000).removeprefix("[summary]")


def test_what_a_long_task_demands_is_not_repeated(script: Any) -> None:
    script.user("Do it. " + "Background. " * 1_000 + "Never touch the lock file.")
    script.user("And never push to the main branch.")
    found = script.summary()
    assert "lock file" in found.goal
    shown = render(found, words, 1_000, omit_goal=True)
    assert "lock file" not in shown
    assert "- And never push" in shown


def test_a_new_list_replaces_the_old_one(script: Any) -> None:
    script.add("summary", "user", render(WHOLE, words, 10_000))
    script.call("TodoWrite", {"todos": [{"content": "new", "status": "pending"}]}, "ok")
    assert [(todo.text, todo.agent) for todo in script.summary().todos] == [("new", "main"), ("theirs", "helper")]


def test_a_marked_message_is_a_summary_whatever_its_kind(script: Any) -> None:
    script.user(render(WHOLE, words, 10_000))
    script.user("go on with it then")
    found = script.summary()
    assert found.goal == WHOLE.goal
    assert set(found.todos) == set(WHOLE.todos)


def test_the_newest_foreign_summary_covers_the_older(script: Any) -> None:
    script.user("build the thing for me")
    script.add("summary", "user", CLAUDE)
    script.add("summary", "user", CLAUDE.replace("Manual check", "Second check"))
    found = script.summary()
    assert found.open_issues == ("Second check of the feature",)
    assert found.goal == "build the thing for me"
    assert found.requests == ()


LETTERS = string.ascii_letters + string.digits + " .,;:#`\"'()[]<>-_/\n\t\\é中"
text = st.text(LETTERS, min_size=1, max_size=40).filter(str.strip)
statuses = st.sampled_from(["done", "doing", "planned"])
outcomes = st.sampled_from(["passed", "failed", "unknown"])
paths = st.text(string.ascii_letters + '/._- `"\n中', min_size=1, max_size=30).filter(str.strip)
changes = st.sampled_from([(), ("edited",), ("written", "deleted")])
ids = st.none() | st.from_regex("[0-9a-f]{8}", fullmatch=True)


def some(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item, max_size=5).map(tuple)


facts = st.builds(
    SessionSummary,
    turns=st.just((1, 3)),
    constraints=some(text),
    decisions=some(st.builds(DecisionFact, text, text | st.just(""))),
    files=some(st.builds(FileFact, paths, st.just("modified"), changes)),
    todos=some(st.builds(Todo, text, statuses, st.sampled_from(["main", "helper"]))),
    tests=some(st.builds(TestRun, paths, outcomes, text)),
    commits=some(st.builds(Commit, text, ids)),
    open_issues=some(text),
)


def folded(value: str) -> str:
    return " ".join(value.split())


def kept(summary: SessionSummary) -> dict[str, Any]:
    return {
        "constraints": {folded(item) for item in summary.constraints},
        # a decision reads the same wherever its reason is seen to begin
        "decisions": {folded(d.what) + (f"; because {folded(d.why)}" if d.why else "") for d in summary.decisions},
        "files": {fact.path for fact in summary.files if fact.role == "modified"},
        "todos": {(todo.agent, folded(todo.text)): todo.status for todo in summary.todos},
        "tests": {run.command: run.outcome for run in summary.tests},
        "commits": {(commit.id, folded(commit.message)) for commit in summary.commits},
        "open_issues": {folded(item) for item in summary.open_issues},
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(facts, min_size=10, max_size=10))
def test_ten_compactions_in_a_row_lose_nothing(rounds: list[SessionSummary]) -> None:
    carried = SessionSummary()
    expected: dict[str, Any] = {name: {} if name in ("todos", "tests") else set() for name in kept(carried)}
    for later in rounds:
        carried = merge(carried, later)
        for name, value in kept(later).items():
            if name == "commits":
                known = {c for c, _ in expected[name] if c}
                expected[name] |= {pair for pair in value if pair[0] not in known or pair[0] is None}
            elif name != "decisions":
                expected[name].update(value)
        made = render(carried, len, 10**9)
        assert [line for line in made.split("\n") if line.startswith("[summary]")] == ["[summary] turns 1-3"]
        back = parse(made)
        assert back is not None or made == "[summary] turns 1-3"
        assert kept(back or carried) == kept(carried)
        carried = back or carried
        assert render(carried, len, 10**9) == made
    final = kept(carried)
    for name in ("constraints", "files", "todos", "tests", "open_issues"):
        assert final[name] == expected[name], name
    assert {pair[0] for pair in final["commits"]} == {pair[0] for pair in expected["commits"]}
    said = {folded(fact.what) for later in rounds for fact in later.decisions}
    assert all(any(line.startswith(what) for line in final["decisions"]) for what in said)


@settings(max_examples=60, deadline=None)
@given(facts, st.integers(60, 400))
def test_any_summary_fits(summary: SessionSummary, most: int) -> None:
    made = render(summary, len, most)
    assert len(made) <= most
    assert made == render(summary, len, most)

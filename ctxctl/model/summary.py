"""The typed session summary (requirement C12): what the next window must know of what was replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

SCHEMA = 1
"""Version of the schema; grows when a field changes its meaning."""

Progress = Literal["done", "doing", "planned"]


@dataclass(frozen=True, slots=True)
class Todo:
    """One item of a plan, as its agent wrote it last. agent: `main`, or the name of a helper."""

    text: str
    status: Progress
    agent: str = "main"
    id: str | None = None


@dataclass(frozen=True, slots=True)
class FileFact:
    """A file that the session read or modified. actions: what was done to it, each once, in order: read, or created,
    written (whole), edited, deleted, restored; hash: SHA-256 in hex of its content as last written whole (its first 12
    digits once it went through Markdown), None when it is not known."""

    path: str
    role: Literal["read", "modified"]
    actions: tuple[str, ...] = ()
    hash: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionFact:
    """A decision with its reason, where one was given."""

    what: str
    why: str = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class TestRun:
    """A run of tests, the newest of its command. outcome: as the output says; detail: its own line of figures."""

    __test__: ClassVar[bool] = False  # test runners collect classes of such a name

    command: str
    outcome: Literal["passed", "failed", "unknown"]
    detail: str = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that the session made. id: as git printed it, None when the output is not there."""

    message: str
    id: str | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many items of a section found no place in an earlier summary. section: its title in lower case, empty for
    several together."""

    section: str
    count: int


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """Facts of a session. Texts are the session's own words; lists are in the order in which things came up.

    turns: first and last model call that it covers, 0, 0 for none. requests: the user's prompts after the goal, the
    newest last. dead_ends: what was tried and failed, with the reason. errors: newest failures that were not seen to be
    solved. earlier: lines of a summary that someone else wrote (an agent's own compaction), kept as they are. left_out:
    what earlier summaries had no place for.
    """

    turns: tuple[int, int] = (0, 0)
    goal: str = ""
    success_criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    decisions: tuple[DecisionFact, ...] = ()
    files: tuple[FileFact, ...] = ()
    todos: tuple[Todo, ...] = ()
    tests: tuple[TestRun, ...] = ()
    commits: tuple[Commit, ...] = ()
    open_issues: tuple[str, ...] = ()
    dead_ends: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    validators: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    schema: int = SCHEMA

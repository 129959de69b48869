"""A checkpoint from beginning to end: read what is new, merge, observe, write, record."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxctl.compaction.notes import entries_of
from ctxctl.errors import InputError, UsageError
from ctxctl.facts.files import digest
from ctxctl.facts.prompts import criteria, said
from ctxctl.facts.session import SessionFacts
from ctxctl.facts.todos import folded
from ctxctl.model.block import MAIN, Block
from ctxctl.model.state import AgentState, Position
from ctxctl.model.summary import SessionSummary
from ctxctl.model.text import shortened
from ctxctl.state import audit, environment
from ctxctl.state.by_hand import ByHand, changed
from ctxctl.state.checkpoint import Limits, kept, known, noted, taken
from ctxctl.state.checks import declared
from ctxctl.state.files import sanitized, sanitized_values, time_stamp
from ctxctl.state.hashes import Hasher
from ctxctl.state.noted import Notebook, facts_of
from ctxctl.state.notes import Entry, append_notes, read_notes
from ctxctl.state.options import StateOptions
from ctxctl.state.store import StateStore
from ctxctl.trace.beginning import first_prompt
from ctxctl.trace.grown import Grown, is_same, read_grown

TITLES = 50
"""Notes whose titles a state names."""
TITLE = 80


@dataclass(frozen=True, slots=True)
class Wish:
    """What a checkpoint is to do.

    path: a transcript, None for changes by hand alone. most: bytes of it that are read at most. if_version: what the
    state's must be. from_notes: the facts of the notes too. notes: what is not noted yet goes to the notes file.
    ledger_file: like notes_file a companion that is never taken for work of the task. force: also a transcript that is
    shorter or older than the state, and over a state that can't be read. new: another task begins; same_task: none
    does. wait: seconds for another writer. seconds: that git and the hashes of files may take, each. audit: whether the
    trail gets a record. trigger: what asked for it, for the trail.
    """

    path: str | None = None
    by_hand: ByHand = field(default_factory=ByHand)
    format_name: str | None = None
    most: int | None = None
    if_version: int | None = None
    from_notes: bool = False
    notes: bool = False
    notes_file: str = "agent_notes.md"
    ledger_file: str = "agent_ledger.jsonl"
    force: bool = False
    new: bool = False
    same_task: bool = False
    wait: float | None = None
    seconds: float | None = None
    audit: bool = True
    trigger: str = "checkpoint"


@dataclass(frozen=True, slots=True)
class Saved:
    """A state that was written. read: what was read of the transcript; written: paths; told: what a user should know,
    in the order in which it happened."""

    state: AgentState
    path: Path
    read: Grown | None
    written: tuple[str, ...]
    told: tuple[str, ...]


def checkpoint(
    wish: Wish,
    folder: Path,
    options: StateOptions,
    now: datetime,
    *,
    progress: Callable[[int, int | None], None] | None = None,
) -> Saved:
    """Read, merge and write under one lock.

    Raises RefusedError where something newer is there (requirement S3), InputError and NothingFoundError for a
    transcript or a state that can't be read or written: then nothing has changed. UsageError for a change by hand to
    what there is not.
    """
    if not folder.is_dir():
        raise InputError("no such folder", path=str(folder), hint="make it first, or give another --state-dir")
    wait = options.lock_wait if wish.wait is None else wish.wait
    store = StateStore(folder / options.state_file, folder / options.progress_file, wait)
    with store.updating(if_version=wish.if_version, discard=wish.force) as update:
        if wish.path is None and update.state is None and not (wish.by_hand or wish.from_notes):
            raise UsageError(
                "there is no state yet, and no transcript to make one from", hint="ctxctl checkpoint SESSION"
            )
        made = _Making(wish, folder, options, progress).run(update.state)
        written: list[str] = []
        if update.discarded is not None:
            made.told.append(f"the state could not be read: it is kept as {update.discarded}")
            written.append(str(update.discarded))
        if made.begins and (aside := update.set_aside()) is not None:
            made.told.append(f"another task begins: the state of the one before is kept as {aside}")
            written.append(str(aside))
        version = update.state.state_version if update.state is not None else 0
        state = replace(made.state, state_version=version + 1, saved_at=time_stamp(now))
        if wish.notes:
            try:
                written += _note(wish, state, folder, now, wait)
            except InputError as error:  # the state is worth more than the notes of it
                made.told.append(f"warning: nothing was noted: {error}")
        update.save(state, mode_of=_mode_of(wish))
    written += [str(store.path), str(store.progress)]
    if wish.audit:
        try:
            written.append(str(_recorded(wish, state, folder, options, now)))
        except InputError as error:
            made.told.append(f"warning: this checkpoint is not in the audit trail: {error}")
    return Saved(state, store.path, made.read, tuple(written), tuple(made.told))


def preview(
    wish: Wish,
    folder: Path,
    options: StateOptions,
    now: datetime,
    *,
    progress: Callable[[int, int | None], None] | None = None,
) -> Saved:
    """What `checkpoint` would write, the state as it stands where that is nothing; nothing is written."""
    store = StateStore(folder / options.state_file, folder / options.progress_file)
    before = store.load()
    store.expect(before, wish.if_version)
    if wish.path is None and not (wish.by_hand or wish.from_notes or wish.new):
        return Saved(before or AgentState(), store.path, None, (), ())
    made = _Making(wish, folder, options, progress).run(before)
    version = before.state_version if before is not None else 0
    state = replace(made.state, state_version=version + 1, saved_at=time_stamp(now))
    return Saved(state, store.path, made.read, (), tuple(made.told))


def from_transcript(
    path: str,
    folder: Path,
    options: StateOptions,
    now: datetime,
    *,
    format_name: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> AgentState:
    """The state that a transcript alone gives; nothing is written. Raises what `checkpoint` does."""
    made = _Making(Wish(path, format_name=format_name), folder, options, progress).run(None)
    return replace(made.state, state_version=1, saved_at=time_stamp(now))


class _Making:
    """A state while it is made. told: what a user should know; begins: another task than the state's begins."""

    def __init__(
        self,
        wish: Wish,
        folder: Path,
        options: StateOptions,
        progress: Callable[[int, int | None], None] | None,
    ) -> None:
        self.wish, self.folder, self.options, self.progress = wish, folder, options, progress
        self.state = AgentState()
        self.read: Grown | None = None
        self.told: list[str] = []
        self.begins = False
        self.alone = False
        self.facts = SessionFacts()

    def run(self, before: AgentState | None) -> _Making:
        """Everything but writing."""
        wish = self.wish
        self.begins = wish.new and before is not None
        self.state = AgentState() if before is None else _another(before) if self.begins else before
        if wish.path is not None:
            self._take(before)
        entries = read_notes(self.folder / wish.notes_file)
        self.state = replace(self.state, memory_index=tuple(title(entry) for entry in entries[-TITLES:]))
        if wish.from_notes:
            self.state = noted(self.state, facts_of(entries))
        if wish.by_hand:
            self.state = changed(self.state, wish.by_hand)
        self._observe(before)
        return self

    def _take(self, before: AgentState | None) -> None:
        """Take what the transcript tells since. Another transcript than the state's is the next window of its task
        when it says so itself, else another task."""
        state, read, same = self._merged(self.state)
        if before is not None and not self.begins and before.transcript.path and not same:
            if self._goes_on(before):
                self.told.append(f"{self.wish.path} is the next window of the task {title_of(before)!r}")
            else:
                self.begins = True
                state, read, same = self._merged(_another(before), alone=True)
                self.told.append(
                    f"{self.wish.path} is another task than {title_of(before)!r}; --same-task makes it the next window"
                )
        if (several := len(read.transcript.conversations)) > 1:
            self.told.append(f"{self.wish.path} holds {several:,} conversations: the last one is taken")
        self.state, self.read = state, read

    def _goes_on(self, before: AgentState) -> bool:
        """Whether a transcript is the next window of the state's task: it was told so, it begins with a resume prompt
        or with the same goal, its agent works on subtasks that are open, or it has been taken before. One that says
        nothing begins no task."""
        if self.wish.same_task or os.path.abspath(self.wish.path or "") in before.seen:
            return True
        _, read, _ = self._merged(_another(before))
        facts, gone = self.facts, read.gone
        how, first, planned = facts.goes_on(gone), facts.first_prompt(gone), facts.planned(gone)
        open_ = {folded(subtask.text) for subtask in before.subtasks if subtask.status != "done"}
        if how == "asked" or open_ & planned:
            return True
        if not first and not planned:
            return True
        return bool(before.task_goal) and folded(first) == folded(before.task_goal)

    def _merged(self, before: AgentState, *, alone: bool = False) -> tuple[AgentState, Grown, bool]:
        """The state with what the transcript tells since, and whether it is the one that the state came from. alone: a
        resume prompt in it is of another task."""
        self.alone = alone
        path = self.wish.path
        assert path is not None
        if not before.task_goal and self._too_long(path):
            goal = said(first_prompt(path, format_name=self.wish.format_name))
            before = replace(before, task_goal=goal, success_criteria=criteria(goal))
        position = before.transcript if before.transcript.path else None
        here = position is not None and path != "-" and os.path.abspath(path) == position.path
        grown, base = self._read(before, position, anew=here and not self.wish.force)
        same = position is not None and path != "-" and is_same(position, grown.position)
        if same and position is not None and grown.whole and _differ(position, self.facts.first_prompt(grown.gone)):
            same = False  # another conversation has taken the place of the one that was there
            grown, base = self._read(before, position, anew=False)
        limits = Limits(self.options.tail_turns, self.options.tail_characters)
        state = taken(before, grown, self.facts, base, limits, same=same)
        if same and grown.whole and grown.why != "rewound":
            state = kept(before, state)
        return without_secrets(state), grown, same

    def _read(self, before: AgentState, position: Position | None, *, anew: bool) -> tuple[Grown, SessionSummary]:
        """Read the transcript into fresh facts: what was read, and what the facts were seeded with. anew: where the
        whole is read, it says itself what it said before."""
        assert self.wish.path is not None
        base = SessionSummary()
        since = before.seen.get(os.path.abspath(self.wish.path))

        def fresh(at: Position | None) -> Callable[[Block, int], None]:
            nonlocal base
            self.facts = facts = SessionFacts(alone=self.alone)
            base = before.inherited if at is None and anew else known(before, same=at is not None)
            facts.seed(base, before.transcript.carry if at is not None else {})

            def see(block: Block, number: int) -> None:
                if block.thread == MAIN and (since is None or block.timestamp is None or block.timestamp > since):
                    facts.see(block, number)

            return see

        grown = read_grown(
            self.wish.path,
            position,
            fresh,
            format_name=self.wish.format_name,
            most=self.wish.most,
            tail_turns=self.options.tail_turns,
            progress=self.progress,
            force=self.wish.force,
        )
        return grown, base

    def _too_long(self, path: str) -> bool:
        """Whether only the end of a transcript may be read."""
        return self.wish.most is not None and os.path.isfile(path) and os.path.getsize(path) > self.wish.most

    def _observe(self, before: AgentState | None) -> None:
        state = self.state
        cwd = state.environment.cwd
        if self.read is not None and self.read.transcript.cwd and "cwd" not in state.set_by_hand:
            cwd = self.read.transcript.cwd
        limits: dict[str, Any] = {}
        if self.wish.seconds is not None:
            limits = {"git_seconds": self.wish.seconds, "hasher": Hasher(seconds=self.wish.seconds)}
        around, working_set = environment.observe(
            cwd or os.path.abspath(self.folder),
            known(state, same=True).files,
            before.environment if before is not None else state.environment,
            declared(state.environment.services, self.options),
            folder=self.folder,
            working_set=self.options.working_set,
            companions=environment.companions(self.options, (self.wish.notes_file, self.wish.ledger_file)),
            recent=[block.target for block in reversed(state.tail) if block.target],
            **limits,
        )
        self.state = replace(state, environment=around, working_set=working_set)


def _differ(position: Position, first: str) -> bool:
    """Whether transcripts without ids are two, by how they begin."""
    return not position.id and bool(position.first) and bool(first) and digest(first) != position.first


def _another(before: AgentState) -> AgentState:
    """The state of a task that begins after another one: versions, windows and ids go on growing."""
    return AgentState(
        state_version=before.state_version,
        window_id=before.window_id + 1,
        next_id=before.next_id,
        environment=replace(before.environment, files=()),
        extra=before.extra,
    )


def without_secrets(state: AgentState) -> AgentState:
    """The state without credentials in what reading on needs: calls that wait for a result stand there as they are."""
    position = state.transcript
    carry, reading = sanitized_values(position.carry), sanitized_values(position.reading)
    return replace(state, transcript=replace(position, carry=carry, reading=reading))


def _note(wish: Wish, state: AgentState, folder: Path, now: datetime, wait: float) -> list[str]:
    """What the state tells and the notes don't yet is noted (requirement C3). Returns what was written."""
    path = folder / wish.notes_file
    entries = Notebook(str(path), read_notes(path)).untold(entries_of(known(state, same=True)))
    return [str(path)] if append_notes(path, entries, now, mode_of=_mode_of(wish), wait=wait) else []


def _mode_of(wish: Wish) -> str | None:
    return wish.path if wish.path != "-" else None


def title(entry: Entry) -> str:
    """A note in one line, without credentials."""
    return f"[{entry.type}] {shortened(folded(sanitized(entry.text, tool_output=False)), TITLE)}"


def title_of(state: AgentState) -> str:
    """A task in one line."""
    return shortened(folded(state.task_goal), TITLE) or "without a goal"


def _recorded(wish: Wish, state: AgentState, folder: Path, options: StateOptions, now: datetime) -> Path:
    data = {
        "trigger": wish.trigger,
        "state_version": state.state_version,
        "window_id": state.window_id,
        "done": len(state.completed_subtasks),
        "remaining": len(state.remaining_subtasks) + int(state.current_subtask is not None),
        "offset": state.transcript.offset,
    }
    return audit.record(
        folder,
        options,
        "save",
        data,
        now=now,
        turn=state.transcript.turn or None,
        transcript=state.transcript.id,
        mode_of=_mode_of(wish),
        wait=options.lock_wait if wish.wait is None else wish.wait,
    )

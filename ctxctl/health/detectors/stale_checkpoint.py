"""A session that begins from something that holds no longer (requirement H8)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ctxctl.errors import CtxctlError
from ctxctl.health.detectors.base import DETECTORS, Detector, quote
from ctxctl.health.session import Session
from ctxctl.health.signals.beginnings import beginnings
from ctxctl.health.signals.outdated import Outdated, outdated
from ctxctl.model.finding import Finding
from ctxctl.model.state import AgentState
from ctxctl.model.text import RESUME, shortened
from ctxctl.state.hashes import Hasher, resolved
from ctxctl.state.record import load
from ctxctl.state.stale import compare

NAMED = 5


@DETECTORS.register("stale_checkpoint")
class StaleCheckpoint(Detector):
    """Signal: within 20 calls of a resume an edit fails since the file is another by now, a file that the resume names
    is not there, or git stands at another commit than it says, each before the agent itself read or changed that. With
    a state file (`--state-dir`): its hashes of files below the session's working folder are not those on disk, or the
    transcript has gone on since it was saved."""

    code = "stale_checkpoint"
    signal = "what a resume or a state file says of files or git did not hold any more when the work went on"
    fix = "check the hashes before resuming (`ctxctl resume --strict`), and read the files again that changed"

    def find(self, session: Session) -> Iterator[Finding]:
        windows: dict[int, list[Outdated]] = {}
        for one in outdated(session):
            windows.setdefault(one.start.turn, []).append(one)
        for turn in sorted(windows):
            yield self._told(session, windows[turn])
        if session.options.state is not None:
            yield from self._of_state(session, Path(session.options.state))

    def _told(self, session: Session, found: list[Outdated]) -> Finding:
        blocks = session.trace.blocks
        start = found[0].start
        at = session.turn_number(start.turn)
        what = "resume prompt" if RESUME in blocks[start.block].text else "summary"
        parts = []
        for kind, words in (
            ("changed", "had changed since"),
            ("text", "no longer held the text that it quotes"),
            ("gone", "were gone"),
            ("head", ""),
        ):
            names = [shortened(one.what, 80) for one in found if one.kind == kind]
            if names and kind == "head":
                parts.append(f"git had moved on ({names[0]})")
            elif names:
                more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
                words = "was gone" if kind == "gone" and len(names) == 1 else words
                parts.append(f"{', '.join(names[:NAMED])}{more} {words}")
        message = f"the {what} that the window of turn {at:,} began with did not hold any more: {'; '.join(parts)}"
        files = [shortened(one.what, 80) for one in found if one.kind != "head"]
        hint = "compare git's head with the one that was saved before going on"
        if files:
            hint = f"read {', '.join(files[:NAMED])} again before relying on the {what}; `ctxctl resume` checks hashes"
        turns = [session.turn_number(one.call.turn) for one in found]
        quotes = []
        for one, turn in list(zip(found, turns, strict=True))[:NAMED]:
            quotes.append(quote(blocks[start.block], at, one.said))
            if one.call.result is not None:
                quotes.append(quote(blocks[one.call.result], turn))
        counts = {kind: sum(one.kind == kind for one in found) for kind in ("changed", "text", "gone", "head")}
        line = blocks[found[0].call.block].source.line
        return self.finding(
            message, turn=turns[0], line=line, turns=(at, *turns), quotes=quotes, counts=counts, hint=hint
        )

    def _of_state(self, session: Session, path: Path) -> Iterator[Finding]:
        try:
            state = load(path)
        except CtxctlError:
            return
        own = _is_of(state, session)
        if not own and not any(RESUME in session.trace.blocks[b.block].text for b in beginnings(session)):
            return
        yield from self._files(state, path)
        if own:
            yield from self._newer(session, state)

    def _files(self, state: AgentState, path: Path) -> Iterator[Finding]:
        base = state.environment.cwd
        if not base or not os.path.isabs(base) or not os.path.isdir(base):
            return
        found = compare(_below(state, base), base, Hasher())
        if not found.stale:
            return
        parts = [
            f"{len(names)} {word}: {_names(names)}"
            for names, word in ((found.changed, "changed"), (found.missing, "gone"))
            if names
        ]
        message = f"files are not as the state of {state.saved_at or 'the checkpoint'} knows them: {'; '.join(parts)}"
        hint = f"read {_names(found.stale)} again, then save what they are now (`ctxctl checkpoint SESSION`)"
        counts = {"changed": len(found.changed), "missing": len(found.missing)}
        yield self.finding(message, counts=counts, hint=hint)

    def _newer(self, session: Session, state: AgentState) -> Iterator[Finding]:
        try:
            size = os.stat(session.path).st_size
        except (OSError, ValueError):
            return
        position = state.transcript
        if position.size and size > position.size:
            turns = len(session.trace.turns) - position.turn
            what = f"{turns} {'call' if turns == 1 else 'calls'}, " if turns > 0 else ""
            message = (
                f"the transcript has gone on since the checkpoint of {state.saved_at} ({what}{size - position.size:,} "
                "bytes): a resume from it would not know of that"
            )
            hint = f"`ctxctl checkpoint {session.path}` takes in what came since"
            counts = {"bytes": size - position.size, "calls": max(0, turns)}
            yield self.finding(message, counts=counts, hint=hint)


def _is_of(state: AgentState, session: Session) -> bool:
    """Whether a state was saved from a session."""
    position = state.transcript
    if position.id is not None and session.transcript.id is not None:
        return position.id == session.transcript.id
    return bool(position.path) and os.path.abspath(position.path) == os.path.abspath(session.path)


def _below(state: AgentState, base: str) -> AgentState:
    """A state with those of its files alone that lie below its working folder: nothing else is read."""
    root = os.path.realpath(base)

    def inside(path: str) -> bool:
        return os.path.realpath(resolved(path, base)).startswith(root.rstrip("/") + "/")

    files = tuple(file for file in state.environment.files if inside(file.path))
    used = tuple(file for file in state.working_set if inside(file.path))
    return replace(state, environment=replace(state.environment, files=files), working_set=used)


def _names(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(shortened(path, 80) for path in paths[:NAMED]) + more

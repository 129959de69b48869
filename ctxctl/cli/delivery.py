"""Writing a compacted transcript: proved before it takes its place, with everything that it replaces kept."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxctl.cli.companions import checkpoint_after, checkpoint_before, companion, record
from ctxctl.cli.io import Streams
from ctxctl.cli.placing import back_up, drafted, put
from ctxctl.errors import CtxctlError, InputError
from ctxctl.model.text import NO_RESULT, clean, is_summary

if TYPE_CHECKING:
    from ctxctl.cli.compacting import Asked
    from ctxctl.manager.result import Compaction
    from ctxctl.state.noted import Notebook


CLOSE = 1.1
"""By how much the file's own measure of itself may exceed the counter that was used, to be heeded."""


class NotProvedError(CtxctlError):
    """The written transcript does not read back as what was planned. It never takes the place of anything."""

    code = "not_proved"


class Delivery:
    """Delivers one compaction."""

    def __init__(self, asked: Asked, streams: Streams, settings: Any, noted: Notebook | None = None) -> None:
        self.asked, self.streams, self.settings, self.noted = asked, streams, settings, noted
        self.now = datetime.now(UTC)

    def write(self, result: Compaction, place: Path | None, store: Any, path: str) -> Compaction | int:
        """Write, prove and put in place; or the tokens by which the written file is above the target."""
        from ctxctl.formats import FORMATS

        draft = self._draft(result, place, store)
        pieces = FORMATS.get(result.done.live.transcript.format).rewrite(draft)
        with _spooled(pieces) if place is None else drafted(place, pieces, path) as (file, digest):
            over = self._prove(result, file, draft)
            if isinstance(over, int):
                return over
            result = replace(over, normalised=draft.normalised, notes=tuple(draft.notes), session_id=draft.new_id)
            contract = self._contract(result, file)
            result = replace(result, contract=contract, counts=dict(result.counts))
            if any(not o.ok and o.required for o in contract):
                return replace(result.measured(), written=tuple(self._record(result, None)))
            self._still(store, path)
            if place is None:
                return self._to_stdout(result.measured(), file)
            return self._place(result.measured(), place, file, digest, store, path)

    def _still(self, store: Any, path: str) -> None:
        """Refuse a file that is no longer what was read."""
        if store.changed and not self.asked.force:
            raise InputError(
                "it changed while it was read: its agent is still running; nothing was replaced",
                path=path,
                hint="wait until the agent has stopped, or --force takes what was read",
            )

    def _draft(self, result: Compaction, place: Path | None, store: Any) -> Any:
        from ctxctl.formats.draft import Draft

        live, done = result.done.live, result.done.compacted
        stamp = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        history = self.asked.keep_history
        in_place = self.asked.in_place
        own = live.transcript.id if in_place else None
        return Draft(
            live.transcript,
            store,
            live.blocks,
            result.done.outcome,
            own or _id_of(place) or str(uuid.uuid4()),
            stamp,
            done.before,
            done.after,
            live.ratio,
            in_place and history,
            history,
        )

    def _prove(self, result: Compaction, file: Path, draft: Any) -> Compaction | int:
        """Read back what was written: it must hold the planned texts in their order, and fit the target."""
        from ctxctl.trace.live import read_again

        live = result.done.live
        line = None
        if live.transcript.conversations:
            line = next(c.line for c in live.transcript.conversations if c.first <= live.numbers[0] < c.last)
        again = read_again(str(file), live, line)
        wanted = _comparable([(k, clean(text), id_) for k, text, id_ in result.expected(draft.renamed)])
        read = _comparable(again.blocks)
        if read != wanted:
            raise NotProvedError(
                "what was written does not read back as planned; nothing was changed",
                path=result.path,
                hint="this is a bug of ctxctl: please report it with the first lines of the file",
            )
        tokens = again.tokens + live.window.overhead + live.window.hidden
        # the file's own reader should find the target met too, else a second pass compacts it once more; where it
        # measures by another calibration the counter used decides
        most = max(tokens, again.fresh if again.fresh <= tokens * CLOSE else 0)
        if most > result.goal.tokens:
            return most - result.goal.tokens
        return replace(result, proved=tokens)

    def _contract(self, result: Compaction, file: Path) -> Any:
        """Outcomes of what the settings demand of a compacted session."""
        options = getattr(self.settings, "contract", None)
        if options is None or not (options.artifacts or options.validators):
            return ()
        from ctxctl.state.contract import check_contract

        blocks = result.done.live.blocks
        ids = [id_ for n in result.done.outcome.live for id_ in (blocks[n].id, blocks[n].call_id) if id_ is not None]
        return check_contract(options, result.texts_after(), Path.cwd(), output=str(file), ids=ids)

    def _place(self, result: Compaction, place: Path, file: Path, digest: str, store: Any, path: str) -> Compaction:
        written = [str(place)]
        backup = None
        with ExitStack() as stack:
            kept = None
            if self.asked.recall:
                from ctxctl.state.recall import RecallStore

                at = place.with_name(f"{place.name}.recall.db")
                kept = stack.enter_context(RecallStore(at, mode_of=path if path != "-" else None))
                written.append(str(at))
                self._keep(kept, result, store, path)
            if self.asked.in_place:
                backup = back_up(place)
                stack.callback(_unless_put, backup, file)
                written.append(str(backup))
            self._still(store, path)
            written += checkpoint_before(self.asked, self.settings, result, self.now, self.streams)
            written += self._note(result)
            recall_id = kept.commit(str(place), digest) if kept is not None else None
            self._still(store, path)  # between this look and the rename lie microseconds
            put(file, place, force=self.asked.force or self.asked.in_place)
        if self.asked.in_place:
            written += checkpoint_after(self.asked, self.settings, result, place, self.now)
        written += self._record(result, recall_id)
        result = replace(
            result,
            output=str(place),
            backup=str(backup) if backup is not None else None,
            recall_id=recall_id,
        )
        written += record(self.asked, self.settings, result, self.now, digest)
        return replace(result, written=tuple(dict.fromkeys(written)))

    def _keep(self, kept: Any, result: Compaction, store: Any, path: str) -> None:
        """What is replaced goes to the recall store, with the whole original."""
        live, outcome = result.done.live, result.done.outcome
        steps = ",".join(step.strategy for step in result.done.compacted.steps) or "evict"
        kept.begin(
            source=path,
            format=live.transcript.format,
            transcript_id=live.transcript.id,
            strategy=steps,
            now=self.now.isoformat(timespec="seconds"),
        )
        kept.original(_bytes(path, store) or _lines(store))
        reasons = _reasons(result)
        local = {number: n for n, number in enumerate(live.numbers)}
        for number, block in live.blocks.items():
            if number in outcome.gone or number in outcome.changed:
                n = local[number]
                kept.block(
                    id=block.id,
                    line=block.source.line,
                    kind=block.kind,
                    tool=block.tool_name,
                    target=block.target,
                    turn=block.turn,
                    tokens=live.window.entries[n].tokens,
                    reason=reasons.get(n, "evicted"),
                    text=block.text,
                    call_id=block.call_id,
                )

    def _note(self, result: Compaction) -> list[str]:
        """Notes that a step wants kept, or that were asked for, come before anything is replaced (requirement C3)."""
        entries = [entry for step in result.done.compacted.steps for entry in step.edits.entries]
        if self.asked.notes:
            from ctxctl.compaction.notes import entries_of

            entries += [entry for entry in entries_of(result.done.facts) if entry not in entries]
        if self.noted is not None:
            entries = self.noted.untold(entries)
        if not entries:
            return []
        from ctxctl.state.notes import append_notes

        at = companion(self.asked, self.settings.compaction.notes_file)
        mode_of = None if result.path == "-" else result.path
        append_notes(at, entries, self.now, mode_of=mode_of)
        return [str(at)]

    def _record(self, result: Compaction, recall_id: str | None) -> list[str]:
        if not result.contract:
            return []
        from ctxctl.state.ledger import append

        at = companion(self.asked, self.settings.contract.ledger_file)
        append(
            at,
            result.contract,
            now=self.now,
            transcript_id=result.done.live.transcript.id,
            recall_id=recall_id,
            mode_of=None if result.path == "-" else result.path,
        )
        return [str(at)]

    def _to_stdout(self, result: Compaction, file: Path) -> Compaction:
        written = checkpoint_before(self.asked, self.settings, result, self.now, self.streams)
        written += self._note(result) + self._record(result, None)
        with open(file, "rb") as draft:
            self.streams.payload(iter(lambda: draft.read(1 << 20), b""))
        result = replace(result, output="-")
        written += record(self.asked, self.settings, result, self.now, None)
        return replace(result, written=tuple(dict.fromkeys(written)))


@contextmanager
def _spooled(pieces: Iterator[bytes]) -> Iterator[tuple[Path, str]]:
    """A temporary file that holds what goes to stdout, until it is proved."""
    with tempfile.NamedTemporaryFile(prefix="ctxctl-", suffix=".jsonl") as file:
        try:
            for piece in pieces:
                file.write(piece)
            file.flush()
        except OSError as error:
            raise InputError(f"can't be written: {error.strerror or error}", path=file.name) from None
        yield Path(file.name), ""


def _bytes(path: str, store: Any) -> Iterator[bytes] | None:
    """A packed file's own bytes, None for what its lines hold whole."""
    if not store.packed:
        return None

    def read() -> Iterator[bytes]:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                yield piece

    return read()


def _lines(store: Any) -> Iterator[bytes]:
    for line in range(1, len(store) + 1):
        yield store.get(line)


def _blank(kind: str, text: str) -> bool:
    """Whether a block is blank text, which no provider takes, so that a writer leaves it out."""
    return kind in ("system", "user_message", "assistant", "memory_injection") and not text.strip()


def _comparable(blocks: Sequence[tuple[str, str, str | None]]) -> list[tuple[str, str, int]]:
    """Kind and text of blocks, and which call each result answers, by the order of the calls: ids may be made unique.
    Without what a writer adds (a stand-in for a result that never was) or leaves out (blank text)."""
    calls: dict[str, int] = {}
    found: list[tuple[str, str, int]] = []
    order = 0
    for kind, text, id_ in blocks:
        if (kind, text) == ("tool_result", NO_RESULT) or _blank(kind, text):
            continue
        # what is marked as a summary is one in some places, whoever wrote its message
        marked = kind in ("user_message", "memory_injection", "assistant") and is_summary(text)
        if kind == "tool_call":
            order += 1
            if id_ is not None:
                calls[id_] = order
        answers = calls.get(id_, -1) if id_ is not None and kind != "tool_call" else -1
        found.append(("summary" if marked else kind, text, answers))
    return found


def _unless_put(backup: Path, file: Path) -> None:
    """A backup is of no use where what was to replace its original never took its place."""
    if file.exists():
        backup.unlink(missing_ok=True)


def _reasons(result: Compaction) -> dict[int, str]:
    """Why each block of the window left or changed."""
    found: dict[int, str] = {}
    for step in result.done.compacted.steps:
        found.update((b, step.strategy) for drop in step.edits.drops for b in drop.blocks)
        found.update((change.block, step.strategy) for change in step.edits.replaces)
    return found


def _id_of(place: Path | None) -> str | None:
    """The id that a file's name gives a session, None when it gives none."""
    if place is None:
        return None
    stem = place.name.split(".")[0]
    try:
        return str(uuid.UUID(stem[-36:]))
    except ValueError:
        return None

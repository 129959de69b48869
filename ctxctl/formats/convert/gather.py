"""From the blocks of a window, and the records that they come from, to messages without a format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ctxctl.formats.base import FORMATS
from ctxctl.formats.convert.base import parsed
from ctxctl.formats.convert.order import settle
from ctxctl.formats.convert.raw import DETAILED, Detail, details_of
from ctxctl.formats.message import Call, Chat, Losses, Medium, Message, Part, Result, Role, Text, Thinking
from ctxctl.formats.store import LineStore
from ctxctl.formats.streams import Progress
from ctxctl.formats.window import live_blocks
from ctxctl.model.block import Block
from ctxctl.model.transcript import Transcript
from ctxctl.model.usage import Usage

CLEARED = "[Old tool result content cleared]"
"""What Claude Code sends in place of a result that it cleared."""

LEFT = "blocks that had left the window"
HELPERS = "messages of sub-agents"
HELPER_FILES = "files of sub-agents"
SIDE = "records that are no messages"
NO_DATA = "images and documents without data"

_ANSWERS = frozenset(("assistant", "thinking", "tool_call"))


@dataclass(slots=True)
class _Draft:
    """A message while its parts are collected."""

    role: Role
    parts: list[Part] = field(default_factory=list)
    timestamp: str | None = None
    response: str | None = None
    message: int = -1
    usage: Usage | None = None


def gather(
    path: str, losses: Losses, *, format_name: str | None = None, progress: Progress | None = None
) -> tuple[Transcript, list[Chat]]:
    """The transcript at a path (or `-`) and its conversations as chats; one, of the live window of the main thread,
    unless the file holds several.

    Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    lines: set[tuple[int, bool]] = set()
    detailed: dict[int, list[tuple[int, str, str]]] = {}
    threads: dict[str, int] = {}
    count = 0

    def see(block: Block) -> None:
        nonlocal count
        threads[block.thread] = threads.get(block.thread, 0) + 1
        lines.add((block.source.line, False))
        if block.kind in DETAILED:
            detailed.setdefault(block.source.line, []).append((count, block.kind, block.text))
        count += 1

    with LineStore(path) as store:
        transcript, blocks = live_blocks(
            path, format_name=format_name, everything=False, see=see, store=store, progress=progress
        )
        spans = [range(c.first, c.last) for c in transcript.conversations]
        reader = _Gatherer(transcript, blocks, store, detailed, losses)
        chats = [reader.chat(span) for span in spans] or [reader.chat(transcript.live)]
    main = threads.get(transcript.main, 0) - len(transcript.superseded)
    if not transcript.conversations:
        losses.add(LEFT, main - len(transcript.live))
    losses.add(HELPERS, sum(n for name, n in threads.items() if name != transcript.main))
    if path != "-":
        losses.add(HELPER_FILES, len(FORMATS.get(transcript.format).companions(Path(path))))
    losses.add(SIDE, max(0, transcript.records - len(lines)))
    return transcript, chats


class _Gatherer:
    """Makes messages of the blocks of one transcript."""

    def __init__(
        self,
        transcript: Transcript,
        blocks: Mapping[int, Block],
        store: LineStore,
        detailed: Mapping[int, list[tuple[int, str, str]]],
        losses: Losses,
    ) -> None:
        self.transcript, self.blocks, self.store, self.losses = transcript, blocks, store, losses
        self.usage = {u.turn: u for u in transcript.usage if u.thread == transcript.main}
        self._detailed = detailed
        self._line = -1
        self._found: dict[int, Detail] = {}

    def chat(self, numbers: Iterable[int]) -> Chat:
        """The conversation that these blocks make up."""
        drafts: list[_Draft] = []
        tools = None
        answer: _Draft | None = None
        for number in numbers:
            block = self.blocks[number]
            if block.kind == "tool_definitions":
                found = parsed(block.text)
                tools = found if isinstance(found, list) else tools
                continue
            role = _role(block)
            if role == "assistant" and answer is not None and answer.response == block.response_id is not None:
                draft = answer
            elif drafts and drafts[-1].message == block.message and drafts[-1].role == role:
                draft = drafts[-1]
            else:
                usage = self.usage.get(block.turn) if role == "assistant" else None
                draft = _Draft(role, [], block.timestamp, block.response_id, block.message, usage)
                drafts.append(draft)
                if role == "assistant":
                    answer = draft
            self._add(draft, block, number)
        messages = [
            Message(
                d.role, tuple(d.parts), d.timestamp, d.usage, (d.usage.model if d.usage else None) or self._model(d)
            )
            for d in drafts
        ]
        t = self.transcript
        return Chat(settle(messages, self.losses), t.id, t.model, t.cwd, tools)

    def _model(self, draft: _Draft) -> str | None:
        return self.transcript.model if draft.role == "assistant" else None

    def _add(self, draft: _Draft, block: Block, number: int) -> None:
        kind = block.kind
        if kind == "tool_call":
            name = block.tool_name or "unknown"
            draft.parts.append(Call(block.call_id, name, block.text[len(name) + 1 :]))
        elif kind == "tool_result":
            text = CLEARED if number in self.transcript.cleared else block.text
            draft.parts.append(Result(block.call_id, text, block.is_error, (), block.tool_name))
        elif kind == "thinking":
            self._thinking(draft, block, number)
        elif kind in ("image", "document"):
            self._medium(draft, block, number)
        elif kind == "summary" and not block.text:
            self.losses.add("encrypted summaries")
        else:
            said = CLEARED if number in self.transcript.cleared else block.text
            draft.parts.append(Text(said, kind))

    def _thinking(self, draft: _Draft, block: Block, number: int) -> None:
        detail = self._detail(block, number)
        if isinstance(detail, Thinking):
            draft.parts.append(Thinking(block.text, detail.signature, detail.redacted, detail.encrypted))
        elif block.text:
            draft.parts.append(Thinking(block.text))

    def _medium(self, draft: _Draft, block: Block, number: int) -> None:
        detail = self._detail(block, number)
        medium = detail if isinstance(detail, Medium) else None
        if medium is None or (medium.data is None and medium.url is None and medium.text is None):
            self.losses.add(NO_DATA)
            if block.call_id is None:
                draft.parts.append(Text(f"[{block.kind} omitted]"))
            return
        if block.call_id is None:
            draft.parts.append(medium)
            return
        if number in self.transcript.cleared:
            return
        for at in range(len(draft.parts) - 1, -1, -1):
            held = draft.parts[at]
            if isinstance(held, Result) and held.id == block.call_id:
                draft.parts[at] = replace(held, media=(*held.media, medium))
                return
        draft.parts.append(Result(block.call_id, "", False, (medium,), block.tool_name))

    def _detail(self, block: Block, number: int) -> Detail | None:
        """What the record says of a block beyond its text. Details and blocks of a line are paired from its end:
        a line that repeats an earlier one gives blocks only for what is new."""
        line = block.source.line
        if line != self._line:
            self._line, self._found = line, {}
            details = details_of(self.store.get(line))
            for known, kind, text in reversed(self._detailed.get(line, [])):
                at = next((n for n in range(len(details) - 1, -1, -1) if _fits(details[n], kind, text)), None)
                if at is not None:
                    self._found[known] = details[at]
                    del details[at:]
        return self._found.get(number)


def _fits(detail: Detail, kind: str, text: str) -> bool:
    if isinstance(detail, Medium):
        return detail.kind == kind
    return kind == "thinking" and detail.text in ("", text)


def _role(block: Block) -> Role:
    if block.kind == "system":
        return "system"
    if block.kind in _ANSWERS or block.role == "assistant":
        return "assistant"
    return "user"

"""Reading a transcript once for its reader, and once more for what would be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ctxctl.errors import UsageError
from ctxctl.formats import FORMATS
from ctxctl.formats.base import Diagnostics, Json
from ctxctl.formats.jsonlines import parse_line
from ctxctl.formats.read import scan
from ctxctl.formats.store import LineStore
from ctxctl.formats.streams import Progress
from ctxctl.model.block import Block
from ctxctl.model.transcript import Transcript
from ctxctl.validity.chain import Chain
from ctxctl.validity.claude import ClaudeMessages
from ctxctl.validity.codex import CodexItems
from ctxctl.validity.content import judge_content
from ctxctl.validity.conversations import Conversations, conversations_for
from ctxctl.validity.findings import Checked, Counts, Finding
from ctxctl.validity.lines import read_lines
from ctxctl.validity.pairing import judge_pairs, pair
from ctxctl.validity.view import View

CHECKED = ("claude-code", "codex", "openai-chat", "openai-chat-message", "anthropic-messages", "mini-swe-agent")
"""Formats whose rules are known here."""

TAKEN_OVER = frozenset(("odd_shape", "unknown_record", "no_messages", "torn_compression"))
"""Codes of the readers that tell what would not be sent; what else they say is judged here anew, line by line, or
concerns figures alone."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What a check knows, for a repair. views: the conversations; chain: of Claude Code alone; lines: physical ones;
    document: lists of messages may stand on a line."""

    checked: Checked
    transcript: Transcript
    views: list[View]
    chain: Chain | None
    document: bool


def check(path: str, *, format_name: str | None = None, progress: Progress | None = None) -> Checked:
    """What is wrong with the transcript at a path (or `-`).

    Raises InputError (unreadable, unknown format, no usable record) and NothingFoundError (empty).
    """
    with LineStore(path) as store:
        return examine(path, store, format_name=format_name, progress=progress).checked


def examine(
    path: str, store: LineStore, *, format_name: str | None = None, progress: Progress | None = None
) -> Examined:
    """`check`, with what a repair needs. store: takes the lines."""
    live_lines: dict[int, int] = {}
    wanted = format_name in (None, "codex")

    def emit(block: Block) -> None:
        if wanted:
            live_lines[len(live_lines)] = block.source.line

    transcript = scan(path, emit, format_name=format_name, companions=False, progress=progress, store=store)
    if transcript.format not in CHECKED:
        raise UsageError(f"check knows no rules for {transcript.format}", hint=f"it knows {', '.join(CHECKED)}")
    findings: list[Finding] = []
    counts = Counts(records=transcript.records, torn=int(not transcript.complete))
    document = FORMATS.get(transcript.format).document
    chain: Chain | None = None
    messages: ClaudeMessages | CodexItems | Conversations
    if transcript.format == "claude-code":
        chain = Chain(_record_at(store))
        messages = ClaudeMessages(transcript, counts)
    elif transcript.format == "codex":
        messages = CodexItems({live_lines[b] for b in transcript.live}, counts)
    else:
        messages = conversations_for(transcript.format, counts)
    for line in read_lines(store, findings.append, document=document):
        for value in line.values:
            if isinstance(value, dict):
                messages.add(value, line.number)
                if chain is not None:
                    chain.add(value, line.number)
            elif document and isinstance(value, list) and isinstance(messages, Conversations):
                messages.add(value, line.number)
    if chain is not None:
        chain.judge(transcript, findings.append, counts)
    views = messages.views()
    for view in views:
        judge_pairs(view, pair(view), findings.append, counts)
        judge_content(view, findings.append)
    for d in transcript.diagnostics:
        if d.code in TAKEN_OVER:
            findings.append(Finding(d.code, "info" if d.severity == "info" else "warning", d.line, d.message))
    findings.sort(key=lambda f: (f.line if f.line is not None else 1 << 62, f.number or 0))
    sent = sum(len(view.messages) for view in views)
    checked = Checked(path, transcript.format, sent, tuple(findings), counts)
    return Examined(checked, transcript, views, chain, document)


def _record_at(store: LineStore) -> Callable[[int, str], list[Json]]:
    def get(line: int, uuid: str) -> list[Json]:
        values = parse_line(store.get(line), line, Diagnostics())
        return [value for value in values if isinstance(value, dict) and value.get("uuid") == uuid]

    return get

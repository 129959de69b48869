"""A Claude Code session, random outcomes of its compaction, and readers of what is written that share no code with
ctxctl. Test modules load this file by its path: there is no package here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxctl.formats import scan
from ctxctl.formats.base import FORMATS
from ctxctl.formats.draft import Draft
from ctxctl.formats.store import LineStore
from ctxctl.model.block import Block
from ctxctl.model.edits import Change, Outcome
from ctxctl.model.unit import Grouper

NEW_ID = "0d15ea5e-0000-4000-8000-000000000000"
NOW = "2026-03-02T09:00:00.000Z"
MADE = ("[no result was recorded", "[summary] Earlier messages")
"""How texts begin that the writer adds itself."""


class Rewritten:
    """A session file and what `rewrite` makes of it. drop, replace, summary: by block id."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = LineStore(str(path))
        found: list[Block] = []
        self.transcript = scan(str(path), found.append, companions=False, store=self.store)
        self.blocks = {n: found[n] for n in self.transcript.live}
        cleared = "[Old tool result content cleared]"
        self.blocks.update({n: replace(found[n], text=cleared) for n in self.transcript.cleared})
        self.number = {block.id: n for n, block in self.blocks.items()}
        self.draft: Draft | None = None

    def __call__(
        self,
        drop: tuple[str, ...] = (),
        changed: dict[str, str] | None = None,
        summary: tuple[str, str] | None = None,
        **options: Any,
    ) -> bytes:
        gone = frozenset(self.number[id_] for id_ in drop)
        changes = {self.number[id_]: Change(text) for id_, text in (changed or {}).items()}
        if summary is not None:
            changes[self.number[summary[0]]] = Change(summary[1], True)
        live = [n for n in self.transcript.live if n not in gone]
        outcome = Outcome(live, gone, changes)
        return self.write(outcome, **options)

    def write(self, outcome: Outcome, **options: Any) -> bytes:
        self.draft = Draft(self.transcript, self.store, self.blocks, outcome, NEW_ID, NOW, 9000, 400, **options)
        return b"".join(FORMATS.get("claude-code").rewrite(self.draft))

    def outcome(self, rng: random.Random) -> Outcome:
        """Whole units leave, results become placeholders, and one summary stands for the first of what left."""
        grouper = Grouper()
        numbers = list(self.transcript.live)
        for n in numbers:
            grouper.add(self.blocks[n], 1, 1)
        leave, clear = rng.choice((0.1, 0.5, 0.9)), rng.choice((0.0, 0.5))
        gone: set[int] = set()
        changed: dict[int, Change] = {}
        for unit in grouper.units:
            members = [numbers[i] for i in unit.blocks]
            if unit.pending or numbers[-1] in members:
                continue
            if rng.random() < leave:
                gone.update(members)
            elif unit.kind == "tool_result" and rng.random() < clear:
                for n in members:
                    if self.blocks[n].kind == "tool_result":
                        changed[n] = Change("[cleared: some tool, 5 tokens]")
                    elif self.blocks[n].kind != "tool_call":
                        gone.add(n)
        if gone and rng.random() < 0.7:
            first = min(gone, key=numbers.index) if rng.random() < 0.7 else rng.choice(sorted(gone))
            gone.discard(first)
            changed[first] = Change("[summary] what was before \u2013 \U0001f600", True)
        return Outcome([n for n in numbers if n not in gone], frozenset(gone), changed)

    def expected(self, outcome: Outcome) -> list[str]:
        """Texts of the window, the summary first. Blank ones are left out: they are not written, or hold no text."""
        texts = [outcome.changed[n].text for n in outcome.live if n in outcome.changed and outcome.changed[n].summary]
        for n in outcome.live:
            change = outcome.changed.get(n)
            if change is None or not change.summary:
                texts.append(change.text if change is not None else self.blocks[n].text)
        return [clean(text) for text in texts if text.strip()]


def clean(text: str) -> str:
    """Without unpaired surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def rows(data: bytes) -> list[dict[str, Any]]:
    """Strict: each line one object, UTF-8, LF at the end."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} in the JSON")

    text = data.decode("utf-8", "strict")
    assert not text or text.endswith("\n")
    found = [json.loads(line, parse_constant=refuse) for line in text.split("\n")[:-1]]
    assert all(isinstance(record, dict) for record in found)
    return found


def resumed(data: bytes) -> list[dict[str, Any]]:
    """The records that Claude Code goes on with (formats.md 2): behind the newest boundary, what that preserves put
    behind its anchor, then the walk from the leaf to the boundary, with parallel calls and their results, which the
    walk passes by, beside it."""
    found = rows(data)
    cut = max((i for i, r in enumerate(found) if r.get("subtype") == "compact_boundary"), default=0)
    metadata = found[cut].get("compactMetadata", {}).get("preservedMessages", {"uuids": [], "anchorUuid": None})
    named = list(metadata["uuids"])
    newest: dict[str, dict[str, Any]] = {}
    leaf: str | None = None
    for at, record in enumerate(found):
        id_ = record.get("uuid")
        if id_ is not None and (at >= cut or id_ in named) and not record.get("isSidechain"):
            newest.pop(id_, None)
            newest[id_] = record
            if record["type"] in ("user", "assistant", "attachment"):
                leaf = id_ if at >= cut or leaf is None else leaf
        elif record.get("type") == "last-prompt" and record.get("leafUuid") and at >= cut:
            assert record["leafUuid"] in newest
            leaf = record["leafUuid"]
    parent = {id_: record.get("parentUuid") for id_, record in newest.items()}
    if named:
        anchor = metadata["anchorUuid"]
        parent.update({id_: named[-1] for id_, above in parent.items() if above == anchor and id_ not in named})
        parent.update(zip(named, [anchor, *named[:-1]], strict=True))
    walk: list[str] = []
    while leaf is not None:
        assert leaf in parent, f"the walk ends at {leaf}"
        assert leaf not in walk
        walk.append(leaf)
        leaf = parent[leaf]
    on_walk = set(walk)
    responses = {message_id(newest[id_]) for id_ in walk} - {None}
    calls = set()
    for id_, record in newest.items():
        if message_id(record) in responses:
            on_walk.add(id_)
            calls |= {block["id"] for block in blocks(record) if block.get("type") == "tool_use"}
    for id_, record in newest.items():
        if any(block.get("tool_use_id") in calls for block in blocks(record)):
            on_walk.add(id_)
    assert found[cut].get("uuid") == walk[-1] or not cut
    behind = [id_ for id_ in newest if id_ in on_walk and id_ not in named]
    at = 1 + behind.index(metadata["anchorUuid"]) if named else 0
    return [newest[id_] for id_ in (*behind[:at], *named, *behind[at:])]


def message_id(record: Mapping[str, Any]) -> Any:
    return record["message"].get("id") if record.get("type") == "assistant" else None


def blocks(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The content blocks of a record that a model is sent."""
    if record.get("type") == "attachment":
        attachment = record["attachment"]
        value = next((attachment[k] for k in ("content", "text", "prompt") if attachment.get(k)), None)
        if isinstance(value, list) and attachment.get("type") == "queued_command":
            return value
        return [] if value is None else [{"type": "text", "text": value if isinstance(value, str) else compact(value)}]
    content = record["message"].get("content") if record.get("type") in ("user", "assistant") else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b if isinstance(b, dict) else {"type": "text", "text": b} for b in content or []]


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def texts(records: list[dict[str, Any]]) -> list[str]:
    """What the records say, block by block, blank blocks left out; calls and results as ctxctl words them."""
    found = []
    for block in (b for record in records for b in blocks(record)):
        type_ = block.get("type")
        if type_ == "text":
            found.append(block["text"])
        elif type_ == "thinking":
            found.append(block["thinking"])
        elif type_ == "tool_use":
            found.append(f"{block['name']} {compact(block['input'])}")
        elif type_ == "tool_result":
            content = block.get("content")
            parts = [content] if isinstance(content, str) else [p.get("text") for p in content or []]
            found.append("\n".join(p for p in parts if p is not None))
    return [text for text in found if text.strip()]


def own(found: list[str]) -> list[str]:
    """Texts without those that the writer adds itself."""
    return [text for text in found if not text.startswith(MADE)]


def assert_valid(records: list[dict[str, Any]]) -> None:
    """V1 to V4 and V6, of records in the order in which a model is sent them: responses on several lines and their
    results are merged."""
    messages: list[tuple[str, list[dict[str, Any]]]] = []
    response: Any = None
    for record in records:
        queued = record.get("type") == "attachment" and record["attachment"].get("type") == "queued_command"
        if queued and not messages:  # what was typed meanwhile speaks for the user
            messages.append(("user", blocks(record)))
        if record.get("type") not in ("user", "assistant"):
            continue
        content = blocks(record)
        assert content, "an empty record"
        assert all(b.get("text", "x").strip() for b in content), "a blank text"
        results = any(b.get("type") == "tool_result" for b in content)
        if record["type"] == "assistant":
            if response is None or message_id(record) != response:
                messages.append(("assistant", []))
                response = message_id(record)
            next(m for m in reversed(messages) if m[0] == "assistant")[1].extend(content)
        elif messages and messages[-1][0] == "user":
            messages[-1][1].extend(content)
        else:
            messages.append(("user", list(content)))
        response = response if results or record["type"] == "assistant" else None
    assert not messages or messages[0][0] == "user"
    open_calls: set[str] = set()
    for role, content in messages:
        uses = [b["id"] for b in content if b.get("type") == "tool_use"]
        answers = [b["tool_use_id"] for b in content if b.get("type") == "tool_result"]
        assert len(set(uses)) == len(uses) and len(set(answers)) == len(answers)
        if role == "user":
            assert set(answers) <= open_calls, "a result that is not of the calls in front of it"
            assert set(answers) == open_calls or content is messages[-1][1], "a call without a result"
            open_calls = set()
        else:
            assert not answers and not open_calls
            open_calls = set(uses)


def assert_linked(data: bytes) -> None:
    """Every parent stands earlier in the file."""
    seen: set[str | None] = {None}
    for record in rows(data):
        if record.get("uuid"):
            assert record.get("parentUuid") in seen
            seen.add(record["uuid"])

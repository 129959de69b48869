"""Whether a compacted session may be sent: rules V1 to V10 of cases/README.md, held against its input.

Written from the rules alone; nothing of ctxctl is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from chat_views import SUMMARY, Message, Part, View, lines_of, view


def violations(before: Path, after: Path, format_: str, digest: bytes | None = None) -> list[str]:
    """Everything that is wrong with `after`, a compaction of `before`. digest: bytes that `before` had."""
    found: list[str] = []
    if digest is not None and before.read_bytes() != digest:
        found.append("V10 the input was changed")
    line = None
    if format_ == "openai-chat":
        line, wrong = _conversation(before, after)
        found += wrong
    old, new = view(before, format_, line), view(after, format_, line)
    found += new.problems
    found += [f"V10 dangling parent {p}" for p in sorted(new.dangling - old.dangling)]
    found += [f"V10 two records of one uuid {u}" for u in sorted(new.clashing - old.clashing)]
    if format_ == "claude-code":
        found += _session(after)
    found += _pairs(new, old, format_)
    found += _contents(new)
    found += _thinking(new, old, format_)
    found += _ends(new, old)
    found += _newest(new, old)
    found += _order(new, old)
    return found


def _conversation(before: Path, after: Path) -> tuple[int, list[str]]:
    """Line of the conversation that was compacted; the others must be as they were."""
    old, new = before.read_bytes().split(b"\n"), after.read_bytes().split(b"\n")
    if not old[-1]:
        old.pop()
    if not new[-1]:
        new.pop()
    if len(old) != len(new):
        return 1, [f"V9 {len(old)} conversations became {len(new)}"]
    other = [n for n, (a, b) in enumerate(zip(old, new, strict=True), 1) if a != b]
    largest = max(range(len(old)), key=lambda n: len(old[n])) + 1
    return (other[0] if other else largest), [f"V9 line {n} changed too" for n in other[1:]]


def _session(path: Path) -> list[str]:
    """A session of Claude Code: one id, the name of the file where that is one; the newest leaf is there."""
    rows = [row for _, row in lines_of(path.read_bytes(), [])]
    uuids = {r["uuid"] for r in rows if "uuid" in r}
    found = []
    newest = next((r for r in reversed(rows) if r.get("type") == "last-prompt" and r.get("leafUuid")), None)
    if newest is not None and newest["leafUuid"] not in uuids:
        found.append("V10 the last prompt names a leaf that is not there")
    ids = {r["sessionId"] for r in rows if "sessionId" in r and not r.get("isSidechain")}
    if len(path.stem) == 36 and path.stem.count("-") == 4 and ids - {path.stem}:
        found.append(f"V10 session ids {sorted(ids)} in {path.name}")
    parents = {r["uuid"]: r.get("parentUuid") for r in rows if "uuid" in r}
    boundary = [r for r in rows if r.get("subtype") == "compact_boundary"]
    last = next((r for r in reversed(rows) if r.get("type") in ("user", "assistant") and "uuid" in r), None)
    if boundary and last is not None and not last.get("isSidechain"):
        at, steps = last["uuid"], 0
        while parents.get(at) is not None and steps <= len(parents):
            at, steps = parents[at], steps + 1
        if at != boundary[-1]["uuid"]:
            found.append("V10 the walk from the last record does not end at the boundary")
    return found


def _pairs(new: View, old: View, format_: str) -> Iterator[str]:
    """V1 to V3."""
    messages = new.messages
    calls = Counter(p.id for m in messages for p in m.parts if p.kind == "call" and p.id is not None)
    results = Counter(p.id for m in messages for p in m.parts if p.kind == "result" and p.id is not None)
    for side, ids in (("call", calls), ("result", results)):
        yield from (f"V3 {side} id {id_} {count} times" for id_, count in ids.items() if count > 1)
    open_: set[str] = set()
    answered_before = {p.id for m in old.messages for p in m.parts if p.kind == "result"}
    for at, message in enumerate(messages):
        own = {p.id for p in message.parts if p.kind == "call" and p.id is not None}
        for part in message.parts:
            if part.kind == "result" and part.id is not None and part.id not in open_:
                yield f"V1 {_at(part)}: result {part.id} without its call in the assistant message before"
            if part.kind == "result" and part.id is None and (not at or messages[at - 1].role != "assistant"):
                yield f"V1 {_at(part)}: a result behind no answer"
        if message.role == "assistant":
            if at + 1 < len(messages):
                behind = {p.id for p in messages[at + 1].parts if p.kind == "result"}
                yield from (f"V2 message {at} {message.where}: call {id_} not answered" for id_ in own - behind)
            else:
                lost = own & answered_before
                yield from (f"V2 call {id_} lost its result" for id_ in lost)
            open_ = own
        if format_ == "anthropic-messages" and message.role == "user":
            kinds = [p.kind for p in message.parts]
            if "result" in kinds and "text" in kinds[: len(kinds) - kinds[::-1].index("result")]:
                yield f"V2 message {at}: text in front of results"


def _at(part: Part) -> str:
    return f"{part.where}"


def _contents(new: View) -> Iterator[str]:
    """V4."""
    for message in new.messages:
        if not message.parts:
            yield f"V4 {message.where}: no content"
        for part in message.parts:
            if part.kind == "text" and not part.text.strip():
                yield f"V4 {_at(part)}: blank text"


def _thinking(new: View, old: View, format_: str) -> Iterator[str]:
    """V5: none is made or altered; the newest answer, and any answer with calls behind the newest prompt, has all of
    its own."""
    known = Counter(p.key for m in old.messages for p in m.parts if p.kind == "thinking")
    there = Counter(p.key for m in new.messages for p in m.parts if p.kind == "thinking")
    for key in there - known:
        yield f"V5 reasoning that the input did not have: {key[:60]}"
    if format_ == "codex":
        yield from _reasoning_items(new, old)
        return
    answers = [m for m in new.messages if m.role == "assistant"]
    prompt = max((i for i, m in enumerate(new.messages) if any(p.typed for p in m.parts)), default=-1)
    for message in answers:
        newest = message is answers[-1]
        looped = new.messages.index(message) > prompt and any(p.kind == "call" for p in message.parts)
        if not (newest or looped):
            continue
        origin = _origin(message, old)
        if origin is None:
            continue
        mine = {p.key for p in message.parts if p.kind == "call"}
        for part in _bound(origin, mine):
            if part.key not in there:
                yield f"V5 {message.where}: the newest turn lost reasoning {part.key[:60]}"


def _origin(message: Message, old: View) -> Message | None:
    """The same answer in the input: it has the same call, or the same text."""
    keys = {p.key for p in message.parts if p.kind in ("call", "text", "thinking")}
    return next(
        (m for m in reversed(old.messages) if m.role == "assistant" and keys & {p.key for p in m.parts}),
        None,
    )


def _bound(origin: Message, calls: set[str]) -> list[Part]:
    """Reasoning in front of what stayed of an answer, since the answer before it in the same message."""
    found: list[Part] = []
    run: list[Part] = []
    for part in origin.parts:
        if part.kind == "thinking":
            run.append(part)
        elif part.kind == "call" and part.key in calls:
            found += run
            run = []
    return found


def _reasoning_items(new: View, old: View) -> Iterator[str]:
    """Reasoning of Codex stands directly before what it led to."""
    after: dict[str, str] = {}
    for message in old.messages:
        for part, next_ in zip(message.parts, message.parts[1:], strict=False):
            if part.kind == "thinking":
                after[part.key] = next_.kind if next_.kind == "thinking" else next_.id or next_.key
    for message in new.messages:
        for part, next_ in zip(message.parts, [*message.parts[1:], None], strict=True):
            if part.kind != "thinking" or part.key not in after:
                continue
            stands = None if next_ is None else next_.kind if next_.kind == "thinking" else next_.id or next_.key
            if stands is None or (after[part.key] != "thinking" and stands != after[part.key]):
                yield f"V5 {_at(part)}: reasoning without what it led to"


def _ends(new: View, old: View) -> Iterator[str]:
    """V6 and V7."""
    spoken = [m for m in new.messages if m.role != "system"]
    if not spoken:
        yield "V6 nothing but system messages"
    elif spoken[0].role != "user":
        yield f"V6 the first message is from {spoken[0].role}"
    before = [p.key for m in old.messages if m.role == "system" for p in m.parts]
    after = [p.key for m in new.messages if m.role == "system" for p in m.parts]
    if before != after:
        yield f"V7 {len(before)} system texts became {len(after)}"


def newest_typed(of: View) -> list[str]:
    """Texts of the newest message that a human typed."""
    for message in reversed(of.messages):
        parts = [p for p in message.parts if p.typed]
        if parts:  # messages of one role were merged: only what stands in the last record of them
            return [p.text for p in parts if p.where == parts[-1].where]
    return []


def _newest(new: View, old: View) -> Iterator[str]:
    """V8."""
    wanted = newest_typed(old)
    if not wanted:
        return
    found = newest_typed(new)
    if found != wanted:
        yield f"V8 the newest typed text is {found!r:.120}, not {wanted!r:.120}"
    texts = [p.text for m in new.messages if m.role == "user" for p in m.parts if p.kind == "text"]
    before = [p.text for m in old.messages if m.role == "user" for p in m.parts if p.kind == "text"]
    for text in wanted:
        if not 1 <= texts.count(text) <= before.count(text):
            yield f"V8 {texts.count(text)} times: {text!r:.80}"
        if len(text) >= 40 and any(text in made and made != text for made in texts if made.startswith(SUMMARY)):
            yield f"V8 told again in a summary: {text!r:.80}"


def _order(new: View, old: View) -> Iterator[str]:
    """V9: what was kept stands in its old order, each once."""

    def keys(of: View) -> list[tuple[str, str]]:
        return [
            (m.role, f"{p.kind} {p.id if p.kind in ('call', 'result') and p.id is not None else p.key}")
            for m in of.messages
            for p in m.parts
        ]

    before, after = keys(old), keys(new)
    counts = Counter(before)
    kept = [k for k in after if k in counts]
    yield from (f"V9 {n} times instead of {counts[k]}: {k!r:.100}" for k, n in Counter(kept).items() if n > counts[k])
    at = 0
    for key in kept:
        try:
            at = before.index(key, at) + 1
        except ValueError:
            yield f"V9 out of order: {key!r:.100}"
            return

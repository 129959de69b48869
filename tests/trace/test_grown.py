"""Reading on gives what reading the whole gives, wherever the file was cut before, and reads nothing twice."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import growing
import pytest

from ctxctl.errors import CtxctlError, NothingFoundError, RefusedError
from ctxctl.facts.session import SessionFacts
from ctxctl.model.block import Block
from ctxctl.model.state import Position
from ctxctl.model.summary import SessionSummary
from ctxctl.trace.grown import Grown, read_grown

Seen = tuple[int, int, int, int, str, str | None, str]
AT_CUT = ("turn", "exchange", "line", "offset", "size", "compactions", "newest", "mark", "leaves", "reading", "id")


@dataclass
class Reader:
    """Readings of one file, one after the other. seen: every block that was handed out since it began anew."""

    path: Path
    position: Position | None = None
    base: SessionSummary | None = None
    grown: Grown | None = None
    seen: list[Seen] | None = None
    fresh: list[Position | None] | None = None

    def read(self, **options: Any) -> Grown:
        facts = SessionFacts()
        seen = list(self.seen or ())
        self.fresh = []

        def fresh(position: Position | None) -> Callable[[Block, int], None]:
            nonlocal facts
            facts = SessionFacts()
            self.fresh.append(position)
            if position is None:
                seen.clear()
            else:
                facts.seed(self.base or SessionSummary(), position.carry)

            def see(block: Block, number: int) -> None:
                where = block.source
                seen.append(
                    (where.line, where.index, block.turn, block.exchange, block.kind, block.tool_name, block.text)
                )
                facts.see(block, number)

            return see

        grown = read_grown(str(self.path), self.position, fresh, **options)
        self.base = facts.summary(grown.gone)
        # through JSON, as it stands in a state's file
        carry = json.loads(json.dumps(facts.carry(grown.gone)))
        stored = json.loads(json.dumps({**asdict(grown.position), "carry": carry}))
        self.position = Position(**{**stored, "leaves": tuple(stored["leaves"])})
        self.grown, self.seen = grown, seen
        return grown


def whole(path: Path) -> Reader:
    reader = Reader(path)
    reader.read()
    return reader


def cuts_of(data: bytes, chance: random.Random) -> list[int]:
    """Where the file ends at each reading: at line ends and within lines."""
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    count = chance.choice((1, 1, 2, 3, 5))
    found = {chance.choice(ends) if chance.random() < 0.6 else chance.randrange(1, len(data)) for _ in range(count)}
    return [*sorted(found - {len(data)}), len(data)]


def same(one: Reader, other: Reader, note: object) -> None:
    assert one.base is not None and other.base is not None
    for name in (field.name for field in fields(SessionSummary)):
        assert getattr(one.base, name) == getattr(other.base, name), (name, note)
    for name in AT_CUT:
        assert getattr(one.position, name) == getattr(other.position, name), (name, note)
    assert one.seen == other.seen, note


@pytest.mark.parametrize("agent", sorted(growing.AGENTS))
def test_what_grew_is_what_was_read_at_once(agent: str, tmp_path: Path) -> None:
    on = 0
    for seed in range(70):
        data = b"".join(growing.AGENTS[agent](seed).lines)
        path = tmp_path / "session.jsonl"
        path.write_bytes(data)
        at_once = whole(path)
        chance = random.Random(seed)
        for _ in range(4):
            reader = Reader(path)
            cuts = cuts_of(data, chance)
            for cut in cuts:
                path.write_bytes(data[:cut])
                try:
                    grown = reader.read()
                except CtxctlError:
                    assert reader.position is None
                    continue
                on += not grown.why
                assert grown.whole == (grown.why != "")
            same(reader, at_once, (agent, seed, cuts))
    assert on > 250


@pytest.mark.parametrize("agent", sorted(growing.AGENTS))
def test_every_line_end_of_a_session(agent: str, tmp_path: Path) -> None:
    """Read after each line, as hooks do."""
    path = tmp_path / "session.jsonl"
    for seed in (3, 8):
        lines = growing.AGENTS[agent](seed).lines
        reader = Reader(path)
        for at in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:at]))
            reader.read()
        same(reader, whole(path), (agent, seed))


def test_cost_does_not_depend_on_what_lies_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are parsed when one more prompt comes."""
    import ctxctl.formats.tail as tail

    path = tmp_path / "session.jsonl"
    lines = [
        line.replace(b'"msg_', f'"msg_{seed}_'.encode())
        for seed in range(200)
        for line in growing.Claude(seed, rewinds=False, compactions=False).lines[1:]
    ]
    first = growing.Claude(300, rewinds=False, compactions=False).lines
    path.write_bytes(b"".join([*lines, *first]))
    reader = whole(path)
    before = len(reader.seen or ())
    read: list[int] = []
    original = tail.Offsets.add
    monkeypatch.setattr(tail.Offsets, "add", lambda self, data: (read.append(len(data)), original(self, data))[1])
    with path.open("ab") as file:
        file.write(first[-1].replace(b'"uuid":"', b'"uuid":"9'))
    grown = reader.read()
    assert (grown.why, len(reader.seen or ()) - before) == ("", 1)
    assert sum(read) < 20_000 < path.stat().st_size / 20
    assert len(json.dumps(asdict(reader.position))) < 20_000  # type: ignore[call-overload]


# ---------------------------------------------------------------- what speaks against reading on


def session(path: Path, seed: int = 5, **options: Any) -> Reader:
    path.write_bytes(b"".join(growing.Claude(seed, **options).lines))
    return whole(path)


def record(**more: Any) -> bytes:
    head = {"isSidechain": False, "sessionId": "session-1", "timestamp": "2026-03-02T00:00:00.000Z", "uuid": "new-1"}
    return json.dumps({**head, **more}).encode() + b"\n"


def prompt(parent: str | None, **more: Any) -> bytes:
    return record(type="user", parentUuid=parent, message={"role": "user", "content": "and now this"}, **more)


def test_nothing_appended(tmp_path: Path) -> None:
    reader = session(tmp_path / "s.jsonl")
    before, base = reader.position, reader.base
    grown = reader.read()
    assert (grown.why, grown.whole, grown.tail, grown.pending) == ("", False, (), ())
    assert reader.position == before
    assert reader.base == base


def test_a_rewind_behind_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    uuids = [json.loads(line).get("uuid") for line in path.read_bytes().splitlines()]
    with path.open("ab") as file:
        file.write(prompt(uuids[2]))
    assert reader.read().why == "rewound"
    assert reader.fresh == [reader.fresh[0], None]  # type: ignore[index]
    same(reader, whole(path), "rewound")


def test_a_record_that_hangs_on_an_unknown_one(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    with path.open("ab") as file:
        file.write(prompt("nobody"))
    assert reader.read().why == "rewound"


def test_a_rewind_that_would_need_too_much(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    with path.open("ab") as file:
        file.write(prompt("nobody"))
    grown = reader.read(most=2_000)
    assert (grown.why, grown.whole) == ("rewound", False)
    assert [block.text for block in grown.tail][-1] == "and now this"


def test_a_rewritten_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    path.write_bytes(path.read_bytes().replace(b"parser", b"Parser") + prompt(None))
    grown = reader.read()
    assert (grown.why, grown.whole) == ("rewritten", True)
    same(reader, whole(path), "rewritten")


def test_a_shorter_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(RefusedError, match="bytes") as error:
        reader.read()
    assert "--force" in str(error.value.hint)
    grown = reader.read(force=True)
    assert (grown.whole, grown.why) == (True, "rewritten")


def test_an_older_transcript_is_refused(tmp_path: Path) -> None:
    reader = session(tmp_path / "s.jsonl", 4)
    other = tmp_path / "other.jsonl"
    other.write_bytes(
        record(type="user", message={"role": "user", "content": "old"}).replace(b"2026-03-02", b"2025-01-01")
    )
    reader.path = other
    with pytest.raises(RefusedError, match="older"):
        reader.read()
    assert reader.read(force=True).whole


def test_another_transcript_is_new(tmp_path: Path) -> None:
    reader = session(tmp_path / "s.jsonl", 4)
    other = tmp_path / "other.jsonl"
    other.write_bytes(prompt(None).replace(b"session-1", b"session-2"))
    reader.path = other
    grown = reader.read()
    assert (grown.why, grown.whole, reader.fresh) == ("new", True, [None])
    assert grown.position.id == "session-2"


def test_another_transcript_in_the_same_place_is_new(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    for data in (prompt(None), prompt(None, pad="x" * 90_000)):
        path.write_bytes(data.replace(b"session-1", b"session-2"))
        assert Reader(path, reader.position, reader.base).read().why == "new"


def test_a_file_that_was_moved_is_read_on(tmp_path: Path) -> None:
    reader = session(tmp_path / "s.jsonl", 4)
    moved = tmp_path / "moved.jsonl"
    reader.path.rename(moved)
    uuid = json.loads(moved.read_bytes().splitlines()[-1])["uuid"]
    with moved.open("ab") as file:
        file.write(prompt(uuid))
    reader.path = moved
    grown = reader.read()
    assert (grown.why, grown.position.path) == ("", str(moved))


def test_a_torn_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4)
    data = path.read_bytes()
    line = prompt(json.loads(data.splitlines()[-1])["uuid"])
    before = len(reader.seen or ())
    path.write_bytes(data + line[:60])
    assert reader.read().position.offset == len(data)
    assert len(reader.seen or ()) == before
    path.write_bytes(data + line)
    assert reader.read().position.offset == len(data + line)
    assert len(reader.seen or ()) == before + 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"[]"])
def test_an_empty_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(NothingFoundError):
        Reader(path).read()


# ---------------------------------------------------------------- limits, documents, packing


def test_only_the_newest_of_much(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    reader = session(path, 4, rewinds=False)
    size, exchange = path.stat().st_size, reader.position.exchange  # type: ignore[union-attr]
    more = b"".join(prompt(None, pad="x" * 200, uuid=f"n{n}") for n in range(200))
    with path.open("ab") as file:
        file.write(more)
    grown = reader.read(most=5_000)
    assert (grown.why, grown.whole) == ("", False)
    assert 0 < len(more) - grown.position.skipped <= 5_000
    assert grown.position.offset == grown.position.size == size + len(more)
    read = (len(more) - grown.position.skipped) // len(prompt(None, pad="x" * 200, uuid="n100"))
    assert grown.position.exchange == exchange + read
    assert reader.fresh != [None]
    alone = Reader(path)
    grown = alone.read(most=5_000)
    assert (grown.why, grown.whole, grown.position.id) == ("new", False, "session-1")
    assert 0 < grown.position.size - grown.position.skipped <= 5_000
    with path.open("ab") as file:
        file.write(prompt("n199", uuid="n200"))
    grown = alone.read(most=5_000)
    assert (grown.why, len(alone.seen or ())) == ("", read + 1)


def test_documents_are_read_whole_each_time(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    messages = [{"role": "user", "content": "Please fix the parser."}, {"role": "assistant", "content": "Done."}]
    path.write_text(json.dumps({"model": "m", "messages": messages}, indent=1))
    reader = whole(path)
    messages.append({"role": "user", "content": "And the cache, please."})
    path.write_text(json.dumps({"model": "m", "messages": messages}, indent=1))
    grown = reader.read()
    assert (grown.why, grown.whole, reader.fresh) == ("document", True, [None])
    assert reader.base is not None and reader.base.requests == ("And the cache, please.",)


def test_a_compressed_file(tmp_path: Path) -> None:
    data = b"".join(growing.Codex(4).lines)
    path = tmp_path / "rollout.jsonl.gz"
    path.write_bytes(gzip.compress(data))
    reader = whole(path)
    assert reader.position is not None and reader.position.offset == len(data)
    path.write_bytes(gzip.compress(data + data.splitlines(keepends=True)[-1]))
    assert reader.read().why == "document"
    path.write_bytes(gzip.compress(data[: len(data) // 2]))
    with pytest.raises(RefusedError):
        reader.read()


def test_a_file_of_a_sub_agent(tmp_path: Path) -> None:
    path = tmp_path / "agent-1.jsonl"
    lines = [json.loads(line) for line in growing.Claude(4, rewinds=False).lines[1:]]
    path.write_text("".join(json.dumps({**line, "isSidechain": True, "agentId": "a1"}) + "\n" for line in lines))
    reader = whole(path)
    assert reader.seen and reader.base is not None and reader.base.goal


# ---------------------------------------------------------------- what is told of the newest turns


def answer(n: int, parent: str | None, *content: dict[str, Any]) -> list[bytes]:
    found = []
    for at, part in enumerate(content):
        message = {
            "id": f"msg_{n}",
            "role": "assistant",
            "model": "m",
            "content": [part],
            "usage": {"output_tokens": 1},
        }
        uuid = f"a{n}.{at}"
        found.append(record(type="assistant", parentUuid=parent, uuid=uuid, requestId=f"r{n}", message=message))
        parent = uuid
    return found


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": "pytest -q tests"}}


def result(id_: str, parent: str) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": id_, "content": "3 passed in 0.1s"}]
    return record(type="user", parentUuid=parent, uuid=f"u{id_}", message={"role": "user", "content": content})


def test_tail_and_pending(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = [prompt(None, uuid="p1"), *answer(1, "p1", text("one")), *answer(2, "a1.0", text("two"))]
    lines += answer(3, "a2.0", text("three"), call("c1"), call("c2"))
    path.write_bytes(b"".join([*lines, result("c1", "a3.1")]))
    reader = whole(path)
    grown = reader.grown
    assert grown is not None
    assert [block.call_id for block in grown.pending] == ["c2"]
    assert {block.turn for block in grown.tail} == {1, 2, 3, 4}
    two = Reader(path)
    assert {block.turn for block in two.read(tail_turns=2).tail} == {2, 3, 4}
    assert two.read(tail_turns=2).tail == ()
    with path.open("ab") as file:
        file.write(result("c2", "a3.2"))
    grown = reader.read()
    assert (grown.pending, grown.why) == ((), "")
    assert reader.base is not None and [run.outcome for run in reader.base.tests] == ["passed"]
    assert len(reader.seen or ()) == 8
    with path.open("ab") as file:
        file.write(b"".join([*answer(4, "uc2", call("c3")), prompt("a4.0", uuid="p2")]))
    assert reader.read().pending == ()  # the user spoke since


def test_compactions_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    writer = growing.Claude(4, rewinds=False, compactions=False)
    path.write_bytes(b"".join(writer.lines))
    reader = whole(path)
    for count in (1, 2):
        at = len(writer.lines)
        writer.compact()
        with path.open("ab") as file:
            file.write(b"".join(writer.lines[at:]))
        grown = reader.read()
        assert (grown.position.compactions, grown.why) == (count, "")
        assert reader.read().position.compactions == count


def test_the_position_is_replaced_not_changed(tmp_path: Path) -> None:
    reader = session(tmp_path / "s.jsonl", 4)
    before = replace(reader.position)  # type: ignore[type-var]
    reader.read()
    assert reader.position == before

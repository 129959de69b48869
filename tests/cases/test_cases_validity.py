"""What a validity check must find in the handed cases, with the lines named, and what a repair must give."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


@pytest.fixture
def case() -> Callable[..., Path]:
    def find(number: str, name: str = "input.jsonl") -> Path:
        found = sorted(CASES.glob(f"{number}-*/{name}"))
        if not found:
            pytest.skip("the handed cases (../shared/cases) are not here")
        return found[0]

    return find


SHAPE = "odd_shape"
# (case, status, errors by line, warnings by line)
EXPECTED = [
    ("001", 1, [(4, "damaged_line")], []),
    ("003", 1, [(4, "nul_bytes")], []),
    ("005", 1, [(3, "lone_surrogate"), (4, "lone_surrogate")], []),
    ("007", 0, [], [(1, "byte_order_mark")]),
    (
        "010",
        1,
        [*((n, "not_an_object") for n in (1, 2, 3, 4)), (11, "empty_message")],
        [(9, "odd_shape"), (10, "odd_shape")],
    ),
    ("012", 0, [], []),
    ("013", 0, [], []),
    ("029", 0, [], []),
    ("031", 1, [(2, "orphan_call")], []),
    ("032", 0, [], []),
    ("035", 0, [], []),
    ("036", 1, [(5, "result_not_adjacent"), (6, "duplicate_call_id")], []),
    ("037", 0, [], []),
    ("040", 1, [(2, "blank_text"), (4, "blank_text"), (6, "blank_text")], []),
    ("043", 0, [], []),
    ("045", 1, [(2, "unsigned_thinking")], []),
    ("051", 0, [], []),
    ("056", 1, [(7, "dangling_parent")], [(5, "dangling_parent")]),
    ("058", 0, [], []),
    ("059", 0, [], []),
    ("061", 0, [], []),
    ("062", 0, [], []),
    ("064", 1, [(1, "parent_cycle"), (5, "parent_cycle")], []),
    ("066", 1, [(2, "orphan_call")], []),
]


def by_line(result: Any, level: str) -> list[tuple[int, str]]:
    return [(f["line"], f["code"]) for f in result["findings"] if f["level"] == level]


@pytest.mark.parametrize(("number", "status", "errors", "warnings"), EXPECTED, ids=[e[0] for e in EXPECTED])
def test_found(number: str, status: int, errors: Any, warnings: Any, case: Any, within: Any) -> None:
    done = within("check", "--json", case(number))
    assert done.status == status
    assert done.result["valid"] is (status == 0)
    assert by_line(done.result, "error") == errors
    assert by_line(done.result, "warning") == warnings


@pytest.fixture
def repaired(case: Any, within: Any, folder: Path) -> Callable[[str], list[dict[str, Any]]]:
    def run(number: str) -> list[dict[str, Any]]:
        source, out = case(number), folder / "out.jsonl"
        before = source.read_bytes()
        assert within("check", "--repair", "--force", "-o", out, source).status == 0
        assert source.read_bytes() == before
        data = out.read_bytes()
        assert data.endswith(b"\n") and b"\x00" not in data and b"\r" not in data
        assert within("check", out).status == 0
        assert within("check", "--repair", "--force", "-o", folder / "again.jsonl", out).status == 0
        assert (folder / "again.jsonl").read_bytes() == data
        kept = set(before.splitlines())
        records = [json.loads(line) for line in data.decode("utf-8", "strict").split("\n")[:-1]]
        assert sum(line in kept for line in data.splitlines()) >= len(records) - 6
        return records

    return run


def texts(records: list[dict[str, Any]]) -> str:
    return json.dumps(records, ensure_ascii=False)


def test_a_cut_line_costs_nothing_behind_it(repaired: Any) -> None:
    records = repaired("001")
    assert len(records) == 6 and "final answer" in texts(records)
    records = repaired("003")
    assert len(records) == 5 and "tail answer" in texts(records)


def test_surrogates_and_marks(repaired: Any) -> None:
    assert texts(repaired("005")).count("\N{REPLACEMENT CHARACTER}") == 2
    assert len(repaired("007")) == 4


def test_a_partial_batch_is_answered_right_behind_it(repaired: Any) -> None:
    records = repaired("031")
    at = next(i for i, r in enumerate(records) if r.get("tool_calls"))
    assert {r["tool_call_id"] for r in records[at + 1 : at + 4]} == {"p1", "p2", "p3"}
    assert all(r["role"] != "tool" for r in records[at + 4 :])


def test_late_and_reused_ids(repaired: Any) -> None:
    records = repaired("036")
    ids = [c["id"] for r in records for c in r.get("tool_calls", ())]
    results = [r["tool_call_id"] for r in records if r["role"] == "tool"]
    assert len(set(ids)) == len(ids) == 3 and ids == results
    assert [r["role"] for r in records[1:4]] == ["assistant", "tool", "tool"]
    assert [r["content"] for r in records if r["role"] == "tool"] == ["A done", "B done", "A again"]
    assert any(r["content"] == "hold on" for r in records)


def test_no_blank_text_is_left(repaired: Any) -> None:
    records = repaired("040")
    for record in records:
        content = record["message"]["content"]
        assert content.strip() if isinstance(content, str) else content
        assert all(b["type"] != "text" or b["text"].strip() for b in content if isinstance(b, dict))
    assert texts(records).count("toolu_e1") == 2


def test_cut_thinking_goes_with_its_record(repaired: Any) -> None:
    records = repaired("045")
    first, again, answer = records
    assert again["parentUuid"] == first["uuid"] and "try again" in texts([again])
    assert answer["parentUuid"] == again["uuid"]


@pytest.mark.parametrize("number", ["056", "064"])
def test_the_chain_leads_back_to_the_first(number: str, repaired: Any, case: Any) -> None:
    records = repaired(number)
    assert len(records) == len(case(number).read_bytes().splitlines())
    parents = {r["uuid"]: r.get("parentUuid") for r in records}
    for record in records:
        assert record.get("logicalParentUuid") is None or record["logicalParentUuid"] in parents
        node, steps = record["uuid"], 0
        while node is not None:
            node, steps = parents[node], steps + 1
            assert steps <= len(records)


def test_the_live_branch_gets_its_answer(repaired: Any) -> None:
    records = repaired("066")
    u5 = next(r for r in records if r["uuid"].startswith("00000005"))
    assert u5["message"]["content"][0]["tool_use_id"] == "toolu_b1"
    assert len(records) == 6


def test_what_a_pending_call_waits_for_makes_it_whole(case: Any, within: Any, folder: Path) -> None:
    path = folder / "joined.jsonl"
    path.write_bytes(case("035").read_bytes() + case("035", "followup.jsonl").read_bytes())
    result = within("check", "--json", path).result
    assert result["valid"] and result["findings"] == []


@pytest.mark.parametrize(("name", "status"), [("empty.jsonl", 6), ("blank.jsonl", 6), ("allbad.jsonl", 3)])
def test_empty_blank_and_bad(name: str, status: int, case: Any, within: Any) -> None:
    assert within("check", case("008", name)).status == status


@pytest.mark.parametrize("name", ["system-only.jsonl", "system-list.jsonl", "empty-user.jsonl"])
def test_edges_of_chats(name: str, case: Any, within: Any) -> None:
    assert within("check", case("055", name)).status == 0

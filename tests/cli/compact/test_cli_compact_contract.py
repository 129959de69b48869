"""The contract gate of `ctxctl compact`: what is declared must still be there, or nothing is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def contract(folder: Path) -> Any:
    def write(*clauses: str, kind: str = "artifacts") -> None:
        rows = "".join(f"    - {clause}\n" for clause in clauses)
        (folder / ".ctxctl.yaml").write_text(f"contract:\n  {kind}:\n{rows}")

    return write


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


def test_what_is_still_there(compact: Any, session: Any, folder: Path, contract: Any) -> None:
    contract("{name: task, text: Make the parser fast}", "{name: source, file: s.jsonl}", "{name: part, id: part_11}")
    done = compact("--to", "30%", "-o", "o.jsonl", "--json", session())
    found = done.result()
    assert done.code == 0 and [(v["name"], v["kind"], v["ok"]) for v in found["validators"]] == [
        ("task", "text", True),
        ("source", "file", True),
        ("part", "id", True),
    ]
    assert "agent_ledger.jsonl" in found["written"]
    rows = [json.loads(line) for line in (folder / "agent_ledger.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows] == ["task", "source", "part"]
    assert all(row["schema"] == "ctxctl.ledger/1" and row["recall_id"] == found["recall_id"] for row in rows)


@pytest.mark.parametrize("way", [("-o", "o.jsonl"), ("--in-place",), ("-o", "-")])
def test_a_required_artifact_that_is_missing(way: Any, compact: Any, session: Any, folder: Path, contract: Any) -> None:
    contract("{name: detail, text: 'value_0_80 = compute_0(80)'}")
    path = session()
    original = path.read_bytes()
    done = compact("--to", "10%", *way, path)
    assert done.code == 1 and path.read_bytes() == original
    assert names(folder) == ["agent_audit.jsonl", "agent_ledger.jsonl", "s.jsonl"]  # only what became of it is noted
    (row,) = [json.loads(line) for line in (folder / "agent_ledger.jsonl").read_text().splitlines()]
    assert row["ok"] is False and row["required"] is True and row["recall_id"] is None
    assert done.err.splitlines()[0].startswith(f"failed: {path}: text 'detail': not in the window: 'value_0_80 = ")
    assert "nothing was written" in done.err
    assert done.out == "" if "-" in way else "the contract does not hold" in done.out


def test_its_json_is_the_same_object(compact: Any, session: Any, contract: Any) -> None:
    contract("{name: detail, text: 'value_0_80 = compute_0(80)'}")
    done = compact("--to", "10%", "-o", "o.jsonl", "--json", session())
    found = done.result()
    assert done.code == 1 and found["output"] is None and found["recall_id"] is None
    assert found["validators"][0]["ok"] is False and found["written"] == ["agent_ledger.jsonl", "agent_audit.jsonl"]


def test_an_optional_one_warns(compact: Any, session: Any, folder: Path, contract: Any) -> None:
    contract("{name: detail, text: 'value_0_80 = compute_0(80)', required: false}")
    done = compact("--to", "10%", "-o", "o.jsonl", session())
    assert done.code == 0 and "detail" in done.out and (folder / "o.jsonl").exists()
    assert "the contract does not hold" not in done.out
    (row,) = [json.loads(line) for line in (folder / "agent_ledger.jsonl").read_text().splitlines()]
    assert row["ok"] is False and row["required"] is False


def test_a_validator_sees_the_output(compact: Any, session: Any, folder: Path, contract: Any) -> None:
    contract("{name: size, command: 'test $(wc -l < $CTXCTL_OUTPUT) -gt 3'}", kind="validators")
    assert compact("--to", "10%", "-o", "o.jsonl", session()).code == 0
    contract("{name: size, command: 'echo too short; test $(wc -l < $CTXCTL_OUTPUT) -gt 3000'}", kind="validators")
    done = compact("--to", "10%", "-o", "p.jsonl", folder / "s.jsonl")
    assert done.code == 1 and "too short" in done.out + done.err and not (folder / "p.jsonl").exists()


def test_the_ledger_goes_to_the_state_folder(compact: Any, session: Any, folder: Path, contract: Any) -> None:
    contract("{name: task, text: Make the parser fast}")
    (folder / "st").mkdir()
    found = compact("--to", "30%", "-o", "o.jsonl", "--state-dir", "st", "--json", session()).result()
    assert str(Path("st") / "agent_ledger.jsonl") in found["written"] and "agent_ledger.jsonl" not in names(folder)


def test_a_dry_run_checks_nothing_and_writes_nothing(compact: Any, session: Any, contract: Any, snapshot: Any) -> None:
    contract("{name: touch, command: 'touch made'}", kind="validators")
    path = session()
    before = snapshot()
    assert compact("--to", "30%", "--dry-run", path).code == 0 and snapshot() == before


def test_a_contract_that_says_nothing_of_sense(compact: Any, session: Any, contract: Any, snapshot: Any) -> None:
    contract("{name: odd, regex: '('}")
    path = session()
    before = snapshot()
    done = compact("--to", "30%", "-o", "o.jsonl", path)
    assert (done.code, done.out) == (4, "") and "artifacts" in done.err
    assert re.search(r"\.ctxctl\.yaml:\d", done.err) and snapshot() == before

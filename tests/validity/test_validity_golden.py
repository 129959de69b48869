"""One file per case in `golden/`: lines, what is found in them, what is done, and the lines that come of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.validity.check import check
from ctxctl.validity.findings import CODES
from ctxctl.validity.repair import repair

CASES = sorted((Path(__file__).parent / "golden").glob("*.json"))


def place(line: int | None, number: int | None) -> str:
    return f"{line or '-'}{'' if number is None else f'.{number}'}"


def load(path: Path) -> tuple[dict[str, Any], bytes]:
    case = json.loads(path.read_text(encoding="utf-8"))
    # one character per byte, so that a case can hold what is not UTF-8
    return case, "\n".join(case["input"]).encode("latin-1")


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_found_and_repaired(path: Path, tmp_path: Path) -> None:
    case, data = load(path)
    file = tmp_path / "t.jsonl"
    file.write_bytes(data)
    checked = check(str(file), format_name=case["format"])
    found = [" ".join(filter(None, (place(f.line, f.number), f.level, f.code, f.id))) for f in checked.findings]
    assert found == case["found"]
    assert checked.valid is case["valid"] is not any(f.level == "error" for f in checked.findings)
    with repair(str(file), format_name=case["format"]) as done:
        out = Path(done.path).read_bytes()
        assert [f"{place(r.line, r.number)} {r.code}" for r in done.repairs] == case["repairs"]
        assert done.after.valid
    assert out == (data if case["output"] is None else "\n".join(case["output"]).encode())
    assert file.read_bytes() == data


def test_every_code_has_a_meaning_and_most_have_a_case() -> None:
    seen = {entry.split()[2] for path in CASES for entry in load(path)[0]["found"]}
    assert seen <= CODES.keys()
    assert CODES.keys() - seen <= {"missing_id", "parent_after_child", "empty_message"}

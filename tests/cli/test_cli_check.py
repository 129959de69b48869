"""`ctxctl check` as users run it: payload, notes and status apart; a repair writes where it was told, nowhere else."""

from __future__ import annotations

import gzip
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = b'{"role":"user","content":"go"}\n{"role":"assistant","content":"done"}\n'
CALL = b'{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}\n'
BAD = b'{"role":"user","content":"go"}\n' + CALL + b'{"role":"user","content":"and?"}\n'


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


def test_a_valid_file(ctxctl: Any, put: Any) -> None:
    done = ctxctl("check", put("t.jsonl", GOOD))
    assert done.code == 0 and done.err == ""
    assert "valid" in done.out and "yes" in done.out


def test_an_invalid_file(ctxctl: Any, put: Any) -> None:
    done = ctxctl("check", put("t.jsonl", BAD))
    assert done.code == 1 and done.err == ""
    assert "line 2" in done.out and "orphan_call" in done.out
    assert "ctxctl check --repair -o" in done.out


def test_json_keeps_its_names(ctxctl: Any, put: Any) -> None:
    done = ctxctl("check", "--json", put("t.jsonl", BAD))
    assert done.code == 1
    assert done.json()["schema"] == "ctxctl.check/1"
    result = done.result()
    assert result["valid"] is False and result["repairable"] is True
    (finding,) = result["findings"]
    assert (finding["code"], finding["level"], finding["line"], finding["id"]) == ("orphan_call", "error", 2, "a")
    names = {"records", "calls", "results", "orphan_calls", "orphan_results", "dangling_parents", "duplicates", "torn"}
    assert names <= result["counts"].keys()
    assert result["counts"]["calls"] == 1 and result["counts"]["orphan_calls"] == 1


def test_warnings_alone_are_valid(ctxctl: Any, put: Any) -> None:
    done = ctxctl("check", "--json", put("t.jsonl", GOOD + b'{"role":"us'))
    assert done.code == 0
    assert done.result()["valid"] is True and done.result()["counts"]["torn"] == 1


def test_stdin(ctxctl: Any) -> None:
    assert ctxctl("check", "--json", stdin=BAD).code == 1
    assert ctxctl("check", "-", stdin=GOOD).code == 0


def test_several_files(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    put("d/good.jsonl", GOOD), put("d/bad.jsonl", BAD)
    done = ctxctl("check", "--json", tmp_path / "d")
    assert done.code == 1
    result = done.result()
    assert [Path(f["path"]).name for f in result["files"]] == ["bad.jsonl", "good.jsonl"]
    assert result["total"]["valid"] == 1 and result["total"]["invalid"] == 1
    lines = ctxctl("check", "--output-format", "jsonl", tmp_path / "d").out.splitlines()
    assert [json.loads(line)["result"]["valid"] for line in lines] == [False, True]
    text = ctxctl("check", tmp_path / "d")
    assert "2 transcripts checked: 1 valid, 1 not" in text.out


def test_status_of_what_can_not_be_read(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    assert ctxctl("check", put("e.jsonl", b"")).code == 6
    assert ctxctl("check", tmp_path / "none.jsonl").code == 3
    assert ctxctl("check", put("x.jsonl", b'{"a":\n{"b":\n')).code == 3
    assert ctxctl("check", "--from", "nonsense", put("t.jsonl", GOOD)).code == 2


def test_csv_and_markdown(ctxctl: Any, put: Any) -> None:
    done = ctxctl("check", "--output-format", "csv", put("t.jsonl", BAD))
    assert done.out.splitlines()[0] == "path,line,number,level,code,message,id"
    assert ",2,,error,orphan_call," in done.out
    assert "orphan_call" in ctxctl("check", "--output-format", "markdown", put("t.jsonl", BAD)).out


def test_repair_needs_an_output(ctxctl: Any, put: Any) -> None:
    done = ctxctl("check", "--repair", put("my t.jsonl", BAD))
    assert done.code == 2 and done.out == ""
    assert "-o FILE" in done.err and "my t.repaired.jsonl'" in done.err


def test_repair_takes_one_file(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    put("d/good.jsonl", GOOD)
    assert ctxctl("check", "--repair", "-o", tmp_path / "o.jsonl", tmp_path / "d").code == 2
    assert not (tmp_path / "o.jsonl").exists()


def test_repair_writes_and_lists(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    path, out = put("t.jsonl", BAD), tmp_path / "o.jsonl"
    os.chmod(path, 0o600)
    before = sorted(p.name for p in tmp_path.iterdir())
    done = ctxctl("check", "--repair", "-o", out, path)
    assert done.code == 0
    assert "orphan_call" in done.out and f"wrote {out}" in done.err
    assert path.read_bytes() == BAD
    lines = out.read_bytes().splitlines(keepends=True)
    assert lines[:2] + lines[3:] == BAD.splitlines(keepends=True)
    assert json.loads(lines[2])["tool_call_id"] == "a"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*before, "o.jsonl"])
    assert ctxctl("check", out).code == 0


def test_repair_in_json(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    done = ctxctl("check", "--repair", "--json", "-o", out, put("t.jsonl", BAD))
    assert done.code == 0
    result = done.result()
    assert result["valid"] is False and result["repaired"]["valid"] is True
    assert [(r["code"], r["line"]) for r in result["repairs"]] == [("orphan_call", 2)]
    assert result["written"] == [str(out)]
    assert "t.jsonl:2: the call got an error result" in done.err


def test_repair_replaces_nothing(ctxctl: Any, put: Any) -> None:
    path, other = put("t.jsonl", BAD), put("o.jsonl", b"mine")
    assert ctxctl("check", "--repair", "-o", other, path).code == 2
    assert ctxctl("check", "--repair", "--force", "-o", path, path).code == 2
    assert other.read_bytes() == b"mine" and path.read_bytes() == BAD
    assert ctxctl("check", "--repair", "--force", "-o", other, path).code == 0


def test_repair_of_nothing(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    done = ctxctl("check", "--repair", "-o", out, put("t.jsonl", GOOD))
    assert done.code == 0 and "nothing to repair" in done.err
    assert out.read_bytes() == GOOD


def test_repair_that_leaves_nothing(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    lone = b'{"role":"tool","tool_call_id":"a","content":"ok"}\n'
    done = ctxctl("check", "--repair", "-o", out, put("t.jsonl", lone))
    assert done.code == 3 and "leave nothing" in done.err and not out.exists()


def test_repair_of_a_compressed_file_and_of_stdin(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    assert ctxctl("check", "--repair", "-o", out, put("t.jsonl.gz", gzip.compress(BAD))).code == 0
    packed = out.read_bytes()
    assert ctxctl("check", "--repair", "--force", "-o", out, "-", stdin=BAD).code == 0
    assert out.read_bytes() == packed


def test_a_pretty_document_keeps_its_form(ctxctl: Any, put: Any, tmp_path: Path) -> None:
    record = {"trajectory_format": "mini-swe-agent-1", "messages": [json.loads(line) for line in BAD.splitlines()]}
    out = tmp_path / "o.traj.json"
    path = put("t.traj.json", json.dumps(record, indent=2).encode())
    done = ctxctl("check", "--json", path)
    assert done.code == 1 and done.result()["findings"][0]["number"] == 2
    assert ctxctl("check", "--repair", "-o", out, path).code == 0
    assert out.read_text().startswith('{\n  "trajectory_format"')
    assert [m["role"] for m in json.loads(out.read_text())["messages"]] == ["user", "assistant", "tool", "user"]


def test_help_names_the_status(ctxctl: Any) -> None:
    done = ctxctl("check", "--help")
    assert done.code == 0 and "--repair" in done.out

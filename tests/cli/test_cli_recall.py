"""`ctxctl recall`: what a compaction took out, and the original byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.state.recall import RecallStore
from ctxctl.state.recall_file import store_beside

Run = Callable[..., Any]
SECRET = "ghp_" + "A1b2" * 9
ORIGINAL = b'\xef\xbb\xbf{"n":1}\r\n' + b"bad \xff\n" * 1000 + b"torn"
SMALL = b'{"n":1}\n'
BLOCKS = (
    ("1.0", 1, "user_message", None, None, "migrate from axios to fetch"),
    ("2.0", 2, "tool_call", "Read", "src/app.ts", '{"file_path":"src/app.ts"}'),
    ("3.0", 3, "tool_result", "Read", "src/app.ts", "import axios from 'axios'\r\nend\n"),
    ("4.0", 4, "tool_result", "Bash", f"TOKEN={SECRET} npm test", f"token {SECRET} \x1b[31mred \ud83d failed"),
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A compacted transcript with its store beside it."""
    path = tmp_path / "small.jsonl"
    compacted(path, ORIGINAL, SMALL)
    return path


def compacted(path: Path, original: bytes, output: bytes, now: str = "2026-11-30T10:15:00Z") -> None:
    path.write_bytes(output)
    with RecallStore(store_beside(path), mode_of=str(path)) as store:
        store.begin(source="/w/big.jsonl", format="claude-code", transcript_id="s1", strategy="tool-results", now=now)
        store.original([original])
        for id_, line, kind, tool, target, text in BLOCKS:
            store.block(
                id=id_,
                line=line,
                kind=kind,
                tool=tool,
                target=target,
                turn=line,
                tokens=1234,
                reason="old",
                text=text,
                call_id=f"toolu_{line}",
            )
        store.commit(str(path), hashlib.sha256(output).hexdigest())


@pytest.mark.parametrize("which", ["small.jsonl", "small.jsonl.recall.db", None])
def test_what_there_is(ctxctl: Run, small: Path, which: str | None) -> None:
    done = ctxctl("recall", *([which] if which else []))
    assert (done.code, done.err) == (0, "")
    assert "4 blocks in 1 compaction" in done.out and "1,234" in done.out and "src/app.ts" in done.out
    assert SECRET not in done.out and "migrate" not in done.out
    assert done.out == ctxctl("recall", *([which] if which else []), "--list").out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--id", "3.0"), ["3.0"]),
        (("--id", "toolu_2"), ["2.0"]),
        (("--line", "2-3"), ["3.0", "2.0"]),
        (("--path", "app.ts"), ["3.0", "2.0"]),
        (("--tool", "bash"), ["4.0"]),
        (("--text", "axios"), ["3.0", "1.0"]),
        (("--text", 'axios "to fetch"'), ["1.0"]),
        (("--text", "axios", "--limit", "1"), ["3.0"]),
        (("--list", "--limit", "3"), ["4.0", "3.0", "2.0"]),
    ],
    ids=str,
)
def test_what_is_asked_for(ctxctl: Run, small: Path, options: tuple[str, ...], expected: list[str]) -> None:
    done = ctxctl("recall", small, "--json", *options)
    assert (done.code, done.err) == (0, "")
    assert done.json()["schema"] == "ctxctl.recall/1"
    result = done.result()
    assert [block["block"] for block in result["blocks"]] == expected
    assert result["shown"] == len(expected) <= result["found"]
    assert all(("text" in block) == ("--list" not in options) for block in result["blocks"])
    assert result["runs"][0]["sha256"] == hashlib.sha256(ORIGINAL).hexdigest()
    shown = ctxctl("recall", small, *options).out
    assert all(id_ in shown for id_ in expected)


def test_texts_are_sanitised_unless_raw(ctxctl: Run, small: Path) -> None:
    pytest.importorskip("ctxctl.guard.sanitize")
    plain, as_json = ctxctl("recall", small, "--id", "4.0"), ctxctl("recall", small, "--id", "4.0", "--json")
    for done in (plain, as_json):
        assert done.code == 0 and SECRET not in done.out and "[credential-redacted]" in done.out
    assert "\x1b" not in plain.out
    raw = ctxctl("recall", small, "--id", "4.0", "--raw")
    assert raw.raw == f"token {SECRET} \x1b[31mred ? failed".encode()
    assert ctxctl("recall", small, "--id", "3.0", "--raw").raw == b"import axios from 'axios'\r\nend\n"
    assert SECRET in ctxctl("recall", small, "--id", "4.0", "--raw", "--json").result()["blocks"][0]["text"]


def test_to_a_file(ctxctl: Run, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    done = ctxctl("recall", small, "--id", "3.0", "--raw", "-o", out)
    assert (done.code, done.out) == (0, "") and "wrote" in done.err
    assert out.read_bytes() == b"import axios from 'axios'\r\nend\n"
    assert ctxctl("recall", small, "--id", "3.0", "-o", out).code == 2
    assert ctxctl("recall", small, "--id", "3.0", "-o", store_beside(small), "--force").code == 2
    assert ctxctl("recall", small, "--id", "3.0").code == 0


@pytest.mark.parametrize("option", [("--id", "9.9"), ("--text", "nothing*here zz"), ("--path", "x.py"), ("--run", "r")])
def test_nothing_fits(ctxctl: Run, small: Path, option: tuple[str, str]) -> None:
    done = ctxctl("recall", small, *option)
    assert (done.code, done.out) == (6, "")
    assert done.err.startswith("error: ") and "\nhint: " in done.err
    error = json.loads(ctxctl("recall", small, "--json", *option).err)["error"]
    assert error["code"] == "nothing_found"


@pytest.mark.parametrize(
    "options",
    [
        ("--text", '"'),
        ("--text", ""),
        ("--line", "0"),
        ("--line", "5-2"),
        ("--line", "x"),
        ("--id", " "),
        ("--in-place",),
        ("--undo",),
        ("--undo", "--in-place", "-o", "x"),
        ("--undo", "-o", "x", "--id", "1.0"),
        ("--undo", "-o", "small.jsonl"),
        ("--undo", "-o", "small.jsonl.recall.db", "--force"),
    ],
    ids=str,
)
def test_what_makes_no_sense(ctxctl: Run, small: Path, options: tuple[str, ...]) -> None:
    done = ctxctl("recall", small, *options)
    assert (done.code, done.out) == (2, "") and "\nhint: " in done.err
    assert small.read_bytes() == SMALL


def test_without_a_store(ctxctl: Run, tmp_path: Path, small: Path) -> None:
    other = tmp_path / "other.jsonl"
    assert ctxctl("recall", other).code == 3
    other.write_bytes(SMALL)
    done = ctxctl("recall", other, "--undo", "-o", "x")
    assert done.code == 6 and "no recall store beside it" in done.err and "--no-recall" in done.err
    Path(f"{other}.bak").write_bytes(ORIGINAL)
    done = ctxctl("recall", other)
    assert done.code == 6 and f"{other}.bak" in done.err and "cp " in done.err
    store_beside(other).write_bytes(b"something else")
    assert ctxctl("recall", other).code == 3
    assert ctxctl("recall", store_beside(other)).code == 3
    assert ctxctl("recall").code == 2
    store_beside(other).unlink()
    store_beside(small).unlink()
    assert ctxctl("recall").code == 6


def test_undo_to_a_file(ctxctl: Run, small: Path, tmp_path: Path) -> None:
    small.chmod(0o600)
    out = tmp_path / "big.jsonl"
    done = ctxctl("recall", small, "--undo", "-o", out)
    assert (done.code, done.out) == (0, "") and "wrote" in done.err
    assert out.read_bytes() == ORIGINAL and small.read_bytes() == SMALL
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert ctxctl("recall", small, "--undo", "-o", out).code == 2
    result = ctxctl("recall", store_beside(small), "--undo", "-o", out, "--force", "--json").result()
    assert result["written"] == [str(out)] and result["bytes"] == len(ORIGINAL) and not result["changed_since"]
    small.write_bytes(SMALL + SMALL)
    done = ctxctl("recall", small, "--undo", "-o", out, "--force")
    assert done.code == 0 and "changed since" in done.err and out.read_bytes() == ORIGINAL


def test_undo_in_place_keeps_mode_link_and_a_backup(ctxctl: Run, small: Path, tmp_path: Path) -> None:
    small.chmod(0o640)
    link = tmp_path / "links" / "link.jsonl"
    link.parent.mkdir()
    link.symlink_to(small)
    result = ctxctl("recall", link, "--undo", "--in-place", "--json").result()
    backup = Path(result["backup"])
    assert link.is_symlink() and small.read_bytes() == ORIGINAL and stat.S_IMODE(small.stat().st_mode) == 0o640
    assert backup.read_bytes() == SMALL and stat.S_IMODE(backup.stat().st_mode) == 0o640
    assert result["written"] == [str(link), str(backup)]
    again = ctxctl("recall", small, "--undo", "--in-place")
    assert again.code == 0 and "original already" in again.err
    assert not list(tmp_path.glob("*.bak*"))


def test_undo_in_place_refuses_what_was_changed(ctxctl: Run, small: Path, tmp_path: Path) -> None:
    small.write_bytes(SMALL + b'{"n":2}\n')
    done = ctxctl("recall", small, "--undo", "--in-place")
    assert done.code == 2 and "changed since" in done.err and "--force" in done.err
    assert small.read_bytes() == SMALL + b'{"n":2}\n'
    for number in range(2):
        done = ctxctl("recall", small, "--undo", "--in-place", "--force")
        assert done.code == 0 and small.read_bytes() == ORIGINAL, number
        small.write_bytes(b"more %d" % number)
    names = sorted(p.name for p in tmp_path.glob("*.bak*"))
    assert names == ["small.jsonl.bak", "small.jsonl.bak1"]
    assert (tmp_path / names[0]).read_bytes() == SMALL + b'{"n":2}\n'
    done = ctxctl("recall", store_beside(small), "--undo", "--in-place")
    assert done.code == 2 and "not its store" in done.err


@pytest.mark.skipif(not os.path.isdir("/proc/self/fdinfo"), reason="the system does not tell who writes")
def test_undo_in_place_refuses_what_is_open_for_writing(ctxctl: Run, small: Path) -> None:
    with open(small, "ab"):
        done = ctxctl("recall", small, "--undo", "--in-place")
        assert done.code == 2 and "open for writing" in done.err and small.read_bytes() == SMALL
    assert ctxctl("recall", small, "--undo", "--in-place").code == 0


def test_undo_goes_back_step_by_step(ctxctl: Run, small: Path) -> None:
    compacted(small, SMALL, b"smaller\n", now="2026-11-30T11:00:00Z")
    assert ctxctl("recall", small, "--undo", "--in-place").code == 0
    assert small.read_bytes() == SMALL
    assert ctxctl("recall", small, "--undo", "--in-place").code == 0
    assert small.read_bytes() == ORIGINAL
    runs = ctxctl("recall", small, "--json").result()["runs"]
    assert [run["time"][11:13] for run in runs] == ["11", "10"]
    out = small.with_name("first.jsonl")
    assert ctxctl("recall", small, "--undo", "--run", runs[0]["recall_id"], "-o", out).code == 0
    assert out.read_bytes() == SMALL


def test_a_damaged_original_is_never_written(ctxctl: Run, small: Path, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(store_beside(small)) as connection:
        connection.execute("UPDATE runs SET sha256 = ?", ("0" * 64,))
    connection.close()
    before = sorted(os.listdir(tmp_path))
    done = ctxctl("recall", small, "--undo", "-o", tmp_path / "x.jsonl")
    assert done.code == 3 and "damaged" in done.err
    assert sorted(os.listdir(tmp_path)) == before
    assert ctxctl("recall", small, "--undo", "--in-place").code == 3
    assert small.read_bytes() == SMALL


def test_help_has_examples(ctxctl: Run) -> None:
    done = ctxctl("recall", "--help")
    assert done.code == 0 and "ctxctl recall small.jsonl" in done.out.partition("Example")[2]

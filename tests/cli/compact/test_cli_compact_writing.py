"""Where `ctxctl compact` writes, and what it leaves alone: outputs, in place, history, several inputs, live files."""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import zstandard

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name != ".git")


def test_to_a_file(compact: Any, session: Any, folder: Path) -> None:
    path = session()
    path.chmod(0o640)
    original = path.read_bytes()
    done = compact("--to", "30%", "-o", "out.jsonl", "--json", path)
    found = done.result()
    assert done.code == 0 and done.err == "" and path.read_bytes() == original
    assert names(folder) == ["agent_audit.jsonl", "out.jsonl", "out.jsonl.recall.db", "s.jsonl"]
    written = ["out.jsonl", "out.jsonl.recall.db", "agent_audit.jsonl"]
    assert found["output"] == "out.jsonl" and found["written"] == written
    assert found["proved"] is True and found["after_tokens"] <= found["target"]
    assert mode(folder / "out.jsonl") & 0o027 == 0 and mode(folder / "out.jsonl.recall.db") & 0o027 == 0
    data = (folder / "out.jsonl").read_bytes()
    assert data.endswith(b"\n") and b"\r" not in data and all(json.loads(line) for line in data.splitlines())
    assert compact("out.jsonl", command="check").code == 0
    again = compact("--to", str(found["target"]), "-o", "again.jsonl", "--json", "out.jsonl").result()
    assert again["changed"] is False and (folder / "again.jsonl").read_bytes() == data
    assert again["written"] == ["again.jsonl"]


def test_the_original_comes_back(compact: Any, session: Any, folder: Path) -> None:
    path = session()
    assert compact("--to", "10%", "-o", "out.jsonl", path).code == 0
    assert compact("--undo", "out.jsonl", "-o", "back.jsonl", command="recall").code == 0
    assert (folder / "back.jsonl").read_bytes() == path.read_bytes()
    found = compact("--json", "--text", "value_3_0", "out.jsonl", command="recall")
    assert found.code == 0 and "value_3_0" in found.out


def test_without_recall_and_audit_nothing_is_beside_it(compact: Any, session: Any, folder: Path, texts: Any) -> None:
    done = compact("--to", "30%", "--no-recall", "--no-audit", "--json", "-o", "out.jsonl", session())
    assert done.result()["recall_id"] is None and names(folder) == ["out.jsonl", "s.jsonl"]
    assert not any("recall" in text for text in texts(folder / "out.jsonl"))


def test_to_a_folder(compact: Any, session: Any, folder: Path) -> None:
    (folder / "d").mkdir()
    found = compact("--to", "30%", "-o", "d", "--json", session()).result()
    output = folder / found["output"]
    assert output.parent.name == "d" and UUID.fullmatch(output.stem) and output.suffix == ".jsonl"
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert {r["sessionId"] for r in records if "sessionId" in r} == {output.stem} == {found["session_id"]}
    found = compact("--to", "30%", "-o", "d", "--json", session("chat.jsonl", chat=True)).result()
    assert Path(found["output"]).name == "chat.compact.jsonl"
    again = compact("--to", "30%", "-o", "d", folder / "chat.jsonl")
    assert again.code == 2 and "exists" in again.err


def test_to_stdout(compact: Any, session: Any, folder: Path, texts: Any) -> None:
    path = session("c.jsonl", chat=True)
    done = compact("--to", "30%", "-o", "-", "--no-audit", path)
    assert done.code == 0 and names(folder) == ["c.jsonl"]
    assert re.fullmatch(r".*c\.jsonl: [\d,]+ -> [\d,]+ tokens\n", done.err)
    assert texts(done.raw)[0] == texts(path)[0] and len(done.raw) < path.stat().st_size
    assert not any("ctxctl recall" in text for text in texts(done.raw))  # there is nothing to recall from
    quiet = compact("--to", "30%", "-q", "-o", "-", path)
    assert quiet.err == "" and quiet.raw == done.raw


def test_what_fits_goes_to_stdout_as_it_is(compact: Any, session: Any) -> None:
    path = session("c.jsonl", chat=True)
    assert compact("--to", "100%", "-o", "-", path).raw == path.read_bytes()


def test_a_target_that_is_missed_prints_no_transcript(compact: Any, session: Any) -> None:
    done = compact("--to", "3", "-o", "-", session())
    assert (done.code, done.out) == (5, "") and "can't be met" in done.err


@pytest.mark.parametrize("options", [("-o", "old.jsonl"), ("-o", "link.jsonl")])
def test_an_existing_file_stays_unless_forced(options: Any, compact: Any, session: Any, folder: Path) -> None:
    path = session()
    (folder / "old.jsonl").write_bytes(b"precious")
    (folder / "link.jsonl").symlink_to("old.jsonl")
    done = compact("--to", "30%", *options, path)
    assert (done.code, done.out) == (2, "") and f"{options[1]} exists\nhint: --force replaces it\n" in done.err
    assert (folder / "old.jsonl").read_bytes() == b"precious"
    assert compact("--to", "30%", "--force", *options, path).code == 0
    assert (folder / "old.jsonl").read_bytes() != b"precious" and (folder / "link.jsonl").is_symlink()


def test_a_link_to_nowhere_is_no_way_around(compact: Any, session: Any, folder: Path) -> None:
    (folder / "link.jsonl").symlink_to("gone/away.jsonl")
    done = compact("--to", "30%", "-o", "link.jsonl", session())
    assert done.code in (2, 3) and (folder / "link.jsonl").is_symlink()
    assert names(folder) == ["link.jsonl", "s.jsonl"]


def test_the_input_is_no_output(compact: Any, session: Any, folder: Path, snapshot: Any) -> None:
    path = session()
    (folder / "l.jsonl").symlink_to("s.jsonl")
    before = snapshot()
    for output in ("s.jsonl", "./s.jsonl", "l.jsonl"):
        done = compact("--to", "30%", "--force", "-o", output, path)
        assert (done.code, done.out) == (2, "") and "--in-place" in done.err
    assert snapshot() == before


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed(suffix: str, compact: Any, session: Any, folder: Path) -> None:
    pack = gzip.compress if suffix == ".gz" else zstandard.ZstdCompressor().compress
    plain = session()
    path = session(f"p.jsonl{suffix}", data=pack(plain.read_bytes()))
    done = compact("--to", "30%", "-o", f"out.jsonl{suffix}", "--json", path)
    assert done.code == 0, done.err
    written = (folder / f"out.jsonl{suffix}").read_bytes()
    data = gzip.decompress(written) if suffix == ".gz" else zstandard.ZstdDecompressor().stream_reader(written).read()
    assert len(data) > len(written) and data.endswith(b"\n")
    assert compact(f"out.jsonl{suffix}", command="check").code == 0
    assert compact("--undo", f"out.jsonl{suffix}", "-o", f"back.jsonl{suffix}", command="recall").code == 0
    assert (folder / f"back.jsonl{suffix}").read_bytes() == path.read_bytes()
    done = compact("--to", "30%", "--in-place", path)
    assert (done.code, done.out) == (2, "") and "packed" in done.err


def test_packed_without_a_suffix(compact: Any, session: Any, folder: Path) -> None:
    path = session("p.jsonl", data=gzip.compress(session().read_bytes()))
    assert compact("--to", "30%", "--in-place", path).code == 2
    assert compact("--to", "30%", "-o", "out.jsonl", path).code == 0
    assert compact("--undo", "out.jsonl", "-o", "back.gz", command="recall").code == 0
    assert (folder / "back.gz").read_bytes() == path.read_bytes()


def test_a_place_that_takes_no_files(compact: Any, session: Any, folder: Path) -> None:
    done = compact("--to", "30%", "-o", "/proc/out.jsonl", session())
    assert (done.code, done.out) == (3, "") and "/proc/out.jsonl: can't be written" in done.err
    assert names(folder) == ["s.jsonl"]


def test_a_folder_that_is_missing(compact: Any, session: Any, snapshot: Any) -> None:
    path = session()
    before = snapshot()
    done = compact("--to", "30%", "-o", "no/such/out.jsonl", path)
    assert (done.code, done.out) == (3, "") and done.err.startswith("error: no/such/out.jsonl: can't be written")
    assert snapshot() == before


@needs_rights
def test_a_folder_that_is_read_only(compact: Any, session: Any, folder: Path, snapshot: Any) -> None:
    path = session()
    (folder / "d").mkdir(mode=0o500)
    before = snapshot()
    done = compact("--to", "30%", "-o", "d/out.jsonl", path)
    assert (done.code, done.out) == (3, "") and "d/out.jsonl: can't be written" in done.err
    assert snapshot() == before


def test_in_place(compact: Any, session: Any, folder: Path) -> None:
    path = session()
    path.chmod(0o600)
    original = path.read_bytes()
    done = compact("--to", "30%", "--in-place", "--json", path)
    found = done.result()
    assert done.code == 0, done.err
    assert names(folder) == ["agent_audit.jsonl", "s.jsonl", "s.jsonl.bak", "s.jsonl.recall.db"]
    backup = folder / "s.jsonl.bak"
    assert backup.read_bytes() == original != path.read_bytes()
    assert all(mode(p) == 0o600 for p in (path, backup, folder / "s.jsonl.recall.db", folder / "agent_audit.jsonl"))
    written = ["s.jsonl", "s.jsonl.recall.db", "s.jsonl.bak", "agent_audit.jsonl"]
    assert [Path(p).name for p in found["written"]] == written
    assert Path(found["backup"]).name == "s.jsonl.bak" and compact(path, command="check").code == 0
    assert compact("--undo", path, "--in-place", command="recall").code == 0
    assert path.read_bytes() == original


def test_in_place_again_keeps_each_backup(compact: Any, session: Any, folder: Path) -> None:
    path = session()
    versions = [path.read_bytes()]
    for share in ("60%", "60%", "60%"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert compact("--to", share, "--in-place", path).code == 0
        versions.append(path.read_bytes())
    backups = [folder / "s.jsonl.bak", folder / "s.jsonl.bak1", folder / "s.jsonl.bak2"]
    assert [b.read_bytes() for b in backups] == versions[:3]


def test_in_place_through_a_link(compact: Any, session: Any, folder: Path) -> None:
    path = session("real/s.jsonl")
    path.chmod(0o600)
    (folder / "l.jsonl").symlink_to("real/s.jsonl")
    original = path.read_bytes()
    assert compact("--to", "30%", "--in-place", "l.jsonl").code == 0
    assert (folder / "l.jsonl").is_symlink() and os.readlink(folder / "l.jsonl") == "real/s.jsonl"
    assert path.read_bytes() != original and mode(path) == 0o600
    assert names(folder / "real") == ["s.jsonl", "s.jsonl.bak", "s.jsonl.recall.db"]


def test_in_place_what_fits_is_left_alone(compact: Any, session: Any, snapshot: Any) -> None:
    path = session()
    before = snapshot()
    done = compact("--to", "100%", "--in-place", path)
    assert done.code == 0 and "nothing: the window is within the target" in done.out
    assert snapshot() == before


def test_stdin_can_t_be_replaced(ctxctl: Any, session: Any) -> None:
    done = ctxctl("compact", "--to", "30%", "--in-place", stdin=session().read_bytes())
    assert (done.code, done.out) == (2, "") and "stdin can't be replaced" in done.err


def test_from_stdin(ctxctl: Any, session: Any, folder: Path) -> None:
    data = session().read_bytes()
    out = folder / "out.jsonl"
    done = ctxctl("compact", "--to", "30%", "-o", out, "--json", "-", stdin=data)
    assert done.code == 0 and done.result()["path"] == "-" and out.is_file()
    done = ctxctl("recall", "--undo", out, "-o", folder / "back.jsonl")
    assert done.code == 0 and (folder / "back.jsonl").read_bytes() == data
    piped = ctxctl("compact", "--to", "30%", "-o", "-", stdin=data)
    assert piped.code == 0 and len(piped.raw) < len(data) and "-: " in piped.err


def test_the_history_can_stay(compact: Any, session: Any, folder: Path) -> None:
    path = session()
    original = path.read_bytes()
    done = compact("--to", "30%", "--keep-history", "--in-place", "--json", path)
    assert done.code == 0, done.err
    assert path.read_bytes().startswith(original)
    assert compact(path, command="check").code == 0
    added = [json.loads(line) for line in path.read_bytes()[len(original) :].splitlines()]
    assert added[0]["subtype"] == "compact_boundary" and {r["sessionId"] for r in added} == {
        json.loads(original.splitlines()[0])["sessionId"]
    }


def test_the_history_of_a_chat_can_t_stay(compact: Any, session: Any, snapshot: Any) -> None:
    path = session("c.jsonl", chat=True)
    before = snapshot()
    done = compact("--to", "30%", "--keep-history", "-o", "out.jsonl", path)
    assert done.code in (2, 3) and done.out == "" and "--keep-history" in done.err
    assert snapshot() == before


def test_notes_go_to_the_state_folder(compact: Any, session: Any, folder: Path) -> None:
    (folder / "state").mkdir()
    options = ("--to", "20%", "-s", "notes", "--state-dir", "state", "--json")
    path = session(task="Decision: we use tabs because the linter wants them. Make the parser fast.")
    found = compact(*options, "-o", "out.jsonl", path).result()
    notes = folder / "state" / "agent_notes.md"
    if any(step["strategy"] == "notes" for step in found["steps"]) and notes.exists():
        assert str(Path("state") / "agent_notes.md") in found["written"]
        assert re.search(r"^## \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ", notes.read_text(), re.M)
    assert not (folder / "agent_notes.md").exists()


def test_several_need_to_be_told_where(compact: Any, session: Any, snapshot: Any) -> None:
    paths = [session("a.jsonl"), session("b.jsonl")]
    before = snapshot()
    done = compact("--to", "30%", "-o", "out.jsonl", *paths)
    assert (done.code, done.out) == (2, "") and "--in-place" in done.err
    assert snapshot() == before


def test_several_at_once(compact: Any, session: Any, folder: Path, snapshot: Any) -> None:
    paths = [session("a.jsonl"), session("b.jsonl", rounds=4), session("c.jsonl", chat=True)]
    before = snapshot()
    dry = compact("--to", "50%", "--dry-run", "--json", *paths).result()
    assert snapshot() == before
    done = compact("--to", "50%", "--in-place", "--json", *paths)
    found = done.result()
    assert done.code == 0
    for result in (dry, found):
        assert [e["path"] for e in result["files"]] == [str(p) for p in paths]
        assert result["total"]["files"] == 3 and result["total"]["failed"] == 0
        rows = [e["result"] for e in result["files"]]
        for key in ("before_tokens", "after_tokens"):
            assert result["total"][key] == sum(row[key] for row in rows)
    assert len([p for p in names(folder) if p.endswith(".bak")]) == 3
    text = compact("--to", "50%", "--dry-run", *paths)
    assert text.code == 0 and all(str(p) in text.out for p in paths)


def test_one_of_several_is_bad(compact: Any, session: Any, folder: Path) -> None:
    good, empty, other = session("a.jsonl"), session("b.jsonl", data=b""), session("c.jsonl", data=b"hello\nworld\n")
    done = compact("--to", "50%", "--in-place", "--json", good, empty, other)
    found = done.result()
    assert done.code == 3 and found["total"]["failed"] == 2
    assert [("error" in e) for e in found["files"]] == [False, True, True]
    assert empty.read_bytes() == b"" and other.read_bytes() == b"hello\nworld\n"
    assert "b.jsonl" in done.err and "c.jsonl" in done.err
    assert (folder / "a.jsonl.bak").exists()


def test_one_of_several_misses_the_target(compact: Any, session: Any) -> None:
    fits, misses = session("a.jsonl"), session("b.jsonl", task="word " * 3000)
    done = compact("--to", "2000", "--in-place", "--json", fits, misses)
    rows = [e["result"] for e in done.result()["files"]]
    assert done.code == 5 and [row["target_met"] for row in rows] == [True, False]
    assert "b.jsonl" in done.err and "a.jsonl" not in done.err


def test_a_folder(compact: Any, session: Any, folder: Path) -> None:
    session("d/a.jsonl")
    session("d/sub/b.jsonl", chat=True)
    session("d/notes.txt", data=b"x")
    session("d/other.json", data=b'{"a": 1}')
    found = compact("--to", "50%", "--dry-run", "--json", "d").result()
    assert [Path(e["path"]).name for e in found["files"]] == ["a.jsonl", "b.jsonl"]
    assert [Path(e["path"]).name for e in found["skipped"]] == ["other.json"]
    assert compact("--to", "50%", "--in-place", "d").code == 0
    again = compact("--to", "50%", "--dry-run", "--json", "d").result()  # backups and stores are no sessions
    assert [Path(e["path"]).name for e in again["files"]] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"", 6, "empty"),
        (b"\n \n\n", 6, "empty"),
        (b"just words\nof a letter\n", 3, ""),
        (b'{"a": 1}\n', 3, ""),
        (b"[]", 6, "0 messages"),
        (b'{"broken', 3, ""),
    ],
)
def test_what_is_no_session(data: bytes, code: int, said: str, compact: Any, session: Any, snapshot: Any) -> None:
    path = session(data=data)
    before = snapshot()
    for options in (("-o", "out.jsonl"), ("--in-place",), ("--dry-run",), ("-o", "-"), ("--dry-run", "--json")):
        done = compact("--to", "50%", *options, path)
        assert (done.code, done.out) == (code, ""), done.err
        assert said in done.err and "s.jsonl" in done.err
    assert snapshot() == before


def test_a_missing_file(compact: Any, folder: Path) -> None:
    done = compact("--to", "50%", "-o", "out.jsonl", "nowhere.jsonl")
    assert (done.code, done.out) == (3, "") and done.err.startswith("error: nowhere.jsonl: no such file\nhint: ")
    assert names(folder) == []

"""The notes file: its form, appending, and reading what others wrote."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import InputError
from ctxctl.model.edits import Note
from ctxctl.state.notes import Entry, append_notes, read_notes

NOW = "2026-11-30T10:15:00.123Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent_notes.md"


def test_the_form(path: Path) -> None:
    written = append_notes(path, [Note("decision", "use fetch\n\nbecause node has it"), Note("Done", "step 1")], NOW)
    assert written == 2
    assert path.read_text() == (
        "## [2026-11-30 10:15:00] DECISION\n\nuse fetch\n\nbecause node has it\n\n---\n\n"
        "## [2026-11-30 10:15:00] DONE\n\nstep 1\n\n---\n"
    )
    assert append_notes(path, [Note("ARCH_DECISION", "two queues")], "2026-11-30 10:16:00") == 1
    assert read_notes(path) == (
        Entry("2026-11-30 10:15:00", "decision", "use fetch\n\nbecause node has it", 1),
        Entry("2026-11-30 10:15:00", "done", "step 1", 9),
        Entry("2026-11-30 10:16:00", "ARCH_DECISION", "two queues", 15),
    )


def test_what_is_there_is_not_written_twice(path: Path) -> None:
    notes = [
        Note("decision", "use fetch"),
        Note("decision", " use fetch\n"),
        Note("done", "use fetch"),
        Note("plan", " "),
    ]
    assert append_notes(path, notes, NOW) == 2
    before = path.read_bytes()
    assert append_notes(path, notes, "2026-12-01T00:00:00Z") == 0
    assert path.read_bytes() == before


def test_no_notes_make_no_file(path: Path) -> None:
    assert append_notes(path, [], NOW) == 0 == append_notes(path, [Note("done", "\n")], NOW)
    assert not path.exists() and read_notes(path) == ()


def test_what_others_wrote(path: Path) -> None:
    path.write_bytes(
        b"\xef\xbb\xbf# Notes\r\nwritten by hand\r\n\r\n"
        b"## [2026-01-02 03:04:05] ARCH_DECISION\r\nfirst\r\n---\r\nnot the end\r\n---\r\n"
        b"## [2026-01-02 03:05] lesson\n## a heading of its own\ncaf\xff\n"
        b"## [2026-01-02T03:06:00Z] Issue  \n---\n## [2026-01-02 03:07:00] done\ntorn"
    )
    assert read_notes(path) == (
        Entry("2026-01-02 03:04:05", "ARCH_DECISION", "first\n---\nnot the end", 4),
        Entry("2026-01-02 03:05", "lesson", "## a heading of its own\ncaf\ufffd", 9),
        Entry("2026-01-02T03:06:00Z", "issue", "", 12),
        Entry("2026-01-02 03:07:00", "done", "torn", 14),
    )
    before = path.read_bytes()
    assert append_notes(path, [Note("done", "torn"), Note("plan", "go on")], NOW) == 1
    assert path.read_bytes().startswith(before + b"\n")
    assert read_notes(path)[3:] == (
        Entry("2026-01-02 03:07:00", "done", "torn", 14),
        Entry("2026-11-30 10:15:00", "plan", "go on", 17),
    )


PARTS = ["-", "\\", "#", " ", "\n", "a", "## [2026-01-01 00:00:00] DONE", "---", "\r", "\u2028"]
HOSTILE = st.lists(st.sampled_from(PARTS)).map("".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(HOSTILE, max_size=4))
def test_any_text_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("notes") / "n.md"
    append_notes(path, [Note("lesson", text) for text in texts], NOW)
    clean = [t.replace("\r\n", "\n").replace("\r", "\n").strip() for t in texts]
    assert [entry.text for entry in read_notes(path)] == [t for t in dict.fromkeys(clean) if t]


def test_modes_and_links(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "t.jsonl"
    source.touch(0o600)
    append_notes(path, [Note("done", "x")], NOW, mode_of=str(source))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    link = tmp_path / "link.md"
    link.symlink_to(path)
    append_notes(link, [Note("done", "y")], NOW)
    assert link.is_symlink() and len(read_notes(path)) == 2


@pytest.mark.parametrize("now", ["", "today", "10:15:00"])
def test_a_time_is_needed(path: Path, now: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        append_notes(path, [Note("done", "x")], now)


@pytest.mark.parametrize("type_", ["", " ", "a\x00b"])
def test_a_type_is_needed(path: Path, type_: str) -> None:
    with pytest.raises(ValueError, match="no type"):
        append_notes(path, [Note(type_, "x")], NOW)


def test_a_folder_is_no_notes_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_notes(tmp_path)
    with pytest.raises(InputError, match="can't be written"):
        append_notes(tmp_path, [Note("done", "x")], NOW)


def test_several_writers_lose_nothing_and_write_nothing_twice(path: Path) -> None:
    code = """
import sys
from pathlib import Path
from ctxctl.model.edits import Note
from ctxctl.state.notes import append_notes
for n in range(40):
    append_notes(Path(sys.argv[1]), [Note("done", f"step {n} of {sys.argv[2]}"), Note("plan", f"shared {n}")],
                 "2026-11-30T10:15:00Z")
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n)]) for n in range(5)]
    assert [writer.wait(60) for writer in writers] == [0] * 5
    notes = [(entry.type, entry.text) for entry in read_notes(path)]
    assert len(notes) == len(set(notes)) == 5 * 40 + 40
    for number in range(5):
        own = [text for type_, text in notes if text.endswith(f" of {number}")]
        assert own == [f"step {n} of {number}" for n in range(40)]

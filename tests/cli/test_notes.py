"""`ctxctl notes`, and what `ctxctl compact` tells of notes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = "agent_notes.md"
STAMP = r"## \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]"


def test_add(ctxctl: Any, tmp_path: Path) -> None:
    done = ctxctl("notes", "add", "decision", "use fetch because node has it")
    assert (done.code, done.out, done.err) == (0, "", f"noted in {FILE}\n")
    assert ctxctl("notes", "add", "Done", "step", "1").code == 0
    text = (tmp_path / FILE).read_text()
    wanted = rf"{STAMP} DECISION\n\nuse fetch because node has it\n\n---\n\n{STAMP} DONE\n\nstep 1\n\n---\n"
    assert re.fullmatch(wanted, text), text


def test_what_is_noted_already_is_not_noted_again(ctxctl: Any, tmp_path: Path) -> None:
    ctxctl("notes", "add", "issue", "who owns billing?")
    before = (tmp_path / FILE).read_bytes()
    done = ctxctl("notes", "add", "issue", "--json", " who owns billing? ")
    assert done.code == 0 and "noted already" in done.err and done.result()["added"] == 0
    assert (tmp_path / FILE).read_bytes() == before
    assert ctxctl("notes", "add", "plan", "who owns billing?", "--json").result()["added"] == 1


def test_from_stdin(ctxctl: Any, tmp_path: Path) -> None:
    done = ctxctl("notes", "add", "lesson", "-", "--json", stdin=b"retries\nneed a fresh body\n")
    (note,) = done.result()["notes"]
    assert (note["type"], note["text"], note["number"]) == ("lesson", "retries\nneed a fresh body", 1)
    done = ctxctl("notes", "add", "lesson", "-", stdin=b" \n")
    assert done.code == 2 and "empty" in done.err


def test_credentials_are_taken_out(ctxctl: Any, tmp_path: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    done = ctxctl("notes", "add", "lesson", f"the token {key} works", "--json")
    assert key not in done.out and key not in (tmp_path / FILE).read_text()
    assert "[credential-redacted]" in done.out


def test_types(ctxctl: Any) -> None:
    done = ctxctl("notes", "add", "ARCH_DECISION", "two queues")
    assert done.code == 0 and "a type of your own" in done.err and "told as decision" in done.err
    for wrong, said in (
        ("desicion", "did you mean 'decision'?"),
        ("LESON", "did you mean 'lesson'?"),
        ("remark", "known: decision, done, lesson, issue, plan"),
        ("A B", "known: "),
        ("7", "known: "),
        ("", "known: "),
    ):
        done = ctxctl("notes", "add", wrong, "text")
        assert (done.code, done.out) == (2, "") and said in done.err, wrong
    assert [n["type"] for n in ctxctl("notes", "list", "--json").result()["notes"]] == ["ARCH_DECISION"]


def test_too_large(ctxctl: Any, tmp_path: Path) -> None:
    done = ctxctl("notes", "add", "lesson", "-", stdin=b"x" * 100_000)
    assert done.code == 2 and "100,000 characters" in done.err and not (tmp_path / FILE).exists()


def test_where_they_are(ctxctl: Any, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("compaction:\n  notes_file: log.md\n")
    assert ctxctl("notes", "add", "done", "one").code == 0 and (tmp_path / "log.md").exists()
    assert (
        ctxctl("notes", "add", "done", "two", "--state-dir", "st").code == 0 and (tmp_path / "st" / "log.md").exists()
    )
    assert ctxctl("notes", "add", "done", "three", "--file", "x.md").code == 0 and (tmp_path / "x.md").exists()
    assert ctxctl("notes", "list", "--json", "--file", "st/log.md").result()["notes"][0]["text"] == "two"
    done = ctxctl("notes", "add", "done", "four", "--file", "st")
    assert done.code == 3 and "is a folder" in done.err
    assert ctxctl("notes", "list", "--file", "x.md", "--state-dir", "st").code == 2


def test_twenty_at_once(ctxctl: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ctxctl", "notes", "add", "-q", "done"]
    writers = [subprocess.Popen([*command, f"item {n}\n---\n## [x] y"], cwd=tmp_path) for n in range(20)]
    writers += [subprocess.Popen([*command, "the same"], cwd=tmp_path) for _ in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 24
    found = ctxctl("notes", "list", "--json").result()
    texts = sorted(n["text"] for n in found["notes"])
    assert texts == sorted([*(f"item {n}\n---\n## [x] y" for n in range(20)), "the same"])


@pytest.fixture
def noted(ctxctl: Any, tmp_path: Path) -> Path:
    """Notes by hand and by others."""
    path = tmp_path / FILE
    path.write_text(
        "# Notes\n\n## [2026-11-30 10:00:00] DECISION\n\nuse fetch\n\nbecause node has it\n\n---\n\n"
        "## [2026-11-30 10:01:00] ARCH_DECISION\n\ntwo queues\x1b[31m\n\n---\n\n"
        "## [2026-11-30 10:02:00] LESSON\n\nretries need a fresh body\n\n---\n"
    )
    return path


def test_list(ctxctl: Any, noted: Path) -> None:
    done = ctxctl("notes", "list")
    assert (done.code, done.err) == (0, "") and "3 notes" in done.out and "\x1b" not in done.out
    assert re.search(r"1 +2026-11-30 10:00:00 +decision +use fetch \.\.\.\n", done.out)
    assert "ARCH_DECISION" in done.out and "because" not in done.out
    assert "2 note" not in ctxctl("notes", "list", "--last", "1").out.replace("3 notes", "")

    def numbers(*arguments: str) -> list[int]:
        return [n["number"] for n in ctxctl("notes", "list", "--json", *arguments).result()["notes"]]

    assert numbers() == [1, 2, 3] and numbers("--last", "2") == [2, 3]
    assert numbers("--type", "decision") == [1, 2] and numbers("--type", "arch_decision") == [2]
    assert numbers("--type", "lesson,ARCH_DECISION") == [2, 3] and numbers("--type", "decision", "--last", "1") == [2]
    done = ctxctl("notes", "list", "--type", "issue")
    assert (done.code, done.out) == (6, "") and "there are: decision, ARCH_DECISION, lesson" in done.err


def test_show(ctxctl: Any, noted: Path) -> None:
    assert ctxctl("notes", "show", "1").out == "## [2026-11-30 10:00:00] DECISION\n\nuse fetch\n\nbecause node has it\n"
    every = ctxctl("notes", "show", "--all").out
    assert every.count("## [") == 3 and "\x1b" not in every
    assert ctxctl("notes", "show", "3", "1").out.index("LESSON") == 25
    assert ctxctl("notes", "show", "--all", "--type", "lesson").out.count("## [") == 1
    found = ctxctl("notes", "show", "2", "--json").result()
    assert found["notes"] == [
        {"number": 2, "time": "2026-11-30 10:01:00", "type": "ARCH_DECISION", "text": "two queues\x1b[31m", "line": 11}
    ]
    for arguments, code in ((("9",), 6), (("0",), 2), ((), 2), (("1", "--all"), 2), (("--all", "--type", "plan"), 6)):
        done = ctxctl("notes", "show", *arguments)
        assert (done.code, done.out) == (code, ""), arguments


def test_no_notes(ctxctl: Any, tmp_path: Path) -> None:
    for arguments in (("list",), ("show", "1"), ("show", "--all")):
        done = ctxctl("notes", *arguments)
        assert (done.code, done.out) == (6, "") and "there are no notes" in done.err
    assert not (tmp_path / FILE).exists()


# compaction


@pytest.fixture
def compact(ctxctl: Any, samples: Path, tmp_path: Path) -> Any:
    shutil.copy(samples / "axios-to-fetch.jsonl", tmp_path / "s.jsonl")

    def run(output: str, *more: str) -> tuple[Any, str]:
        done = ctxctl("compact", "--to", "22k", "-s", "conversation", "-o", output, *more, "s.jsonl")
        assert done.code == 0, done.err
        return done, (tmp_path / output).read_text()

    return run


def test_a_summary_tells_the_notes(ctxctl: Any, compact: Any, tmp_path: Path) -> None:
    done, text = compact("none.jsonl")
    assert "agent_notes.md" not in done.err
    ctxctl("notes", "add", "decision", "zebras are striped because of the flies")
    ctxctl("notes", "add", "plan", "feed the zebra")
    done, text = compact("out.jsonl")
    said = "note: s.jsonl: 2 notes of agent_notes.md went into what the summary tells; --no-from-notes leaves them out"
    assert said in done.err
    assert "zebras are striped" in text and "of the flies" in text and "feed the zebra" in text
    done, text = compact("without.jsonl", "--no-from-notes")
    assert "zebra" not in text and "notes of" not in done.err
    assert text.count("summary") == (tmp_path / "none.jsonl").read_text().count("summary")


def test_what_a_run_notes_is_not_told_twice(ctxctl: Any, compact: Any, tmp_path: Path) -> None:
    done, first = compact("a.jsonl", "--notes")
    assert "went into" not in done.err
    written = (tmp_path / FILE).read_bytes()
    done, second = compact("b.jsonl", "--notes")
    assert (tmp_path / FILE).read_bytes() == written and "went into" in done.err

    def summary(text: str) -> list[str]:
        found = next(json.loads(line) for line in text.splitlines() if "[summary]" in line)
        content = found["message"]["content"]
        told = content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content)
        return [line for line in told.splitlines() if line.startswith("- ")]

    assert len(summary(second)) == len(set(summary(second)))
    assert sorted(summary(second)) == sorted(summary(first))


def test_a_note_by_hand_is_not_written_again_by_a_run(ctxctl: Any, compact: Any, tmp_path: Path) -> None:
    compact("a.jsonl", "--notes")
    notes = ctxctl("notes", "list", "--json").result()["notes"]
    decisions = [n["text"] for n in notes if n["type"] == "decision"]
    assert decisions
    (tmp_path / FILE).unlink()
    what, _, why = decisions[0].removesuffix(")").partition(" (because: ")
    by_hand = f"{what} because {why}" if why else what
    ctxctl("notes", "add", "decision", by_hand)
    compact("b.jsonl", "--notes")
    notes = ctxctl("notes", "list", "--json").result()["notes"]
    assert [n["text"] for n in notes if n["text"].startswith(what)] == [by_hand]

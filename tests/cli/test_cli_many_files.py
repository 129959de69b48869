"""`ctxctl analyze` over several files, folders and globs: one result per file, and a total."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, golden: Path) -> Path:
    """Two sessions (one with a helper), a damaged file, and things that are no transcripts."""
    runs = tmp_path / "runs"
    (runs / "deep").mkdir(parents=True)
    claude = golden / "claude-code"
    shutil.copy(claude / "split_lines.jsonl", runs / "a.jsonl")
    other = (claude / "subagents_new.jsonl").read_bytes().replace(b'"id":"msg_', b'"id":"msg_other_')
    (runs / "deep" / "subagents_new.jsonl").write_bytes(other)
    shutil.copytree(claude / "subagents_new", runs / "deep" / "subagents_new")
    (runs / "package.json").write_text('{"name": "x", "version": "1"}', encoding="utf-8")
    (runs / "empty.jsonl").write_bytes(b"")
    (runs / "readme.md").write_text("not looked at", encoding="utf-8")
    (runs / ".hidden").mkdir()
    shutil.copy(claude / "split_lines.jsonl", runs / ".hidden" / "h.jsonl")
    return runs


def test_a_folder(ctxctl: Run, folder: Path) -> None:
    done = ctxctl("analyze", "--json", "runs")
    assert done.code == 0
    result = done.result()
    assert [f["path"] for f in result["files"]] == ["runs/a.jsonl", "runs/deep/subagents_new.jsonl"]
    assert sorted(s["path"] for s in result["skipped"]) == ["runs/empty.jsonl", "runs/package.json"]
    total = result["total"]
    assert (total["files"], total["failed"], total["skipped"]) == (2, 0, 2)
    assert total["usage"]["total"] == sum(f["result"]["usage"]["total"] for f in result["files"])
    assert total["peak"] == 9_375 and total["turns"] == 4
    assert "skipped, no transcripts that ctxctl reads: 2 (-v" in done.err
    assert "runs/package.json" in ctxctl("analyze", "--json", "-v", "runs").err


def test_one_file_of_a_folder_is_still_a_list(ctxctl: Run, folder: Path) -> None:
    result = ctxctl("analyze", "--json", "runs/deep").result()
    assert len(result["files"]) == 1 and result["total"]["files"] == 1


def test_several_files(ctxctl: Run, folder: Path, golden: Path) -> None:
    other = golden / "codex" / "rollback.jsonl"
    result = ctxctl("analyze", "--json", "runs/a.jsonl", other, "runs/a.jsonl").result()
    assert [f["path"] for f in result["files"]] == ["runs/a.jsonl", str(other)]
    assert result["total"]["usage"]["requests"] == 5


def test_a_glob(ctxctl: Run, folder: Path) -> None:
    result = ctxctl("analyze", "--json", "runs/**/*.jsonl")
    assert result.code == 3  # the glob names the empty file itself
    assert [("error" in f) for f in result.result()["files"]].count(True) == 1
    nothing = ctxctl("analyze", "none/*.jsonl")
    assert (nothing.code, nothing.out) == (6, "") and "no file matches" in nothing.err


def test_files_that_fail_do_not_stop_the_others(ctxctl: Run, folder: Path) -> None:
    done = ctxctl("analyze", "--json", "runs/a.jsonl", "runs/none.jsonl")
    assert done.code == 3
    good, bad = done.result()["files"]
    assert "result" in good and "result" not in bad
    assert bad["error"]["code"] == "input" and "no such file" in bad["error"]["message"]
    assert done.result()["total"]["failed"] == 1 and done.result()["total"]["files"] == 2
    assert "error: runs/none.jsonl: no such file" in done.err


def test_a_gate_yields_to_a_failure(ctxctl: Run, folder: Path) -> None:
    assert ctxctl("analyze", "--max-tokens", "1", "runs").code == 1
    assert ctxctl("analyze", "--max-tokens", "1", "runs/a.jsonl", "runs/none.jsonl").code == 3


def test_gates_name_their_file(ctxctl: Run, folder: Path) -> None:
    done = ctxctl("analyze", "--json", "--max-tokens", "1000", "runs")
    assert done.code == 1
    assert "failed: runs/a.jsonl: max-tokens" in done.err and done.err.count("failed: ") == 1
    assert [f["result"]["gates"][0]["ok"] for f in done.result()["files"]] == [False, True]


def test_folders_without_a_transcript(ctxctl: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    done = ctxctl("analyze", "bare")
    assert (done.code, done.out) == (6, "") and done.err.startswith("error: bare")
    (tmp_path / "bare" / "x.json").write_text('{"a": 1}', encoding="utf-8")
    done = ctxctl("analyze", "--json", "bare")
    assert (done.code, done.out) == (6, "")


def test_a_damaged_file_in_a_folder_is_a_failure(ctxctl: Run, folder: Path) -> None:
    (folder / "bad.jsonl").write_bytes(b'{"type":"user","mess\n{"type":"us\n')
    done = ctxctl("analyze", "--json", "runs")
    assert done.code == 3
    assert [f["path"] for f in done.result()["files"] if "error" in f] == ["runs/bad.jsonl"]


def test_jsonl_has_a_line_per_file(ctxctl: Run, folder: Path) -> None:
    done = ctxctl("analyze", "--output-format", "jsonl", "runs/a.jsonl", "runs/none.jsonl")
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert first["path"] == "runs/a.jsonl" and first["result"]["peak"]["tokens"] == 9_375
    assert second["path"] == "runs/none.jsonl" and second["error"]["code"] == "input"


def test_csv_and_markdown_and_text_of_several(ctxctl: Run, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(ctxctl("analyze", "--output-format", "csv", "runs").out)))
    assert {r["path"] for r in rows} == {"runs/a.jsonl", "runs/deep/subagents_new.jsonl"} and len(rows) == 4
    assert ctxctl("analyze", "--output-format", "markdown", "runs").out.count("\n# ") == 1
    text = ctxctl("analyze", "runs").out
    assert "2 transcripts" in text and "a.jsonl" in text and "9.38k" in text


def test_calls_copied_into_another_session_count_once(ctxctl: Run, tmp_path: Path, golden: Path) -> None:
    data = (golden / "claude-code" / "split_lines.jsonl").read_bytes()
    (tmp_path / "a.jsonl").write_bytes(data)
    (tmp_path / "b.jsonl").write_bytes(data.replace(b'"sessionId":"split_lines"', b'"sessionId":"resumed"'))
    total = ctxctl("analyze", "--json", "a.jsonl", "b.jsonl").result()["total"]
    assert total["copied_calls"] == 2
    assert (total["usage"]["requests"], total["usage"]["total"]) == (2, 9_103 + 265 + 9_375 + 12)


def test_samples(ctxctl: Run, samples: Path) -> None:
    done = ctxctl("analyze", "--json", samples)
    assert done.code == 0 and len(done.result()["files"]) == 5
    assert {f["result"]["transcript"]["format"] for f in done.result()["files"]} == {
        "claude-code",
        "codex",
        "openai-chat",
        "anthropic-messages",
        "mini-swe-agent",
    }
    assert "5 transcripts" in ctxctl("analyze", samples).out


def test_a_copied_call_counts_with_its_larger_figures_in_tokens_and_cost(
    ctxctl: Run, saved: Run, tmp_path: Path, golden: Path
) -> None:
    one = (golden / "claude-code" / "split_lines.jsonl").read_bytes()
    alone = saved(tmp_path / "b.jsonl", one)
    cut = one.replace(b'"output_tokens":', b'"output_tokens":0,"was":')
    (tmp_path / "a.jsonl").write_bytes(cut)
    total = ctxctl("analyze", "--json", "a.jsonl", "b.jsonl").result()["total"]
    assert total["usage"]["output"] == alone["usage"]["output"] > 0
    assert total["usage"]["requests"] == alone["usage"]["requests"] == total["copied_calls"]
    assert total["cost"] == pytest.approx(alone["cost"]) and total["cost_complete"]


def test_files_of_helpers_are_read_with_their_session(ctxctl: Run, folder: Path) -> None:
    paths = [entry["path"] for entry in ctxctl("analyze", "--json", folder).result()["files"]]
    assert not [path for path in paths if "agent-" in path]
    (folder / "deep" / "subagents_new.jsonl").unlink()  # now nobody reads them
    paths = [entry["path"] for entry in ctxctl("analyze", "--json", folder).result()["files"]]
    assert [path for path in paths if "agent-" in path]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_closed_folder_further_down_is_named(ctxctl: Run, folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0)
    try:
        done = ctxctl("analyze", folder, "--json")
    finally:
        closed.chmod(0o700)
    assert "closed: this folder can't be read" in done.err and done.result()["files"]


def test_packed_files_of_helpers_are_read_with_their_session(ctxctl: Run, tmp_path: Path, golden: Path) -> None:
    source = golden / "claude-code"
    plain = ctxctl("analyze", "--json", source / "subagents_new.jsonl").result()
    shutil.copytree(source / "subagents_new", tmp_path / "subagents_new")
    (tmp_path / "subagents_new.jsonl.gz").write_bytes(gzip.compress((source / "subagents_new.jsonl").read_bytes()))
    for path in list((tmp_path / "subagents_new").rglob("agent-*.jsonl")):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = ctxctl("analyze", "--json", "subagents_new.jsonl.gz").result()
    assert packed["usage"] == plain["usage"] and len(packed["usage"]["by_thread"]) > 1
    assert len(ctxctl("analyze", "--json", ".").result()["files"]) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_and_circles_do_not_hold_up_a_folder(ctxctl: Run, folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    os.mkfifo(folder / "agent-pipe.jsonl")
    (folder / "deep" / "up").symlink_to(folder)
    (folder / "deep" / "again").symlink_to(folder / "deep")
    (folder / "b.jsonl").symlink_to("a.jsonl")
    expected = [str(folder / "a.jsonl"), str(folder / "deep" / "subagents_new.jsonl")]
    assert [f["path"] for f in ctxctl("analyze", "--json", folder).result()["files"]] == expected
    for pattern in ("runs/**/*.jsonl", f"{folder}/**/*.jsonl"):
        found = ctxctl("analyze", "--json", pattern).result()["files"]
        good = [f["path"] for f in found if "result" in f]
        assert [os.path.basename(path) for path in good][:1] == ["a.jsonl"] and len(good) >= 2
        assert len({os.path.realpath(path) for path in good}) == len(good)


def test_standard_input_beside_a_file(ctxctl: Run, samples: Path) -> None:
    data = (samples / "axios-to-fetch.jsonl").read_bytes()
    done = ctxctl("analyze", "-", samples / "codex-rollout.jsonl", stdin=data)
    assert done.code == 0 and "2 transcripts" in done.out


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".claude/**/*.jsonl", [".claude/p/S.jsonl"]),  # hidden, but named
        ("../{here}/.claude/**/S*", [".claude/p/S.jsonl"]),
        ("**/*.jsonl", ["runs/a.jsonl", "runs/deep/subagents_new.jsonl"]),
        ("runs/**/a.jsonl", ["runs/a.jsonl"]),
        ("r*/**/deep/*.jsonl", ["runs/deep/subagents_new.jsonl"]),
        ("runs/**.jsonl", ["runs/a.jsonl"]),  # no part of its own: as a single star
        ("runs/*", ["runs/a.jsonl", "runs/deep/subagents_new.jsonl"]),
        ("runs/**", ["runs/a.jsonl", "runs/deep/subagents_new.jsonl"]),
        ("**/.hidden/*.jsonl", ["runs/.hidden/h.jsonl"]),
    ],
)
def test_globs(ctxctl: Run, folder: Path, tmp_path: Path, pattern: str, found: list[str]) -> None:
    (tmp_path / ".claude" / "p").mkdir(parents=True)
    shutil.copy(folder / "a.jsonl", tmp_path / ".claude" / "p" / "S.jsonl")
    files = ctxctl("analyze", "--json", "--no-subagents", pattern.format(here=tmp_path.name)).result()["files"]
    good = [Path(f["path"]).name for f in files if "result" in f and "agent-" not in f["path"]]
    assert good == [Path(name).name for name in found]


def test_calls_without_an_id_are_all_counted(ctxctl: Run, folder: Path, tmp_path: Path) -> None:
    line = b'{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":[],'
    line += b'"usage":{"input_tokens":%d}}}\n'
    user = b'{"type":"user","sessionId":"s","message":{"role":"user","content":"go"}}\n'
    for name, tokens in (("x.jsonl", (5, 7)), ("y.jsonl", (11, 13))):
        (tmp_path / name).write_bytes(user + b"".join(line % n for n in tokens))
    total = ctxctl("analyze", "--json", "x.jsonl", "y.jsonl").result()["total"]
    assert (total["usage"]["input"], total["usage"]["requests"], total["copied_calls"]) == (36, 4, 0)

"""Streams and files: compressed, piped, missing, many, huge; and outputs that replace nothing by accident."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import zstandard

import ctxctl as library


@pytest.fixture
def session(claude: Any) -> bytes:
    made = claude()
    made.user("the task")
    made.call("toolu_1", usage=(9, 0, 8000, 40))
    made.result("toolu_1", "output " * 300)
    made.assistant("closing words", usage=(4, 300, 8100, 20))
    return made.data()


def facts(result: Any) -> Any:
    return result["usage"], result["composition"], result["transcript"]["records"]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKED = {
    "gzip": lambda data: gzip.compress(data),
    "gzip in two members": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
    "zstd": zstd,
    "zstd in two frames": lambda data: zstd(data[:700]) + zstd(data[700:]),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_compressed_file_reads_like_a_plain_one(name: str, session: bytes, save: Any, within: Any) -> None:
    plain = within("analyze", "--json", save(session)).result
    suffix = ".gz" if "gzip" in name else ".zst"
    for file in ("c.jsonl" + suffix, "c.jsonl", "c.dat"):
        path = save(PACKED[name](session), file)
        done = within("analyze", "--json", path)
        assert done.status == 0 and facts(done.result) == facts(plain)
        assert done.result["transcript"]["complete"] is True
        assert b"".join(library.write(library.read(str(path)))) == session


PACK = {"gz": gzip.compress, "zst": zstd}


@pytest.mark.parametrize("suffix", PACK)
def test_a_large_compressed_file_that_ends_early(suffix: str, claude: Any, save: Any, within: Any) -> None:
    made = claude()
    state = 1
    for _ in range(1200):
        state = state * 48_271 % (2**31 - 1)
        made.user(f"question {state:x} {state % 9973}")
    whole = PACK[suffix](made.data())
    for share in (0.6, 0.9, 0.999):
        done = within("analyze", "--json", save(whole[: int(len(whole) * share)], f"t.jsonl.{suffix}"))
        assert done.status == 0 and done.result["transcript"]["complete"] is False
        assert done.result["transcript"]["damaged"] is True and 0 < done.result["transcript"]["records"] < 1200


@pytest.mark.parametrize("suffix", PACK)
def test_a_small_compressed_file_that_ends_early_is_not_empty(
    suffix: str, session: bytes, save: Any, within: Any
) -> None:
    whole = PACK[suffix](session)
    for length in (5, len(whole) // 2, len(whole) - 5, len(whole) - 1):
        done = within("analyze", "--json", save(whole[:length], f"t.jsonl.{suffix}"))
        assert "empty" not in done.err and "compress" in done.err
        if done.status == 0:  # something of it could be read
            assert done.result["transcript"]["complete"] is False and done.result["transcript"]["records"] > 0
        else:
            assert (done.status, done.out) == (3, b""), done.err
    assert within("analyze", "--json", save(PACK[suffix](b""), f"t.jsonl.{suffix}")).status == 6


@pytest.mark.parametrize("suffix", PACK)
def test_a_last_part_that_is_cut_is_not_passed_over(suffix: str, session: bytes, save: Any, within: Any) -> None:
    """Files grow by members or frames: the first ones end with a whole line, the last one was not finished."""
    lines = session.splitlines(keepends=True)
    parts = [PACK[suffix](b"".join(lines[:2])), PACK[suffix](b"".join(lines[2:]))]
    done = within("analyze", "--json", save(parts[0] + parts[1][:-30], f"t.jsonl.{suffix}"))
    assert done.status == 0 and done.result["transcript"]["records"] in (2, 3)
    assert done.result["transcript"]["complete"] is False and done.result["transcript"]["damaged"] is True
    assert "torn_compression" in [d["code"] for d in done.result["diagnostics"]]


def test_a_damaged_compressed_file(session: bytes, save: Any, within: Any) -> None:
    packed = bytearray(gzip.compress(session * 20))
    packed[len(packed) // 2] ^= 0xFF
    done = within("analyze", "--json", save(bytes(packed), "t.jsonl.gz"))
    assert done.status in (0, 3)
    if done.status == 0:
        assert done.result["transcript"]["complete"] is False


@pytest.mark.parametrize(
    "name", ["t.json", "t.txt", "t", "t.traj.json", "t.csv", "ünïcode 名.jsonl", "-t.jsonl", "[t].jsonl"]
)
def test_names_of_files_lie(name: str, session: bytes, save: Any, within: Any) -> None:
    path = save(session, name)
    done = within("analyze", "--json", path)
    assert done.status == 0 and done.result["transcript"]["format"] == "claude-code"
    assert done.result["transcript"]["path"] == str(path)


DOCUMENTS = {
    "a message per line": (
        b'{"messages": [\n  {"role": "user", "content": "hi"},\n  {"role": "assistant", "content": "yo"}\n]}'
    ),
    "a single message": b'{\n  "messages": [\n    {"role": "user", "content": "hi"}\n  ]\n}\n',
    "indented": b'{\n  "messages": [\n    {\n      "role": "user",\n      "content": "hi"\n    }\n  ]\n}\n',
    "a list, one per line": b'[\n{"role": "user", "content": "hi"},\n{"role": "assistant", "content": "yo"}\n]\n',
    "on one line": b'{"messages": [{"role": "user", "content": "hi"}]}',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_one_document_over_several_lines(name: str, save: Any, within: Any) -> None:
    done = within("analyze", "--json", save(DOCUMENTS[name], "t.jsonl"))
    assert done.status == 0 and done.result["transcript"]["format"] == "openai-chat"
    assert done.result["transcript"]["records"] == 1 and done.result["transcript"]["damaged"] is False
    assert done.result["transcript"]["messages"]["main"]["user"] == 1


def test_reading_leaves_everything_as_it_was(session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session)
    path.chmod(0o640)
    os.utime(path, (10**9, 10**9))
    names = sorted(folder.iterdir())
    for options in ((), ("--json",), ("--tokens", "reported"), ("--fail-on", "damage")):
        assert within("analyze", *options, path).status == 0
    status = path.stat()
    assert (status.st_mtime, status.st_mode & 0o777, path.read_bytes()) == (10**9, 0o640, session)
    assert sorted(folder.iterdir()) == names


# -- what can't be read --------------------------------------------------------------------------------------------


def test_paths_that_lead_nowhere(session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session)
    (folder / "broken.jsonl").symlink_to(folder / "nowhere.jsonl")
    for missing in ("no.jsonl", "no/such.jsonl", f"{path}/x.jsonl", "broken.jsonl", "x" * 300 + ".jsonl"):
        for options in ((), ("--json",)):
            done = within("analyze", *options, missing)
            assert (done.status, done.out) == (3, b"") and missing in done.err, done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_and_a_folder_without_permission(session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session, "d/t.jsonl")
    path.chmod(0)
    done = within("analyze", path)
    assert done.status == 3 and "ermission" in done.err
    (folder / "d").chmod(0)
    try:
        assert within("analyze", folder / "d").status == 3
    finally:
        (folder / "d").chmod(0o755)


def test_folders_and_globs_without_a_transcript(session: bytes, save: Any, within: Any, folder: Path) -> None:
    (folder / "void").mkdir()
    save(b"# notes\n", "notes/readme.md")
    save(b'{"colour":"red"}\n', "other/data.json")
    save(b"", "blank/t.jsonl")
    for nothing in ("void", "notes", "other", "blank", "void/*.jsonl", "no*.jsonl", "**/*.none"):
        done = within("analyze", "--json", nothing)
        assert (done.status, done.out) == (6, b""), (nothing, done.err)
        assert '"code":"nothing_found"' in done.err


def test_a_folder_is_read_as_a_whole(session: bytes, save: Any, within: Any) -> None:
    save(session, "f/b.jsonl")
    save(gzip.compress(session), "f/deep/er/a.jsonl.gz")
    save(b'{"colour":"red"}\n', "f/package.json")
    save(b"#!/bin/sh\n", "f/run.sh")
    save(session, "f/.hidden/c.jsonl")
    save(session, "f/node_modules/d.jsonl")
    done = within("analyze", "--json", "f")
    assert done.status == 0
    assert [Path(f["path"]).name for f in done.result["files"]] == ["b.jsonl", "a.jsonl.gz"]
    assert done.result["total"]["files"] == 2 and done.result["total"]["failed"] == 0
    only_one = within("analyze", "--json", "f/b*")
    assert [Path(f["path"]).name for f in only_one.result["files"]] == ["b.jsonl"]
    assert facts(only_one.result["files"][0]["result"]) == facts(within("analyze", "--json", "f/b.jsonl").result)


def test_a_damaged_file_of_a_folder_is_not_passed_over(session: bytes, save: Any, within: Any) -> None:
    save(session, "f/good.jsonl")
    save(session[:60], "f/cut.jsonl")
    done = within("analyze", "--json", "f")
    assert done.status == 3 and len(done.result["files"]) == 2
    assert "cut.jsonl" in done.err and "error" in done.result["files"][0]


# -- stdin and pipes -----------------------------------------------------------------------------------------------


def test_stdin_by_its_name_and_without(session: bytes, save: Any, ctxctl: Any) -> None:
    plain = ctxctl("analyze", "--json", save(session)).result
    for arguments, data in ((("-",), session), ((), session), (("-",), gzip.compress(session)), ((), zstd(session))):
        done = ctxctl("analyze", "--json", *arguments, stdin=data)
        assert done.status == 0 and facts(done.result) == facts(plain)
        assert done.result["transcript"]["path"] == "-"


def test_stdin_without_a_session(ctxctl: Any) -> None:
    for data, status in ((b"", 6), (b"\n", 6), (b"words\n", 3)):
        done = ctxctl("analyze", "--json", stdin=data)
        assert (done.status, done.out) == (status, b"")


def test_stdin_that_is_closed(session: bytes, save: Any, folder: Path) -> None:
    command = [sys.executable, "-m", "ctxctl", "analyze"]
    for given, statuses in (([], (2, 3, 6)), (["-"], (2, 3, 6)), ([str(save(session))], (0,))):
        script = " ".join(f"'{word}'" for word in [*command, *given]) + " <&-"
        done = subprocess.run(["sh", "-c", script], capture_output=True, cwd=folder, timeout=60)
        assert done.returncode in statuses and b"Traceback" not in done.stderr, done.stderr[-300:]


def test_a_named_pipe(session: bytes, save: Any, within: Any, folder: Path) -> None:
    plain = within("analyze", "--json", save(session)).result
    fifo = folder / "fifo.jsonl"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(session), daemon=True)
    writer.start()
    done = within("analyze", "--json", fifo)
    writer.join(10)
    assert done.status == 0 and facts(done.result) == facts(plain)


@pytest.mark.parametrize("options", [("--json",), (), ("--output-format", "csv")], ids=str)
def test_a_reader_that_goes_away(options: Any, claude: Any, save: Any, folder: Path, tmp_path: Path) -> None:
    made = claude()
    for number in range(2000):
        made.user(f"question {number}")
        made.assistant(f"answer {number}")
    command = [sys.executable, "-m", "ctxctl", "analyze", *options, "--blocks", str(save(made))]
    script = " ".join(f"'{word}'" for word in command) + "; echo $? >status"
    done = subprocess.run(["sh", "-c", f"{{ {script}; }} | head -c 1"], capture_output=True, cwd=folder, timeout=60)
    assert len(done.stdout) == 1 and b"Traceback" not in done.stderr and b"Exception" not in done.stderr
    assert (folder / "status").read_text().strip() in ("0", "141")


@pytest.mark.parametrize("target", [">&-", "> /dev/full"])
def test_a_stdout_that_takes_nothing(target: str, session: bytes, save: Any, folder: Path) -> None:
    if "full" in target and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    for form in ("json", "text"):
        command = f"'{sys.executable}' -m ctxctl analyze --output-format {form} '{save(session)}'"
        done = subprocess.run(["sh", "-c", f"{command} {target}"], capture_output=True, cwd=folder, timeout=60)
        assert done.returncode != 0, "a report that reached nobody is no success"
        assert done.returncode != 70 and b"Traceback" not in done.stderr, done.stderr[-300:]


# -- the output file -----------------------------------------------------------------------------------------------


def test_the_suffix_tells_the_form(session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session)
    starts = {"a.json": b'{"schema"', "a.jsonl": b'{"path"', "a.csv": b"path,", "a.md": b"# ", "a.txt": b""}
    for name, start in starts.items():
        done = within("analyze", "-o", name, path)
        assert (done.status, done.out) == (0, b"") and name in done.err
        assert (folder / name).read_bytes().startswith(start), (folder / name).read_bytes()[:30]
    assert within("analyze", "-q", "-o", "b.json", path).err == ""
    for name in ("a.xyz", "a"):
        done = within("analyze", "-o", name, path)
        assert done.status == 2 and name in done.err and not (folder / name).exists()
    assert within("analyze", "--json", "-o", "a.xyz", path).status == 0
    assert (folder / "a.xyz").read_bytes().startswith(b'{"schema"')
    assert within("analyze", "-o", "no/such/a.json", path).status in (2, 3)
    assert not [p.name for p in folder.iterdir() if p.name.endswith(".tmp")]


def test_an_existing_file_is_replaced_only_when_asked(session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session)
    target = save(b"kept", "out.json")
    for options in ((), ("--json",), ("-q",)):
        done = within("analyze", "-o", target, *options, path)
        assert (done.status, done.out) == (2, b"") and "--force" in done.err
        assert target.read_bytes() == b"kept"
    assert within("analyze", "-o", target, "--force", path).status == 0
    assert target.read_bytes().startswith(b'{"schema"')
    assert within("analyze", "-o", folder, "--json", "--force", path).status == 2
    own = within("analyze", "-o", path, "--json", path)
    assert own.status == 2 and path.read_bytes() == session


@pytest.mark.parametrize("bad", [b"", b"[]", b"\n", b'{"parentUuid":null,"isSide', b"\0" * 9])
def test_a_failed_read_writes_over_nothing(bad: bytes, session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session)
    assert within("analyze", "-o", "report.json", path).status == 0
    good = (folder / "report.json").read_bytes()
    path.write_bytes(bad)
    done = within("analyze", "-o", "report.json", "--force", path)
    assert done.status in (3, 6) and (folder / "report.json").read_bytes() == good


def test_links_and_modes_are_kept(session: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(session, "real/t.jsonl")
    path.chmod(0o600)
    link = folder / "link.jsonl"
    link.symlink_to(path)
    assert within("analyze", "--json", link).result["transcript"]["records"] == 4
    old = os.umask(0o022)
    try:
        assert within("analyze", "-o", "new.json", link).status == 0
        assert (folder / "new.json").stat().st_mode & 0o777 == 0o600, "a report is no wider than its source"
        report = save(b"old", "real/report.json")
        report.chmod(0o640)
        (folder / "link.json").symlink_to(report)
        assert within("analyze", "-o", "link.json", "--force", link).status == 0
    finally:
        os.umask(old)
    assert (folder / "link.json").is_symlink() and report.read_bytes().startswith(b'{"schema"')
    assert report.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes() == session and path.stat().st_mode & 0o777 == 0o600


def test_a_report_over_a_wide_and_a_narrow_source(session: bytes, save: Any, within: Any, folder: Path) -> None:
    wide, narrow = save(session, "a.jsonl"), save(session, "b.jsonl")
    wide.chmod(0o644)
    narrow.chmod(0o600)
    assert within("analyze", "-o", "both.json", wide, narrow).status == 0
    assert (folder / "both.json").stat().st_mode & 0o077 == 0, "it holds text of the narrow one too"


def test_readers_of_a_report_never_see_half_of_it(session: bytes, save: Any, folder: Path, tmp_path: Path) -> None:
    path, target = save(session), folder / "shared.json"
    command = [sys.executable, "-m", "ctxctl", "analyze", "-q", "-o", str(target), "--force", str(path)]
    runs = [subprocess.Popen(command, cwd=folder, env={**os.environ, "HOME": str(tmp_path)}) for _ in range(4)]
    while any(run.poll() is None for run in runs):
        if target.exists():
            json.loads(target.read_bytes())
    assert [run.returncode for run in runs] == [0] * 4
    assert json.loads(target.read_bytes())["schema"] == "ctxctl.analyze/1"
    assert sorted(p.name for p in folder.iterdir()) == ["shared.json", "t.jsonl"]


@pytest.mark.slow
def test_a_huge_file_needs_little_memory(claude: Any, folder: Path, tmp_path: Path) -> None:
    """14 main messages among 100 MB of helpers' records, progress and one picture of 20 MB."""
    made = claude()
    path = folder / "huge.jsonl"
    with path.open("wb") as file:
        size = 0
        for turn in range(7):
            made.user(f"question {turn}")
            made.assistant(f"answer {turn}", usage=(5, 0, 1000 * turn, 9))
            while size < (turn + 1) * 11_500_000:
                made.user("brief " * 1500, isSidechain=True, parent=None, agentId=f"a{made.count}")
                made.assistant("report " * 1500, isSidechain=True)
                made.envelope("progress", data={"type": "bash_progress", "output": "x" * 9000})
                data = made.data()
                made.lines.clear()
                size += file.write(data)
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 20_000_000}}
        made.user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": [picture]}], isSidechain=True)
        size += file.write(made.data())
    assert size > 95_000_000
    script = (
        "import resource, sys\nfrom ctxctl.cli.app import run\n"
        f"status = run(['analyze', '--json', {str(path)!r}])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\nsys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=folder, timeout=60)
    assert done.returncode == 0
    transcript = json.loads(done.stdout)["result"]["transcript"]
    assert transcript["messages"]["main"] == {"user": 7, "assistant": 7}
    kilobytes = int(done.stderr.split()[-1]) / (1024 if sys.platform == "darwin" else 1)
    assert kilobytes < 400 * 1024

"""What the handed cases on state files say, held to `ctxctl checkpoint`, `resume` and what else writes beside them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the handed cases (../shared/cases) are not here")

COMPANIONS = {"agent_state.json", "agent_progress.md", "agent_audit.jsonl"}


def case(number: str) -> Path:
    return next(CASES.glob(f"{number}-*"))


def state(folder: Path) -> Any:
    return json.loads((folder / "agent_state.json").read_bytes())


def todos(folder: Path) -> list[str]:
    return [s["text"] for s in state(folder)["remaining_subtasks"]]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# -- 067: a race for one state file


def race(folder: Path, tmp_path: Path, command: str) -> str:
    """The case's own script: 20 runs at once, 200 reads meanwhile. What it printed."""
    shutil.copy(case("067") / "run.sh", tmp_path / "run.sh")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CTXCTL_")}
    variables = {**kept, "STATE": "agent_state.json", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["sh", str(tmp_path / "run.sh"), command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=variables,
        timeout=120,
    )
    errors = "".join(p.read_text() for p in tmp_path.glob("tmp.*/err.*"))
    assert "Traceback" not in errors, errors[-600:]
    assert done.returncode == 0, (done.stdout, errors[-600:])
    return done.stdout.strip()


@pytest.mark.slow
def test_067_twenty_checkpoints_at_once(folder: Path, tmp_path: Path) -> None:
    session = folder / "input.jsonl"
    shutil.copy(case("067") / "input.jsonl", session)
    before = session.read_bytes()
    told = race(folder, tmp_path, f"'{sys.executable}' -m ctxctl checkpoint input.jsonl --add-todo n{{i}}")
    assert told == "unparsable reads: 0; failed runs: 0"
    assert sorted(todos(folder)) == sorted(f"n{number}" for number in range(1, 21))
    assert state(folder)["state_version"] == 20
    assert {p.name for p in folder.iterdir()} == {"input.jsonl", *COMPANIONS}, "nothing is left over"
    assert session.read_bytes() == before


def test_067_a_lock_of_the_dead_holds_nothing(folder: Path, ctxctl: Any) -> None:
    """Whoever held the lock and was killed; and files that look like locks."""
    shutil.copy(case("067") / "input.jsonl", folder)
    script = "import fcntl, os, time; h = os.open('.', 0); fcntl.flock(h, 2); print(flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", script], cwd=folder, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    for name in ("agent_state.json.lock", ".agent_state.json.lock", "agent_state.lock", ".agent_state.lock"):
        (folder / name).write_text(f"{holder.pid}\n")
    done = ctxctl("checkpoint", "input.jsonl", "--add-todo", "n1", timeout=8)
    assert done.status == 0, done.err
    assert todos(folder) == ["n1"]


# -- 069: links and modes


@pytest.fixture
def linked(folder: Path) -> Path:
    """The case's own folder: real/t.jsonl of mode 0600, and link.jsonl that points to it."""
    subprocess.run(["sh", str(case("069") / "setup.sh"), str(folder)], check=True, capture_output=True)
    return folder


def test_069_nothing_is_wider_than_the_session(linked: Path, ctxctl: Any) -> None:
    session = linked / "real" / "t.jsonl"
    before = session.read_bytes()
    old = os.umask(0o022)
    try:
        for arguments in (
            ("checkpoint", "link.jsonl"),
            ("checkpoint", "link.jsonl", "--add-todo", "more", "--json"),
            ("resume",),
            ("resume", "-o", "prompt.txt"),
            ("notes", "add", "decision", "keep the link"),
            ("checkpoint", "--from-notes"),
        ):
            done = ctxctl(*arguments)
            assert done.status == 0, (arguments, done.err)
    finally:
        os.umask(old)
    made = {p.name: stat.S_IMODE(p.stat().st_mode) for p in linked.iterdir() if p.is_file() and not p.is_symlink()}
    assert {*COMPANIONS, "prompt.txt"} <= set(made)
    wide = {name: oct(mode) for name, mode in made.items() if mode & 0o077}
    assert wide in ({}, {"agent_notes.md": "0o644"}), "only notes that a user wrote by hand go with no session"
    assert (linked / "link.jsonl").is_symlink() and session.read_bytes() == before
    assert stat.S_IMODE(session.stat().st_mode) == 0o600
    assert not [p.name for p in linked.iterdir() if p.name.endswith(".tmp")]


def test_069_a_placed_link_is_not_followed(linked: Path, within: Any) -> None:
    victim = linked / "victim"
    victim.write_text("mine")
    for name in ("agent_state.json.tmp", ".agent_state.json.tmp", "agent_progress.md.tmp", ".agent_state.json.a.tmp"):
        (linked / name).symlink_to(victim)
    assert within("checkpoint", "link.jsonl").status == 0
    assert victim.read_text() == "mine"


# -- 070: a failed read writes over nothing


BAD = ("now-empty.jsonl", "now-array.jsonl", "now-cut.jsonl")


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("options", [(), ("--json",), ("-q", "--add-todo", "more")], ids=str)
def test_070_the_good_state_stays(bad: str, options: Any, folder: Path, within: Any) -> None:
    session = folder / "t.jsonl"
    shutil.copy(case("070") / "good.jsonl", session)
    assert within("checkpoint", "t.jsonl", "--set", "goal=keep me").status == 0
    session.chmod(0o644)
    session.write_bytes((case("070") / bad).read_bytes())
    good = contents(folder)
    for _ in range(2):
        done = within("checkpoint", "t.jsonl", *options)
        assert done.status in (1, 3, 6), (done.status, done.err)
        assert done.out == b"" and "t.jsonl" in done.err, done.err
        assert contents(folder) == good
    shutil.copyfile(case("070") / "good.jsonl", session)
    assert within("checkpoint", "t.jsonl").status == 0 and state(folder)["task_goal"] == "keep me"


@pytest.mark.parametrize("bad", BAD)
def test_070_nothing_is_made_of_nothing(bad: str, folder: Path, within: Any) -> None:
    shutil.copy(case("070") / bad, folder / "t.jsonl")
    done = within("checkpoint", "t.jsonl")
    assert done.status in (3, 6) and {p.name for p in folder.iterdir()} == {"t.jsonl"}, done.err


# -- 079: credentials


def test_079_no_credential_in_anything_written(folder: Path, ctxctl: Any) -> None:
    shutil.copy(case("079") / "input.jsonl", folder / "t.jsonl")
    secrets = [line for line in (case("079") / "secrets.txt").read_text().split("\n") if line.strip()]
    assert len(secrets) == 5
    said = []
    for arguments in (
        ("checkpoint", "t.jsonl"),
        ("checkpoint", "t.jsonl", "--json", "-v"),
        ("checkpoint", "--add-todo", f"call it with {secrets[1]}", "--set", f"goal=Use {secrets[2]} as before"),
        (
            "checkpoint",
            "--set",
            f"decision=keep {secrets[0]} as key because of Authorization: Bearer {secrets[3]}",
            "--set",
            f"issue=Bearer {secrets[3]} is refused",
        ),
        ("notes", "add", "decision", f"the key is {secrets[0]}"),
        ("notes", "list"),
        ("checkpoint", "--from-notes"),
        ("resume",),
        ("resume", "--json"),
        ("resume", "--output-format", "messages"),
        ("audit", "show"),
    ):
        done = ctxctl(*arguments)
        assert done.status == 0, (arguments, done.err)
        said.append((arguments, done.out.decode() + done.err))
    (folder / "t.jsonl").unlink()
    for name, data in [*((str(a), t) for a, t in said), *((n, d.decode()) for n, d in contents(folder).items())]:
        for secret in secrets:
            assert secret not in name or name.startswith("("), name
            assert secret not in data, (secret, name)
            inner = secret.split("://")[-1].split("@")[0].split(":")[-1]
            assert inner not in data, (inner, name)


# -- other cases as sessions: a checkpoint of each ends well or with a clear error


@pytest.mark.parametrize(
    ("first", "step"), [(0, 4), *(pytest.param(n, 4, marks=pytest.mark.slow) for n in (1, 2, 3))], ids=str
)
def test_every_case_has_a_state_or_an_error(first: int, step: int, folder: Path, within: Any) -> None:
    taken = 0
    for path in sorted(CASES.glob("*/*.json*"))[first::step]:
        place = folder / f"{path.parent.name}-{path.name}"
        place.mkdir()
        before = path.read_bytes()
        done = within("checkpoint", path, "--state-dir", place)
        assert done.status in (0, 1, 2, 3, 6), (path, done.status, done.err)
        assert path.read_bytes() == before
        if done.status:
            assert not list(place.iterdir()), (path, done.err)
            assert re.search(r"(?m)^error: ", done.err), done.err
            continue
        taken += 1
        made = state(place)
        assert made["state_version"] == 1 and made["schema"] == "ctxctl.state/1"
        assert {p.name for p in place.iterdir()} == COMPANIONS
        again = within("checkpoint", path, "--state-dir", place)
        assert again.status == 0, (path, again.err)
        second = state(place)
        changed = [k for k in made if made[k] != second[k] and k not in ("state_version", "saved_at")]
        assert changed == [], (path, changed)
        prompt = within("resume", place / "agent_state.json")
        assert prompt.status in (0, 5), (path, prompt.err)
    assert taken > 5

"""`ctxctl hook run`: the protocols as documented, and never a word or status that would disturb an agent."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

LOG = "hook.log"
LIMIT = 10_000
NO_EVENT = [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"hook_event_name": {}}', b"[" * 90_000]


class Repository:
    """A project with an agent's session beside it, and a hook that is called as agents do."""

    def __init__(self, folder: Path, ctxctl: Run, session: Path) -> None:
        self.folder = folder / "repo"
        self.folder.mkdir()
        (self.folder / ".git").mkdir()
        self.sessions = folder / "sessions"
        self.sessions.mkdir()
        self.session = self.sessions / session.name
        shutil.copyfile(session, self.session)
        self.log_file = folder / LOG
        self._ctxctl = ctxctl

    def call(self, event: str, *arguments: str, agent: str = "claude-code", env: Any = None, **fields: Any) -> Any:
        """Fields of value None are left out."""
        given = {
            "session_id": "s1",
            "transcript_path": str(self.session),
            "cwd": str(self.folder),
            "hook_event_name": event,
            **fields,
        }
        data = json.dumps({key: value for key, value in given.items() if value is not None}).encode()
        return self.raw(data, *arguments, agent=agent, **(env or {}))

    def raw(self, data: bytes, *arguments: str, agent: str = "claude-code", **more: str) -> Any:
        words = [agent] if agent else []
        more = {"CTXCTL_HOOK_LOG": str(self.log_file), **more}
        done = self._ctxctl("hook", "run", *words, *arguments, stdin=data, **more)
        assert (done.code, done.err) == (0, "")
        return done

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8") if self.log_file.exists() else ""

    @property
    def state(self) -> Any:
        return json.loads((self.folder / "agent_state.json").read_text(encoding="utf-8"))

    def write_state(self, **fields: Any) -> None:
        (self.folder / "agent_state.json").write_text(json.dumps({"task_goal": "move to fetch", **fields}))

    def grow(self, text: str) -> None:
        """The user says one thing more."""
        last = [json.loads(line) for line in self.session.read_text(encoding="utf-8").splitlines()][-1]
        record = {
            **{key: last[key] for key in ("sessionId", "cwd", "version") if key in last},
            "parentUuid": last.get("uuid"),
            "isSidechain": False,
            "userType": "external",
            "type": "user",
            "uuid": "99999999-0000-4000-8000-000000000001",
            "timestamp": "2027-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": text},
        }
        with open(self.session, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


@pytest.fixture
def repository(tmp_path: Path, ctxctl: Run, samples: Path) -> Repository:
    return Repository(tmp_path, ctxctl, samples / "axios-to-fetch.jsonl")


def context_of(done: Any) -> str:
    """What came into the window, after the shape that both agents document."""
    value = done.json()
    assert set(value) == {"hookSpecificOutput"}
    assert set(value["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert value["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    text: str = value["hookSpecificOutput"]["additionalContext"]
    assert text.startswith("[CONTEXT_WINDOW_RESUME]\n")
    return text


class TestSaving:
    def test_before_a_compaction(self, repository: Repository) -> None:
        done = repository.call("PreCompact", trigger="auto")
        assert done.out == ""
        assert repository.state["state_version"] == 1 and repository.state["task_goal"]
        assert (repository.folder / "agent_progress.md").read_text().startswith("# Agent Progress")
        assert "claude-code PreCompact (auto)" in repository.log and "saved version 1" in repository.log

    @pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
    def test_at_an_end(self, repository: Repository, event: str) -> None:
        assert repository.call(event).out == ""
        assert repository.state["state_version"] == 1

    def test_codex(self, tmp_path: Path, ctxctl: Run, samples: Path) -> None:
        repository = Repository(tmp_path, ctxctl, samples / "codex-rollout.jsonl")
        fields = {"turn_id": "1", "model": "gpt-5", "permission_mode": "default"}
        assert repository.call("PreCompact", agent="codex", trigger="manual", **fields).out == ""
        assert repository.state["transcript"]["format"] == "codex"
        text = context_of(repository.call("SessionStart", agent="codex", source="compact", **fields))
        assert repository.state["task_goal"].splitlines()[0] in text

    def test_a_sub_agent_saves_nothing(self, repository: Repository) -> None:
        assert repository.call("PreCompact", trigger="auto", agent_id="a1").out == ""
        assert list(repository.folder.iterdir()) == [repository.folder / ".git"]

    def test_in_the_project_and_not_where_the_agent_went(self, repository: Repository) -> None:
        inner = repository.folder / "src"
        inner.mkdir()
        env = {"CLAUDE_PROJECT_DIR": str(repository.folder)}
        repository.call("PreCompact", cwd=str(inner), env=env)
        assert repository.state["state_version"] == 1 and list(inner.iterdir()) == []
        repository.call("PreCompact", cwd=str(inner))  # found there from now on
        assert repository.state["state_version"] == 2 and list(inner.iterdir()) == []

    def test_in_the_project_when_the_agent_went_out_of_it(self, repository: Repository, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / ".ctxctl.yaml").write_text("cross_window:\n  state_file: theirs.json\n")
        (repository.folder / ".ctxctl.yaml").write_text("cross_window:\n  state_file: ours.json\n")
        env = {"CLAUDE_PROJECT_DIR": str(repository.folder)}
        repository.call("PreCompact", cwd=str(tmp_path / "elsewhere"), env=env)
        assert (repository.folder / "ours.json").is_file()
        assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [".ctxctl.yaml"]
        assert repository.call("SessionStart", cwd=str(tmp_path / "elsewhere"), env=env, source="compact").out

    def test_in_a_folder_that_was_named(self, repository: Repository) -> None:
        (repository.folder / "state").mkdir()
        repository.call("PreCompact", "--state-dir", "state")
        assert (repository.folder / "state" / "agent_state.json").exists()
        repository.call("PreCompact", "--state-dir=none")
        assert "no such folder" in repository.log and not (repository.folder / "none").exists()

    def test_the_names_of_the_settings(self, repository: Repository) -> None:
        (repository.folder / ".ctxctl.yaml").write_text("cross_window:\n  state_file: s.json\n")
        repository.call("PreCompact")
        assert (repository.folder / "s.json").exists()

    @pytest.mark.parametrize("name", ["agent_state.json", "agent_progress.md", "agent_audit.jsonl", "agent_notes.md"])
    def test_a_link_of_the_project_leads_nowhere_else(self, repository: Repository, name: str) -> None:
        mine = repository.folder.parent / ".profile"
        (repository.folder / name).symlink_to(mine)
        assert repository.call("PreCompact").out == ""
        assert not mine.exists() and "outside of the state's folder" in repository.log
        mine.write_text("mine")
        assert repository.call("PreCompact").out == repository.call("SessionStart", source="compact").out == ""
        assert mine.read_text() == "mine"

    @pytest.mark.parametrize("key", ["state_file", "progress_file", "audit_file"])
    def test_settings_of_the_project_lead_nowhere_else(self, repository: Repository, key: str) -> None:
        mine = repository.folder.parent / ".profile"
        for name in ("../.profile", str(mine)):
            (repository.folder / ".ctxctl.yaml").write_text(f"cross_window:\n  {key}: {name}\n")
            repository.call("PreCompact")
            assert not mine.exists() and "outside of the state's folder" in repository.log

    def test_a_link_within_the_folder_is_followed(self, repository: Repository) -> None:
        (repository.folder / "inner").mkdir()
        (repository.folder / "agent_progress.md").symlink_to("inner/progress.md")
        repository.call("PreCompact")
        assert (repository.folder / "inner" / "progress.md").is_file()

    def test_commands_of_services_are_not_run(self, repository: Repository) -> None:
        mark = repository.folder / "ran"
        service = f"cross_window:\n  services:\n    - {{name: db, command: 'touch {mark}'}}\n"
        (repository.folder / ".ctxctl.yaml").write_text(service)
        repository.call("PreCompact")
        repository.call("SessionStart", source="compact")
        repository.call("Stop", "--require-clean")
        assert not mark.exists()


class TestResuming:
    def test_nothing_without_a_state(self, repository: Repository) -> None:
        for source in ("startup", "resume", "clear", "compact", None):
            assert repository.call("SessionStart", source=source).out == ""
        assert list(repository.folder.iterdir()) == [repository.folder / ".git"]

    @pytest.mark.parametrize(
        "left, brought",
        [
            ({}, False),
            ({"completed_subtasks": ["a"]}, False),
            ({"remaining_subtasks": ["b"]}, True),
            ({"current_subtask": "b"}, True),
            ({"open_issues": ["b"]}, True),
        ],
    )
    def test_a_new_session_gets_what_is_left(self, repository: Repository, left: Any, brought: bool) -> None:
        repository.write_state(**left)
        done = repository.call("SessionStart", source="startup")
        assert bool(done.out) is brought
        if brought:
            assert "move to fetch" in context_of(done)

    @pytest.mark.parametrize("source", ["resume", "clear", "compact"])
    def test_a_session_that_goes_on_gets_it_anyway(self, repository: Repository, source: str) -> None:
        repository.write_state(completed_subtasks=["a"])
        assert "move to fetch" in context_of(repository.call("SessionStart", source=source))

    def test_what_was_done_since_the_checkpoint_is_in_it(self, repository: Repository) -> None:
        repository.call("PreCompact", trigger="auto")
        repository.grow("Also keep the retries below three, please.")
        context_of(repository.call("SessionStart", source="compact"))
        assert repository.state["state_version"] == 2
        assert any("retries below three" in request for request in repository.state["requests"])
        assert repository.state["transcript"]["offset"] == repository.session.stat().st_size

    def test_another_folders_session_is_not_read(self, repository: Repository, samples: Path) -> None:
        foreign = repository.folder / "planted.jsonl"
        shutil.copyfile(samples / "axios-to-fetch.jsonl", foreign)
        repository.write_state(
            remaining_subtasks=["b"], transcript={"path": str(foreign), "offset": 0, "size": 0, "format": "claude-code"}
        )
        text = context_of(repository.call("SessionStart", source="startup"))
        assert "move to fetch" in text and "axios" not in text
        assert "state_version" not in repository.state

    @pytest.mark.slow
    @pytest.mark.parametrize("agent", ["claude-code", "codex", ""])
    @pytest.mark.parametrize("letter", ["w", "ü", "修", "\U0001f600"])
    def test_it_stays_within_what_the_agent_takes(self, repository: Repository, agent: str, letter: str) -> None:
        words = [f"{number} " + letter * 40 for number in range(2000)]
        repository.write_state(remaining_subtasks=words, open_issues=words, learnings=words)
        text = context_of(repository.call("SessionStart", agent=agent, source="compact"))
        size = len(text.encode("utf-16-le")) // 2 if agent == "claude-code" else len(text.encode())
        assert LIMIT // 4 < size <= LIMIT
        assert "move to fetch" in text

    def test_the_budget_of_the_settings_holds(self, repository: Repository) -> None:
        repository.write_state(open_issues=[f"issue number {number} is open" for number in range(500)])
        (repository.folder / ".ctxctl.yaml").write_text("cross_window:\n  resume_budget: 300\n")
        assert len(context_of(repository.call("SessionStart", source="compact"))) < 300 * 6

    def test_a_prompt_that_may_not_come_in_whole_is_a_refusal(self, repository: Repository) -> None:
        repository.write_state(task_goal="goal " * 9000, remaining_subtasks=["b"])
        context_of(repository.call("SessionStart", source="startup"))
        lines = (repository.folder / "agent_audit.jsonl").read_text().splitlines()
        assert [json.loads(line)["type"] for line in lines] == ["budget_refusal", "resume"]
        assert json.loads(lines[0])["data"]["agent_limit"] == LIMIT

    def test_a_goal_that_is_too_long_becomes_a_pointer(self, repository: Repository) -> None:
        repository.write_state(task_goal="move everything " * 4000, current_subtask="first")
        text = context_of(repository.call("SessionStart", source="compact"))
        assert len(text) < 2000 and str(repository.folder / "agent_state.json") in text

    def test_a_credential_does_not_come_back(self, repository: Repository) -> None:
        secret = "sk-ant-api03-" + "a1B2" * 20
        repository.write_state(task_goal=f"rotate {secret}", remaining_subtasks=[f"remove {secret}"])
        assert secret not in context_of(repository.call("SessionStart", source="startup"))


@pytest.fixture
def work_tree(repository: Repository) -> Repository:
    """A real repository with one commit."""
    (repository.folder / ".git").rmdir()
    (repository.folder / "code.py").write_text("x = 1\n")
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (["init", "-q"], ["add", "code.py"], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=repository.folder, check=True, capture_output=True)
    lines = repository.session.read_text(encoding="utf-8").splitlines()
    here = [json.dumps({**json.loads(line), **({"cwd": str(repository.folder)})}) for line in lines]
    repository.session.write_text("\n".join(here) + "\n", encoding="utf-8")
    return repository


class TestRequireClean:
    def test_an_agent_is_sent_back_once(self, work_tree: Repository) -> None:
        (work_tree.folder / "code.py").write_text("x = 2\n")
        value = work_tree.call("Stop", "--require-clean", stop_hook_active=False).json()
        assert set(value) == {"decision", "reason"} and value["decision"] == "block"
        assert "code.py" in value["reason"]
        assert work_tree.call("Stop", "--require-clean", stop_hook_active=True).out == ""

    def test_all_clean(self, work_tree: Repository) -> None:
        assert work_tree.call("Stop", "--require-clean").out == ""
        assert work_tree.state["state_version"] == 1

    def test_the_settings_with_the_hooks_are_no_work_left_over(self, work_tree: Repository) -> None:
        settings = work_tree.folder / ".claude"
        settings.mkdir()
        for name in ("settings.local.json", "settings.local.json.bak"):
            (settings / name).write_text("{}")
        assert work_tree.call("Stop", "--require-clean").out == ""
        (settings / "agents.md").write_text("mine")
        assert ".claude/" in work_tree.call("Stop", "--require-clean").json()["reason"]

    def spoil_transcript(self, tree: Repository) -> None:
        tree.session.write_text("no transcript\n")

    def spoil_state(self, tree: Repository) -> None:
        (tree.folder / "agent_state.json").write_text("{")

    def remove_transcript(self, tree: Repository) -> None:
        tree.session.unlink()

    def make_older(self, tree: Repository) -> None:
        lines = [json.loads(line) for line in tree.session.read_text(encoding="utf-8").splitlines()]
        old = [{**line, **({"timestamp": "2020-01-01T00:00:00Z"} if "timestamp" in line else {})} for line in lines]
        tree.session.write_text("".join(json.dumps(line) + "\n" for line in old), encoding="utf-8")

    @pytest.mark.parametrize("how", ["spoil_transcript", "remove_transcript", "make_older", "spoil_state", "lock"])
    @pytest.mark.parametrize("saved", [True, False])
    def test_also_when_the_save_fails(self, work_tree: Repository, how: str, saved: bool) -> None:
        (work_tree.folder / "code.py").write_text("x = 2\n")
        if saved:
            work_tree.call("PreCompact")
        elif how == "make_older":
            pytest.skip("nothing that it could be older than")
        handle = os.open(work_tree.folder, os.O_RDONLY)
        if how == "lock":
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            getattr(self, how)(work_tree)
        before = {path.name: path.read_bytes() for path in work_tree.folder.glob("agent_*")}
        reason = work_tree.call("Stop", "--require-clean").json()["reason"]
        assert "code.py" in reason and "progress" not in reason
        assert "error: " in work_tree.log and "sent back" in work_tree.log
        os.close(handle)
        assert {path.name: path.read_bytes() for path in work_tree.folder.glob("agent_*")} == before
        assert work_tree.call("Stop", "--require-clean", stop_hook_active=True).out == ""

    def test_nothing_left_over_and_a_save_that_fails(self, work_tree: Repository) -> None:
        self.spoil_transcript(work_tree)
        assert work_tree.call("Stop", "--require-clean").out == "" and "error: " in work_tree.log

    def test_only_where_it_was_asked_for(self, work_tree: Repository) -> None:
        (work_tree.folder / "code.py").write_text("x = 2\n")
        assert work_tree.call("Stop").out == ""
        assert work_tree.call("SessionEnd", "--require-clean").out == ""


@pytest.mark.slow
class TestNeverBreaks:
    @pytest.mark.parametrize(
        "data", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"hook_event_name": {}}', b"[" * 90_000]
    )
    def test_what_is_no_event(self, repository: Repository, data: bytes) -> None:
        assert repository.raw(data).out == ""
        assert "error: " in repository.log and "Traceback" not in repository.log

    @pytest.mark.parametrize(
        "fields, word",
        [
            ({"transcript_path": "/no/where.jsonl"}, "no such transcript"),
            ({"transcript_path": None}, "transcript_path"),
            ({"transcript_path": "/"}, "no such transcript"),
            ({"cwd": "/no/where"}, "no such folder"),
            ({"cwd": None}, "cwd"),
            ({"cwd": "a\0b"}, ""),
            ({"transcript_path": "a\0b"}, ""),
        ],
    )
    def test_what_is_not_there(self, repository: Repository, fields: Any, word: str) -> None:
        assert repository.call("PreCompact", **fields).out == ""
        assert "error: " in repository.log and word in repository.log
        assert list(repository.folder.iterdir()) == [repository.folder / ".git"]

    def test_an_event_that_is_not_ours(self, repository: Repository) -> None:
        assert repository.call("PostToolUse").out == ""
        assert "not an event" in repository.log

    def test_words_that_it_does_not_know(self, repository: Repository) -> None:
        repository.call("PreCompact", "--fast", "--deadline", "soon", "more", agent="claud-code")
        assert repository.state["state_version"] == 1
        for word in ("--fast", "--deadline", "more", "claud-code"):
            assert word in repository.log

    def test_a_damaged_state_stays(self, repository: Repository) -> None:
        (repository.folder / "agent_state.json").write_text("{")
        assert repository.call("PreCompact").out == ""
        assert repository.call("SessionStart", source="compact").out == ""
        assert (repository.folder / "agent_state.json").read_text() == "{"
        assert repository.log.count("error: ") == 2

    def test_a_transcript_of_no_known_format(self, repository: Repository) -> None:
        repository.session.write_text("hello\n")
        assert repository.call("PreCompact").out == ""
        assert "error: " in repository.log

    def test_settings_that_are_refused(self, repository: Repository) -> None:
        (repository.folder / ".ctxctl.yaml").write_text("cross_windows: {}\n")
        repository.call("PreCompact")
        assert repository.state["state_version"] == 1
        assert ".ctxctl.yaml:1" in repository.log and "defaults" in repository.log

    def test_a_lock_that_stays_taken(self, repository: Repository) -> None:
        handle = os.open(repository.folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        began = time.monotonic()
        assert repository.call("PreCompact").out == ""
        os.close(handle)
        assert time.monotonic() - began < 3 and "another process" in repository.log

    @pytest.mark.parametrize("how", ["another process", "pipe", "folder", "notes"])
    def test_a_trail_that_can_t_be_written(self, repository: Repository, how: str) -> None:
        """The prompt and the state are delivered all the same, and in time."""
        repository.call("PreCompact")
        repository.grow("One thing more.")
        trail = repository.folder / "agent_audit.jsonl"
        handle = os.open(trail, os.O_RDWR)
        if how == "another process":
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            trail.unlink()
            {"pipe": os.mkfifo, "folder": os.mkdir, "notes": lambda path: path.write_text("mine\n")}[how](trail)
        began = time.monotonic()
        context_of(repository.call("SessionStart", source="compact"))
        assert repository.state["state_version"] == 2
        repository.grow("And one more.")
        repository.call("Stop")
        os.close(handle)
        assert repository.state["state_version"] == 3
        assert time.monotonic() - began < 6
        assert repository.log.count("not in the audit trail") == 3

    def test_a_deadline_amid_the_work(self, repository: Repository) -> None:
        repository.call("PreCompact")
        was = (repository.folder / "agent_state.json").read_bytes()
        repository.grow("One thing more.")
        handle = os.open(repository.folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert repository.call("PreCompact", "--deadline", "0.05").out == ""
        os.close(handle)
        assert (repository.folder / "agent_state.json").read_bytes() == was
        assert "the time is" in repository.log
        assert not [path for path in repository.folder.iterdir() if path.name.endswith(".tmp")]

    def test_a_full_disk(self, repository: Repository) -> None:
        repository.call("PreCompact")
        held = {path.name: path.read_bytes() for path in repository.folder.glob("agent_*")}
        repository.grow("One thing more.")
        event = {
            "hook_event_name": "PreCompact",
            "cwd": str(repository.folder),
            "transcript_path": str(repository.session),
        }
        done = subprocess.run(
            ["bash", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$0" -m ctxctl hook run codex', sys.executable],
            input=json.dumps(event).encode(),
            env={"PATH": os.environ["PATH"], "CTXCTL_HOOK_LOG": "off", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=30,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert {path.name: path.read_bytes() for path in repository.folder.glob("agent_*")} == held

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nobody may write")
    def test_a_folder_that_takes_no_files(self, repository: Repository) -> None:
        assert repository.call("PreCompact", "--state-dir", "/proc/self").out == ""
        assert "error: " in repository.log and "Traceback" not in repository.log

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_read_only_folder(self, repository: Repository) -> None:
        repository.folder.chmod(0o500)
        assert repository.call("PreCompact").out == ""
        repository.folder.chmod(0o700)
        assert "error: " in repository.log

    def test_the_log_can_be_off_or_unwritable(self, repository: Repository) -> None:
        for value in ("off", "/dev/null/hook.log"):
            repository.raw(b"{", CTXCTL_HOOK_LOG=value)
        assert not repository.log_file.exists()
        assert not (repository.folder.parent / "home" / ".local").exists()

    def test_by_default_the_log_lies_in_the_state_home(self, repository: Repository) -> None:
        home = repository.folder.parent / "state home"
        repository.raw(b"{", CTXCTL_HOOK_LOG="", XDG_STATE_HOME=str(home))
        assert (home / "ctxctl" / "hook.log").read_text()

    def test_a_closed_stdout_and_nobody_who_reads(self, repository: Repository) -> None:
        repository.write_state(remaining_subtasks=["b"])
        event = json.dumps({"hook_event_name": "SessionStart", "source": "clear", "cwd": str(repository.folder)})
        for redirect in (">&-", "<&-", "2>&-", ">/dev/full"):
            done = subprocess.run(
                ["bash", "-c", f'printf %s "$EVENT" | "$0" -m ctxctl hook run codex {redirect}', sys.executable],
                env={"PATH": os.environ["PATH"], "EVENT": event, "HOME": str(repository.folder.parent)},
                capture_output=True,
                timeout=30,
            )
            assert (done.returncode, done.stderr) == (0, b""), redirect

    def test_it_ends_before_the_agents_patience(self, repository: Repository) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "ctxctl", "hook", "run", "--deadline", "0.4"],
            env={"PATH": os.environ["PATH"], "CTXCTL_HOOK_LOG": str(repository.log_file)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        began = time.monotonic()
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 3 and "the time" in repository.log
        process.communicate()


def test_the_command_line_is_not_loaded_for_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ctxctl", "hook", "run", "codex"],
        input=b'{"hook_event_name": "SessionStart", "cwd": "/"}',
        env={"PATH": os.environ["PATH"], "CTXCTL_HOOK_LOG": str(tmp_path / LOG)},
        capture_output=True,
        timeout=30,
    )
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert done.returncode == 0 and "ctxctl.cli.hook_run" in loaded
    assert not {"typer", "rich", "rich.console", "ctxctl.cli.app"} & loaded

"""The Codex sample: a retry test that fails once in fifteen runs turns out to be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .codex_log import Call, CodexLog, message, patch, plan, shell, shell_output
from .core import Clock, bundle, hex_id, uuid7, write_jsonl

CWD = "/home/dev/ledger-sync"
MODEL = "gpt-5.2-codex"
STEPS = [
    "Reproduce and measure the failure rate",
    "Find the cause",
    "Fix ledger_sync/retry.py without breaking callers",
    "Make the test independent of real time",
    "Run it 300 times, types, lint",
    "Commit",
]
FAILED = """============================= test session starts ==============================
collected 3 items

tests/test_retry.py .F.                                                  [100%]

=================================== FAILURES ===================================
_________________________ test_sleeps_between_attempts _________________________

monkeypatch = <_pytest.monkeypatch.MonkeyPatch object at 0x7f31c0a4be90>

    def test_sleeps_between_attempts(monkeypatch):
        slept = []
        monkeypatch.setattr(retry.time, "sleep", slept.append)
        answers = iter([Transient("1"), Transient("2"), 5])
    ...
        assert call_with_retry(flaky) == 5
>       assert len(slept) == 2
E       assert 0 == 2
E        +  where 0 = len([])

tests/test_retry.py:30: AssertionError
=========================== short test summary info ============================
FAILED tests/test_retry.py::test_sleeps_between_attempts - assert 0 == 2
========================= 1 failed, 2 passed in 0.82s ==========================
"""
FLAKY = """run 9
>       assert time.monotonic() - started < 0.5 + 0.3
E       assert (48213.774 - 48212.918) < (0.5 + 0.3)
FAILED tests/test_retry.py::test_gives_up_within_deadline
run 23
>       assert time.monotonic() - started < 0.5 + 0.3
E       assert (48239.102 - 48238.285) < (0.5 + 0.3)
FAILED tests/test_retry.py::test_gives_up_within_deadline
run 38
>       assert time.monotonic() - started < 0.5 + 0.3
E       assert (48266.540 - 48265.699) < (0.5 + 0.3)
FAILED tests/test_retry.py::test_gives_up_within_deadline
3 of 40 failed
"""


def ok(tool: dict[str, Any], text: str, seconds: float = 0.1, code: int = 0) -> Call:
    return tool, shell_output(text, code, seconds), seconds


def planned(done: int, note: str = "") -> Call:
    return plan(STEPS, done, note), "Plan updated", 0.01


def patched(text: str, *files: str) -> Call:
    listing = "".join(f"M {f}\n" for f in files)
    return ok(patch(text), "Success. Updated the following files:\n" + listing)


def context() -> dict[str, Any]:
    return {
        "cwd": CWD,
        "current_date": "2026-03-19",
        "timezone": "Europe/Lisbon",
        "approval_policy": "on-request",
        "sandbox_policy": {
            "type": "workspace-write",
            "network_access": False,
            "exclude_tmpdir_env_var": False,
            "exclude_slash_tmp": False,
        },
        "model": MODEL,
        "personality": "pragmatic",
        "effort": "medium",
        "summary": "auto",
        "truncation_policy": {"mode": "tokens", "limit": 10000},
    }


def build(folder: Path) -> CodexLog:
    text = {k: v.rstrip("\n") for k, v in bundle("codex_texts.txt").items()}
    log = CodexLog(Clock("2026-03-19T15:22:40.114"), overhead=6_940, prefix=6_912)
    meta = {
        "id": uuid7("codex/session", log.clock.now),
        "timestamp": log.clock.iso(),
        "cwd": CWD,
        "originator": "codex_cli_rs",
        "cli_version": "0.114.0",
        "source": "cli",
        "model_provider": "openai",
        "base_instructions": {"text": text["base"]},
        "git": {
            "commit_hash": hex_id("ledger-sync", 40),
            "branch": "fix/flaky-retry",
            "repository_url": "git@github.com:example/ledger-sync.git",
        },
    }
    log.write("session_meta", meta, 2.2)
    first = [message("developer", text["permissions"]), message("user", text["agents"], text["environment"])]
    for item in first:
        log.item(item)
    investigate(log, text)
    repair(log, text)
    log.start_turn(48.0, None)
    log.compacted(text["summary"], [*first, message("user", text["user-1"])])
    log.event("context_compacted")
    log.end_turn(None)
    conclude(log, text)
    write_jsonl(folder / "codex-rollout.jsonl", log.records)
    return log


def investigate(log: CodexLog, text: dict[str, str]) -> None:
    log.start_turn(0.1, context())
    log.user(text["user-1"])
    log.token_count(empty=True)  # rate limits only
    found = "ledger_sync/__init__.py:4:from ledger_sync.retry import Backoff, DeadlineExceeded, call_with_retry\n"
    found += "ledger_sync/feed.py:61:        return call_with_retry(lambda: self._fetch(cursor), self.backoff)\n"
    found += "ledger_sync/push.py:38:    call_with_retry(lambda: post(batch), Backoff(deadline=5.0))\n"
    found += "tests/test_retry.py:7:from ledger_sync.retry import Backoff, DeadlineExceeded, call_with_retry\n"
    log.call(
        ok(shell("rg -n 'call_with_retry|Backoff\\b' --type py"), found),
        ok(shell("cat ledger_sync/retry.py"), text["retry.py"] + "\n"),
        think=text["r-1"],
        say=text["m-1"],
    )
    log.call(ok(shell("cat tests/test_retry.py"), text["test_retry.py"] + "\n"))
    log.call(planned(0), think=text["r-2"], say=text["m-2"])
    loop = (
        "for i in $(seq 40); do echo run $i; uv run pytest -q -x tests/test_retry.py 2>&1 | grep -E '^(>|E|FAILED)'; "
    )
    loop += 'done | awk \'/^run/{r=$0;next} r{print r; r=""} {print} /FAILED/{n++} END{print n+0" of 40 failed"}\''
    log.call(ok(shell(loop), FLAKY, 61.8), think=text["r-3"])
    log.token_count()  # the same count once more
    history = "4c1f0aa 2025-11-06 Retry: make the deadline configurable\n9be2d10 2025-09-22 Add retry with back-off\n"
    log.call(ok(shell("git log --format='%h %as %s' -- ledger_sync/retry.py"), history), say=text["m-4"])
    script = f"uv run python - <<'EOF'\n{text['simulation']}\nEOF"
    shown = "late: 6.8%, worst: 0.37 s over the deadline\n"
    log.call(ok(shell(script), shown, 0.4), think=text["r-5"], say=text["m-5"])
    note = "The test is right: the last sleep is not limited to the time left."
    log.call(planned(2, note), say=text["m-6"])


def repair(log: CodexLog, text: dict[str, str]) -> None:
    log.call(patched(text["patch-1"], "ledger_sync/retry.py"), think=text["r-7"], say=text["m-8"])
    log.call(ok(shell("uv run pytest tests/test_retry.py"), FAILED, 1.6, 1))
    log.call(patched(text["patch-2"], "ledger_sync/retry.py", "tests/test_retry.py"), say=text["m-9"])
    dots = "." * 72 + " [ 77%]\n" + "." * 21 + " " * 51 + " [100%]\n93 passed in 0.42s\n"
    log.call(ok(shell("uv run pytest -q"), dots, 1.1), planned(4), say=text["m-10"])
    log.call(say=text["final-1"], final=True)
    log.end_turn(text["final-1"])


def conclude(log: CodexLog, text: dict[str, str]) -> None:
    log.start_turn(21.0, context())
    log.user(text["user-2"])
    loop = "for i in $(seq 300); do uv run pytest -q tests/test_retry.py || exit 1; done | grep -c '23 passed'"
    log.call(ok(shell(loop), "300\n", 104.0), say=text["m-12"])
    checks = "Success: no issues found in 14 source files\nAll checks passed!\n"
    log.call(ok(shell("uv run mypy ledger_sync && uv run ruff check ."), checks, 6.2), say=text["m-13"])
    commit = "[fix/flaky-retry b81d4e6] Clip retry delays to the remaining time\n"
    commit += " 2 files changed, 54 insertions(+), 15 deletions(-)\n"
    command = "git commit -am 'Clip retry delays to the remaining time'"
    log.call(ok(shell(command), commit, 0.3), planned(6), say=text["m-14"])
    log.call(say=text["final-2"], final=True)
    log.end_turn(text["final-2"])

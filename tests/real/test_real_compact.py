"""Real sessions, compacted to four sizes: what comes out may be sent and meets its target, or the target is below a
floor that is told independently of ctxctl; and a second pass changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from real_readers import objects, paths

TOOLS = Path(__file__).parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

from chat_views import view  # noqa: E402
from floor_of import OUTSIDE, floor_of  # noqa: E402
from valid_chat import violations  # noqa: E402

from ctxctl.formats import read  # noqa: E402
from ctxctl.tokens import counter_for, document_tokens, family_for, image_tokens  # noqa: E402

FOLDERS = ("claude-code", "codex", "openai-chat", "message-per-line", "anthropic-messages", "mini-swe-agent")
SESSIONS = [p for folder in FOLDERS for p in paths(folder)]
SAMPLES = sorted(p for p in (TOOLS.parents[1] / "sample_transcripts").glob("*.json*") if p.is_file())
EVERY = [*SESSIONS, *SAMPLES]
SHARES = ("80%", "50%", "20%", "10%")
QUICK = {p for p in EVERY if p.stat().st_size < 100_000 and p.parent.name != "mini-swe-agent"} | set(
    paths("mini-swe-agent")[:1]
)
"""Sessions of every format that are done in the normal run; the others are slow in sum."""
UNREADABLE = {"sample_session.json": 3, "medium-conversation.jsonl": 6, "session-alpha.jsonl": 6}
"""A format that is not read, and two files without a message."""
CODE_BOUND = 0.02


@dataclass(frozen=True)
class Pass:
    """One run of `compact`. out: where it was to write; digest: bytes of the input before it."""

    path: Path
    out: Path
    code: int
    result: Any
    error: str
    digest: bytes

    @property
    def format(self) -> str:
        return str(self.result["format"])


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "TMPDIR", "LD_LIBRARY_PATH")}
    return {**kept, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "LANG": "C.UTF-8", "PYTHONUTF8": "1"}


def run_all(lines: list[list[str]], folder: Path) -> list[tuple[int, str, str]]:
    """Command lines, in two processes side by side."""

    def work(part: list[list[str]]) -> list[Any]:
        if not part:
            return []
        done = subprocess.run(
            [sys.executable, str(TOOLS / "compact_many.py")],
            input="\n".join(json.dumps(line) for line in part).encode(),
            capture_output=True,
            cwd=folder,
            env=_environment(folder),
            timeout=60 + 6 * len(part),
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return [json.loads(row) for row in done.stdout.splitlines()]

    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(work, (lines[::2], lines[1::2])))
    return [tuple(halves[n % 2][n // 2]) for n in range(len(lines))]  # type: ignore[misc]


def compacted(jobs: list[tuple[Path, str]], folder: Path, *, more: tuple[str, ...] = ()) -> list[Pass]:
    """Each input at its target, written to a new file."""
    (folder / ".git").mkdir(exist_ok=True)
    outs = []
    for n, (path, _) in enumerate(jobs):
        place = folder / str(n)
        place.mkdir()
        outs.append(place / path.name)
    before = [path.read_bytes() for path, _ in jobs]
    lines = [
        ["compact", "--json", "--no-recall", "--force", "--to", to, "-o", str(out), *more, str(path)]
        for (path, to), out in zip(jobs, outs, strict=True)
    ]
    return [
        Pass(path, out, code, json.loads(text)["result"] if text else None, error, data)
        for (path, _), out, data, (code, text, error) in zip(jobs, outs, before, run_all(lines, folder), strict=True)
    ]


class Passes:
    """All sessions at all sizes, the quick ones and the others apart, each batch once, with its second pass."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cache  # noqa: B019
    def batch(self, quick: bool) -> tuple[dict[tuple[Path, str], Pass], dict[tuple[Path, str], Pass]]:
        folder = self._root / ("quick" if quick else "slow")
        (folder / "first").mkdir(parents=True)
        (folder / "second").mkdir()
        jobs = [(p, share) for p in EVERY if (p in QUICK) is quick for share in SHARES]
        first = dict(zip(jobs, compacted(jobs, folder / "first"), strict=True))
        done = [job for job in jobs if first[job].code == 0]
        again = [(first[job].out, str(first[job].result["target"])) for job in done]
        return first, dict(zip(done, compacted(again, folder / "second"), strict=True))

    def first(self, path: Path, share: str) -> Pass:
        return self.batch(path in QUICK)[0][path, share]

    def second(self, path: Path, share: str) -> Pass | None:
        return self.batch(path in QUICK)[1].get((path, share))


@pytest.fixture(scope="session")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Passes:
    return Passes(tmp_path_factory.mktemp("compact"))


CASES = [
    pytest.param(p, share, id=f"{name(p)}-{share}", marks=() if p in QUICK else pytest.mark.slow)
    for p in EVERY
    for share in SHARES
]


@pytest.mark.parametrize(("path", "share"), CASES)
def test_may_be_sent_and_fits_or_is_refused(path: Path, share: str, passes: Passes) -> None:
    done = passes.first(path, share)
    assert "Traceback" not in done.error
    assert path.read_bytes() == done.digest
    if path.name in UNREADABLE:
        assert (done.code, done.result) == (UNREADABLE[path.name], None) and not done.out.exists()
        return
    assert done.code in (0, 5), done.error
    if done.code == 5:
        assert not done.out.exists() and not done.result["target_met"]
        assert {Path(name).name for name in done.result["written"]} <= {"agent_audit.jsonl"}  # a refusal is recorded
        assert done.result["target"] < floor(done), done.result["floor"]
        return
    assert violations(path, done.out, done.format, done.digest) == []
    assert done.result["after_tokens"] <= done.result["target"]
    assert recounted(done) <= done.result["target"] * (1 + CODE_BOUND) + 2


@pytest.mark.parametrize(("path", "share"), CASES)
def test_second_pass_changes_nothing(path: Path, share: str, passes: Passes) -> None:
    done, again = passes.first(path, share), passes.second(path, share)
    if done.code != 0:
        assert again is None
        return
    assert again is not None and again.code == 0, again
    if conversations(path) > 1:  # the largest is meant, which now may be another one
        line = compacted_line(done)
        first, second = (run.out.read_bytes().split(b"\n") for run in (done, again))
        assert line is not None and second[line] == first[line]
        return
    assert again.result["changed"] is False and again.result["steps"] == [] and again.result["evicted"] == []
    assert again.out.read_bytes() == done.out.read_bytes()


def conversations(path: Path) -> int:
    """How many conversations a file holds, one per line."""
    rows = [row for row in path.read_bytes().split(b"\n") if row.strip()]
    return len(rows) if all(row.startswith(b"{") and b'"messages"' in row for row in rows) else 1


def compacted_line(done: Pass) -> int | None:
    """Index of the line that a compaction changed."""
    return next((n for n, pair in enumerate(_pairs(done)) if pair[0] != pair[1]), None)


def overhead_of(result: Any) -> int:
    """Tokens of the prompt that no message holds: the one figure that is taken from ctxctl; bounded below."""
    return sum(result["floor"]["causes"].get(cause, 0) for cause in OUTSIDE)


def floor(done: Pass) -> int:
    """The independent floor of an input."""
    model = read(str(done.path), companions=False).model
    counter = done.result["counter"]
    count = counter_for(model, counter["name"], counter["ratio"])
    line = None
    if done.format == "openai-chat":
        line = largest(done.path)
    before = view(done.path, done.format, line)
    return floor_of(before, count, overhead_of(done.result), family_for(model).per_message)


def largest(path: Path) -> int:
    rows = path.read_bytes().split(b"\n")
    return max(range(len(rows)), key=lambda n: len(rows[n])) + 1


def recounted(done: Pass) -> int:
    """Tokens of what was written, with the counter that the result names."""
    transcript = read(str(done.out), companions=False)
    counter = done.result["counter"]
    model = read(str(done.path), companions=False).model
    count, frame = counter_for(model, counter["name"], counter["ratio"]), family_for(model).per_message
    live = [transcript.blocks[n] for n in transcript.live]
    if transcript.conversations:
        changed = next(
            (n for n, pair in enumerate(_pairs(done), 1) if pair[0] != pair[1]),
            largest(done.path),
        )
        chosen = next((c for c in transcript.conversations if c.line == changed), transcript.conversations[-1])
        live = list(transcript.blocks[chosen.first : chosen.last])
    total = overhead_of(done.result)
    total += frame * len({(b.thread, b.message) for b in live})
    for block in live:
        if block.kind == "image":
            media = block.media
            size = (media.width, media.height) if media else (None, None)
            total += image_tokens(*size, family_for(model).image_rule)
        elif block.kind == "document":
            total += document_tokens(block.media.pages if block.media else None)
        else:
            total += count(block.text, block.kind)
    return total


def _pairs(done: Pass) -> list[tuple[bytes, bytes]]:
    return list(zip(done.path.read_bytes().split(b"\n"), done.out.read_bytes().split(b"\n"), strict=False))


CLAUDE = [p for p in paths("claude-code") if p.name not in UNREADABLE and p.suffix == ".jsonl"]


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=name(p), marks=() if p in QUICK else pytest.mark.slow) for p in CLAUDE]
)
def test_overhead_is_no_more_than_the_first_request_after_the_last_compaction(path: Path, passes: Passes) -> None:
    """The one figure that the floor takes from ctxctl."""
    done = passes.first(path, "10%")
    side = [r.get("isSidechain") is True for _, r in objects(path) if r.get("type") == "assistant"]
    first: int | None = None
    for _, record in objects(path):
        if record.get("subtype") == "compact_boundary":
            first = None
        message = record.get("message")
        usage = message.get("usage") if isinstance(message, dict) else None
        if record.get("type") != "assistant" or not isinstance(usage, dict) or message.get("model") == "<synthetic>":
            continue
        if record.get("isSidechain") and not all(side):
            continue
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        tokens = sum(int(usage.get(n) or 0) for n in names)
        first = tokens if first is None and tokens else first
    assert overhead_of(done.result) <= (first or 0)


IN_PLACE = [
    p
    for p in EVERY
    if p.name
    in (
        "entire-5a-c45bc32212-0.jsonl",
        "entire-f5-c0586f2fba-0.jsonl",
        "entire-cd-95adddad32-0.jsonl",
        "tracelab-claude-segment.jsonl",
        "edge_cases.jsonl",
        "tracelab-codex-segment.jsonl",
        "rollout-2025-09-25T09-49-46-01998190-fba6-7f40-9309-dc4e48c5844a.jsonl",
        "rollout-2025-09-24T19-22-20-01997e76-d124-7592-9cac-2ec05abbca08.jsonl",
        "axios-to-fetch.jsonl",
        "codex-rollout.jsonl",
    )
]


APPENDED = [pytest.param(p, id=name(p), marks=() if p in QUICK else pytest.mark.slow) for p in IN_PLACE]


@pytest.mark.parametrize("more", [(), ("--keep-history",)], ids=["in-place", "keep-history"])
@pytest.mark.parametrize("path", APPENDED)
def test_in_place(path: Path, more: tuple[str, ...], tmp_path: Path) -> None:
    """The file itself becomes a session that may be sent, its original stays beside it, and it does so once."""
    target = tmp_path / path.name
    shutil.copy(path, target)
    original = target.read_bytes()
    line = ["compact", "--json", "--no-recall", "--force", "--in-place", *more, "--to"]
    ((code, text, error),) = run_all([[*line, "92%", str(target)]], tmp_path)
    assert code == 0, error
    result = json.loads(text)["result"]
    assert result["after_tokens"] <= result["target"]
    backup = Path(result["backup"])
    assert backup.read_bytes() == original
    assert [v for v in violations(backup, target, result["format"]) if not v.startswith("V10 session ids")] == []
    if more:
        rows = [json.loads(row) for row in target.read_bytes().splitlines()]
        assert len(rows) > original.count(b"\n") or not result["changed"]
    written = target.read_bytes()
    ((code, text, error),) = run_all([[*line, str(result["target"]), str(target)]], tmp_path)
    assert code == 0 and json.loads(text)["result"]["changed"] is False, error
    assert target.read_bytes() == written


@pytest.mark.parametrize("path", APPENDED)
def test_history_kept_in_a_new_file(path: Path, tmp_path: Path) -> None:
    (done,) = compacted([(path, "92%")], tmp_path, more=("--keep-history",))
    assert done.code == 0, done.error
    assert violations(path, done.out, done.format, done.digest) == []
    (again,) = compacted([(done.out, str(done.result["target"]))], _folder(tmp_path), more=("--keep-history",))
    assert again.code == 0 and again.result["changed"] is False
    assert again.out.read_bytes() == done.out.read_bytes()


def _folder(root: Path) -> Path:
    place = root / "again"
    place.mkdir()
    return place

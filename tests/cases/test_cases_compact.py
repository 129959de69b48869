"""What the handed cases on pairing, thinking and compaction say, held to `ctxctl compact`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from case_messages import CASES, case, lines, messages_of, newest_user, parts, said, valid

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the handed cases (../shared/cases) are not here")


@pytest.fixture
def compacted(within: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """`compacted(number, *options)`: (what was done, the messages written or None). The input stays as it is, and what
    was written is valid."""

    def run(number: str, *options: str, name: str = "input.jsonl") -> Any:
        source, out = case(number, name), folder / "out.jsonl"
        before = source.read_bytes()
        done = within("compact", "--json", "--force", "--no-recall", "-o", out, *options, source)
        assert source.read_bytes() == before
        if done.status == 5:
            assert not out.exists() or out.unlink() is None
            return done, None
        if not out.exists():
            return done, None
        if not done.result["changed"]:  # the same bytes, whatever they are
            assert out.read_bytes() == before
            return done, None
        messages = messages_of(out)
        valid(messages)
        assert done.result["after_tokens"] <= min(done.result["before_tokens"], done.result["target"])
        out.unlink()
        return done, messages

    return run


# pairing


@pytest.mark.parametrize("strategy", [None, "conversation", "extractive", "progressive", "tool-results", "first-line"])
def test_029_every_budget(strategy: str | None, compacted: Any) -> None:
    size = compacted("029", "--to", "100%")[0].result["before_tokens"]
    system = lines(case("029"))[0]["content"]
    met = 0
    for budget in [*range(1, size, max(1, size // 24)), size - 1, size, size + 1]:
        options = ("-s", strategy) if strategy else ()
        done, messages = compacted("029", "--to", str(budget), *options)
        assert done.status in (0, 5)
        if messages is not None:
            met += 1
            assert messages[0]["role"] == "system" and messages[0]["content"] == system
            assert newest_user(messages) == "go on" and sum(m.get("content") == "go on" for m in messages) == 1
    assert met >= 4


def test_031_a_batch_is_one(compacted: Any) -> None:
    size = compacted("031", "--to", "100%")[0].result["before_tokens"]
    for budget in range(1, size + 1, max(1, size // 12)):
        _, messages = compacted("031", "--to", str(budget))
        if messages is not None:
            calls = {id_ for m in messages for _, kind, id_ in parts(m) if kind == "call"}
            assert calls in (set(), {"p1", "p2", "p3"})


def test_032_what_fits_is_the_same(within: Any, folder: Path) -> None:
    out = folder / "out.jsonl"
    done = within("compact", "--to", "100000", "--json", "-o", out, case("032"))
    assert done.status == 0 and done.result["changed"] is False and done.result["evicted"] == []
    assert out.read_bytes() == case("032").read_bytes()
    copy = folder / "copy.jsonl"
    shutil.copy(case("032"), copy)
    os.utime(copy, (1_700_000_000, 1_700_000_000))
    assert within("compact", "--to", "100000", "--in-place", copy).status == 0
    assert sorted(p.name for p in folder.iterdir()) == ["copy.jsonl", "out.jsonl"]


def test_035_a_pending_call_stays(within: Any, folder: Path, save: Any) -> None:
    source, out = case("035"), folder / "out.jsonl"
    call = lines(source)[-1]
    size = within("compact", "--to", "100%", "--dry-run", "--json", source).result["before_tokens"]
    written = 0
    for budget in range(1, size + 1, max(1, size // 12)):
        done = within("compact", "--to", str(budget), "--force", "--no-recall", "-o", out, source)
        assert done.status in (0, 5)
        if done.status == 0:
            written += 1
            records = lines(out)
            last = next(r for r in reversed(records) if "uuid" in r)
            assert last["uuid"] == call["uuid"] and last["message"] == call["message"]
            followed = out.read_bytes() + case("035", "followup.jsonl").read_bytes()
            valid([r["message"] for r in said(lines(followed if followed.endswith(b"\n") else followed + b"\n"))])
            out.unlink()
    assert written


@pytest.mark.parametrize("number", ["036", "040", "045"])
def test_what_was_broken_comes_out_valid(number: str, compacted: Any) -> None:
    size = compacted(number, "--to", "100%")[0].result["before_tokens"]
    written = 0
    for budget in range(1, size, max(1, size // 12)):
        done, messages = compacted(number, "--to", str(budget))
        written += done.status == 0
        if messages is not None and number == "045":
            assert not any(kind == "thinking" for m in messages for _, kind, _ in parts(m))
    assert written


def test_037_both_results_survive(compacted: Any) -> None:
    size = compacted("037", "--to", "100%", "--dry-run")[0].result["before_tokens"]
    done, messages = compacted("037", "--to", str(size - 1), "--pin", "kind=tool_result", "--pin", "kind=tool_call")
    if messages is not None:
        text = json.dumps(messages)
        assert "result one" in text and "result two" in text
    done, _ = compacted("037", "--to", "1")
    assert done.status == 5


# thinking


def test_043_the_newest_thinking_is_byte_for_byte(within: Any, folder: Path) -> None:
    source, out = case("043"), folder / "out.jsonl"
    kept = [r["message"]["content"] for r in lines(source) if r.get("message", {}).get("id") == "msg_new"]
    size = within("compact", "--to", "100%", "--dry-run", "--json", source).result["before_tokens"]
    written = 0
    for budget in range(1, size + 1, max(1, size // 16)):
        done = within("compact", "--to", str(budget), "--force", "--no-recall", "-o", out, source)
        assert done.status in (0, 5)
        if done.status == 5:
            continue
        written += 1
        records = lines(out)
        assert [r["message"]["content"] for r in records if r.get("message", {}).get("id") == "msg_new"] == kept
        old = [
            block
            for r in lines(source)
            if r.get("message", {}).get("id") == "msg_old"
            for block in r["message"]["content"]
        ]
        for record in records:
            if record.get("message", {}).get("id") == "msg_old":
                assert all(b in old for b in record["message"]["content"] if b["type"] in ("thinking",))
        out.unlink()
    assert written


# compaction


def test_046_the_floor_is_said_at_once(within: Any, folder: Path, save: Any) -> None:
    source = save(case("046").read_bytes(), "floor.jsonl")
    os.utime(source, (1_700_000_000, 1_700_000_000))
    for way in (("-o", folder / "out.jsonl"), ("--in-place",), ("-o", "-")):
        started = time.monotonic()
        done = within("compact", "--to", "1000", *way, source)
        assert time.monotonic() - started < 10 and done.status == 5
        assert "1,000 tokens can't be met" in done.err and "(system " in done.err
        assert sorted(p.name for p in folder.iterdir()) == ["floor.jsonl"]
    found = within("compact", "--to", "1000", "--json", "--dry-run", source).result
    assert found["floor"]["tokens"] > 1000 and next(iter(found["floor"]["causes"])) == "system"
    assert source.read_bytes() == case("046").read_bytes()


@pytest.mark.parametrize("policy", ["fifo", "hybrid", "summarize", "priority-tiers"])
def test_046_a_simulation_gives_up(policy: str, within: Any) -> None:
    done = within("simulate", "--window", "1000", "--policy", policy, "--timeline", "--json", case("046"))
    assert done.status in (0, 5), done.err
    (run,) = [r for r in done.result["runs"] if r["policy"] == policy]
    futile = [step["turn"] for step in run["steps"] if step["evicted"] == 0 and step.get("compacted", 0) < 0]
    assert run["compactions"] + run["evictions"] <= len(run["steps"]) and len(futile) <= 1


@pytest.mark.parametrize("answered", [False, True])
def test_048_one_result_larger_than_the_window(answered: bool, within: Any, folder: Path, save: Any) -> None:
    """A result that no call has answered may not be touched: it is named. Once it was answered it is shortened."""
    out, records = folder / "out.jsonl", lines(case("048"))
    if answered:
        records.append({"role": "assistant", "content": "I have read it."})
        records.append({"role": "user", "content": "Good, and now?"})
    source = save(records)
    done = within("compact", "--to", "4000", "--window", "4000", "--json", "-o", out, source)
    if not answered:
        assert done.status == 5 and not out.exists()
        assert "block 2.0" in done.err and "larger than" in done.err
        return
    assert done.status == 0 and done.result["after_tokens"] <= 4000 and done.result["target_met"] is True
    messages = messages_of(out)
    valid(messages)
    assert newest_user(messages) == "Good, and now?"
    text = json.dumps(messages)
    assert len(text) < 20_000
    assert any(size in text for size in ("60000", "60,000")), text[:900]


def test_048_the_helper_gets_no_more_than_its_window(within: Any, folder: Path, save: Any) -> None:
    (folder / ".ctxctl.yaml").write_text("compaction: {llm: {window: 2000, retries: 0}}\n")
    source = save([*lines(case("048")), {"role": "assistant", "content": "Read."}, {"role": "user", "content": "Now?"}])
    os.utime(source, (1_700_000_000, 1_700_000_000))
    sizes = folder / "sizes"
    command = f"wc -c >> {sizes}; echo short"
    done = within("compact", "--to", "1000", "--llm", command, "--json", "-o", folder / "o.jsonl", source)
    assert done.status == 0, done.err
    asked = [int(n) for n in sizes.read_text().split()]
    assert len(asked) > 5 and max(asked) < 2000 * 5


COMMANDS = {
    "fails": ("sh -c 'echo Error generating summary: 429; exit 1'", "exit status 1"),
    "empty": ("true", "empty"),
    "blank": ("printf ' \\n\\n'", "empty"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_049_a_summary_that_fails(name: str, within: Any, folder: Path) -> None:
    command, said = COMMANDS[name]
    (folder / ".ctxctl.yaml").write_text("compaction: {llm: {retries: 0}}\n")
    out, source = folder / "out.jsonl", case("049")
    before = source.read_bytes()
    options = ("--to", "50%", "-s", "conversation", "--llm", command, "-o", out)
    done = within("compact", *options, "--on-llm-failure", "fail", source)
    assert done.status == 5 and done.out == b"" and "the summary failed" in done.err and said in done.err
    assert [p.name for p in folder.iterdir()] == [".ctxctl.yaml"] and source.read_bytes() == before
    done = within("compact", *options, "--json", source)
    assert done.status == 0 and said in done.result["steps"][0]["fallback"] and said in done.err
    assert done.result["llm"]["failures"] >= 1 and source.read_bytes() == before
    valid(messages_of(out))
    assert all(b"Error generating summary" not in p.read_bytes() for p in folder.iterdir())


@pytest.mark.parametrize("target", ["2500", "2300", "2000"])
def test_051_the_newest_request_stays(target: str, compacted: Any) -> None:
    done, messages = compacted("051", "--to", target)
    if target == "2000":  # the last result alone has 2,100 tokens here, and no call has answered it
        assert done.status == 5 and "results not answered yet" in done.result["floor"]["causes"]
        return
    assert done.status == 0
    asked = next(m["content"] for m in lines(case("051")) if str(m.get("content")).startswith("Task Y: first"))
    assert asked.endswith("then stop.")
    text = [m["content"] for m in messages if m["role"] == "user" and not str(m["content"]).startswith("[summary]")]
    assert text[-1] == asked and sum(json.dumps(m).count(json.dumps(asked)[1:-1]) for m in messages) == 1
    at = next(n for n, m in enumerate(messages) if m["content"] == asked)
    assert not any("Task X" in json.dumps(m) for m in messages[at + 1 :])


def test_053_nothing_grows(compacted: Any, within: Any, folder: Path) -> None:
    size = compacted("053", "--to", "100%")[0].result["before_tokens"]
    for to in [*map(str, range(1, size)), "50%", "10%", "90%"]:
        done, messages = compacted("053", "--to", to)
        assert done.result["after_tokens"] <= done.result["before_tokens"]
        if messages is not None:
            assert len(json.dumps(messages)) <= len(json.dumps(lines(case("053"))))


@pytest.mark.parametrize("name", ["system-only", "system-list", "empty-user"])
@pytest.mark.parametrize("budget", ["50", "60", "1000"])
def test_055_edges_stay_as_they_are(name: str, budget: str, within: Any, folder: Path) -> None:
    out, source = folder / "out.jsonl", case("055", f"{name}.jsonl")
    done = within("compact", "--to", budget, "-o", out, source)
    assert done.status == 0 and out.read_bytes() == source.read_bytes()


def test_055_an_empty_file(within: Any, folder: Path) -> None:
    done = within("compact", "--to", "50", "-o", folder / "out.jsonl", case("055", "empty.jsonl"))
    assert done.status == 6 and done.out == b"" and list(folder.iterdir()) == []

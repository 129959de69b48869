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
from valid_chat import violations

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


@pytest.mark.parametrize("listed", [False, True])
def test_036_ids_are_unique_afterwards(listed: bool, within: Any, folder: Path, save: Any) -> None:
    """Where both calls stay, the second one and its result have an id of their own."""
    first, *rest = lines(case("036"))
    records = [first, {"role": "assistant", "content": "w " * 2000}, *rest, {"role": "user", "content": "next"}]
    source = save([{"messages": records}] if listed else records)
    out = folder / "out.jsonl"
    done = within("compact", "--to", "40%", "--json", "--no-recall", "-s", "conversation", "-o", out, source)
    assert done.status == 0 and done.result["changed"], done.err
    messages = lines(out)[0]["messages"] if listed else lines(out)
    calls, results = ([id_ for m in messages for _, kind, id_ in parts(m) if kind == s] for s in ("call", "result"))
    assert calls == ["call_A", "call_B", "call_A_2"] and sorted(results) == sorted(calls)
    assert [note["code"] for note in done.result["diagnostics"]] == ["renamed_ids"]


def test_one_id_for_calls_side_by_side(within: Any, folder: Path, save: Any) -> None:
    """Their results follow in their order; what was written reads back as planned."""
    body = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {n}}}'}} for n in (1, 2)]
    records = [
        {"role": "user", "content": "two jobs"},
        {"role": "assistant", "content": "w " * 2000},
        {"role": "assistant", "content": None, "tool_calls": body},
        {"role": "tool", "tool_call_id": "c", "content": "one"},
        {"role": "tool", "tool_call_id": "c", "content": "two"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "next"},
    ]
    out = folder / "out.jsonl"
    done = within("compact", "--to", "40%", "--json", "--no-recall", "-o", out, save(records))
    assert done.status == 0, done.err
    messages = lines(out)
    valid(messages)
    results = [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]
    assert results == [("c", "one"), ("c_2", "two")]


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
        assert sorted(p.name for p in folder.iterdir()) == ["agent_audit.jsonl", "floor.jsonl"]  # a refusal is recorded
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


@pytest.mark.parametrize("target", [4000, 1000])
@pytest.mark.parametrize("answered", [False, True])
def test_048_one_result_larger_than_the_window(
    answered: bool, target: int, within: Any, folder: Path, save: Any
) -> None:
    """It is shortened, once it was answered and, as the last resort, before too: nothing could be sent otherwise."""
    out, records = folder / "out.jsonl", lines(case("048"))
    if answered:
        records.append({"role": "assistant", "content": "I have read it."})
        records.append({"role": "user", "content": "Good, and now?"})
    source = save(records)
    to = ("--to", str(target), "--window", "4000", "--json")
    done = within("compact", *to, "-o", out, source)
    assert done.status == 0 and done.result["after_tokens"] <= target and done.result["target_met"] is True
    messages = messages_of(out)
    valid(messages)
    assert newest_user(messages) == newest_user(records)
    text = json.dumps(messages)
    assert len(text) < 20_000
    assert any(size in text for size in ("60000", "60,000")), text[:900]
    steps = [step["strategy"] for step in done.result["steps"]]
    assert ("unanswered-results" in steps) is not answered
    if not answered:
        assert len(messages) == len(records) and "of 60000 characters left out" in text
        assert [m for m in messages if m["role"] != "tool"] == [m for m in records if m["role"] != "tool"]
    again = folder / "again.jsonl"
    done = within("compact", *to, "-o", again, out)
    assert done.status == 0 and done.result["changed"] is False and again.read_bytes() == out.read_bytes()


def test_048_what_is_asked_to_stay_is_named(within: Any, folder: Path, save: Any) -> None:
    """A result that may not be cut and is larger than the target is the reason."""
    out = folder / "out.jsonl"
    to = ("--to", "4000", "--window", "4000", "--keep-turns", "1")
    done = within("compact", *to, "--json", "-o", out, save(lines(case("048"))))
    assert done.status == 5 and not out.exists()
    assert "block 2.0" in done.err and "larger than" in done.err


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
    assert {p.name for p in folder.iterdir()} == {".ctxctl.yaml", "agent_audit.jsonl"} and source.read_bytes() == before
    done = within("compact", *options, "--json", source)
    assert done.status == 0 and said in done.result["steps"][0]["fallback"] and said in done.err
    assert done.result["llm"]["failures"] >= 1 and source.read_bytes() == before
    valid(messages_of(out))
    assert all(b"Error generating summary" not in p.read_bytes() for p in folder.iterdir())


@pytest.mark.parametrize("target", ["2500", "2300", "2000"])
def test_051_the_newest_request_stays(target: str, compacted: Any) -> None:
    done, messages = compacted("051", "--to", target)
    assert done.status == 0
    # the last result alone has 2,100 tokens here, and no call has answered it: it is cut only where all else is done
    assert ("unanswered-results" in [s["strategy"] for s in done.result["steps"]]) is (target == "2000")
    asked = next(m["content"] for m in lines(case("051")) if str(m.get("content")).startswith("Task Y: first"))
    assert asked.endswith("then stop.")
    text = [m["content"] for m in messages if m["role"] == "user" and not str(m["content"]).startswith("[summary]")]
    assert text[-1] == asked and sum(json.dumps(m).count(json.dumps(asked)[1:-1]) for m in messages) == 1
    at = next(n for n, m in enumerate(messages) if m["content"] == asked)
    assert not any("Task X" in json.dumps(m) for m in messages[at + 1 :])


@pytest.mark.parametrize("target", ["60%", "30%", "15%"])
def test_what_was_typed_meanwhile_is_the_newest_request(
    target: str, within: Any, folder: Path, save: Any, claude: Any
) -> None:
    """Claude Code writes it as an attachment, between results; it is kept as any request is (rule V8)."""
    asked = "Fortnights too, please: 1 fortnight is 14 days, and `2fn` must parse. Then stop."
    session = claude()
    session.user("Make parse_duration accept weeks.")
    for n in range(12):
        session.call(f"toolu_{n}", "Read", {"file_path": f"/srv/app/m{n}.py"})
        session.result(f"toolu_{n}", f"value_{n} = {n}\n" * 200)
        if n == 5:
            attachment = {"type": "queued_command", "commandMode": "prompt", "prompt": asked}
            session.envelope("attachment", attachment=attachment)
    session.assistant("Both are accepted now.")
    out, source = folder / "out.jsonl", save(session)
    done = within("compact", "--to", target, "--json", "--no-recall", "-o", out, source)
    assert done.status == 0 and done.result["changed"], done.err
    assert violations(source, out, "claude-code") == []
    prompts = [r["attachment"]["prompt"] for r in lines(out) if r["type"] == "attachment"]
    assert prompts == [asked] and out.read_bytes().count(asked[:30].encode()) == 1
    assert done.result["after_tokens"] <= done.result["target"] < done.result["before_tokens"]


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

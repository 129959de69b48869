"""`ctxctl diff` as users run it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctxctl.health.difference import difference
from ctxctl.health.fidelity import judge

SECRET = "ghp_" + "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8"


def chat(path: Path, messages: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"messages": messages}) + "\n")
    return path


def call(id_: str, name: str, **arguments: Any) -> dict[str, Any]:
    body = {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [body]}


def result(id_: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": text}


BEFORE = [
    {"role": "user", "content": "Fix the total. <preserve>Never touch src/core/ledger.py</preserve>"},
    call("c1", "read", path="src/app/billing.py"),
    result("c1", f"def total_amount(): return 4711\ntoken = {SECRET}\nValueError: bad"),
    {"role": "assistant", "content": "I decided to use round_half_even because tax rules demand it."},
    {"role": "user", "content": "go on with tests/test_billing.py"},
    call("c2", "run", command="pytest"),
    result("c2", "3 passed"),
    {"role": "assistant", "content": "All 3 pass."},
]


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return chat(tmp_path / "before.jsonl", BEFORE)


@pytest.fixture
def after(tmp_path: Path) -> Path:
    summary = {"role": "user", "content": "[summary] total_amount of src/app/billing.py, made_up_name"}
    return chat(tmp_path / "after.jsonl", [summary, *BEFORE[4:6], result("c2", "[cleared: run]"), BEFORE[7]])


def test_what_is_lost_is_named(ctxctl: Callable[..., Any], before: Path, after: Path) -> None:
    done = ctxctl("diff", "--json", before, after)
    assert done.code == 0
    assert done.json()["schema"] == "ctxctl.diff/1"
    found = done.result()
    assert found["identical"] is False
    assert found["tokens"]["before"] > found["tokens"]["after"]
    blocks = found["blocks"]
    assert (blocks["kept"], blocks["replaced"], blocks["lost"], blocks["added"]) == (3, 1, 4, 1)
    assert blocks["by_tool"]["read"]["blocks"] == 1
    assert blocks["largest"][0]["kind"] == "tool_result"
    assert blocks["replacements"][0]["tool"] == "run"
    kept = found["retention"]
    assert (kept["paths"]["kept"], kept["paths"]["lost"]) == (2, ["src/core/ledger.py"])
    assert (kept["numbers"]["kept"], kept["numbers"]["total"], kept["numbers"]["lost"]) == (0, 1, ["4711"])
    assert kept["errors"]["lost"] == ["ValueError"]
    assert found["pinned"] == {"kept": 0, "total": 1, "share": 0.0, "lost": ["Never touch src/core/ledger.py"]}
    assert (found["user_messages"]["total"], found["user_messages"]["verbatim"]) == (2, 1)
    assert found["user_messages"]["changed"][0]["text"].startswith("Fix the total.")
    assert found["invented"]["identifiers"] == ["made_up_name"]


def test_the_report_shows_it(ctxctl: Callable[..., Any], before: Path, after: Path) -> None:
    done = ctxctl("diff", before, after)
    assert done.code == 0
    for word in ("Paths", "src/core/ledger.py", "4711", "Pinned texts that are lost", "made_up_name", "1 of 2"):
        assert word in done.out
    assert "# " in ctxctl("diff", "--output-format", "markdown", before, after).out


def test_identical_windows_say_so(ctxctl: Callable[..., Any], before: Path) -> None:
    done = ctxctl("diff", before, before)
    assert done.code == 0 and "both windows hold the same blocks" in done.out
    assert ctxctl("diff", "--json", before, before).result()["identical"] is True
    assert ctxctl("diff", "--fail-under", "1.0", before, before).code == 0


def test_another_format_of_the_same_is_identical(ctxctl: Callable[..., Any], samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "chat.jsonl"
    assert ctxctl("convert", samples / "axios-to-fetch.jsonl", "--to", "openai-chat", "-o", out).code == 0
    found = ctxctl("diff", "--json", samples / "axios-to-fetch.jsonl", out).result()
    assert found["identical"] is True
    assert all(kept["share"] in (None, 1.0) for kept in found["retention"].values())
    assert found["tokens"]["before"] == found["tokens"]["after"]


def test_fail_under_is_a_gate(ctxctl: Callable[..., Any], before: Path, after: Path) -> None:
    done = ctxctl("diff", "--json", "--fail-under", "80%", before, after)
    assert done.code == 1
    (gate,) = done.result()["gates"]
    assert (gate["name"], gate["limit"], gate["value"], gate["ok"]) == ("fail-under", 0.8, 0.0, False)
    assert "failed: 0.0% of the" in done.err
    assert ctxctl("diff", "--fail-under", "2", before, after).code == 2


def test_verbatim_prints_lost_blocks_without_credentials(ctxctl: Callable[..., Any], before: Path, after: Path) -> None:
    done = ctxctl("diff", "--verbatim", before, after)
    assert "def total_amount(): return 4711\n" in done.out
    assert SECRET not in done.out
    texts = ctxctl("diff", "--json", "--verbatim", before, after).result()["verbatim"]
    assert len(texts) == 4 and not any(SECRET in entry["text"] for entry in texts)
    assert SECRET not in ctxctl("diff", "--json", before, after).out


def test_one_side_may_come_from_a_pipe(ctxctl: Callable[..., Any], before: Path, after: Path) -> None:
    done = ctxctl("diff", "--json", before, "-", stdin=after.read_bytes())
    assert done.code == 0 and done.result()["after"]["path"] == "-"
    assert ctxctl("diff", "-", "-", stdin=b"").code == 2


def test_wrong_uses(ctxctl: Callable[..., Any], before: Path, tmp_path: Path) -> None:
    assert ctxctl("diff", before).code == 2
    assert ctxctl("diff", before, tmp_path / "none.jsonl").code == 3
    assert ctxctl("diff", "--output-format", "csv", before, before).code == 2
    assert ctxctl("diff", before, before, "-o", before, "--force", "--json").code == 2


def test_fidelity_is_told_and_min_fidelity_is_a_gate(ctxctl: Callable[..., Any], before: Path, after: Path) -> None:
    same = ctxctl("diff", "--min-fidelity", "100%", "--json", before, before)
    assert same.code == 0 and same.result()["fidelity"]["score"] == 1.0
    less = ctxctl("diff", "--min-fidelity", "100%", before, after)
    assert less.code == 1 and "failed: fidelity" in less.err and "can't be answered any more" in less.out
    assert ctxctl("diff", "--min-fidelity", "1.5", before, after).code == 2


def test_fidelity_that_could_not_be_measured_does_not_pass(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    small = chat(tmp_path / "small.jsonl", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}])
    done = ctxctl("diff", "--min-fidelity", "10%", "--json", small, small)
    assert done.code == 1 and "could not be checked" in done.err
    assert done.result()["fidelity"]["score"] is None and done.result()["gates"][0]["value"] is None


def test_a_compaction_keeps_more_answers_than_its_size_in_other_blocks(
    ctxctl: Callable[..., Any], samples: Path, tmp_path: Path
) -> None:
    before, out = samples / "mini-swe-agent.traj.json", tmp_path / "out.traj.json"
    compact = ("compact", "-s", "conversation", "--to", "25%", "--no-evict", "--no-recall", "--no-audit", "-o", out)
    assert ctxctl(*compact, "--state-dir", tmp_path, before).code == 0
    item = difference(str(before), str(out))
    blocks, sizes, room = item.before.blocks, item.before.sizes, item.after.tokens

    def kept(order: Sequence[int]) -> float:
        taken, left = set(), room
        for n in order:
            if sizes[n] <= left:
                left -= sizes[n]
                taken.add(n)
        return judge(blocks, [blocks[n] for n in sorted(taken)]).score or 0.0

    newest = kept(range(len(blocks))[::-1])
    others = [kept(Random(seed).sample(range(len(blocks)), len(blocks))) for seed in range(5)]
    assert item.fidelity.score is not None and item.fidelity.asked >= 6
    assert item.fidelity.score > newest and item.fidelity.score > sum(others) / len(others) + 0.2

"""`ctxctl compact`: sizes, steps, pins, what it says and what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxctl.compaction.base import STRATEGIES

NO_SIZE = "hint: write 60k or 60000 (tokens), 0.5 (of the window) or 50% (of what is in it now)\n"


@pytest.mark.parametrize(
    "to", ["0", "nan", "inf", "1e9", "abc", "150%", "0%", "-5", "-5%", "", "0.0", "1.5", "nan%", "%"]
)
def test_what_is_no_size(to: str, compact: Any, session: Any, snapshot: Any) -> None:
    path = session()
    before = snapshot()
    done = compact("--to", to, "-o", "out.jsonl", path)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: --to: {to!r} is no size\n{NO_SIZE}"
    assert snapshot() == before


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("60k", 60_000),
        ("60K", 60_000),
        ("60_000", 60_000),
        ("9000", 9_000),
        ("0.05", 10_000),
        (".05", 10_000),
        ("1.0", 200_000),
        ("1", 1),
        ("100%", None),
        ("50%", None),
        ("12.5%", None),
        (" 50% ", None),
    ],
)
def test_what_a_size_means(to: str, target: int | None, compact: Any, session: Any) -> None:
    """Tokens, a share of the window (200,000 for this model) or of what is in it now."""
    done = compact("--to", to, "--dry-run", "--json", session())
    found = done.result()
    wanted = target if target is not None else int(found["before_tokens"] * float(to.strip().rstrip("%")) / 100)
    assert found["target"] == wanted
    assert found["target_met"] is (found["after_tokens"] <= wanted)
    assert done.code == (0 if found["target_met"] else 5)


def test_the_window_of_a_share_can_be_given(compact: Any, session: Any) -> None:
    found = compact("--to", "0.1", "--window", "50k", "--dry-run", "--json", session()).result()
    assert found["target"] == 5_000 and found["target_met"] is True


def test_without_a_window_a_share_of_it_says_what_to_type(compact: Any, session: Any) -> None:
    path = session("c.jsonl", chat=True)
    for options in (("--to", "0.5"), ()):
        done = compact(*options, "--dry-run", path)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error: the window is unknown") and "--window 200k" in done.err
    assert compact("--to", "50%", "--dry-run", path).code == 0


def test_without_a_size_the_settings_decide(compact: Any, session: Any) -> None:
    path = session()
    calm = compact("--dry-run", "--json", path).result()  # 25,000 of 200,000 is green
    assert calm["changed"] is False and calm["target_met"] is True and calm["steps"] == calm["evicted"] == []
    full = compact("--dry-run", "--json", "--window", "30k", path).result()  # 83 %: tool-results, down to 60 %
    assert full["target"] == 18_000 and full["after_tokens"] <= 18_000
    assert [step["strategy"] for step in full["steps"]] == ["tool-results"]
    assert full["strategy"] == "tool-results"


def test_a_settings_file_moves_the_cascade(compact: Any, session: Any, folder: Path) -> None:
    (folder / ".ctxctl.yaml").write_text("compaction:\n  cascade: {0.1: conversation}\neviction:\n  target: 0.05\n")
    found = compact("--dry-run", "--json", session()).result()
    assert found["target"] == 10_000 and [step["strategy"] for step in found["steps"]] == ["conversation"]


def test_where_it_goes_has_to_be_said(compact: Any, session: Any) -> None:
    done = compact("--to", "50%", session())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: it is not said where") and "--dry-run only shows it" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "x.jsonl", "--in-place"), "-o and --in-place exclude each other"),
        (("-o", "-", "--json"), "-o - and --json both go to stdout"),
        (("--dry-run", "--llm", "x", "--llm-endpoint", "http://localhost"), "--llm and --llm-endpoint"),
        (("--dry-run", "--llm-endpoint", "http://localhost"), "--llm-model NAME"),
        (("--dry-run", "--keep-turns", "-1"), "-1"),
        (("--dry-run", "--on-llm-failure", "shrug"), "shrug"),
        (("--dry-run", "--emit", "nothing"), "nothing"),
        (("--dry-run", "--llm", ""), "--llm"),
        (("--dry-run", "--from", "klingon"), "klingon"),
        (("--dry-run", "--window", "lots"), "--window"),
    ],
)
def test_options_that_are_refused(options: Any, said: str, compact: Any, session: Any) -> None:
    done = compact("--to", "50%", *options, session())
    assert done.code in (2, 4) and done.out == ""
    assert said in done.err


def test_an_unknown_strategy_is_named_with_the_nearest(compact: Any, session: Any) -> None:
    done = compact("--to", "50%", "-s", "progresive", "--dry-run", session())
    assert (done.code, done.out) == (2, "")
    assert "progresive" in done.err and "progressive" in done.err.split("hint:")[1]


@pytest.mark.parametrize("name", [name for name, _ in STRATEGIES])
def test_each_strategy_alone(name: str, compact: Any, session: Any, folder: Path) -> None:
    path = session()
    done = compact("--to", "80%", "-s", name, "--json", "-o", "out.jsonl", "--state-dir", folder, path)
    found = done.result()
    assert found["strategy"] == name
    assert [step["strategy"] for step in found["steps"]] in ([name], [])
    assert found["after_tokens"] <= found["before_tokens"]
    assert done.code == 0 and found["target_met"] is True  # by eviction, where the step does nothing here
    assert compact(folder / "out.jsonl", command="check").code == 0


def test_steps_come_in_their_order_and_no_more_than_it_takes(compact: Any, session: Any) -> None:
    path = session()
    found = compact("--to", "10%", "-s", "conversation,tool-results", "--dry-run", "--json", path).result()
    assert found["strategy"] == "conversation,tool-results"
    assert [step["strategy"] for step in found["steps"]] == ["conversation"]
    found = compact("--to", "1%", "-s", "tool-results", "-s", "progressive", "--dry-run", "--json", path).result()
    assert [step["strategy"] for step in found["steps"]] == ["tool-results", "progressive"]
    before = [found["before_tokens"], *(step["after_tokens"] for step in found["steps"])]
    assert before[:-1] == [step["before_tokens"] for step in found["steps"]]


def test_without_eviction_what_is_missing_is_said(compact: Any, session: Any, snapshot: Any) -> None:
    path = session()
    before = snapshot()
    done = compact("--to", "20%", "-s", "tool-results", "--no-evict", "--json", "-o", "out.jsonl", path)
    found = done.result()
    assert done.code == 5 and found["target_met"] is False and found["evicted"] == [] and found["output"] is None
    assert f"{found['after_tokens']:,} stay" in done.err and "nothing was written" in done.err
    after = snapshot()
    assert found["written"] == ["agent_audit.jsonl"] and after.pop("agent_audit.jsonl") and after == before
    evicted = compact("--to", "20%", "-s", "tool-results", "--dry-run", "--json", path).result()
    assert evicted["target_met"] is True and evicted["evicted"]
    for row in evicted["evicted"]:
        assert row["tokens"] > 0 and row["reason"] and isinstance(row["score"], float | None)


def test_the_newest_turns_stay(compact: Any, session: Any, folder: Path, texts: Any) -> None:
    path = session()
    original = texts(path)
    compact("--to", "40%", "--keep-turns", "8", "-o", "out.jsonl", path)
    found = texts(folder / "out.jsonl")
    assert found[-14:] == original[-14:] and found[-16] != original[-16]  # 8 calls and what came in with them
    assert compact("--to", "40%", "-o", "all.jsonl", path).code == 0
    done = compact("--to", "20%", "--keep-turns", "1000", "--json", "-o", "none.jsonl", path)
    assert done.code == 5 and done.result()["before_tokens"] == done.result()["after_tokens"]
    assert "turns to keep" in done.err


@pytest.mark.parametrize(
    ("rule", "tool", "text"),
    [
        ("path=src/part_3\\.py", True, "value_3_0"),
        ("tool=Read", True, "value_0_0"),
        ("kind=tool_result", True, "value_5_0"),
        ("role=assistant", False, "Step 2 of 12"),
        ("regex=compute_7", True, "value_7_0"),
        ("compute_7", True, "value_7_0"),
        ("block=9.0", True, "value_2_0"),
    ],
)
def test_pins(rule: str, tool: bool, text: str, compact: Any, session: Any, folder: Path, texts: Any) -> None:
    path = session()
    plain = compact("--to", "8%", "-s", "conversation", "--dry-run", "--json", path).result()
    assert plain["target_met"] is True
    done = compact("--to", "90%", "-s", "conversation", "--pin", rule, "--no-recall", "--json", "-o", "out.jsonl", path)
    found = done.result()
    rows = found["pinned"]
    assert any(row["reason"] not in ("task", "system") and row["tokens"] > 0 for row in rows)
    if done.code == 0:
        held = [t for t in texts(path) if text in t]
        assert held and all(t in texts(folder / "out.jsonl") for t in held)
    else:
        assert done.code == 5 and "rule" in found["floor"]["causes"]


def test_a_pinned_text_survives_the_smallest_target(compact: Any, session: Any, folder: Path, texts: Any) -> None:
    path = session()
    done = compact("--to", "10%", "--pin", "path=part_3", "-o", "out.jsonl", path)
    assert done.code == 0
    assert next(t for t in texts(path) if "value_3_0" in t) in texts(folder / "out.jsonl")


@pytest.mark.parametrize(
    ("rule", "said"),
    [("regex=(", "("), ("path=[", "["), ("kind=tool-result", "tool-result"), ("role=robot", "robot"), ("(", "(")],
)
def test_pins_that_are_refused(rule: str, said: str, compact: Any, session: Any) -> None:
    done = compact("--to", "50%", "--pin", rule, "--dry-run", session())
    assert (done.code, done.out) == (2, "")
    assert f"--pin {rule!r}" in done.err and said in done.err


def test_a_target_below_the_floor_names_what_holds_it(compact: Any, session: Any, snapshot: Any) -> None:
    path = session(task="Do this and no more. " * 400)
    before = snapshot()
    done = compact("--to", "500", "--json", "-o", "out.jsonl", path)
    found = done.result()
    assert done.code == 5 and found["target_met"] is False and found["output"] is None
    assert found["written"] == ["agent_audit.jsonl"]  # the refusal is recorded
    assert found["floor"]["tokens"] > 500 and found["floor"]["tokens"] == sum(found["floor"]["causes"].values())
    assert next(iter(found["floor"]["causes"])) == "task"
    assert "s.jsonl" in done.err and "500 tokens can't be met" in done.err and "(task " in done.err
    text = compact("--to", "500", "-o", "out.jsonl", path)
    assert text.code == 5 and "not met: nothing was written" in text.out
    least = found["after_tokens"] + 240  # with room for a summary that says something
    assert f"give a target of at least {least:,} tokens" in text.out
    after = snapshot()
    assert after.pop("agent_audit.jsonl") and after == before


def test_a_dry_run_writes_nothing_at_all(compact: Any, session: Any, snapshot: Any, folder: Path) -> None:
    path = session()
    (folder / ".ctxctl.yaml").write_text("compaction:\n  minimum_saving: 0\n")
    before = snapshot()
    for options in (
        ("--to", "30%"),
        ("--to", "30%", "--json"),
        ("--to", "30%", "-o", "out.jsonl"),
        ("--to", "30%", "--in-place"),
        ("--to", "10%", "-s", "notes,conversation", "--state-dir", folder / "state"),
        ("--to", "1"),
    ):
        done = compact("--dry-run", *options, path)
        assert done.code == (5 if "1" in options else 0) and done.out
        assert snapshot() == before


def test_the_report(compact: Any, session: Any) -> None:
    done = compact("--to", "30%", "-o", "out.jsonl", session())
    assert done.code == 0 and done.err == ""
    head, *_ = done.out.split("Steps")
    assert "claude-code" in head and "met, read back from the written file" in head and "Output" in head
    assert "ctxctl recall --undo out.jsonl -o FILE" in done.out and "claude --resume " in done.out
    assert "\x1b" not in done.out


CONTRACT: dict[str, Any] = {
    "strategy": str,
    "steps": list,
    "before_tokens": int,
    "after_tokens": int,
    "ratio": float,
    "target": int,
    "target_met": bool,
    "floor": dict,
    "kept_turns": int,
    "evicted": list,
    "replaced": list,
    "pinned": list,
    "cache": dict,
    "retention": dict,
    "sanitized": dict,
    "normalised": dict,
    "llm": dict,
    "output": str,
    "backup": str,
    "recall_id": str,
    "written": list,
    "validators": list,
}
PARTS: dict[str, dict[str, Any]] = {
    "floor": {"tokens": int, "causes": dict},
    "cache": {"prefix_kept": int, "break_even_turns": float},
    "retention": dict.fromkeys(("paths", "identifiers", "numbers", "errors", "decisions", "todos"), float),
    "sanitized": dict.fromkeys(("secrets", "data_uris", "hex", "injections", "surrogates"), int),
    "normalised": dict.fromkeys(("bom", "crlf", "surrogates"), int),
    "llm": {"calls": int, "failures": int},
}
ROWS: dict[str, dict[str, Any]] = {
    "steps": {"strategy": str, "before_tokens": int, "after_tokens": int, "units": int, "fallback": None},
    "evicted": dict.fromkeys(("unit", "kind", "reason"), str) | {"tokens": int, "turn": int, "tool": str},
}


def test_the_json_contract(compact: Any, session: Any, folder: Path) -> None:
    """Every name that scripts rely on, with its type; null only where something was not measured."""
    path = session()
    options = ("--to", "3%", "-s", "tool-results", "--llm", "cut -c1-40 | head -2", "--in-place", "--json")
    done = compact(*options, path)
    assert done.code == 0, done.err
    whole = json.loads(done.out)
    assert set(whole) == {"schema", "ctxctl", "settings", "result"} and whole["schema"] == "ctxctl.compact/1"
    found = whole["result"]
    for name, type_ in CONTRACT.items():
        assert isinstance(found[name], type_), name
    for part, names in PARTS.items():
        for name, type_ in names.items():
            value = found[part][name]
            assert isinstance(value, type_) or (part in ("retention", "cache") and value is None), (part, name)
    for part, names in ROWS.items():
        assert found[part], part
        for row in found[part]:
            for name, type_ in names.items():
                assert row[name] is None or isinstance(row[name], type_), (part, name)
    assert "fallback" in found["llm"]
    shares = [v for v in found["retention"].values() if v is not None]
    assert shares and all(0 <= share <= 1 for share in shares)
    assert all(Path(p).is_file() for p in found["written"])
    assert found["steps"][-1]["after_tokens"] - sum(r["tokens"] for r in found["evicted"]) == pytest.approx(
        found["after_tokens"], abs=40
    )


def test_the_json_of_a_session_that_fits(compact: Any, session: Any) -> None:
    found = compact("--to", "100%", "--dry-run", "--json", session()).result()
    assert found["changed"] is False and found["ratio"] == 1.0 and found["output"] is None and found["llm"] is None
    assert found["cache"]["break_even_turns"] is None


def test_what_was_asked_for_is_in_the_settings(compact: Any, session: Any) -> None:
    done = compact(
        "--to", "50%", "--keep-turns", "2", "--pin", "tool=Bash", "--no-redact", "--dry-run", "--json", session()
    )
    settings = json.loads(done.out)["settings"]
    assert settings["to"] == "50%" and settings["keep_turns"] == 2 and settings["redact"] is False
    assert settings["eviction"]["pin"][-1]["tool"] == "Bash"


def test_no_redact_says_so(compact: Any, session: Any) -> None:
    done = compact("--to", "50%", "--no-redact", "--dry-run", session())
    assert done.code == 0 and "--no-redact: credentials may stand" in done.err
    assert "no-redact" not in compact("--to", "50%", "--dry-run", session()).err


def test_the_provider_s_own_block(compact: Any, session: Any, snapshot: Any) -> None:
    path = session()
    before = snapshot()
    done = compact("--emit", "context-management", "--pin", "tool=Skill", path)
    assert (done.code, done.err) == (0, "")
    (edit,) = json.loads(done.out)["context_management"]["edits"]
    assert edit["type"] == "clear_tool_uses_20250919" and edit["exclude_tools"] == ["Skill"]
    assert edit["trigger"] == {"type": "input_tokens", "value": 150_000}
    sized = compact("--emit", "context-management", "--window", "1m", path)
    (edit,) = json.loads(sized.out)["context_management"]["edits"]
    assert edit["trigger"]["value"] == 750_000
    assert snapshot() == before


def test_pins_that_the_provider_s_block_can_t_hold_are_said(compact: Any, session: Any) -> None:
    done = compact("--emit", "context-management", "--pin", "path=docs", session())
    assert done.code == 0 and json.loads(done.out) and "path" in done.err


def test_help_fits_a_terminal_and_has_examples(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ctxctl", "compact", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "COLUMNS": "80", "_TYPER_FORCE_DISABLE_TERMINAL": "1"},
    )
    assert done.returncode == 0 and done.stderr == ""
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for part in ("--to", "--in-place", "--pin", "Examples:", "--llm"):
        assert part in done.stdout

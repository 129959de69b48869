"""`simulate`, `tune` and what `list` says of them: streams, forms, status, and what people type wrongly."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

RUN_KEYS = [
    "policy",
    "settings",
    "capacity",
    "peak",
    "prompt_tokens",
    "evictions",
    "evicted_tokens",
    "compactions",
    "overflow_turns",
    "hits",
    "misses",
    "miss_ratio",
    "rmr",
    "step_miss",
    "refetched_tokens",
    "regret",
    "hit_rate",
    "break_even_turns",
    "cost",
    "cost_ratio",
    "on_frontier",
    "unsupported",
]


@pytest.fixture
def session(samples: Path) -> Path:
    return samples / "axios-to-fetch.jsonl"


def chat(path: Path, calls: int, *, size: int = 400, model: str | None = "gpt-4o") -> Path:
    """A chat with a tool result per call, without usage."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "find the bug in src/app/main.py"}]
    for k in range(calls):
        call = {
            "id": f"c{k}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path":"src/f{k}.py"}}'},
        }
        messages.append({"role": "assistant", "content": f"I look at src/f{k}.py", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{k}", "content": f"value_{k} = {k}\n" * size})
    messages.append({"role": "assistant", "content": "It is value_0 in src/f0.py"})
    path.write_text(json.dumps({**({"model": model} if model else {}), "messages": messages}))
    return path


def test_the_report_says_bill_policies_ceilings_and_what_it_means(ctxctl: Callable[..., Any], session: Path) -> None:
    done = ctxctl("simulate", "--window", "30k", "--no-optimum", session)
    assert done.code == 0 and not done.err
    for part in ("Bill", "Cache", "References", "Policies, cheapest first", "hybrid", "Ceilings", "clairvoyant"):
        assert part in done.out
    assert "What this means" in done.out
    assert all(len(line.split()) for line in done.out.splitlines() if "hybrid" in line)


def test_json_keeps_its_names(ctxctl: Callable[..., Any], session: Path) -> None:
    done = ctxctl("simulate", "--window", "30k", "-p", "lru,hybrid", "--json", session)
    data = done.json()
    assert data["schema"] == "ctxctl.simulate/1"
    assert data["settings"]["simulate"]["policies"] == ["lru", "hybrid"]
    result = data["result"]
    assert set(result["baseline"]) >= {
        "turns", "prompt_tokens", "cost", "recorded_cost", "replay_error", "efficiency", "calibrated"
    }  # fmt: skip
    for row in result["runs"]:
        assert set(RUN_KEYS) <= set(row)
        assert set(row["cost"]) == set(row["cost_ratio"]) == {"none", "ideal", "calibrated"}
        assert 0 <= row["rmr"] <= 1 and row["hits"] + row["misses"] > 0
    assert [r["policy"] for r in result["ceilings"]][:3] == ["recorded", "unbounded", "clairvoyant"]
    unbounded = result["ceilings"][1]
    assert unbounded["rmr"] == 0 and unbounded["misses"] == 0
    assert result["placebo"] == {"rate": None}


def test_the_cross_product_of_what_is_asked_for(ctxctl: Callable[..., Any], session: Path) -> None:
    result = ctxctl(
        "simulate", "--no-optimum", "--json", "-p", "lru,hybrid", "-p", "mask:keep=5,every=3", "--window", "30k,40k",
        "--trigger", "0.7,0.9", "--target", "50%", session,
    ).result()  # fmt: skip
    rows = {(r["policy"], r["capacity"], r["settings"]["trigger"], r["settings"]["target"]) for r in result["runs"]}
    ranked = {(p, w, t, 0.5) for p in ("lru", "hybrid") for w in (30_000, 40_000) for t in (0.7, 0.9)}
    assert rows == ranked | {("mask:keep=5,every=3", w, None, None) for w in (30_000, 40_000)}


def test_timeline_explains_each_eviction(ctxctl: Callable[..., Any], session: Path) -> None:
    result = ctxctl(
        "simulate", "--json", "--timeline", "-p", "hybrid", "--window", "30k", "--no-optimum", session
    ).result()
    (run,) = result["runs"]
    steps = run["steps"]
    assert len(steps) == result["transcript"]["turns"]
    assert sum(len(s["evicted"]) for s in steps) == run["evictions"] > 0
    assert sum(s["refetched"] for s in steps) == run["refetched_tokens"]
    for step in steps:
        for unit in step["evicted"]:
            assert unit["block"] and unit["kind"] and unit["line"]
            assert sum(unit["parts"].values()) == pytest.approx(unit["score"])
    text = ctxctl("simulate", "--timeline", "-p", "hybrid", "--window", "30k", "--no-optimum", session)
    assert "hybrid at 30k" in text.out


def test_csv_has_a_record_per_row(ctxctl: Callable[..., Any], session: Path) -> None:
    done = ctxctl("simulate", "--output-format", "csv", "-p", "lru,fifo", "--window", "30k", "--no-optimum", session)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["policy"] for r in rows if r["group"] == "policy"] != []
    assert {r["policy"] for r in rows} == {"lru", "fifo", "recorded", "unbounded", "clairvoyant"}


def test_several_sessions_have_sums_with_intervals(ctxctl: Callable[..., Any], samples: Path) -> None:
    done = ctxctl("simulate", "--json", "-p", "hybrid", "--window", "16k", "--model", "gpt-4o", "--no-optimum", samples)
    total = done.result()["total"]
    assert total["files"] == len(done.result()["files"]) > 2 and total["failed"] == 0
    (row,) = total["runs"]
    assert row["sessions"] == total["files"]
    low_high = row["intervals"]["cost_ratio.none"]
    assert low_high["low"] <= row["cost_ratio"]["none"] <= low_high["high"]
    text = ctxctl("simulate", "-p", "hybrid", "--window", "16k", "--model", "gpt-4o", "--no-optimum", samples)
    assert "cost 95%" in text.out


def test_an_unknown_model_fails_its_file_with_a_suggestion(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    path = chat(tmp_path / "a.json", 3, model="gpt-4oo-turbo-x")
    done = ctxctl("simulate", path)
    assert done.code == 3 and not done.out
    assert "gpt-4oo-turbo-x" in done.err and "--model" in done.err
    assert ctxctl("simulate", "--model", "gpt-4o", "--no-optimum", path).code == 0


def test_without_a_model_tokens_are_replayed_and_money_is_unknown(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    path = chat(tmp_path / "a.json", 6, model=None)
    result = ctxctl("simulate", "--json", "-p", "lru", "--window", "4k", "--no-optimum", path).result()
    assert result["runs"][0]["cost"] == {"none": None, "ideal": None, "calibrated": None}
    assert result["runs"][0]["prompt_tokens"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-p", "lruu"], "did you mean 'lru'"),
        (["-p", "mask:kep=3"], "did you mean 'keep'"),
        (["-p", "mask:keep=x"], "keep"),
        (["-p", "mask:keep=-1"], "keep"),
        (["-p", "mask:every=0"], "every"),
        (["-p", "clear:trigger=nan"], "trigger"),
        (["-p", "lru:keep=3"], "no parameter"),
        (["-p", ","], "names nothing"),
        (["-p", "optimum"], "ceilings"),
        (["-p", "hybrid:freshness=0.9"], "add up to 1"),
        (["--preset", "codexx"], "codex"),
        (["--window", "0"], "--window"),
        (["--window", "nan"], "--window"),
        (["--window", "-5"], "--window"),
        (["--trigger", "0"], "--trigger"),
        (["--trigger", "1.5"], "--trigger"),
        (["--trigger", "nan"], "--trigger"),
        (["--trigger", "0.5", "--target", "0.6"], "--target"),
        (["--budget", "0.5", "--window", "30k"], "--budget"),
        (["--cache-read", "nan"], "--cache-read"),
        (["--cache-read", "-1"], "--cache-read"),
        (["--cache-life", "soon"], "--cache-life"),
        (["--model", "gpt-4oo"], "did you mean 'gpt-4o'"),
        (["--model", ""], "--model"),
        (["--trigger", "75"], "at most 1"),
        (["--summary", "huge"], "summary"),
    ],
)
def test_wrong_options_say_what_is_wrong(
    ctxctl: Callable[..., Any], session: Path, arguments: list[str], said: str
) -> None:
    done = ctxctl("simulate", *arguments, session)
    assert done.code == 2, done.err
    assert not done.out and said in done.err and "Traceback" not in done.err


def test_protected_content_above_the_window_is_said_once(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    path = chat(tmp_path / "a.json", 12)
    done = ctxctl("simulate", "--json", "-p", "lru,hybrid", "--window", "300", "--no-optimum", path)
    assert done.code == 5
    assert done.err.count("may not leave") == 1
    floor = done.result()["runs"][0]["floor"]
    assert floor["tokens"] > 300 and sum(c["tokens"] for c in floor["causes"]) == floor["tokens"]


def test_no_calls_one_call_and_nothing(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert ctxctl("simulate", empty).code == 6
    question = tmp_path / "q.json"
    question.write_text(json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}))
    done = ctxctl("simulate", question)
    assert done.code == 6 and "no model call" in done.err
    one = tmp_path / "one.json"
    one.write_text(
        json.dumps(
            {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
        )
    )
    result = ctxctl("simulate", "--json", one).result()
    assert result["baseline"]["turns"] == 1
    assert all(r["evictions"] == 0 and r["rmr"] is None for r in result["runs"])


def test_nothing_to_do_is_said(ctxctl: Callable[..., Any], session: Path) -> None:
    done = ctxctl("simulate", "-p", "lru,hybrid", "--window", "1m", "--no-optimum", session)
    assert "No policy had anything to do" in done.out


def test_budget_presses_every_session_alike(ctxctl: Callable[..., Any], session: Path) -> None:
    result = ctxctl("simulate", "--json", "-p", "lru,fifo", "--budget", "0.5", session).result()
    optimum = next(r for r in result["ceilings"] if r["policy"] == "optimum")
    for row in result["runs"]:
        assert row["settings"]["trigger"] == row["settings"]["target"] == 1.0
        assert row["peak"] <= row["capacity"]
        assert row["miss_ratio"] >= optimum["miss_ratio"] and row["regret"] >= 0


def test_output_file_and_inputs_are_safe(ctxctl: Callable[..., Any], session: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    assert ctxctl("simulate", "-p", "lru", "--no-optimum", "-o", target, session).code == 0
    assert target.read_text().startswith("path,policy")
    done = ctxctl("simulate", "-p", "lru", "--no-optimum", "-o", target, session)
    assert done.code == 2 and "--force" in done.err
    copy = tmp_path / "copy.json"
    chat(copy, 2)
    before = copy.read_bytes()
    assert ctxctl("simulate", "--force", "-o", copy, copy).code == 2
    assert copy.read_bytes() == before


def test_tune_writes_settings_that_load(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for k in range(5):
        chat(folder / f"r{k}.json", 10 + k, size=120)
    done = ctxctl("tune", "--window", "6k", "--max-loss", "0.8", folder)
    assert done.code == 0, done.err
    tree = yaml.safe_load(done.out)
    assert tree["max_context_tokens"] == 6000 and tree["eviction"]["policy"]
    assert "Held out, on 2 sessions" in done.out and "Held out" in done.err
    settings = tmp_path / "found.yaml"
    settings.write_text(done.out)
    assert ctxctl("config", "validate", settings).code == 0
    again = ctxctl("tune", "--window", "6k", "--max-loss", "0.8", folder)
    assert again.out == done.out
    assert ctxctl("tune", "--window", "6k", "--max-loss", "0.8", "-o", tmp_path / "t.yaml", folder).code == 0


def test_tuned_settings_replay_what_was_tuned(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    """The settings hold all that they were tuned under: replayed with them the session costs and loses the same."""
    path = chat(tmp_path / "a.json", 14, size=120)
    config = tmp_path / "own.yaml"
    config.write_text(
        "max_context_tokens: 6000\npressure: {act_at: watermark}\n"
        "eviction: {pin: [{tool: read, path: f3}], type_ttl: {tool_result: 4}, reference_turns: 3}\n"
    )
    asked = ("tune", "--max-loss", "0.9", "--config", config)
    tuned = ctxctl(*asked, "--json", path).result()
    found = tmp_path / "found.yaml"
    found.write_text(ctxctl(*asked, path).out)
    policy = tuned["policy"].partition(":")[0]
    (run,) = ctxctl("simulate", "--json", "--no-optimum", "--config", found, "-p", policy, path).result()["runs"]
    assert run["rmr"] == pytest.approx(tuned["trained"]["loss"])
    assert run["cost"]["ideal"] == pytest.approx(tuned["trained"]["cost"])
    assert run["capacity"] == 6000
    assert run["settings"]["trigger"] == tuned["choice"]["pressure_thresholds"]["orange"]


def test_tune_where_the_window_is_too_small_says_so(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    done = ctxctl("tune", "--window", "300", "--max-loss", "1", chat(tmp_path / "a.json", 12, size=120))
    assert done.code == 5 and not done.out
    assert "above the window" in done.err and "--window" in done.err and "results not answered yet" in done.err


def test_tune_where_nothing_is_to_be_saved_changes_nothing(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    done = ctxctl("tune", "--window", "1m", chat(tmp_path / "a.json", 5))
    assert done.code == 0 and "Nothing to change" in done.out and yaml.safe_load(done.out) is None
    result = ctxctl("tune", "--json", "--window", "1m", tmp_path / "a.json").result()
    assert result["choice"] is None and result["why"] == "nothing"


def test_damage_is_told(ctxctl: Callable[..., Any], session: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(session.read_bytes()[:-200])
    for command in ("simulate", "tune"):
        assert "torn_tail" in ctxctl(command, torn).err


def test_tune_with_few_sessions_says_that_nothing_was_held_out(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    done = ctxctl("tune", "--window", "6k", "--max-loss", "0.9", chat(tmp_path / "a.json", 12, size=120))
    assert done.code == 0 and "Nothing was held out" in done.out
    result = ctxctl("tune", "--json", "--window", "6k", "--max-loss", "0.9", tmp_path / "a.json").result()
    assert result["held_out"] is None and result["choice"]["eviction"]["policy"]


def test_tune_that_cannot_keep_the_bound(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    path = chat(tmp_path / "a.json", 12, size=120)
    done = ctxctl("tune", "--window", "3k", "--max-loss", "0", path)
    assert done.code == 5 and not done.out and "least that any lost" in done.err
    assert ctxctl("tune", "--max-loss", "2", path).code == 2


def test_list_policies_and_presets(ctxctl: Callable[..., Any]) -> None:
    names = [r["name"] for r in ctxctl("list", "policies", "--json").result()["policies"]]
    for name in [
        "fifo",
        "lru",
        "priority",
        "semantic",
        "type-ttl",
        "hybrid",
        "sliding-window",
        "summarize",
        "priority-tiers",
        "mask",
        "clear",
        "recorded",
        "unbounded",
        "clairvoyant",
        "optimum",
        "random",
        "largest-first",
    ]:
        assert name in names
    verbose = ctxctl("list", "policies", "-v").out
    assert "complexity" in verbose and "keep=10" in verbose
    for row in ctxctl("list", "policies", "--json").result()["policies"]:
        assert all(row.get(part) for part in ("about", "complexity", "strength", "weakness", "fit")), row["name"]
    presets = ctxctl("list", "presets", "--json").result()["presets"]
    assert len(presets) == 55 and all(p["sources"] and p["date"] and p["about"] for p in presets)
    note = ctxctl("list", "presets").out
    assert "8 replay exactly, 23 by their rules with an assumption" in " ".join(note.split())
    assert {p["replay"] for p in presets} == {"exact", "assumed", "sized", "unsupported"}
    assert all(not p["assumptions"] for p in presets if p["replay"] == "exact")


def test_presets_say_how_far_they_can_be_trusted(ctxctl: Callable[..., Any], session: Path) -> None:
    asked = ("simulate", "--window", "30k", "--no-optimum", "--preset", "opencode-prune,pi-tool-output,goose", session)
    out = ctxctl(*asked).out
    assert "pi-tool-output ?" in out and "goose ~" in out and "opencode-prune ?" not in out
    assert "of the presets 1 replay exactly, 1 with an assumption" in " ".join(out.split())
    runs = {r["policy"]: r for r in ctxctl(*asked, "--json").result()["runs"] if r["group"] == "preset"}
    told = {name: (run["replay"], run["exact"]) for name, run in runs.items()}
    assert told == {"opencode-prune": ("exact", True), "pi-tool-output": ("assumed", False), "goose": ("sized", False)}


def test_settings_of_compaction_change_the_rows(ctxctl: Callable[..., Any], tmp_path: Path) -> None:
    """What a config file says of the cascade and its thresholds is what the replay does (requirement C7)."""
    path = chat(tmp_path / "a.json", 40, size=120)
    asked = ("simulate", "--json", "--no-optimum", "--window", "12k", "-p", "cascade,tool-results")

    def rows(text: str) -> list[Any]:
        config = tmp_path / "own.yaml"
        config.write_text(text)
        return [
            (run["policy"], run["compactions"], run["compacted_tokens"], run["prompt_tokens"])
            for run in sorted(ctxctl(*asked, "--config", config, path).result()["runs"], key=lambda r: r["policy"])
        ]

    plain = rows("compaction: {}\n")
    assert [name for name, *_ in plain] == ["cascade", "tool-results"] and all(times for _, times, *_ in plain)
    assert rows("compression: {}\n") == plain
    late = rows("compaction: {summarization_threshold_tokens: 900000}\n")
    assert [times for _, times, *_ in late] == [0, 0]
    early = rows("compaction: {cascade: {0.65: tool-results}}\n")
    assert all(one[1] > other[1] for one, other in zip(early, plain, strict=True))
    other = rows("compaction: {cascade: {0.75: conversation}}\n")
    assert other[0] != plain[0] and other[1] == plain[1]

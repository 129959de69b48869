"""The shipped presets as a whole: all are there, say where they come from, and act where they should."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from ctxctl.errors import ConfigError, UsageError
from ctxctl.eviction.base import Setting
from ctxctl.settings.presets import _shipped, find_presets, load_presets, read_preset
from ctxctl.simulate.presets import preset_policy, trigger_tokens

FACTS = Path(__file__).resolve().parents[3] / "shared" / "presets.yaml"
WINDOWS = (32_000, 64_000, 128_000, 200_000, 400_000, 1_000_000)
TRIGGERS = {
    "octos-extractive": (21_333, 42_666, 85_333, 133_333, 266_666, 666_666),
    "octos-context-manager": (22_400, 44_800, 89_600, 140_000, 280_000, 700_000),
    "codex-local": (28_800, 57_600, 115_200, 180_000, 360_000, 900_000),
    "codex-remote-v2": (28_800, 57_600, 115_200, 180_000, 360_000, 900_000),
    "claude-code-autocompact": (10_808, 42_808, 106_808, 178_808, 378_808, 978_808),
    "anthropic-compact": (150_000,) * 6,
    "anthropic-clear-tool-uses": (100_000,) * 6,
    "langchain-clear-tool-uses": (100_000,) * 6,
    "gemini-compress": (16_000, 32_000, 64_000, 100_000, 200_000, 500_000),
    "opencode-v1": (23_808, 55_808, 119_808, 191_808, 391_808, 991_808),
    "opencode-v2": (12_000, 44_000, 108_000, 180_000, 380_000, 980_000),
    "goose": (25_600, 51_200, 102_400, 160_000, 320_000, 800_000),
    "pi": (15_616, 47_616, 111_616, 183_616, 383_616, 983_616),
    "cline-basic": (25_920, 51_840, 103_680, 162_000, 324_000, 810_000),
    "cline-agentic": (25_920, 51_840, 103_680, 162_000, 324_000, 810_000),
    "cline-classic-half": (25_600, 37_000, 98_000, 160_000, 360_000, 960_000),
    "roo-condense": (20_608, 49_408, 107_008, 171_808, 351_808, 891_808),
    "roo-sliding-window": (20_608, 49_408, 107_008, 171_808, 351_808, 891_808),
    "deepagents": (27_200, 54_400, 108_800, 170_000, 340_000, 850_000),
    "crush": (25_600, 51_200, 102_400, 160_000, 380_000, 980_000),
    "aider": (2_000, 4_000, 8_000, 8_192, 8_192, 8_192),
}


@pytest.mark.parametrize("name", TRIGGERS)
def test_the_trigger_in_tokens_is_the_runtimes(name: str) -> None:
    preset = load_presets()[name]
    assert tuple(trigger_tokens(preset, window, 8192) for window in WINDOWS) == TRIGGERS[name]


def test_a_long_answer_makes_some_triggers_senseless() -> None:
    presets = load_presets()
    assert trigger_tokens(presets["claude-code-autocompact"], 200_000, 64_000) == 167_000
    assert trigger_tokens(presets["claude-code-autocompact"], 32_000, 20_000) == -1_000
    said = preset_policy(presets["claude-code-autocompact"], Setting(32_000, output=20_000)).warning()
    assert said is not None and "-1,000 tokens" in said and "before every call" in said
    assert preset_policy(presets["opencode-v1"], Setting(8_000, output=8_192)).warning() is not None
    assert preset_policy(presets["opencode-v1"], Setting(200_000)).warning(20_000) is None


def test_what_is_always_there_is_held_against_the_trigger() -> None:
    presets = load_presets()
    said = preset_policy(presets["goose"], Setting(32_000)).warning(30_000)
    assert said is not None and "system prompt and tools 30,000" in said
    said = preset_policy(presets["pi"], Setting(32_000)).warning()  # acts from 15,616 on and leaves 20,000
    assert said is not None and "the part that stays 20,000" in said
    assert preset_policy(presets["pi"], Setting(200_000)).warning(20_000) is None
    assert "no trigger" in (preset_policy(presets["langchain-summarization"], Setting(32_000)).warning() or "")


@pytest.mark.skipif(not FACTS.is_file(), reason="the facts are not beside this checkout")
def test_every_preset_of_the_facts_is_there() -> None:
    facts = {p["id"]: p for p in yaml.safe_load(FACTS.read_text(encoding="utf-8"))["presets"]}
    presets = load_presets()
    assert set(presets) == set(facts)
    for name, preset in presets.items():
        assert preset.class_ == {"deterministic": "deterministic", "llm_summary": "summary"}[facts[name]["class"]]
        assert preset.confidence == facts[name]["confidence"]
        sizes = facts[name].get("summary", {}).get("assumed")
        if preset.summary is not None:
            assert dataclasses.asdict(preset.summary.assumed) == sizes
            declared = facts[name]["summary"].get("declared_max_output_tokens")
            assert preset.summary.declared == (declared if isinstance(declared, int) else None)


def test_each_names_its_sources_and_its_day() -> None:
    for preset in load_presets().values():
        assert preset.sources and preset.date == "2026-11-30" and preset.about and preset.runtime
        if preset.unsupported is not None:
            with pytest.raises(UsageError, match="can't be replayed"):
                preset_policy(preset, Setting(32_000))


def test_all_deterministic_presets_replay() -> None:
    presets = load_presets().values()
    assert [p.id for p in presets if p.unsupported is not None] == ["gemini-context-profile"]
    assert sum(p.class_ == "deterministic" for p in presets) == 31
    assert sum(p.class_ == "summary" for p in presets) == 24


EXACT = {
    "inspect-edit",
    "octos-old-tool-truncate",
    "octos-tier1-legacy",
    "opencode-prune",
    "openhands-amortized",
    "openhands-browser-masking",
    "openhands-observation-masking",
    "openhands-recent",
}


def test_exact_is_what_assumes_nothing() -> None:
    presets = load_presets()
    assert {i for i, p in presets.items() if p.exact} == EXACT
    for preset in presets.values():
        assert preset.exact == (preset.replay == "exact")
        if preset.replay == "exact":
            assert preset.class_ == "deterministic" and not preset.assumptions
        elif preset.replay == "assumed":
            assert preset.class_ == "deterministic" and preset.assumptions
    found = Counter(p.replay for p in presets.values())
    assert found == {"exact": 8, "assumed": 23, "sized": 23, "unsupported": 1}


def test_requests_that_go_on_with_the_conversation() -> None:
    told = {i for i, p in load_presets().items() if p.summary is not None and p.summary.shares_prefix}
    assert told == {
        "anthropic-compact",
        "anthropic-sdk-client-compaction",
        "claude-code-autocompact",
        "codex-remote-v2",
    }


def test_a_trigger_may_depend_on_the_model() -> None:
    letta = load_presets()["letta"]
    assert trigger_tokens(letta, 200_000, 8192) == 200_000
    assert trigger_tokens(letta, 200_000, 8192, "claude-opus-4-1") == 200_000
    assert trigger_tokens(letta, 200_000, 8192, "openai/GPT-5.1") == 180_000


def test_loading_takes_no_time_to_speak_of() -> None:
    best = 1.0
    for _ in range(3):
        _shipped.cache_clear()
        start = time.perf_counter()
        load_presets()
        best = min(best, time.perf_counter() - start)
    assert best < 0.06


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (["codex"], ["codex-local", "codex-remote-v2", "codex-tool-truncate"]),
        (["pi"], ["pi", "pi-tool-output"]),
        (["Goose", "pi-tool-output"], ["goose", "pi-tool-output"]),
        (["goose", "goose"], ["goose"]),
    ],
)
def test_a_name_is_an_id_or_a_family(told: list[str], found: list[str]) -> None:
    assert [p.id for p in find_presets(told)] == found


def test_all_is_all() -> None:
    assert [p.id for p in find_presets(["all"])] == sorted(load_presets())


@pytest.mark.parametrize(("name", "hint"), [("codx", "'codex'"), ("goos", "'goose'"), ("zzz", "list presets")])
def test_an_unknown_name_is_an_error(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_presets([name])
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trigger": {"kind": "tokens"}}, "has a limit"),
        ({"trigger": {"kind": "tokens", "limit": {"ratoi": 0.9}}}, "unknown key trigger.limit.ratoi"),
        ({"pair": "nothing"}, "pair"),
        ({"sources": []}, "names its sources"),
        ({"steps": [{"drop_thinking": {}, "clear_old": {}}]}, "exactly one operation"),
        ({"id": "other"}, "not the file's name"),
        ({"steps": []}, "does something"),
    ],
)
def test_a_preset_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    tree: dict[str, object] = {
        "id": "mine",
        "runtime": "mine",
        "class": "deterministic",
        "confidence": "docs",
        "sources": ["a page"],
        "date": "2026-11-30",
        "about": "nothing much",
        "trigger": {"kind": "call"},
        "steps": [{"drop_thinking": {"keep_turns": 1}}],
    }
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    assert read_preset(path).id == "mine"
    path.write_text(yaml.safe_dump({**tree, **change}), encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_preset(path)

"""Settings: layers, origins, where files are looked for, and how they may be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl import load_settings
from ctxctl.health.options import HealthOptions
from ctxctl.settings.load import Loaded, load, validate
from ctxctl.settings.paths import config_file, project_file, user_file
from ctxctl.settings.schema import Settings

# As users of the first versions have it; every value but the window is the default.
USERS_FILE = Path(__file__).with_name("users.yaml").read_text()
"""A user's file of the names that the field uses, with aliases; every value of it is the default but the window."""


def saved(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def shown(loaded: Loaded, key: str) -> tuple[Any, str]:
    return next((value, origin) for name, value, origin in loaded.flat() if name == key)


def test_without_any_file_the_defaults_hold() -> None:
    loaded = load()
    assert loaded.settings == Settings() and loaded.files == ()
    assert {origin for _, _, origin in loaded.flat()} == {"default"}
    assert load_settings() == Settings()


def test_the_users_file_loads_unchanged_and_is_the_default_but_for_the_window_and_metrics(project: Path) -> None:
    path = saved(project / "users.yaml", USERS_FILE)
    metrics = ("utilization", "eviction_frequency", "compression_ratio", "burn_rate", "fidelity_score")
    expected = Settings(max_context_tokens=128_000, health_monitoring=HealthOptions(metrics=metrics))
    assert load_settings(path) == expected
    assert validate(path) == expected


def test_the_shipped_file_says_the_defaults_and_names_every_setting() -> None:
    path = config_file("ctxctl.yaml")
    assert validate(path) == Settings()
    text = path.read_text(encoding="utf-8")
    for key, _, _ in load().flat():
        assert f"{key.rpartition('.')[2] if 'cascade' not in key else 'cascade'}:" in text, key


def test_layers_from_the_weakest_to_the_strongest(project: Path, tmp_path: Path) -> None:
    key, environment = "pressure_thresholds.red", {"CTXCTL_PRESSURE_THRESHOLDS__RED": "0.97"}
    user = saved(tmp_path / "xdg/ctxctl/config.yaml", "pressure_thresholds:\n  yellow: 0.4\n  red: 0.95\n")
    assert user == user_file()
    assert shown(load(), key) == (0.95, f"user file {user}:3")
    own = saved(project / ".ctxctl.yaml", "\npressure_thresholds: {red: 0.96}\n")
    assert shown(load(), key) == (0.96, f"project file {own}:2")
    loaded = load(environment=environment)
    assert shown(loaded, key) == (0.97, "environment CTXCTL_PRESSURE_THRESHOLDS__RED")
    flagged = load(overrides={key: 0.98}, environment=environment)
    assert shown(flagged, key) == (0.98, "flag")
    assert shown(flagged, "pressure_thresholds.yellow") == (0.4, f"user file {user}:2")
    assert shown(flagged, "pressure_thresholds.orange") == (0.75, "default")
    assert flagged.files == (user, own)


def test_a_flag_that_was_not_given_changes_nothing(project: Path) -> None:
    saved(project / ".ctxctl.yaml", "max_context_tokens: 5000\n")
    assert load(overrides={"max_context_tokens": None}).settings.max_context_tokens == 5_000


def test_a_given_file_takes_the_place_of_the_project_s(project: Path, tmp_path: Path) -> None:
    saved(project / ".ctxctl.yaml", "max_context_tokens: 1000\n")
    other = saved(tmp_path / "other.yaml", "max_context_tokens: 2000\n")
    assert shown(load(other), "max_context_tokens") == (2_000, f"settings file {other}:1")
    third = saved(tmp_path / "third.yaml", "max_context_tokens: 3000\n")
    environment = {"CTXCTL_CONFIG": str(third)}
    assert load(environment=environment).settings.max_context_tokens == 3_000
    assert load(other, environment=environment).settings.max_context_tokens == 2_000


def test_the_project_file_is_looked_for_up_to_the_repository_s_root(project: Path, tmp_path: Path) -> None:
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    outside = saved(tmp_path / ".ctxctl.yaml", "max_context_tokens: 1\n")
    assert project_file(deep) is None
    own = saved(project / ".ctxctl.yaml", "max_context_tokens: 2\n")
    assert project_file(deep) == own
    nearer = saved(project / "a" / ".ctxctl.yaml", "max_context_tokens: 3\n")
    assert project_file(deep) == nearer
    assert load(folder=deep).settings.max_context_tokens == 3
    assert project_file(tmp_path) == outside


def test_sections_are_merged_lists_and_mappings_are_replaced(project: Path, tmp_path: Path) -> None:
    saved(
        tmp_path / "xdg/ctxctl/config.yaml",
        "eviction:\n  policy: lru\n  type_ttl: {thinking: 9}\n  protected_types: [summary]\n"
        "compaction:\n  cascade: {0.5: notes}\n",
    )
    saved(project / ".ctxctl.yaml", "eviction:\n  protected_types: [image]\ncompression:\n  notes_file: n.md\n")
    settings = load_settings()
    assert settings.eviction.policy == "lru"
    assert settings.eviction.type_ttl == {"thinking": 9}
    assert settings.eviction.protected_types == ("image",)
    assert settings.compaction.cascade == {0.5: "notes"}
    assert settings.compaction.notes_file == "n.md"


@pytest.mark.parametrize(
    ("name", "value", "key", "expected"),
    [
        ("CTXCTL_MAX_CONTEXT_TOKENS", "200k", "max_context_tokens", 200_000),
        ("CTXCTL_MAX_CONTEXT_TOKENS", "200_000", "max_context_tokens", 200_000),
        ("CTXCTL_PRESSURE__VELOCITY_WINDOW", "8", "pressure.velocity_window", 8),
        ("CTXCTL_PRESSURE__ACT_AT", "watermark", "pressure.act_at", "watermark"),
        ("CTXCTL_EVICTION__POLICY", "type_based", "eviction.policy", "type-ttl"),
        ("CTXCTL_EVICTION__PROTECTED_TYPES", "[system, summary]", "eviction.protected_types", ("system", "summary")),
        ("CTXCTL_COMPRESSION__NOTES_FILE", "n.md", "compaction.notes_file", "n.md"),
    ],
)
def test_the_environment(name: str, value: str, key: str, expected: Any) -> None:
    loaded = load(environment={name: value, "CTXCTL_TOKENIZER": "x", "OTHER": "y"})
    assert shown(loaded, key)[0] == expected
    assert shown(loaded, key)[1].startswith("environment CTXCTL_")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("200k", 200_000), ("200_000", 200_000), ("1m", 1_000_000), ("1.5M", 1_500_000), ("'64000'", 64_000)],
)
def test_sizes_of_the_window(project: Path, text: str, tokens: int) -> None:
    assert load_settings(saved(project / "x.yaml", f"max_context_tokens: {text}\n")).max_context_tokens == tokens


@pytest.mark.parametrize(
    ("alias", "policy"),
    [
        ("type_based", "type-ttl"),
        ("type_ttl", "type-ttl"),
        ("sliding", "sliding-window"),
        ("priority_tiers", "priority-tiers"),
        ("hybrid", "hybrid"),
    ],
)
def test_aliases_of_policies(project: Path, alias: str, policy: str) -> None:
    assert load_settings(saved(project / "x.yaml", f"eviction: {{policy: {alias}}}\n")).eviction.policy == policy


@pytest.mark.parametrize(
    ("alias", "strategy"),
    [
        ("note_taking", "notes"),
        ("sub_agent", "delegate"),
        ("tool_result_summarization", "tool-results"),
        ("conversation_compaction", "conversation"),
        ("progressive", "progressive"),
    ],
)
def test_aliases_of_strategies(project: Path, alias: str, strategy: str) -> None:
    path = saved(project / "x.yaml", f"compression:\n  cascade:\n    0.8: {alias}\n")
    assert load_settings(path).compaction.cascade == {0.8: strategy}


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "{}\n", "\ufeffmax_context_tokens: 5\n"])
def test_files_with_nothing_or_a_byte_order_mark(project: Path, text: str) -> None:
    path = saved(project / "x.yaml", text)
    assert load_settings(path) == Settings(max_context_tokens=5 if "max" in text else None)


def test_a_section_without_keys_is_its_defaults(project: Path) -> None:
    assert load_settings(saved(project / "x.yaml", "eviction: {}\n")) == Settings()


def test_rows_for_the_model_table_are_kept_as_they_are(project: Path) -> None:
    settings = load_settings(saved(project / "x.yaml", "models:\n  my-model: {window: 64000, in: 1.0}\n"))
    assert settings.models == {"my-model": {"window": 64_000, "in": 1.0}}

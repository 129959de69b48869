"""What is refused in settings: each message says where, which key, which value, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.errors import ConfigError
from ctxctl.settings.load import load, load_settings

# text, line, key, value (as it stands in the message), part of the hint
REFUSED = {
    "unknown section": ("\npresure:\n  watermark: 0.5\n", 2, "presure", "", "'pressure'"),
    "unknown key": ("pressure:\n  watermrk: 0.5\n", 2, "pressure.watermrk", "", "'watermark'"),
    "unlike any key": ("pressure:\n  qqq: 1\n", 2, "pressure.qqq", "", "known: "),
    "key that is a number": ("1: 2\n", 1, "1", "", "known: "),
    "word": ("pressure_thresholds:\n  yellow: 0.4\n  red: high\n", 3, "pressure_thresholds.red", "'high'", ""),
    "percent": ("pressure_thresholds:\n  red: 95%\n", 2, "pressure_thresholds.red", "'95%'", ""),
    "above one": ("pressure_thresholds:\n  red: 1.5\n", 2, "pressure_thresholds.red", "1.5", ""),
    "zero": ("pressure_thresholds:\n  yellow: 0\n", 2, "pressure_thresholds.yellow", "0", ""),
    "negative": ("pressure_thresholds:\n  yellow: -0.5\n", 2, "pressure_thresholds.yellow", "-0.5", ""),
    "boolean": ("pressure_thresholds:\n  red: true\n", 2, "pressure_thresholds.red", "True", ""),
    "nothing": ("pressure_thresholds:\n  red:\n", 2, "pressure_thresholds.red", "None", ""),
    "list": ("pressure_thresholds:\n  red: [0.9]\n", 2, "pressure_thresholds.red", "", ""),
    "not a number": ("pressure_thresholds:\n  red: .nan\n", 2, "pressure_thresholds.red", "nan", ""),
    "infinite": ("pressure:\n  spike_ratio: .inf\n", 2, "pressure.spike_ratio", "inf", ""),
    "wrong order": ("pressure_thresholds:\n  yellow: 0.8\n", 1, "pressure_thresholds", "0.8, 0.75, 0.9", ""),
    "fraction of a turn": ("pressure:\n  velocity_window: 2.5\n", 2, "pressure.velocity_window", "2.5", ""),
    "unknown word": ("pressure:\n  act_at: oranje\n", 2, "pressure.act_at", "'oranje'", "'orange'"),
    "unknown policy": ("eviction:\n  policy: hybird\n", 2, "eviction.policy", "'hybird'", "'hybrid'"),
    "unlike any policy": ("eviction:\n  policy: zzz\n", 2, "eviction.policy", "'zzz'", "known: fifo"),
    "weights": ("eviction:\n  weights: {freshness: 0.5}\n", 2, "eviction.weights", "1.2", ""),
    "kind in type_ttl": ("eviction:\n  type_ttl: {tool_results: 3}\n", 1, "eviction", "'tool_results'", ""),
    "protected kind": ("eviction:\n  protected_types: [systm]\n", 1, "eviction", "'systm'", ""),
    "time to live": ("eviction:\n  type_ttl:\n    thinking: 0\n", 3, "eviction.type_ttl.thinking", "0", ""),
    "cascade key": ("compaction:\n  cascade:\n    1.5: notes\n", 3, "compaction.cascade.1.5", "1.5", ""),
    "cascade step": (
        "compaction:\n  cascade:\n    0.8: progresive\n",
        3,
        "compaction.cascade.0.8",
        "'progresive'",
        "'progressive'",
    ),
    "alias of a section": ("compression:\n  notes_fil: x\n", 2, "compaction.notes_fil", "", "'notes_file'"),
    "ages": ("compaction:\n  progressive: {l0_full: 7}\n", 2, "compaction.progressive", "7, 5, 15, 50", ""),
    "allocations": ("budget:\n  allocations: {tool_results: 0.9}\n", 2, "budget.allocations", "1.78", ""),
    "unknown component": ("budget:\n  allocations: {tools: 0.1}\n", 2, "budget.allocations.tools", "", ""),
    "empty name": ("cross_window:\n  state_file: ''\n", 2, "cross_window.state_file", "''", ""),
    "unknown metric": (
        "health_monitoring:\n  metrics: [utilisation]\n",
        2,
        "health_monitoring.metrics.0",
        "'utilisation'",
        "'utilization'",
    ),
    "window of zero": ("max_context_tokens: 0\n", 1, "max_context_tokens", "0", ""),
    "negative window": ("max_context_tokens: -5\n", 1, "max_context_tokens", "-5", ""),
    "window as a word": ("max_context_tokens: large\n", 1, "max_context_tokens", "'large'", ""),
    "window without a value": ("max_context_tokens:\n", 1, "max_context_tokens", "null", ""),
    "fractional window": ("max_context_tokens: 0.5\n", 1, "max_context_tokens", "0.5", ""),
    "section that is a number": ("pressure: 5\n", 1, "pressure", "5", ""),
    "section that is a list": ("pressure: [1]\n", 1, "pressure", "", ""),
    "row that is a number": ("models: {mine: 5}\n", 1, "models.mine", "5", ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(project: Path, case: str) -> None:
    text, line, key, value, hint = REFUSED[case]
    path = project / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    error = caught.value
    assert (error.path, error.line) == (str(path), line)
    assert error.message.startswith(f"{key}: ")
    assert value in error.message
    assert error.hint and hint in error.hint
    assert str(error).startswith(f"{path}:{line}: {key}: ")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a: 1\na: 2\n", 2, "a: the key stands twice, first in line 1"),
        ("pressure:\n  watermark: 0.4\n  watermark: 0.5\n", 3, "pressure.watermark: the key stands twice"),
        ("pressure: [unclosed\n", 2, "not valid YAML"),
        ("pressure:\n\twatermark: 0.4\n", 2, "not valid YAML"),
        ("- a\n- b\n", 1, "not a list"),
        ("just text\n", 1, "not a str"),
        ("? [1, 2]\n: 3\n", 1, "plain value"),
        ("a: !!python/name:os.getcwd\n", 1, "not valid YAML"),
    ],
)
def test_a_file_that_is_not_a_mapping_of_settings(project: Path, text: str, line: int, part: str) -> None:
    path = project / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert part in caught.value.message
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_both_names_of_one_section(project: Path) -> None:
    path = project / "x.yaml"
    path.write_text("compaction: {}\ncompression: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="'compaction'; keep one of them"):
        load_settings(path)


def test_files_that_can_not_be_read(project: Path) -> None:
    with pytest.raises(ConfigError, match="no such settings file"):
        load_settings(project / "none.yaml")
    with pytest.raises(ConfigError, match="can't be read"):
        load_settings(project)
    path = project / "latin.yaml"
    path.write_bytes(b"notes: caf\xe9\n")
    with pytest.raises(ConfigError, match="can't be read"):
        load_settings(path)


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("CTXCTL_PRESSURE_THRESHOLDS__RED", "high", ("'high'",)),
        ("CTXCTL_PRESSURE_THRESHOLDS__RED", "nan", ("nan",)),
        ("CTXCTL_PRESSURE_THRESHOLDS__RED", "1.5", ("1.5",)),
        ("CTXCTL_PRESSURE__WATERMRK", "0.5", ("unknown key",)),
        ("CTXCTL_MAX_CONTEXT_TOKENS", "", ()),
        ("CTXCTL_EVICTION__POLICY", "hybird", ("'hybird'",)),
        ("CTXCTL_PRESSURE__WATERMARK", "[", ("'['",)),
        ("CTXCTL_NONSENSE", "1", ("unknown key",)),
    ],
)
def test_refused_variables_are_named(name: str, value: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environment={name: value})
    assert name in caught.value.message
    assert all(part in caught.value.message for part in parts)
    assert caught.value.path is None


@pytest.mark.parametrize(
    "environment",
    [
        {"CTXCTL_PRESSURE": "5", "CTXCTL_PRESSURE__WATERMARK": "0.4"},
        {"CTXCTL_COMPRESSION__NOTES_FILE": "a", "CTXCTL_COMPACTION__NOTES_FILE": "b"},
        {"CTXCTL_": "5"},
        {"CTXCTL_PRESSURE__": "5"},
        {"CTXCTL_PRESSURE__WATERMARK__DEEPER": "0.4"},
        {"CTXCTL_EVICTION__POLICY": "[1]"},
    ],
)
def test_variables_that_contradict_each_other_are_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        load(environment=environment)


def test_a_later_layer_is_blamed_for_what_it_breaks(project: Path) -> None:
    path = project / ".ctxctl.yaml"
    path.write_text("pressure_thresholds:\n  yellow: 0.6\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(environment={"CTXCTL_PRESSURE_THRESHOLDS__ORANGE": "0.55"})
    assert caught.value.message.startswith("CTXCTL_PRESSURE_THRESHOLDS") and caught.value.path is None


def test_refused_flags_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^max_context_tokens: .*0"):
        load(overrides={"max_context_tokens": 0})
    with pytest.raises(ConfigError, match="unknown key"):
        load(overrides={"pressure.nothing": 1})

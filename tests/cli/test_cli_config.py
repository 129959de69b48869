"""`ctxctl config`: values with their origin, and files that hold or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

Run = Callable[..., Any]


def test_show(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("max_context_tokens: 64000\n", encoding="utf-8")
    done = ctxctl("config", "show", CTXCTL_PRESSURE_THRESHOLDS__RED="0.95")
    assert done.code == 0 and done.err == ""
    lines = {line.split()[0]: line for line in done.out.splitlines()}
    assert "64000" in lines["max_context_tokens"] and ".ctxctl.yaml:1" in lines["max_context_tokens"]
    assert lines["pressure_thresholds.red"].split()[1:] == ["0.95", "environment", "CTXCTL_PRESSURE_THRESHOLDS__RED"]
    assert lines["pressure_thresholds.yellow"].split()[1:] == ["0.5", "default"]
    values = ctxctl("config", "show", "--json").result()
    assert values["max_context_tokens"]["value"] == 64_000
    assert values["eviction.policy"] == {"value": "hybrid", "origin": "default"}


def test_show_of_a_given_file(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("eviction: {policy: sliding}\n", encoding="utf-8")
    for done in (
        ctxctl("config", "show", "--config", "other.yaml"),
        ctxctl("config", "show", CTXCTL_CONFIG="other.yaml"),
    ):
        assert "sliding-window" in done.out and "settings file other.yaml:1" in done.out


def test_validate(ctxctl: Run, tmp_path: Path) -> None:
    assert ctxctl("config", "validate").code == 0
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("compression: {notes_file: n.md}\n", encoding="utf-8")
    bad.write_text("pressure_thresholds:\n  yelow: 0.5\n", encoding="utf-8")
    done = ctxctl("config", "validate", "good.yaml")
    assert (done.code, done.out, done.err) == (0, "ok: good.yaml\n", "")
    done = ctxctl("config", "validate", "bad.yaml")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: bad.yaml:2: pressure_thresholds.yelow: unknown key")
    assert "did you mean 'yellow'?" in done.err
    assert ctxctl("config", "validate", "none.yaml").code == 4


def test_a_bad_project_file_stops_every_command(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("pressure_thresholds: {red: .nan}\n", encoding="utf-8")
    for arguments in (("demo",), ("config", "show"), ("config", "validate")):
        done = ctxctl(*arguments)
        assert (done.code, done.out) == (4, ""), arguments
        assert "pressure_thresholds.red" in done.err and "nan" in done.err
    error = json.loads(ctxctl("demo", "--json").err)["error"]
    assert (error["code"], error["line"]) == ("config", 1)


def test_bad_rows_of_models(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("models: {mine: {windw: 5}}\n", encoding="utf-8")
    done = ctxctl("demo")
    assert done.code == 4 and "models.mine" in done.err and "windw" in done.err


def test_a_model_of_the_users_own(ctxctl: Run, tmp_path: Path, golden: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("models: {claude-sonnet-4-5: {window: 64000}}\n", encoding="utf-8")
    result = ctxctl("analyze", "--json", golden / "claude-code" / "split_lines.jsonl").result()
    assert result["window"]["tokens"] == 64_000


def test_schema(ctxctl: Run) -> None:
    done = ctxctl("config", "schema")
    assert done.code == 0 and done.err == ""
    schema = done.json()
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid({"eviction": {"policy": "lru"}})
    assert not Draft202012Validator(schema).is_valid({"evicton": {}})


def test_path(ctxctl: Run, tmp_path: Path) -> None:
    out = ctxctl("config", "path").out
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert set(rows) == {"project", "user", "defaults", "models"}
    assert "not found" in rows["project"] and "not there" in rows["user"]
    assert yaml.safe_load(Path(rows["defaults"]).read_text(encoding="utf-8"))["eviction"]["policy"] == "hybrid"
    (tmp_path / ".ctxctl.yaml").write_text("{}\n", encoding="utf-8")
    assert ctxctl("config", "path").out.splitlines()[0].endswith(".ctxctl.yaml")


def test_an_alias_that_contains_itself(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text("eviction: &loop\n  weights: *loop\n", encoding="utf-8")
    done = ctxctl("config", "validate", "loop.yaml")
    assert (done.code, done.out) == (4, "") and "contains itself" in done.err


def test_the_list_of_models_has_the_users_rows(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text("models:\n  house-model:\n    window: 64000\n", encoding="utf-8")
    rows = ctxctl("list", "models", "house", "--json").result()["models"]
    assert [(row["name"], row["window"]) for row in rows] == [("house-model", 64_000)]


def test_shipped_files_are_printed(ctxctl: Callable[..., Any]) -> None:
    done = ctxctl("config", "print", "grafana")
    assert done.code == 0 and done.json()["uid"] == "ctxctl-health"
    wrong = ctxctl("config", "print", "grafan")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean 'grafana'" in wrong.err

"""The command line: statuses, what goes to which stream, names, thresholds, several files."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

ANSI = re.compile(rb"\x1b\[")


@pytest.fixture
def warned(claude: Any) -> bytes:
    """A session of 60,000 prompt tokens with a broken line, so that a warning is due."""
    made = claude()
    made.user("the task")
    made.raw(b'{"broken"')
    made.assistant("an answer", usage=(10, 990, 59_000, 400))
    return made.data()


@pytest.fixture
def clean(claude: Any) -> bytes:
    made = claude()
    made.user("the task")
    made.assistant("an answer", usage=(10, 990, 59_000, 400))
    return made.data()


# -- streams -------------------------------------------------------------------------------------------------------


def test_json_mode_prints_one_document_and_nothing_else(warned: bytes, save: Any, ctxctl: Any) -> None:
    path = save(warned)
    for options in (("--json",), ("--output-format", "json"), ("--json", "-v"), ("--json", "--color", "always")):
        done = ctxctl("analyze", *options, path)
        assert done.status == 0 and not ANSI.search(done.out) and done.out.count(b"\n") == 1
        assert set(done.json) == {"schema", "ctxctl", "settings", "result"}
        assert done.json["schema"] == "ctxctl.analyze/1"
        assert "damaged_line" in done.err
        assert "damaged_line" in [d["code"] for d in done.result["diagnostics"]]
    quiet = ctxctl("analyze", "--json", "-q", path)
    assert quiet.err == "" and quiet.status == 0 and quiet.result["transcript"]["damaged"] is True


def test_the_names_that_scripts_rely_on(warned: bytes, save: Any, within: Any) -> None:
    result = within("analyze", "--json", "--blocks", save(warned)).result
    expected = {
        "transcript": "path format id model records blocks turns exchanges threads messages compactions branches"
        " unreachable errors complete",
        "window": "tokens source",
        "usage": "input output cache_read cache_write reasoning total requests inherited by_thread by_branch",
        "context": "reported with_output counted drift overhead at_turn messages order",
        "counter": "name exact calibrated ratio bound",
        "peak": "tokens utilization turn",
        "composition": "by_kind by_tool largest",
        "composition_all": "by_kind by_tool",
        "attention": "watermark tokens_beyond weak_middle",
    }
    for section, names in expected.items():
        assert set(names.split()) <= set(result[section]), section
    rows = {
        "pressure": "turn tokens source utilization level velocity turns_until_overflow added compaction",
        "diagnostics": "severity code message line",
        "blocks": "block line kind tool turn tokens exact in_context",
    }
    for section, names in rows.items():
        assert result[section] and set(names.split()) <= set(result[section][0]), section
    assert set(result["composition"]["largest"][0]) >= {"block", "kind", "tool", "tokens", "turn", "source"}
    assert set(result["attention"]["weak_middle"]) == {"goal", "constraints", "pinned"}
    assert result["curve"] in ("flat", "rising", "sawtooth", None) and isinstance(result["spikes"], list)
    assert set(result["transcript"]["messages"]) == {"main", "sidechain"}


def test_no_colour_without_a_terminal(warned: bytes, save: Any, ctxctl: Any) -> None:
    path = save(warned)
    for arguments in (("analyze", path), ("--help",), ("analyze", "--help"), ("list", "formats"), ("config", "show")):
        done = ctxctl(*arguments, env={"TERM": "xterm-256color", "GITHUB_ACTIONS": "true"})
        assert done.status == 0 and not ANSI.search(done.out) and "\x1b" not in done.err
        assert "─" not in done.out.decode() or arguments[0] == "analyze"
    assert ANSI.search(ctxctl("analyze", "--color", "always", path).out)
    forced = ctxctl("analyze", path, env={"NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert not ANSI.search(forced.out)


ENCODINGS = [
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},  # names of files can't be decoded then
    {"PYTHONIOENCODING": "latin-1"},
]


@pytest.mark.parametrize("env", ENCODINGS, ids=str)
def test_no_encoding_of_the_terminal_is_too_small(env: Any, claude: Any, save: Any, ctxctl: Any, folder: Path) -> None:
    made = claude()
    made.user("größer 🎯 合計 PLACE")
    made.call("toolu_1", "Bash", {"command": "echo 合計 🎯"})
    made.result("toolu_1", "PLACE")
    path = save(made.data().replace(b"PLACE", rb"\ud83d cut"), "größe 🎯.jsonl")
    done = ctxctl("analyze", "--json", path, env=env)
    assert done.status == 0 and done.result["transcript"]["records"] == 3
    assert done.result["transcript"]["path"].endswith("größe 🎯.jsonl") or env.get("PYTHONUTF8") == "0"
    for form in ("text", "csv"):
        assert ctxctl("analyze", "--output-format", form, path, env=env).status == 0
    assert ctxctl("analyze", "--json", "-o", "out.json", path, env=env).status == 0
    assert json.loads((folder / "out.json").read_bytes().decode("utf-8", "strict"))
    assert ctxctl("analyze", "größer.jsonl", env=env).status == 3


def test_tables_for_programs_and_people(warned: bytes, save: Any, within: Any) -> None:
    path = save(warned)
    table = list(csv.DictReader(io.StringIO(within("analyze", "--output-format", "csv", path).out.decode())))
    assert len(table) == 1 and table[0]["tokens"] == "60000"
    lines = within("analyze", "--output-format", "jsonl", path, path).out.splitlines()
    assert [json.loads(line)["path"] for line in lines] == [str(path)]
    assert "60,000" in within("analyze", "--output-format", "markdown", path).out.decode()
    wide = within("analyze", save(warned, "a" * 150 + ".jsonl")).out.decode()
    assert "a" * 150 + ".jsonl" in wide, "a path is not wrapped or cut on a pipe"


# -- gates ---------------------------------------------------------------------------------------------------------

GATES = [
    (("--max-tokens", "50k"), 1),
    (("--max-tokens", "59_999"), 1),
    (("--max-tokens", "60000"), 0),
    (("--max-peak", "50000"), 1),
    (("--max-peak", "100k"), 0),
    (("--max-utilization", "0.2"), 1),
    (("--max-utilization", "29%"), 1),
    (("--max-utilization", "0.3"), 0),
    (("--max-utilization", "30%"), 0),
    (("--fail-on", "damage"), 1),
    (("--fail-on", "spike"), 0),
    (("--fail-on", "yellow"), 0),
    (("--fail-on", "red"), 0),
    (("--fail-on", "yellow", "--window", "100k"), 1),
    (("--fail-on", "orange", "--window", "100k"), 0),
    (("--fail-on", "orange", "--window", "80k"), 1),
    (("--fail-on", "red", "--window", "60k"), 1),
    (("--fail-on", "red", "--fail-on", "damage"), 1),
    (("--max-tokens", "100k", "--max-peak", "50k"), 1),
]


@pytest.mark.parametrize(("options", "status"), GATES, ids=str)
def test_a_gate_gives_the_same_status_in_every_form(
    options: Any, status: int, warned: bytes, save: Any, within: Any
) -> None:
    path = save(warned)
    for form in ("json", "text", "jsonl", "csv", "markdown"):
        done = within("analyze", "--output-format", form, *options, path)
        assert done.status == status, form
        assert done.out, "the report is printed whatever the gate says"
        assert ("failed:" in done.err) == bool(status)
    data = within("analyze", "--json", *options, path)
    assert data.status == status and (status == 0) == all(gate["ok"] for gate in data.result["gates"])
    assert within("analyze", "--json", "-q", *options, path).status == status
    assert within("analyze", "-o", f"{status}.json", "--force", *options, path).status == status


def test_status_of_real_processes(warned: bytes, save: Any, ctxctl: Any) -> None:
    path = save(warned)
    for options in ((), ("--json",)):
        assert ctxctl("analyze", *options, "--max-tokens", "50k", path).status == 1
        assert ctxctl("analyze", *options, "--max-tokens", "100k", path).status == 0


def test_a_gate_that_can_not_be_checked_does_not_pass(claude: Any, save: Any, within: Any) -> None:
    made = claude("nobody-knows-me-1")
    made.user("go")
    made.assistant("ok")
    path = save(made)
    for options in (("--fail-on", "red"), ("--max-utilization", "0.9")):
        done = within("analyze", "--json", *options, path)
        assert done.status == 1 and "--window" in done.err
        assert within("analyze", "--json", *options, "--window", "1m", path).status == 0


# -- errors --------------------------------------------------------------------------------------------------------

WRONG = [
    (("analyse", "x"), "did you mean `ctxctl analyze`"),
    (("config", "shw"), "did you mean `ctxctl config show`"),
    (("analyze", "--jsn", "x"), "--json"),
    (("analyze", "--max-token", "5", "x"), "--max-tokens"),
    (("analyze", "--from", "claude-cod", "x"), "did you mean 'claude-code'"),
    (("analyze", "--from", "word-perfect", "x"), "known: "),
    (("analyze", "--output-format", "jsn", "x"), "json"),
    (("analyze", "--fail-on", "purple", "x"), "yellow"),
    (("analyze", "--tokens", "guessed", "x"), "reported"),
    (("analyze", "--max-utilization", "0", "x"), "--max-utilization"),
    (("analyze", "--max-utilization", "nan", "x"), "--max-utilization"),
    (("analyze", "--max-utilization", "inf", "x"), "--max-utilization"),
    (("analyze", "--max-utilization", "-0.5", "x"), "--max-utilization"),
    (("analyze", "--max-utilization", "much", "x"), "--max-utilization"),
    (("analyze", "--max-tokens", "-5", "x"), "--max-tokens"),
    (("analyze", "--max-peak", "1e99", "x"), "--max-peak"),
    (("analyze", "--json", "--output-format", "csv", "x"), "exclude"),
    (("list", "frmats"), "formats"),
    (("--bogus",), "--bogus"),
]


@pytest.mark.parametrize(("arguments", "hint"), WRONG, ids=str)
def test_a_wrong_word_is_a_usage_error_that_helps(
    arguments: Any, hint: str, clean: bytes, save: Any, within: Any
) -> None:
    save(clean, "x")
    done = within(*arguments)
    assert (done.status, done.out) == (2, b""), done.err
    assert hint in done.err


@pytest.mark.parametrize("arguments", [("--jsno",), ("--fail-on", "purple"), ("--from", "claud")], ids=str)
def test_with_json_an_error_is_an_object_on_stderr(arguments: Any, clean: bytes, save: Any, within: Any) -> None:
    done = within("analyze", "--json", *arguments, save(clean))
    assert (done.status, done.out) == (2, b"")
    error = json.loads(done.err)["error"]
    assert error["code"] == "usage" and error["message"] and error["hint"]


def test_the_error_object_of_an_input(save: Any, within: Any) -> None:
    path = save(b'{"a":1}\n{"b"\n', "bad.jsonl")
    error = json.loads(within("analyze", "--json", path).err)["error"]
    assert set(error) >= {"code", "message", "hint", "path", "line"}
    assert error["code"] == "input" and error["path"] == str(path) and error["hint"]
    missing = json.loads(within("analyze", "--json", "no.jsonl").err)["error"]
    assert missing["path"] == "no.jsonl" and missing["code"] == "input"
    empty = json.loads(within("analyze", "--json", save(b"")).err)["error"]
    assert empty["code"] == "nothing_found" and "empty" in empty["message"]


def test_help_and_version(ctxctl: Any) -> None:
    assert ctxctl("--version").out.startswith(b"ctxctl ")
    assert ctxctl("analyze", "--help").status == 0
    assert ctxctl().status == 2


# -- several files -------------------------------------------------------------------------------------------------


def test_one_failure_among_several_files(clean: bytes, warned: bytes, save: Any, within: Any) -> None:
    paths = [save(clean, "a.jsonl"), save(b"words\n", "b.jsonl"), save(warned, "c.jsonl"), "missing.jsonl"]
    done = within("analyze", "--json", *paths)
    assert done.status == 3
    files = done.result["files"]
    assert [f["path"] for f in files] == [str(p) for p in paths]
    assert ["result" in f for f in files] == [True, False, True, False]
    assert [f["error"]["code"] for f in files if "error" in f] == ["input", "input"]
    total = done.result["total"]
    assert (total["files"], total["failed"]) == (4, 2)
    assert total["usage"]["total"] == 60_400 and total["copied_calls"] == 1
    assert "b.jsonl" in done.err and "missing.jsonl" in done.err
    text = within("analyze", *paths)
    assert text.status == 3 and b"60,000" in text.out
    lines = within("analyze", "--output-format", "jsonl", *paths).out.splitlines()
    assert ["error" in json.loads(line) for line in lines] == [False, True, False, True]
    gated = within("analyze", "--json", "--max-tokens", "1k", *paths)
    assert gated.status == 3, "a gate yields to a file that could not be read"
    assert within("analyze", "--json", "--max-tokens", "1k", paths[0], paths[2]).status == 1
    assert within("analyze", "--json", save(b"", "e1"), save(b"\n", "e2")).status == 6


def test_a_file_that_is_named_twice_is_read_once(clean: bytes, save: Any, within: Any) -> None:
    path = save(clean)
    assert len(within("analyze", "--json", path, path, path.parent / "*.jsonl").result["files"]) == 1


# -- thresholds ----------------------------------------------------------------------------------------------------

BAD_THRESHOLDS = {
    "nan": "pressure_thresholds: {red: .nan}",
    "infinite": "pressure_thresholds: {red: .inf}",
    "negative": "pressure_thresholds: {yellow: -0.1}",
    "above one": "pressure_thresholds: {red: 1.5}",
    "in percent": 'pressure_thresholds: {red: "150%"}',
    "a word": "pressure_thresholds: {orange: eighty}",
    "true": "pressure_thresholds: {orange: true}",
    "a list": "pressure_thresholds: {orange: [0.8]}",
    "out of order": "pressure_thresholds: {yellow: 0.8, orange: 0.7, red: 0.9}",
    "out of order with a default": "pressure_thresholds: {yellow: 0.8}",
    "null": "pressure_thresholds: {red: null}",
    "a null section": "pressure_thresholds: null",
    "mis-spelt": "pressure_thresholds: {yelow: 0.4}",
    "a mis-spelt section": "pressure_treshold: {yellow: 0.4}",
    "twice": "pressure_thresholds: {red: 0.91, red: 0.92}",
    "a section twice": "pressure_thresholds: {red: 0.91}\npressure_thresholds: {red: 0.92}",
    "a watermark above one": "pressure: {watermark: 1.2}",
    "a ratio of nan": "pressure: {spike_ratio: .nan}",
    "a window of no turn": "pressure: {velocity_window: 0}",
    "no mapping": "- 0.8",
    "no yaml": "pressure_thresholds: {red: 0.9",
    "a bare word": "eighty",
}


@pytest.mark.parametrize("name", BAD_THRESHOLDS)
def test_a_bad_threshold_is_refused(name: str, clean: bytes, save: Any, within: Any, folder: Path) -> None:
    path, text = save(clean), BAD_THRESHOLDS[name]
    (folder / "own.yaml").write_text(text + "\n")
    for options in (("--json", "-o", "out.json"), ()):
        done = within("analyze", *options, "--config", "own.yaml", path)
        assert (done.status, done.out) == (4, b""), done.err
        assert "own.yaml" in done.err and not (folder / "out.json").exists()
    key = re.search(r"\{(\w+): ([^,}]+)\}", text)
    if key and "section" not in name:
        value = {".nan": "nan", ".inf": "inf", "true": "True", "null": "None"}.get(key[2], key[2].strip('"[]'))
        assert key[1] in done.err
        assert value in done.err or value.lower() in done.err or name in ("null", "mis-spelt", "a list")
    if "mis-spelt" in name:
        assert "did you mean 'yellow'" in done.err or "did you mean 'pressure_thresholds'" in done.err


def test_a_bad_threshold_in_the_environment(clean: bytes, save: Any, within: Any, monkeypatch: Any) -> None:
    path = save(clean)
    for value in ("nan", ".nan", "-1", "1.5", "eighty", "true", "[0.9]", "", "0.6: 1"):
        monkeypatch.setenv("CTXCTL_PRESSURE_THRESHOLDS__RED", value)
        done = within("analyze", path)
        assert (done.status, done.out) == (4, b""), (value, done.err)
        assert "CTXCTL_PRESSURE_THRESHOLDS__RED" in done.err
    monkeypatch.delenv("CTXCTL_PRESSURE_THRESHOLDS__RED")
    monkeypatch.setenv("CTXCTL_PRESURE__WATERMARK", "0.5")
    assert within("analyze", path).status == 4


def test_thresholds_that_are_set_are_in_force(clean: bytes, save: Any, within: Any, folder: Path) -> None:
    """60,000 of 64,000 tokens are 93.75 %: red by default, and not when red starts at 95 %."""
    path, options = save(clean), ("--window", "64k", "--fail-on", "red")
    assert within("analyze", *options, path).status == 1
    (folder / "own.yaml").write_text("pressure_thresholds: {red: 0.95}\n")
    done = within("analyze", "--json", "--config", "own.yaml", *options, path)
    assert done.status == 0 and done.result["pressure"][0]["level"] == "orange"
    assert done.json["settings"]["pressure_thresholds"] == {"yellow": 0.5, "orange": 0.75, "red": 0.95}
    (folder / "own.yaml").write_text("pressure_thresholds: {red: 0.9375}\n")
    assert within("analyze", "--config", "own.yaml", *options, path).status == 1, "a threshold is reached at >="
    (folder / "own.yaml").write_text("pressure_thresholds: {red: 0.93751}\n")
    assert within("analyze", "--config", "own.yaml", *options, path).status == 0


def test_an_empty_settings_file_means_all_defaults(clean: bytes, save: Any, within: Any, folder: Path) -> None:
    path = save(clean)
    plain = within("analyze", "--json", path).json
    for text in ("", "\n", "# nothing set\n", "---\n", "{}\n"):
        (folder / "own.yaml").write_text(text)
        assert within("analyze", "--json", "--config", "own.yaml", path).json == plain


def test_a_threshold_of_zero_is_refused_or_means_zero(clean: bytes, save: Any, within: Any, folder: Path) -> None:
    (folder / "own.yaml").write_text("pressure_thresholds: {yellow: 0}\n")
    done = within("analyze", "--json", "--config", "own.yaml", "--fail-on", "yellow", "--window", "1m", save(clean))
    assert done.status in (1, 4)
    if done.status == 1:
        assert done.json["settings"]["pressure_thresholds"]["yellow"] == 0

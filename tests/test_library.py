"""ctxctl as a library: importing costs nothing, nothing prints, nothing exits."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ctxctl
from ctxctl.errors import CtxctlError, ExitCode, InputError

SAMPLES = Path(__file__).parents[1] / "sample_transcripts"
HEAVY = ("typer", "rich", "tiktoken", "orjson", "yaml", "msgspec", "splintr", "toktok", "zstandard", "click")


def loaded_after(code: str) -> set[str]:
    """Top-level modules in sys.modules after some code ran in a fresh interpreter."""
    script = f"{code}\nimport sys, json; print(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_loads_nothing_heavy() -> None:
    assert not loaded_after("import ctxctl") & set(HEAVY)
    assert not loaded_after("import ctxctl, ctxctl.errors, ctxctl.registry, ctxctl.model.transcript") & set(HEAVY)


def test_the_monitor_needs_no_tokenizer_and_no_terminal() -> None:
    code = "from ctxctl import ContextPressureMonitor\nContextPressureMonitor(1000).update(10)"
    assert not loaded_after(code) & {"typer", "rich", "tiktoken", "splintr", "toktok", "orjson", "yaml"}


def test_reading_needs_no_terminal_and_no_settings() -> None:
    code = f"import ctxctl\nctxctl.read({str(SAMPLES / 'codex-rollout.jsonl')!r})"
    assert not loaded_after(code) & {"typer", "rich", "tiktoken", "splintr", "toktok", "yaml"}


def test_the_version_is_answered_at_once() -> None:
    code = "import sys; sys.argv = ['ctxctl', '--version']\nfrom ctxctl.cli.main import main\nmain()"
    assert not loaded_after(code) & set(HEAVY)


def test_public_names() -> None:
    for name in ctxctl.__all__:
        assert getattr(ctxctl, name) is not None
        assert name in dir(ctxctl)
    assert set(ctxctl.__all__) >= {
        "Analysis",
        "AnalysisOptions",
        "ContextPressureMonitor",
        "analyze",
        "load_models",
        "load_settings",
        "read",
        "scan",
        "write",
    }
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = ctxctl.no_such_name


def test_it_is_typed() -> None:
    assert (Path(ctxctl.__file__).parent / "py.typed").is_file()


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Everything that is printed, and a refusal to exit."""
    out = io.StringIO()

    def refuse(*args: object) -> None:
        raise AssertionError("the library wants to exit")

    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(sys, "exit", refuse)
    monkeypatch.setattr("os._exit", refuse)
    monkeypatch.setattr("builtins.exit", refuse, raising=False)
    return out


def test_nothing_is_printed_and_nothing_exits(silence: io.StringIO, tmp_path: Path) -> None:
    table = ctxctl.load_models()
    ctxctl.load_settings(folder=tmp_path)
    for path in sorted(SAMPLES.glob("*.json*")):
        t = ctxctl.read(str(path))
        assert b"".join(ctxctl.write(t)) == path.read_bytes()
        ctxctl.analyze(str(path), table, ctxctl.AnalysisOptions(blocks=True))
        ctxctl.analyze(str(path), table, ctxctl.AnalysisOptions(reported_only=True))
    bad = tmp_path / "bad.jsonl"
    for data in (b"", b"{broken\n", b'{"a":1}\n', b"PK\x03\x04"):
        bad.write_bytes(data)
        with pytest.raises(CtxctlError):
            ctxctl.analyze(str(bad), table)
    with pytest.raises(InputError):
        ctxctl.read(str(tmp_path / "none"))
    with pytest.raises(CtxctlError):
        ctxctl.load_settings(tmp_path / "none.yaml")
    assert silence.getvalue() == ""


def test_analysing_twice_gives_the_same() -> None:
    table, path = ctxctl.load_models(), str(SAMPLES / "axios-to-fetch.jsonl")
    first, second = ctxctl.analyze(path, table), ctxctl.analyze(path, table)
    assert first.usage == second.usage and first.context == second.context
    assert first.composition == second.composition and list(first.pressure) == list(second.pressure)


def test_a_session_can_be_followed_live() -> None:
    monitor = ctxctl.ContextPressureMonitor(1_000)
    reached: list[str] = []
    monitor.on_level("orange", lambda change: reached.append(change.after))
    for tokens in (100, 400, 800):
        monitor.update(tokens)
    assert reached == ["orange"] and monitor.level == "orange"


def test_errors_say_where_and_what_next() -> None:
    error = InputError("broken", path="a.jsonl", line=4, hint="look there")
    assert str(error) == "a.jsonl:4: broken" and error.where() == "a.jsonl:4: "
    assert str(InputError("broken", path="a.jsonl")) == "a.jsonl: broken"
    assert str(InputError("broken")) == "broken"
    assert (error.code, error.exit_code, error.hint) == ("input", ExitCode.INPUT, "look there")


def test_exit_codes_never_change() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "FINDING": 1,
        "USAGE": 2,
        "INPUT": 3,
        "CONFIG": 4,
        "TARGET": 5,
        "NOTHING": 6,
        "BUG": 70,
        "INTERRUPTED": 130,
        "PIPE": 141,
    }

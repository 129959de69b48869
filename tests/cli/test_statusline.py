"""`ctxctl statusline`: one line, whatever the agent says, and errors where a user gives a PATH."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.cli.status_text import DEFAULT, FIELDS, GivenError, Shown, amount, check, fill, line_of, short_name
from ctxctl.cli.statusline import Given, given_of, shown_by_agent

Run = Callable[..., Any]
USAGE = {
    "input_tokens": 100,
    "output_tokens": 900,
    "cache_creation_input_tokens": 1_900,
    "cache_read_input_tokens": 140_000,
}
CONTEXT = {"context_window_size": 200_000, "used_percentage": 71, "remaining_percentage": 29, "current_usage": USAGE}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def fed(path: Path | None = None, **fields: Any) -> bytes:
    """Status JSON as Claude Code documents it."""
    told = {
        "hook_event_name": "Status",
        "session_id": "s",
        "transcript_path": str(path) if path is not None else None,
        "model": {"id": "claude-sonnet-4-5-20250929", "display_name": "Sonnet 4.5"},
        "workspace": {"current_dir": "/code/app", "project_dir": "/code/app"},
        "cost": {"total_cost_usd": 1.239},
        "context_window": CONTEXT,
        "exceeds_200k_tokens": False,
        **fields,
    }
    return json.dumps({key: value for key, value in told.items() if value is not None}).encode()


def plain(text: str) -> str:
    return ANSI.sub("", text)


def test_what_the_agent_states_is_shown(ctxctl: Run, samples: Path) -> None:
    done = ctxctl("statusline", stdin=fed(samples / "axios-to-fetch.jsonl"))
    assert (done.code, done.err) == (0, "")
    assert "\x1b[33m" in done.out  # Claude Code renders colours
    assert plain(done.out) == "Sonnet 4.5 ▕███████░░░▏ 71% 142k/200k yellow · ~200 turns · $1.24\n"
    assert (
        plain(ctxctl("statusline", NO_COLOR="1", stdin=fed()).out)
        == ctxctl("statusline", "--color", "never", stdin=fed()).out
    )


def test_what_it_leaves_open_comes_from_the_file(ctxctl: Run, samples: Path) -> None:
    path = samples / "axios-to-fetch.jsonl"
    done = ctxctl("statusline", "--ascii", stdin=fed(path, context_window=None, cost=None, model=None))
    assert plain(done.out) == "sonnet-4-5 [#.........] 12% 25k/200k green | ~605 turns\n"
    started = {"context_window_size": 1_000_000, "used_percentage": None, "current_usage": None}
    done = ctxctl("statusline", stdin=fed(path, context_window=started))
    assert plain(done.out) == "Sonnet 4.5 ▕░░░░░░░░░░▏ 2% 25k/1M green · ~3367 turns · $1.24\n"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b'{"model": 3, "context_window": [1], "cost": "x"}'],
)
def test_nothing_disturbs_the_agent(data: bytes, ctxctl: Run) -> None:
    done = ctxctl("statusline", stdin=data)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("ctxctl: ") and done.out.count("\n") == 1


def test_wrong_files_and_options_don_t_either(ctxctl: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1}\n')
    for path in (other, tmp_path / "none.jsonl", tmp_path):
        done = ctxctl("statusline", stdin=fed(path))
        assert (done.code, done.err) == (0, "")
        assert plain(done.out) == "Sonnet 4.5 ▕███████░░░▏ 71% 142k/200k yellow · $1.24\n"
    done = ctxctl("statusline", "--format", "{nothing}", stdin=fed())
    assert (done.code, done.err) == (0, "") and "unknown field 'nothing'" in done.out
    (tmp_path / ".ctxctl.yaml").write_text("nonsense: 1\n")
    assert "142k" in ctxctl("statusline", stdin=fed(workspace=None, cwd=str(tmp_path))).out


def test_settings_hold(ctxctl: Run, tmp_path: Path, samples: Path) -> None:
    (tmp_path / ".ctxctl.yaml").write_text(
        "pressure_thresholds:\n  yellow: 0.05\n  orange: 0.1\nmodels:\n  claude-sonnet-4-5:\n    window: 100000\n"
    )
    path = samples / "axios-to-fetch.jsonl"
    template = "{tokens} of {window} {percent} {level}"
    assert ctxctl("statusline", path, "--format", template).out == "25k of 100k 25% orange\n"
    assert ctxctl("statusline", path, "--format", template, "--window", "50k").out == "25k of 50k 49% orange\n"


def test_a_path_and_its_errors(ctxctl: Run, tmp_path: Path, samples: Path) -> None:
    done = ctxctl("statusline", samples / "codex-rollout.jsonl")
    assert (done.code, done.err) == (0, "") and "\x1b" not in done.out
    assert ctxctl("statusline", "--color", "always", samples / "codex-rollout.jsonl").out.count("\x1b[") == 6
    for arguments, code, said in (
        ((tmp_path / "none.jsonl",), 3, "no such file"),
        ((samples / "support-chat.jsonl",), 3, "can't be read from its end"),
        ((samples / "codex-rollout.jsonl", "--format", "{x}"), 2, "unknown field 'x'"),
        ((samples / "codex-rollout.jsonl", "--nothing"), 2, "--nothing"),
        ((samples / "codex-rollout.jsonl", "--window", "x"), 2, "--window"),
    ):
        done = ctxctl("statusline", *arguments)
        assert (done.code, done.out) == (code, ""), arguments
        assert said in done.err


def test_agrees_with_analyze(ctxctl: Run, samples: Path) -> None:
    for name in ("axios-to-fetch.jsonl", "codex-rollout.jsonl"):
        result = ctxctl("analyze", "--json", samples / name).result()
        reported, window = result["context"]["reported"], result["window"]["tokens"]
        done = ctxctl("statusline", "--format", "{tokens} {window} {percent}", samples / name)
        assert done.out == f"{amount(reported)} {amount(window)} {reported / window:.0%}\n"


# -- the text ----------------------------------------------------------------------------------------------------------

KNOWN = {"model": "M", "tokens": "1k", "percent": "9%"}
FULL = Shown("opus", 150_000, 200_000, 0.75, "orange", 18, 2_777.0, 12.345)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{model} {tokens}", "M 1k"),
        ("{model} {window}", "M ?"),
        ("{model}[ {window}]", "M"),
        ("{model}[ {tokens}[/{window}]]!", "M 1k!"),
        ("[{cost} [{model}]]-", "-"),
        ("", ""),
    ],
)
def test_templates(template: str, text: str) -> None:
    check(template)
    assert fill(template, KNOWN) == text


@pytest.mark.parametrize("template", ["{x}", "{}", "[", "]", "a]b[", "{model", "model}"])
def test_wrong_templates(template: str) -> None:
    with pytest.raises(GivenError):
        check(template)


def test_every_field_is_filled() -> None:
    for name in FIELDS:
        check(f"{{{name}}}")
        assert line_of(FULL, f"{{{name}}}") not in ("?", ""), name


@given(width=st.integers(1, 100))
def test_no_wider_than_allowed(width: int) -> None:
    text = line_of(FULL, DEFAULT, width=width)
    assert len(text) <= width
    whole = line_of(FULL, DEFAULT, width=400)
    assert whole == "opus ▕████████░░▏ 75% 150k/200k orange · ~18 turns · $12.35"
    assert text == whole or whole.startswith(text.rstrip("…"))


def test_colours_are_only_around_what_they_colour() -> None:
    text = line_of(FULL, DEFAULT, width=400, ansi=True)
    assert text.count("\x1b[38;5;208m") == text.count("\x1b[0m") == 3
    assert plain(text) == line_of(FULL, DEFAULT, width=400)
    assert line_of(FULL, DEFAULT, width=400, ascii_only=True).isascii()


AMOUNTS = {
    0: "0",
    999: "999",
    1000: "1k",
    1234: "1.2k",
    9_949: "9.9k",
    9_950: "10k",
    142_000: "142k",
    999_499: "999k",
    999_500: "1M",
    1_250_000: "1.2M",
}


@pytest.mark.parametrize(("tokens", "text"), AMOUNTS.items())
def test_amounts(tokens: int, text: str) -> None:
    assert amount(tokens) == text


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-sonnet-4-5-20250929", "sonnet-4-5"),
        ("claude-opus-4-6[1m]", "opus-4-6[1m]"),
        ("openrouter/openai/gpt-5.1-codex", "gpt-5.1-codex"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        (None, None),
    ],
)
def test_names(model: str | None, name: str | None) -> None:
    assert short_name(model) == name


def test_arguments() -> None:
    assert given_of(["--format={model}", "--width", "40", "--ascii", "x"]) == Given("x", "{model}", "auto", True, 40)
    for words in (["--width", "x"], ["--color", "blue"], ["--format"], ["a", "b"], ["--what"], ["--width=0"]):
        assert given_of(words).wrong
    assert given_of(["--what", "x", "--ascii"]).path == "x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("model", "context_window", "cost", "workspace", "transcript_path", "cwd")
INNER = ("id", "display_name", "context_window_size", "used_percentage", "current_usage", "total_cost_usd")


@given(st.dictionaries(st.sampled_from(KEYS), JSON | st.dictionaries(st.sampled_from(INNER), JSON), max_size=6))
def test_any_json_gives_a_line(told: dict[str, Any]) -> None:
    text = line_of(shown_by_agent(json.dumps(told).encode(), Given()), ansi=True)
    assert text and "\n" not in text
    assert os.linesep not in text

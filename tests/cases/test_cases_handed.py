"""The public bug reports that are handed out beside the repository: each fact of their EXPECT.md, held to `analyze`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ctxctl as library
from ctxctl.errors import ConfigError

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
AREAS = ("parse", "usage", "window", "chain", "estimate", "io", "cli")
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the handed cases (../shared/cases) are not here")


def index() -> list[str]:
    if not CASES.is_dir():
        return []
    rows = [line.split("\t") for line in (CASES / "INDEX.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    return [row[0] for row in rows if row[2] in AREAS]


def stated(case: str) -> Any:
    """The facts of a case, from the JSON in its EXPECT.md."""
    text = (CASES / case / "EXPECT.md").read_text(encoding="utf-8")
    return json.loads(text.split("```json")[1].split("```")[0])


def facts() -> list[tuple[str, Any]]:
    """(path below the cases, facts) of every file that has some."""
    found = []
    for case in index():
        value = stated(case)
        files = value.pop("files", {})
        if (CASES / case / "input.jsonl").exists():
            found.append((f"{case}/input.jsonl", value))
        found += [(f"{case}/{name}", entry) for name, entry in files.items()]
    return found


def run(*arguments: Any, folder: Path) -> Any:
    command = [sys.executable, "-m", "ctxctl", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=folder, timeout=60)


def strict(data: bytes) -> Any:
    return json.loads(data.decode("utf-8", "strict"), parse_constant=lambda word: pytest.fail(f"{word} in the JSON"))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The entry of every handed transcript of these areas, by its path below the cases, from one run."""
    paths = sorted(p for case in index() for p in (CASES / case).glob("*.jsonl"))
    done = run("analyze", "--json", "--blocks", *paths, folder=tmp_path_factory.mktemp("handed"))
    assert done.returncode == 3 and b"Traceback" not in done.stderr
    files = strict(done.stdout)["result"]["files"]
    return {Path(entry["path"]).relative_to(CASES).as_posix(): entry for entry in files}


@pytest.fixture
def of(everything: dict[str, Any]) -> Callable[[str], Any]:
    """`result` of a case: its number, or its number and the file."""

    def get(name: str) -> Any:
        number, _, file = name.partition("/")
        (path,) = [p for p in everything if p.startswith(number + "-") and p.endswith("/" + (file or "input.jsonl"))]
        return everything[path]["result"]

    return get


def lines_of(result: Any, *codes: str) -> list[int]:
    return [d["line"] for d in result["diagnostics"] if d["code"] in codes]


USAGE = {"in": "input", "cc": "cache_write", "cr": "cache_read", "out": "output"}


@pytest.mark.parametrize(("path", "fact"), facts(), ids=lambda v: v if isinstance(v, str) else "")
def test_facts(path: str, fact: Any, everything: dict[str, Any]) -> None:
    entry = everything[path]
    if fact.get("objects") == 0:
        assert "result" not in entry
        assert str(len(fact.get("bad", []))) in entry["error"]["message"] or len(fact.get("bad", [])) < 2
        return
    result = entry["result"]
    transcript, kinds = result["transcript"], result["composition_all"]["by_kind"]
    blocks = {kind: share["blocks"] for kind, share in kinds.items()}
    broken = ("damaged_line", "nul_block", "torn_tail")
    if "objects" in fact:
        assert transcript["records"] == fact["objects"]
    elif "lines" in fact:
        assert transcript["records"] == fact["lines"]
    if "bad" in fact:
        assert lines_of(result, *broken) == fact["bad"]
    if "nonobjects" in fact:
        assert lines_of(result, "not_an_object") == fact["nonobjects"]
    for name, kind in (("uses", "tool_call"), ("results", "tool_result")):
        if name in fact:
            assert blocks.get(kind, 0) == fact[name]
    for name, field in USAGE.items():
        if name in fact:
            assert result["usage"][field] == fact[name]
    if "naive_out" in fact:
        assert result["usage"]["output"] != fact["naive_out"]
    if "ctx" in fact:
        assert result["context"]["reported"] == fact["ctx"]
    if "dangling" in fact:
        assert len(lines_of(result, "dangling_parent")) == len(fact["dangling"])
    if "lone_surrogates" in fact:
        assert len(lines_of(result, "lone_surrogate")) == fact["lone_surrogates"]
    if "codex_total" in fact and "021" not in path:
        assert result["usage"]["total"] == fact["codex_total"]
        assert result["context"]["reported"] == fact["codex_last"]


def test_numbers_are_finite_and_not_negative(everything: dict[str, Any]) -> None:
    signed = ("drift", "turns_until_overflow", "velocity")

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{path}.{key}")
        elif isinstance(value, list):
            for inner in value:
                walk(inner, path)
        elif isinstance(value, float):
            assert math.isfinite(value), path
        if isinstance(value, (int, float)) and not path.endswith(signed):
            assert value >= 0, path

    for path, entry in everything.items():
        walk(entry, path)


def test_untouched_files_come_back_byte_for_byte(everything: dict[str, Any]) -> None:
    for path, entry in everything.items():
        if "result" in entry:
            data = (CASES / path).read_bytes()
            assert b"".join(library.write(library.read(str(CASES / path)))) == data, path


def test_001_and_003_the_newest_turn_survives(of: Any) -> None:
    cut, zeros = of("001"), of("003")
    assert cut["transcript"]["messages"]["main"] == {"user": 3, "assistant": 3}
    assert (cut["blocks"][-1]["line"], cut["blocks"][-1]["in_context"]) == (7, True)
    assert zeros["blocks"][-1]["line"] == 6 and zeros["transcript"]["complete"] is True
    for name in ("001", "003"):
        (case,) = [c for c in index() if c.startswith(name)]
        texts = [b.text for b in library.read(str(CASES / case / "input.jsonl")).blocks]
        assert {"001": "final answer", "003": "tail answer"}[name] in texts and not any("\0" in text for text in texts)


def test_005_surrogates_are_named(of: Any) -> None:
    assert lines_of(of("005"), "lone_surrogate") == [3, 4]


def test_007_marks_are_no_text(of: Any) -> None:
    result = of("007")
    assert result["transcript"]["unreachable"] == 0
    assert [d["severity"] for d in result["diagnostics"]] == ["info"]


def test_008_empty_is_not_corrupt(everything: dict[str, Any]) -> None:
    errors = {Path(p).name: e["error"] for p, e in everything.items() if p.startswith("008")}
    assert errors["empty.jsonl"]["code"] == errors["blank.jsonl"]["code"] == "nothing_found"
    assert "empty" in errors["empty.jsonl"]["message"] and "empty" not in errors["allbad.jsonl"]["message"]
    assert "2 bad lines" in errors["allbad.jsonl"]["message"]


def test_010_both_results_are_counted(of: Any) -> None:
    result = of("010")
    assert result["usage"]["output"] == 7 and result["usage"]["cache_read"] == 10 and result["usage"]["input"] == 0
    assert [row["tokens"] > 0 for row in result["blocks"] if row["kind"] == "tool_result"] == [True, True]


def test_012_to_017_context_and_totals(of: Any) -> None:
    split, errors, cumulative = of("012"), of("016"), of("017")
    assert split["usage"]["requests"] == 2 and split["context"]["with_output"] == 15_564
    assert of("013")["usage"]["requests"] == 2
    assert errors["transcript"]["model"] == "claude-sonnet-4-5" and errors["context"]["with_output"] == 82_239
    assert (errors["usage"]["requests"], errors["transcript"]["errors"]) == (1, 1)
    assert cumulative["peak"]["utilization"] == pytest.approx(0.525, abs=0.001)
    assert cumulative["context"]["with_output"] == 105_203
    prompt = sum(cumulative["usage"][k] for k in ("input", "cache_read", "cache_write"))
    assert prompt == 515_015 != cumulative["context"]["tokens"]


def test_019_and_021_the_counter_of_codex(of: Any) -> None:
    repeats, impossible = of("019"), of("021")
    usage = repeats["usage"]
    assert (usage["input"] + usage["cache_read"], usage["cache_read"], usage["output"]) == (3000, 1400, 300)
    assert usage["requests"] == 2 == len(repeats["pressure"])
    assert repeats["window"] == {"tokens": 258_400, "source": "transcript"}
    assert repeats["pressure"][-1]["utilization"] == pytest.approx(0.0089, abs=0.0001)
    assert lines_of(impossible, "impossible_usage") == [4]
    assert impossible["context"]["reported"] == 120_000
    assert impossible["peak"]["utilization"] == pytest.approx(0.211, abs=0.001)


def test_023_and_024_two_names_and_no_nonsense(of: Any) -> None:
    context, odd = of("023")["context"], of("024")
    assert context["reported"] == 1615 and context["counted"] > 5000
    assert lines_of(odd, "invalid_usage") == [3, 4, 5]


def test_025_and_028_the_window(of: Any, tmp_path: Path) -> None:
    over, band, suffix, unknown = of("025/over.jsonl"), of("025/band.jsonl"), of("025/suffix.jsonl"), of("028")
    assert over["peak"]["utilization"] == pytest.approx(0.212) and over["window"]["tokens"] == 1_000_000
    assert band["window"] == {"tokens": 200_000, "source": "assumed"}
    assert band["peak"]["utilization"] == pytest.approx(0.97)
    assert suffix["window"]["tokens"] == 1_000_000 and suffix["peak"]["utilization"] == pytest.approx(0.077)
    assert unknown["window"] == {"tokens": None, "source": "unknown"} and unknown["peak"]["utilization"] is None
    assert lines_of(unknown, "unknown_window") == lines_of(of("028/plain.jsonl"), "unknown_window") == [None]
    folder = CASES / "025-window-1m-inference"
    told = strict(run("analyze", "--json", "--window", "1m", folder / "band.jsonl", folder=tmp_path).stdout)["result"]
    assert told["peak"]["utilization"] == pytest.approx(0.194) and told["window"]["source"] == "config"
    path = CASES / "028-unknown-model" / "input.jsonl"
    told = strict(run("analyze", "--json", "--window", "10k", path, folder=tmp_path).stdout)["result"]
    assert told["peak"]["utilization"] == pytest.approx(0.12)


def short(result: Any) -> list[str]:
    """The order of the window, by the first characters of the ids that the cases use."""
    return [uuid[:8].lstrip("0") for uuid in result["context"]["order"]]


def test_056_to_062_compactions(of: Any) -> None:
    phantom, kept, gone = of("056"), of("061"), of("062")
    assert lines_of(phantom, "dangling_parent") == [5, 7]
    assert short(phantom) == short(kept) == ["6", "3", "4", "7", "8"]
    assert phantom["transcript"]["unreachable"] == 6 and phantom["transcript"]["records"] == 8
    assert short(gone) == ["4", "5", "6"] and gone["context"]["counted"] < 100
    assert short(of("058")) == ["1", "2", "3", "4"] and of("058")["diagnostics"] == []


def test_059_helpers_are_told_apart(of: Any) -> None:
    result = of("059")
    assert short(result) == ["1", "2", "3", "4"]
    assert result["transcript"]["messages"] == {"main": {"user": 2, "assistant": 2}, "sidechain": 2}
    threads = result["usage"]["by_thread"]
    main = threads.pop("main")
    assert (main["input"], main["output"]) == (20, 10)
    assert [(t["input"], t["output"]) for t in threads.values()] == [(10, 5)]


def test_064_and_066_cycles_and_branches(of: Any) -> None:
    cycle, rewound = of("064"), of("066")
    assert len(lines_of(cycle, "parent_cycle")) == 2 and short(cycle) == ["1", "2", "3", "4", "5"]
    assert [(b["live"], b["messages"]) for b in rewound["transcript"]["branches"]] == [(True, 4), (False, 4)]
    assert short(rewound) == ["1", "2", "5", "6"]
    live = next(b for b in rewound["usage"]["by_branch"] if b["live"])
    assert live["input"] == 110 and rewound["usage"]["output"] == 30


def test_070_an_empty_array_has_no_message(everything: dict[str, Any]) -> None:
    errors = {Path(p).name: e["error"] for p, e in everything.items() if p.startswith("070") and "error" in e}
    assert set(errors) == {"now-array.jsonl", "now-cut.jsonl", "now-empty.jsonl"}
    assert "array with 0 messages" in errors["now-array.jsonl"]["message"]


def test_074_to_077_estimates(of: Any) -> None:
    special, scripts, images = of("074"), of("076"), of("077")
    assert all(row["tokens"] > 1 for row in special["blocks"]) and special["transcript"]["records"] == 3
    english, *cjk, emoji = [row["tokens"] for row in scripts["blocks"]]
    assert 15 <= english <= 40 and all(45 <= n <= 250 for n in cjk) and 100 <= emoji <= 400
    assert cjk[0] > 2 * english
    first, second = [row["tokens"] for row in images["blocks"] if row["kind"] == "image"]
    assert first == second and 85 <= first <= 6000


def test_081_and_082_thresholds_and_streams(of: Any, tmp_path: Path) -> None:
    path = CASES / "082-json-stdout-purity" / "input.jsonl"
    for options in ((), ("--json",)):
        for limit, status in (("50k", 1), ("100k", 0)):
            done = run("analyze", *options, "--max-tokens", limit, path, folder=tmp_path)
            assert done.returncode == status and b"damaged_line" in done.stderr + done.stdout
            assert b"\x1b" not in done.stdout
            if options:
                assert strict(done.stdout)["result"]["context"]["reported"] == 90_000
    for text in sorted((CASES / "081-bad-thresholds" / "configs").glob("*.yaml")):
        body = text.read_text(encoding="utf-8").replace("treshold:", "rde:").replace("threshold:", "red:")
        body = body.replace("soft_red:", "orange:").replace("hard_red:", "red:")
        lines = [line for line in body.splitlines() if line.strip()]
        (tmp_path / "own.yaml").write_text(
            "".join(["pressure_thresholds:\n", *(f"  {line}\n" for line in lines)] if lines else [])
        )
        if text.stem in ("clamped-95", "empty"):
            expected = 0.95 if text.stem == "clamped-95" else 0.9
            assert library.load_settings(tmp_path / "own.yaml").pressure_thresholds.red == expected
            continue
        with pytest.raises(ConfigError, match=r"own\.yaml:\d+: pressure_thresholds") as error:
            library.load_settings(tmp_path / "own.yaml")
        assert error.value.exit_code == 4

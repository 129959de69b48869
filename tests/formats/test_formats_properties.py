"""Properties over generated transcripts, sound and odd: nothing but our own errors, and sums that agree."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from ctxctl import AnalysisOptions, analyze, load_models
from ctxctl.errors import CtxctlError
from ctxctl.model.limits import ModelTable
from ctxctl.pressure.options import PressureThresholds
from ctxctl.pressure.result import Analysis
from ctxctl.reports import markdown, text
from ctxctl.reports.build.analysis import analysis_report
from ctxctl.reports.build.analysis_data import analysis_data
from ctxctl.reports.json import dumps

IDS = st.sampled_from(["u1", "u2", "a1", "a2", "a3", "x", "00000001-0000-4000-8000-000000000000"])
WORDS = st.text(alphabet="ab <>{}[]\"'\\\n\u2028日😀", max_size=12) | st.sampled_from(
    ["<system-reminder>x", "<preserve>keep</preserve>", "<preserve>", "You must never stop.", "\ud83d", "[red]x[/red]"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
NUMBER = st.integers(0, 300_000) | st.sampled_from([None, -1, "7", 1e999, 2.5, True, [], 10**30])
TOOL = st.sampled_from(["Read", "Bash", "t"])


def mapping(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


PART = st.one_of(
    mapping({"type": st.just("text"), "text": WORDS}),
    mapping({"type": st.just("tool_use"), "id": IDS, "name": TOOL}, input=JSON),
    mapping({"type": st.just("tool_result"), "tool_use_id": IDS}, content=WORDS | JSON, is_error=st.booleans()),
    mapping({"type": st.just("thinking")}, thinking=WORDS, signature=WORDS),
    mapping({"type": st.sampled_from(["image", "document"])}, source=JSON),
    mapping({"type": WORDS}, text=JSON, content=JSON),
)
CONTENT = WORDS | st.lists(PART, max_size=3) | JSON
ANTHROPIC_USAGE = mapping(
    {}, input_tokens=NUMBER, output_tokens=NUMBER, cache_read_input_tokens=NUMBER, cache_creation_input_tokens=NUMBER
)
MESSAGE = mapping(
    {"role": st.sampled_from(["user", "assistant"]), "content": CONTENT},
    id=IDS,
    model=st.sampled_from(["claude-sonnet-4-5", "gpt-5", "<synthetic>", "unknown-model"]),
    usage=ANTHROPIC_USAGE | JSON,
    stop_reason=st.sampled_from(["end_turn", "model_context_window_exceeded", None]),
)
SUBTYPE = st.sampled_from(["compact_boundary", "microcompact_boundary", "turn_duration"])
COMPACT = mapping(
    {},
    trigger=JSON,
    preTokens=NUMBER,
    preservedSegment=mapping({"headUuid": IDS, "tailUuid": IDS}) | JSON,
    preservedMessages=mapping({"uuids": st.lists(IDS, max_size=3)}) | JSON,
)
CLAUDE = st.one_of(
    *[
        mapping(
            {
                "type": st.sampled_from(types),
                "sessionId": st.just("s"),
                "uuid": IDS,
                "parentUuid": IDS | st.none(),
                "message": MESSAGE,
            },
            isSidechain=st.booleans(),
            agentId=IDS,
            isMeta=st.booleans(),
            isCompactSummary=st.booleans(),
            isApiErrorMessage=st.booleans(),
            requestId=IDS,
            timestamp=WORDS,
        )
        for types in (["user"], ["assistant"], ["user", "assistant", "progress"])
    ],
    mapping(
        {"type": st.just("system"), "subtype": SUBTYPE, "sessionId": st.just("s"), "uuid": IDS},
        parentUuid=IDS | st.none(),
        logicalParentUuid=IDS,
        compactMetadata=COMPACT,
        microcompactMetadata=mapping({"compactedToolIds": st.lists(IDS, max_size=2)}) | JSON,
    ),
    mapping({"type": st.just("attachment"), "sessionId": st.just("s"), "uuid": IDS}, attachment=JSON),
    mapping({"type": st.just("last-prompt"), "sessionId": st.just("s")}, leafUuid=IDS),
    mapping({"type": WORDS, "sessionId": st.just("s")}, uuid=IDS, message=JSON),
)
CHAT_PART = mapping(
    {"type": st.sampled_from(["text", "image_url", "refusal", "file"])}, text=WORDS, image_url=JSON, refusal=WORDS
)
CHAT_MESSAGE = mapping(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "function", "developer"])},
    content=WORDS | st.none() | st.lists(CHAT_PART, max_size=2) | JSON,
    tool_calls=st.lists(mapping({"id": IDS}, function=mapping({"name": TOOL}, arguments=JSON)) | JSON, max_size=2),
    function_call=mapping({"name": TOOL}, arguments=WORDS) | JSON,
    tool_call_id=IDS,
    reasoning_content=WORDS | JSON,
)
CHAT = mapping(
    {"messages": st.lists(CHAT_MESSAGE | JSON, max_size=5).map(lambda m: [{"role": "user", "content": "go"}, *m])},
    model=st.sampled_from(["gpt-4o", "o3", "unknown-model"]) | JSON,
    tools=JSON,
    usage=mapping({}, prompt_tokens=NUMBER, completion_tokens=NUMBER, prompt_tokens_details=JSON) | JSON,
    response=JSON,
)
CODEX_USAGE = mapping({}, input_tokens=NUMBER, cached_input_tokens=NUMBER, output_tokens=NUMBER, total_tokens=NUMBER)
ITEM = mapping(
    {
        "type": st.sampled_from(
            ["message", "reasoning", "function_call", "function_call_output", "web_search_call", "compaction"]
        )
    },
    role=st.sampled_from(["user", "assistant", "developer"]) | JSON,
    content=st.lists(mapping({"type": WORDS}, text=WORDS, image_url=JSON), max_size=2) | JSON,
    summary=JSON,
    encrypted_content=WORDS,
    name=TOOL,
    arguments=WORDS | JSON,
    call_id=IDS,
    output=WORDS | JSON,
)
CODEX = st.one_of(
    st.builds(lambda p: {"timestamp": "t", "type": "response_item", "payload": p}, ITEM),
    st.builds(
        lambda p: {"timestamp": "2026-02-01T09:00:00Z", "type": "event_msg", "payload": p},
        mapping(
            {"type": st.sampled_from(["token_count", "thread_rolled_back", "task_started"])},
            info=mapping({}, total_token_usage=CODEX_USAGE, last_token_usage=CODEX_USAGE, model_context_window=NUMBER)
            | JSON,
            num_turns=NUMBER,
            model_context_window=NUMBER,
        ),
    ),
    st.builds(
        lambda p: {"timestamp": "t", "type": "compacted", "payload": p},
        mapping({}, message=WORDS | JSON, replacement_history=st.lists(ITEM | JSON, max_size=3) | JSON),
    ),
    st.builds(
        lambda type_, p: {"timestamp": "t", "type": type_, "payload": p},
        st.sampled_from(["session_meta", "turn_context", "world_state"]),
        st.dictionaries(st.sampled_from(["id", "model", "source", "base_instructions", "cwd"]), JSON, max_size=3),
    ),
)
SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


@pytest.fixture(scope="module")
def table() -> ModelTable:
    return load_models()


def measured(folder: Path, records: list[Any], table: ModelTable, name: str = "x.jsonl") -> Analysis | None:
    """The analysis of generated records; None when it was refused with an error of ours."""
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    try:
        quick = analyze(str(path), table, AnalysisOptions(reported_only=True))
        analysis = analyze(str(path), table, AnalysisOptions(blocks=True))
    except CtxctlError:
        return None
    assert quick.usage == analysis.usage
    return analysis


def hold(analysis: Analysis) -> None:
    """What every analysis must fulfil."""
    t, rows = analysis.transcript, analysis.rows
    assert rows is not None and analysis.composition is not None and analysis.composition_all is not None
    assert len(rows) == analysis.blocks
    assert all(row.turn >= 1 and row.tokens >= 0 for row in rows)
    assert len(set(t.live)) == len(t.live)
    assert not set(t.live) & t.superseded
    assert all(0 <= number < len(rows) + len(t.superseded) for number in t.live)
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row.kind] += row.tokens
    by_kind = analysis.composition_all.by_kind
    assert sum(k.blocks for k in by_kind.values()) == len(rows)
    assert set(by_kind) == set(sums)
    assert all(abs(k.tokens - sums[kind]) <= k.blocks for kind, k in by_kind.items())
    for composition in (analysis.composition, analysis.composition_all):
        shares = [k.share for k in composition.by_kind.values()]
        assert not shares or abs(sum(shares) - 1) < 1e-9 or sum(shares) == 0
    counted = analysis.context.counted
    assert counted is not None
    assert abs(counted - sum(k.tokens for k in analysis.composition.by_kind.values())) <= len(by_kind)
    assert min(analysis.usage.input, analysis.usage.output, analysis.usage.cache_read, analysis.usage.total) >= 0
    assert all(reading.tokens >= 0 and reading.velocity >= 0 for reading in analysis.pressure)
    turns = [reading.turn for reading in analysis.pressure]
    assert turns == sorted(set(turns))
    shown(analysis)


def shown(analysis: Analysis) -> None:
    """Every form of the report can be made, and the JSON is strict."""

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    json.loads(dumps(analysis_data(analysis, None)).decode("utf-8"), parse_constant=refuse)
    report = analysis_report(analysis, PressureThresholds(), None, None)
    markdown.render([report]).encode("utf-8")
    console = Console(file=io.StringIO(), width=80, highlight=False, markup=False, emoji=False)
    text.render([report], console)


@settings(max_examples=120, **SETTINGS)
@given(st.lists(CLAUDE, min_size=1, max_size=10))
def test_claude_like(tmp_path: Path, table: ModelTable, records: list[Any]) -> None:
    start = {"type": "user", "uuid": "u0", "sessionId": "s", "message": {"role": "user", "content": "go"}}
    analysis = measured(tmp_path, [start, *records], table)
    assert analysis is not None and analysis.transcript.format == "claude-code"
    hold(analysis)


@settings(max_examples=80, **SETTINGS)
@given(st.lists(CHAT, min_size=1, max_size=3))
def test_chat_like(tmp_path: Path, table: ModelTable, records: list[Any]) -> None:
    analysis = measured(tmp_path, records, table)
    if analysis is not None:
        hold(analysis)


@settings(max_examples=60, **SETTINGS)
@given(st.lists(CHAT_MESSAGE, min_size=1, max_size=8))
def test_messages_line_by_line(tmp_path: Path, table: ModelTable, records: list[Any]) -> None:
    analysis = measured(tmp_path, [{"role": "user", "content": "go"}, *records], table)
    if analysis is not None:
        hold(analysis)


@settings(max_examples=60, **SETTINGS)
@given(st.lists(MESSAGE, min_size=1, max_size=5), JSON, JSON)
def test_anthropic_like(tmp_path: Path, table: ModelTable, messages: list[Any], system: Any, tools: Any) -> None:
    request = {"model": "claude-sonnet-4-5", "max_tokens": 5, "system": system, "tools": tools, "messages": messages}
    analysis = measured(tmp_path, [request], table, "x.json")
    if analysis is not None:
        hold(analysis)


@settings(max_examples=100, **SETTINGS)
@given(st.lists(CODEX, min_size=1, max_size=10))
def test_codex_like(tmp_path: Path, table: ModelTable, records: list[Any]) -> None:
    start = {"timestamp": "t", "type": "session_meta", "payload": {"id": "c"}}
    analysis = measured(tmp_path, [start, *records], table)
    assert analysis is not None and analysis.transcript.format == "codex"
    hold(analysis)


@settings(max_examples=100, **SETTINGS)
@given(st.lists(JSON | CLAUDE | CHAT | CODEX, min_size=1, max_size=5), st.sampled_from(["x.jsonl", "x.traj.json"]))
def test_any_json_at_all(tmp_path: Path, table: ModelTable, records: list[Any], name: str) -> None:
    analysis = measured(tmp_path, records, table, name)
    if analysis is not None:
        hold(analysis)

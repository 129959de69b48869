"""A session whose usage follows from its text: overhead, drift, calibration, pressure and spikes come out as put in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl import Analysis, AnalysisOptions, analyze, load_models
from ctxctl.model.limits import ModelTable
from ctxctl.tokens import count

GOLDEN = Path(__file__).parents[1] / "formats" / "golden"
FRAME = 4  # tokens of a message's frame
PROSE = 1.14  # tokens of Claude 3 to 4.6 per o200k token of prose


@pytest.fixture(scope="module")
def table() -> ModelTable:
    return load_models()


class Session:
    """A Claude Code session of one question and one answer per turn, with usage to the token."""

    def __init__(self, model: str, overhead: int, factor: float = 1.0, ratio: float = 1.0) -> None:
        self.model, self.factor, self.ratio = model, factor, ratio
        self.context = float(overhead)
        self.records: list[dict[str, Any]] = []
        self.contexts: list[int] = []
        self.texts: list[str] = []

    def _add(self, type_: str, message: dict[str, Any], text: str, **more: Any) -> None:
        n = len(self.records)
        parent = f"r{n - 1}" if n else None
        self.records.append(
            {"type": type_, "uuid": f"r{n}", "parentUuid": parent, "sessionId": "s", "message": message, **more}
        )
        self.texts.append(text)
        self.context += (count(text) * self.factor + FRAME) * self.ratio

    def turn(self, question: str, answer: str, *, reported: float = 1.0) -> None:
        self._add("user", {"role": "user", "content": question}, question)
        context = round(self.context * reported)
        self.contexts.append(context)
        usage = {"input_tokens": context, "output_tokens": count(answer)}
        content = [{"type": "text", "text": answer}]
        id_ = f"msg_{len(self.contexts)}"
        message = {"id": id_, "role": "assistant", "model": self.model, "content": content, "usage": usage}
        self._add("assistant", message, answer)

    def analyze(self, folder: Path, table: ModelTable, **options: Any) -> Analysis:
        path = folder / "session.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in self.records), encoding="utf-8")
        return analyze(str(path), table, AnalysisOptions(**options))


def codes(analysis: Analysis) -> list[str]:
    return [d.code for d in analysis.diagnostics]


def test_what_the_file_does_not_hold_is_the_overhead(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 1_234)
    for n in range(4):
        session.turn(f"question {n}" + " word" * 50, "an answer" + " text" * 30)
    found = session.analyze(tmp_path, table)
    assert found.context.overhead == 1_234
    assert found.context.drift == pytest.approx(0, abs=1e-9)
    assert found.context.reported == session.contexts[-1]
    assert found.context.tokens == session.contexts[-1]
    assert found.context.with_output == session.contexts[-1] + count("an answer" + " text" * 30)
    assert found.context.counted == sum(map(count, session.texts))
    assert (found.context.at_turn, found.context.messages) == (4, 8)
    counter = found.counter
    assert counter is not None and counter.exact and not counter.calibrated and counter.ratio == 1.0
    assert [(r.turn, r.tokens, r.source) for r in found.pressure] == [
        (n, tokens, "reported") for n, tokens in enumerate(session.contexts, 1)
    ]
    assert found.peak is not None and (found.peak.tokens, found.peak.turn) == (session.contexts[-1], 4)
    assert found.window.source == "model table" and found.window.tokens == 128_000
    assert codes(found) == []


def test_a_compaction_starts_the_window_anew(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 1_000)
    session.turn(" word" * 600, "yes")
    session.turn(" word" * 600, "no")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s"}
    session.records.append({**boundary, "logicalParentUuid": "r3", "compactMetadata": {"trigger": "auto"}})
    session.context = 1_000
    summary = "summary of what was done" + " word" * 60
    session._add("user", {"role": "user", "content": summary}, summary, isCompactSummary=True)
    session.turn("and now?", "more")
    found = session.analyze(tmp_path, table)
    assert found.context.drift == pytest.approx(0, abs=1e-9)
    assert found.context.counted == count(summary) + count("and now?") + count("more")
    assert found.context.reported == session.contexts[-1] == 1_000 + count(summary) + count("and now?") + 2 * FRAME
    assert [(r.turn, r.compaction, r.added) for r in found.pressure][2] == (3, "full", None)
    assert found.curve == "sawtooth"


def test_drift_is_told_and_raises_a_diagnostic(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 1_000)
    session.turn(" word" * 1_000, "yes")
    session.turn(" word" * 1_000, "no", reported=1.5)
    found = session.analyze(tmp_path, table)
    assert found.context.drift == pytest.approx(1 / 1.5 - 1, abs=1e-3)
    assert codes(found) == ["drift"]
    assert "turn 2" in found.diagnostics[0].message


def test_a_small_difference_is_not_worth_a_word(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 100)
    session.turn(" word" * 100, "yes")
    session.turn(" word" * 100, "no", reported=1.5)
    found = session.analyze(tmp_path, table)
    assert found.context.drift is not None and found.context.drift < -0.1
    assert codes(found) == []


def test_calibration_leans_on_the_table_until_there_is_evidence(tmp_path: Path, table: ModelTable) -> None:
    turns = 26
    session = Session("claude-sonnet-4-5", 5_000, factor=PROSE, ratio=1.3)
    for _ in range(turns):
        session.turn(" word" * 400, " text" * 200)
    found = session.analyze(tmp_path, table)
    pairs = turns - 1
    expected = (20 + pairs * 1.3) / (20 + pairs)
    counter = found.counter
    assert counter is not None and counter.calibrated and not counter.exact
    assert counter.ratio == pytest.approx(expected, rel=1e-3)
    assert counter.bound == pytest.approx(1 - expected / 1.3, rel=0.02)
    assert found.context.counted == pytest.approx(expected * PROSE * sum(map(count, session.texts)), rel=1e-3)


def test_without_evidence_there_is_no_calibration(tmp_path: Path, table: ModelTable) -> None:
    session = Session("claude-sonnet-4-5", 5_000, factor=PROSE, ratio=1.3)
    for _ in range(20):
        session.turn(" word" * 40, " text" * 20)
    counter = session.analyze(tmp_path, table).counter
    assert counter is not None and not counter.calibrated and counter.ratio == 1.0 and counter.bound == 0.05


def test_a_spike_with_its_cause(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 0)
    for _ in range(5):
        session.turn(" word" * 50, "ok")
    session.turn(" word" * 5_000, "ok")
    found = session.analyze(tmp_path, table)
    (spike,) = found.spikes
    added = count(" word" * 50) + count("ok") + 2 * FRAME
    big = count(" word" * 5_000) + count("ok") + 2 * FRAME
    assert (spike.turn, spike.tokens, spike.mean) == (6, big, pytest.approx(added, abs=1))
    assert spike.ratio == pytest.approx(big / spike.mean)
    assert spike.cause == f"a long user message: {count(' word' * 5_000):,} tokens"


def test_levels_follow_the_window_that_was_set(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 0)
    for _ in range(4):
        session.turn(" word" * 250, "ok")
    found = session.analyze(tmp_path, table, window=1_100)
    assert found.window.source == "config"
    assert [r.level for r in found.pressure] == ["green", "green", "yellow", "red"]
    assert [(e.turn, e.after) for e in found.events] == [(3, "yellow"), (4, "red")]


def test_calls_without_usage_are_counted(tmp_path: Path, table: ModelTable) -> None:
    chat = [{"role": "user", "content": " word" * 100}, {"role": "assistant", "content": "yes"}] * 2
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"model": "gpt-4o", "messages": chat}), encoding="utf-8")
    found = analyze(str(path), table)
    question, answer = count(" word" * 100), count("yes")
    assert [(r.tokens, r.source) for r in found.pressure] == [
        (question + FRAME, "counted"),
        (2 * question + answer + 3 * FRAME, "counted"),
    ]
    assert (found.context.reported, found.context.drift, found.context.overhead) == (None, None, None)
    assert found.context.counted == 2 * (question + answer)
    assert found.context.frames == 4 * 4 and found.context.tokens == found.context.counted + 16
    assert found.usage.requests == 0


def test_reading_usage_alone(tmp_path: Path, table: ModelTable) -> None:
    session = Session("claude-sonnet-4-5", 3_000)
    for _ in range(8):
        session.turn(" word" * 100, " text" * 20)
    whole, quick = session.analyze(tmp_path, table), session.analyze(tmp_path, table, reported_only=True)
    assert quick.usage == whole.usage and list(quick.pressure) == list(whole.pressure)
    assert (quick.peak, quick.curve, quick.window, quick.events) == (
        whole.peak,
        whole.curve,
        whole.window,
        whole.events,
    )
    assert quick.context.reported == whole.context.reported
    assert (quick.counter, quick.composition, quick.composition_all, quick.attention) == (None,) * 4
    assert (quick.blocks, quick.rows, quick.context.counted, quick.context.order) == (None,) * 4
    assert codes(quick) == ["lines_not_read"]


@pytest.mark.parametrize(
    ("case", "reported", "turn"),
    [
        ("split_lines", 9_375, 2),
        ("sidechain_inline", 160, 2),
        ("subagents_new", 160, 2),
        ("rewound_branch", 70, 3),
        ("last_prompt_leaf", 50, 2),
        ("compaction_auto", 330, 3),
        ("synthetic_and_overflow", 170_000, 2),
        ("agent-alone", 70, 2),
    ],
)
def test_the_context_is_that_of_the_newest_live_call(case: str, reported: int, turn: int, table: ModelTable) -> None:
    context = analyze(str(GOLDEN / "claude-code" / f"{case}.jsonl"), table).context
    assert (context.reported, context.at_turn) == (reported, turn)


def test_nothing_is_reported_since_a_compaction(tmp_path: Path, table: ModelTable) -> None:
    lines = (GOLDEN / "claude-code" / "compaction_auto.jsonl").read_bytes().split(b"\n")
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(lines[:4]) + b"\n")
    context = analyze(str(path), table).context
    assert context.reported is None and context.order == ("s1",)
    assert context.counted is not None and 0 < context.counted < 40
    assert context.tokens == context.counted + (context.frames or 0) + (context.overhead or 0)


@pytest.mark.parametrize(("case", "turn"), [("rewound_branch", 3), ("last_prompt_leaf", 3), ("compaction_auto", 2)])
def test_pressure_marks_the_turn_after_a_cut(case: str, turn: int, table: ModelTable) -> None:
    found = analyze(str(GOLDEN / "claude-code" / f"{case}.jsonl"), table)
    assert [r.turn for r in found.pressure if r.compaction is not None] == [turn]


def test_cleared_results_weigh_a_placeholder(table: ModelTable) -> None:
    path = str(GOLDEN / "claude-code" / "microcompaction.jsonl")
    rows = analyze(path, table, AnalysisOptions(blocks=True)).rows
    assert rows is not None
    assert {row.block: row.tokens for row in rows}["3.0"] <= 8


def test_the_largest_conversation_of_several_is_shown(table: ModelTable) -> None:
    found = analyze(str(GOLDEN / "openai-chat" / "conversations.jsonl"), table)
    assert [(c.line, c.messages) for c in found.conversations] == [(1, 5), (2, 2), (3, 3)]
    assert found.context.conversation == 1
    assert found.context.counted == found.conversations[0].tokens


def test_an_unclosed_pin_is_told_with_its_line(tmp_path: Path, table: ModelTable) -> None:
    session = Session("gpt-4o", 0)
    session.turn("<preserve>this is never closed", "ok")
    found = session.analyze(tmp_path, table)
    assert [(d.code, d.line) for d in found.diagnostics] == [("unclosed_preserve", 1)]


def test_an_unknown_model_has_no_utilization(tmp_path: Path, table: ModelTable) -> None:
    session = Session("acme-llm-9", 1_000)
    session.turn("hello", "hi")
    found = session.analyze(tmp_path, table)
    assert found.window.source == "unknown" and codes(found) == ["unknown_window"]
    assert found.pressure[0].utilization is None and found.peak is not None and found.peak.utilization is None

"""What sub-agents return: a conclusion, or their trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.subagent_leak import SubagentLeak
from ctxctl.health.signals.returned import is_helper
from ctxctl.model.finding import Finding

REPORT = "\n".join(
    f"{n}. The handler of route {n} validates its input in routes/{n}.py:{n * 7}, but not field_{n}, which goes on."
    for n in range(120)
)
TRACE = "\n".join(
    f'[Tool: Bash] {{"command":"git show {n}abc{n} --stat","description":"Look at commit {n}"}}' for n in range(60)
)
PROMPT = "Review how the routes validate their input and report what is missing."


def found(session: ClaudeSession) -> list[Finding]:
    return list(SubagentLeak().find(session.examine()))


def delegated(
    folder: Path, result: str, *, tool: str = "Task", reads: str | None = None, prompt: str = PROMPT
) -> ClaudeSession:
    """The main thread calls a sub-agent, which returns a text. reads: what it read, where its thread is there."""
    session = ClaudeSession(folder)
    session.user("Is the input validated everywhere?")
    session.call(tool, {"description": "Review routes", "prompt": PROMPT, "subagent_type": "explore"}, result)
    session.answer("Two fields are not.")
    if reads is not None:
        call = {
            "type": "tool_use",
            "id": "toolu_sub",
            "name": "Read",
            "input": {"file_path": "/code/app/src/routes.py"},
        }
        session.subagent(
            "a1b2c3",
            [
                {"type": "user", "message": {"role": "user", "content": prompt}},
                {"type": "assistant", "message": {"id": "m1", "role": "assistant", "model": "m", "content": [call]}},
                {
                    "type": "user",
                    "message": {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "toolu_sub", "content": reads}],
                    },
                },
            ],
        )
    return session


@pytest.mark.parametrize("tool", ["Task", "Agent", "delegate_task", "mcp__helpers__spawn_agent"])
def test_a_returned_trace_is_told(tmp_path: Path, tool: str) -> None:
    (finding,) = found(delegated(tmp_path, f"{TRACE}\n{REPORT}", tool=tool))
    assert finding.evidence is not None
    counts = finding.evidence.counts
    assert 0.25 <= counts["step_tokens"] / counts["tokens"] <= 1
    assert "'Review routes'" in finding.message
    assert f"{counts['step_tokens']:,.0f} of them" in finding.message
    assert finding.evidence.quotes[0].text.startswith("[Tool: Bash]")


@pytest.mark.parametrize(
    "steps",
    [
        "\n".join(f"Let me check the handler of route {n} and what it calls." for n in range(250)),
        "\n".join(f"{n}\u2192    value_{n} = compute({n})" for n in range(400)),
        "\n".join(f"⏺ Read(src/routes/{n}.py, offset {n}, limit 200)" for n in range(300)),
        "\n".join(f"2026-05-11T09:{n % 60:02}:00Z running step {n} of the review" for n in range(300)),
    ],
    ids=["narration", "file dump", "calls", "log"],
)
def test_every_kind_of_trace(tmp_path: Path, steps: str) -> None:
    assert len(found(delegated(tmp_path, steps))) == 1


@pytest.mark.parametrize(
    "result",
    [REPORT, TRACE[:3_000], f"{REPORT}\n{TRACE[:1_500]}", "Done."],
    ids=["a long report", "a short trace", "a report with a few commands", "a word"],
)
def test_a_report_is_none(tmp_path: Path, result: str) -> None:
    assert found(delegated(tmp_path, result)) == []


def test_the_output_of_a_command_is_no_sub_agent_s(tmp_path: Path) -> None:
    assert found(delegated(tmp_path, f"{TRACE}\n{REPORT}", tool="Bash")) == []


def test_what_it_read_is_told_when_it_is_returned_word_for_word(tmp_path: Path) -> None:
    text = lines_of(250)
    (finding,) = found(delegated(tmp_path, f"This is the file:\n{text}", reads=text))
    assert finding.evidence is not None
    assert finding.evidence.counts["copied_tokens"] > 0.9 * finding.evidence.counts["tokens"]
    assert "word for word" in finding.message


@pytest.mark.parametrize("change", [{"reads": lines_of(250, "other")}, {"prompt": "Another brief."}, {"reads": None}])
def test_copying_needs_the_thread_that_read_it(tmp_path: Path, change: dict[str, str | None]) -> None:
    text = lines_of(250)
    given = {"reads": text, **change}
    assert found(delegated(tmp_path, f"This is the file:\n{text}", **given)) == []  # type: ignore[arg-type]


def test_a_sub_agent_in_the_background_is_known_by_its_id(tmp_path: Path) -> None:
    """What was polled belongs to what it returned at the end, and both to the call that started it."""
    session = ClaudeSession(tmp_path)
    session.user("Review it.")
    started = "Async agent launched successfully.\nagentId: a9614d3 (internal ID)\nThe agent is working."
    session.call("Task", {"description": "Security review", "prompt": PROMPT, "run_in_background": True}, started)
    for status, text in (("running", TRACE[:2_000]), ("completed", f"{TRACE}\n\n{REPORT[:4_000]}")):
        output = f"<task_id>a9614d3</task_id>\n<status>{status}</status>\n<output>\n{text}\n</output>"
        session.call("TaskOutput", {"task_id": "a9614d3", "block": status == "completed"}, output)
    session.answer("It is safe.")
    (finding,) = found(session)
    assert "'Security review'" in finding.message
    assert finding.evidence is not None
    assert finding.evidence.counts["subagents"] == 1
    assert finding.evidence.turns == (3, 4)


@pytest.mark.parametrize(
    ("name", "helper"), [("Task", True), ("wait_agent", True), ("TaskCreate", False), ("Bash", False)]
)
def test_names_of_helpers(name: str, helper: bool) -> None:
    assert is_helper(name) is helper

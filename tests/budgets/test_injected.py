"""What counts as put in by a client or a memory, and what only tells of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.budgets.injected import (
    is_instruction_file,
    is_memory_tool,
    note_share,
    reads_instructions,
    remembering,
    reminders,
)
from ctxctl.model.block import Block, Source

NOTE = "<system-reminder>\nThe TodoWrite tool has not been used recently.\n</system-reminder>"


def block(kind: str, text: str, **fields: str | None) -> Block:
    return Block("1.0", kind, "user", text, 1, 1, Source(1), **fields)  # type: ignore[arg-type]


def call(name: str, **given: object) -> Block:
    return block("tool_call", f"{name} {json.dumps(given)}", tool_name=name, call_id="c")


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (NOTE, NOTE),
        (f"{NOTE}\nFix the login.", NOTE),
        (f"Fix the login.\n\n{NOTE}\n", NOTE),
        (f"file written\n\n{NOTE}\n{NOTE}", NOTE + NOTE),
        (f"{NOTE}\n{NOTE}\nwhat was typed\n{NOTE}", NOTE * 3),
        (f"     1\tdef f():\n     2\t    pass\n\n{NOTE}", NOTE),
    ],
    ids=["alone", "in front", "behind", "two behind", "both ends", "behind a file"],
)
def test_notes_around_a_text_count(text: str, notes: str) -> None:
    assert reminders(text) == len(notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "why does it say <system-reminder> here?",
        f"before\n{NOTE}\nafter: what is this?",
        f"see `{NOTE}`",
        f"```\n{NOTE}\n```",
        "     1\t<system-reminder>\n     2\tbe kind\n     3\t</system-reminder>",
        'PROMPT = "<system-reminder>x</system-reminder>"',
        "echo <system-reminder>x</system-reminder>",
        "<system-reminder>\nnever closed",
        "closed only</system-reminder>",
        "a\n<system-reminder>b</system-reminder> c</system-reminder>",
    ],
)
def test_text_that_tells_of_a_note_does_not(text: str) -> None:
    assert reminders(text) == 0


@pytest.mark.parametrize("kind", ["assistant", "thinking", "tool_call", "system", "summary"])
def test_models_only_quote_notes(kind: str) -> None:
    assert note_share(block(kind, NOTE)) == 0
    assert note_share(block("user_message", NOTE)) == 1
    assert note_share(block("tool_result", f"ok\n{NOTE}")) == len(NOTE) / (len(NOTE) + 3)


@given(st.lists(st.sampled_from(("x", "\n", " ", "<system-reminder>", "</system-reminder>", NOTE)), max_size=12))
def test_notes_are_a_part_of_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert 0 <= reminders(text) <= len(text)
    assert 0 <= note_share(block("user_message", text)) <= 1


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("memory", True),
        ("mcp__memory__search_nodes", True),
        ("mcp__openmemory__query", True),
        ("mcp__mem0__add_memories", True),
        ("save_memory", True),
        ("searchMemories", True),
        ("get_memory_usage", False),
        ("mcp__linux__memory_info", False),
        ("heap_memory_dump", False),
        ("Read", False),
        ("memorize_password", False),
    ],
)
def test_memory_tools_by_their_names(name: str, memory: bool) -> None:
    assert is_memory_tool(name) is memory


@pytest.mark.parametrize(
    ("path", "instructions"),
    [
        ("/code/app/CLAUDE.md", True),
        ("docs/AGENTS.md", True),
        ("C:\\app\\.cursorrules", True),
        (".cursor/rules/style.mdc", True),
        (".github/copilot-instructions.md", True),
        ("README.md", False),
        ("src/agents.py", False),
        ("CLAUDE.md.bak", False),
        ("xcursor/rules/a.md", False),
    ],
)
def test_files_of_instructions(path: str, instructions: bool) -> None:
    assert is_instruction_file(path) is instructions


@pytest.mark.parametrize(
    ("asked", "reads"),
    [
        (call("Read", file_path="/a/CLAUDE.md"), True),
        (call("read_file", path="AGENTS.md", offset=1), True),
        (call("str_replace_editor", command="view", path="/a/AGENTS.md"), True),
        (call("str_replace_editor", command="create", path="/a/AGENTS.md", file_text="x"), False),
        (call("Edit", file_path="CLAUDE.md", old_string="a", new_string="b"), False),
        (call("Bash", command="cat CLAUDE.md"), True),
        (call("Bash", command="cd /a && sed -n 1,80p AGENTS.md | head -20"), True),
        (call("shell", command=["bash", "-lc", "cat AGENTS.md"]), True),
        (call("Bash", command="sed -i s/a/b/ CLAUDE.md"), False),
        (call("Bash", command="cat CLAUDE.md > copy.md"), False),
        (call("Bash", command="cat CLAUDE.md && npm test"), False),
        (call("Bash", command="grep -rn CLAUDE.md ."), False),
        (call("Grep", pattern="AGENTS.md"), False),
        (call("Bash", command="cat src/app.md"), False),
    ],
)
def test_calls_that_read_instructions(asked: Block, reads: bool) -> None:
    assert reads_instructions(asked) is reads


def test_calls_are_told_by_what_they_remember() -> None:
    calls = [
        block("tool_call", 'Read {"file_path": "CLAUDE.md"}', tool_name="Read", call_id="a"),
        block("tool_call", "memory {}", tool_name="memory", call_id="b"),
        block("tool_call", 'Read {"file_path": "app.py"}', tool_name="Read", call_id="c"),
        block("tool_call", 'Read {"file_path": "CLAUDE.md"}', tool_name="Read"),
    ]
    assert remembering(calls) == {"a": "instructions", "b": "tool"}

"""What fills the window, and why a turn added so much: counted by hand."""

from __future__ import annotations

from array import array

import pytest

from ctxctl.model.block import Block, Source
from ctxctl.pressure.causes import Causes
from ctxctl.pressure.composition import Composition, KindShare, LargeBlock, ToolShare, block_id, compose
from ctxctl.trace.tally import Tally


class Story:
    """Blocks with the tokens that they are to have."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.estimates = array("d")
        self._ids = 0

    def add(self, kind: str, turn: int, tokens: float, **more: object) -> int:
        number = len(self.tally)
        text = str(more.pop("text", ""))
        block = Block(f"{number + 1}.0", kind, "user", text, turn, 1, Source(number + 1), message=number, **more)  # type: ignore[arg-type]
        self.tally.add(block)
        self.estimates.append(tokens)
        return number

    def call(
        self, turn: int, tool: str, target: str, tokens: float, *, failed: bool = False, thread: str = "main"
    ) -> int:
        """A call made at a turn, and its result, which the next turn sees first."""
        self._ids += 1
        call_id = f"c{self._ids}"
        text = f"{tool} {target}"
        self.add("tool_call", turn, 5, text=text, tool_name=tool, target=target, call_id=call_id, thread=thread)
        return self.add(
            "tool_result",
            turn + 1,
            tokens,
            tool_name=tool,
            target=target,
            call_id=call_id,
            is_error=failed,
            thread=thread,
        )

    def cause(self, turn: int) -> str:
        thread = self.tally.names.index("main")
        return Causes(self.tally, thread, self.estimates, [turn]).of(turn)


def test_composition() -> None:
    story = Story()
    story.add("user_message", 1, 50)
    story.call(1, "Read", "/w/a.py", 85.4, failed=True)
    story.call(2, "Bash", "make", 54.6)
    found = compose(story.tally, story.estimates, range(5), most=2)
    assert found == Composition(
        {
            "user_message": KindShare(1, 50, pytest.approx(0.25)),
            "tool_call": KindShare(2, 10, pytest.approx(0.05)),
            "tool_result": KindShare(2, 140, pytest.approx(0.7)),
        },
        {
            "Read": ToolShare(1, 90, pytest.approx(0.452), 1),
            "Bash": ToolShare(1, 60, pytest.approx(0.298), 0),
        },
        (
            LargeBlock("3.0", "tool_result", "Read", 85, 2, {"line": 3, "index": 0}, "/w/a.py"),
            LargeBlock("5.0", "tool_result", "Bash", 55, 3, {"line": 5, "index": 0}, "make"),
        ),
    )
    assert list(found.by_kind) == ["user_message", "tool_call", "tool_result"]
    assert list(found.by_tool) == ["Read", "Bash"]


def test_composition_of_some_blocks_and_of_none() -> None:
    story = Story()
    story.add("user_message", 1, 50)
    story.add("assistant", 1, 150)
    assert compose(story.tally, story.estimates, [1]).by_kind == {"assistant": KindShare(1, 150, 1.0)}
    assert compose(story.tally, story.estimates, []) == Composition({}, {}, ())


def test_blocks_without_tokens_have_no_share() -> None:
    story = Story()
    story.add("thinking", 1, 0)
    assert compose(story.tally, story.estimates, [0]).by_kind == {"thinking": KindShare(1, 0, 0.0)}


def test_equals_among_the_largest_stand_in_file_order() -> None:
    story = Story()
    for tokens in (10, 30, 30, 20):
        story.add("assistant", 1, tokens)
    assert [b.block for b in compose(story.tally, story.estimates, range(4), most=3).largest] == ["2.0", "3.0", "4.0"]


def test_ids_of_helpers_have_their_prefix() -> None:
    story = Story()
    for _ in range(3):
        story.add("assistant", 1, 1)
    parts = [(1, "agent-a:"), (2, "agent-b:")]
    assert [block_id(story.tally, parts, n) for n in range(3)] == ["1.0", "agent-a:2.0", "agent-b:3.0"]


def test_the_same_failing_call() -> None:
    story = Story()
    for turn in range(1, 6):
        story.call(turn, "Bash", "make test", 200 if turn < 5 else 4_000, failed=True)
    cause = story.cause(6)
    assert "the same failing call retried 5 times" in cause and "Bash `make test`" in cause


def test_failures_long_ago_do_not_count() -> None:
    story = Story()
    story.call(1, "Bash", "make test", 200, failed=True)
    story.call(9, "Bash", "make test", 4_000, failed=True)
    assert story.cause(10).startswith("one large result of Bash `make test`: 4,000")


def test_the_same_call_with_growing_output() -> None:
    story = Story()
    for turn, tokens in enumerate((100, 300, 900), 1):
        story.call(turn, "Bash", "cat log", tokens)
    cause = story.cause(4)
    assert "ever larger output (100 → 300 → 900 tokens)" in cause and "Bash `cat log`" in cause


def test_the_same_call_with_the_same_output() -> None:
    story = Story()
    for turn in range(1, 4):
        story.call(turn, "Bash", "cat log", 900)
    assert story.cause(4) == "the same call repeated 3 times: Bash `cat log`"


def test_a_tool_with_growing_output() -> None:
    story = Story()
    for turn, (target, tokens) in enumerate((("/a", 100), ("/b", 300), ("/c", 900)), 1):
        story.call(turn, "Read", target, tokens)
    cause = story.cause(4)
    assert cause.startswith("Read returns ever larger output (100 → 300 → 900 tokens)") and "`/c`" in cause


def test_one_large_result() -> None:
    story = Story()
    story.call(1, "Read", "/w/a.py", 50)
    story.call(2, "Grep", "TODO", 12_345)
    assert story.cause(3) == "one large result of Grep `TODO`: 12,345 tokens"


def test_long_reasoning_of_the_previous_answer() -> None:
    story = Story()
    story.add("thinking", 4, 8_000)
    story.call(4, "Read", "/w/a.py", 300)
    assert story.cause(5) == "long reasoning: 8,000 tokens in the previous answer"
    assert "reasoning" not in story.cause(4)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("user_message", "user message"),
        ("memory_injection", "injected context"),
        ("summary", "summary"),
        ("image", "image"),
        ("document", "document"),
    ],
)
def test_what_else_came_in(kind: str, word: str) -> None:
    story = Story()
    story.add(kind, 2, 7_000)
    assert word in story.cause(2) and "7,000" in story.cause(2)


def test_nothing_came_in() -> None:
    story = Story()
    story.add("user_message", 1, 10)
    assert story.cause(9).startswith("unknown")


def test_a_helper_is_no_cause_in_the_main_thread() -> None:
    story = Story()
    story.add("user_message", 2, 700)
    story.call(1, "Read", "/w/a.py", 90_000, thread="helper")
    assert "user message" in story.cause(2)

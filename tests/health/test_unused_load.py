"""Large results that no later turn used."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.unused_load import UnusedLoad
from ctxctl.model.finding import Finding

LISTING = lines_of(260, "entry")


def found(session: ClaudeSession) -> list[Finding]:
    return list(UnusedLoad().find(session.examine()))


def looked(folder: Path, *, turns: int = 6) -> ClaudeSession:
    """A session that loads a large listing and goes on with something else."""
    session = ClaudeSession(folder, overhead=8_000)
    session.user("Fix the typo in the greeting.")
    session.call("mcp__wiki__search_pages", {"text": "hello"}, LISTING)
    for number in range(turns - 1):
        session.bash(f"make step{number}", f"ok {number}")
    session.answer("Fixed.")
    return session


def test_a_large_result_of_which_nothing_is_used(tmp_path: Path) -> None:
    (finding,) = found(looked(tmp_path))
    assert finding.turn == 1 and finding.evidence is not None
    counts = finding.evidence.counts
    assert counts["results"] == 1 and counts["tokens"] > 2_000
    assert counts["tokens_sent"] == 6 * counts["tokens"]
    assert "no later turn used a path, identifier, number or line of 1 large result" in finding.message
    assert "search_pages" in finding.message


def test_money_is_its_share_of_each_prompt(tmp_path: Path) -> None:
    session = looked(tmp_path)
    (finding,) = found(session)
    assert finding.evidence is not None
    tokens = finding.evidence.counts["tokens"]
    expected, seen = 0.0, set()
    for line in session.lines:
        message = line["message"]
        if line["type"] != "assistant" or message["id"] in seen:
            continue
        seen.add(message["id"])
        if len(seen) > 1:  # the first request did not hold it
            usage = message["usage"]
            read, write = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
            prompt = usage["input_tokens"] + read + write
            expected += (3 * usage["input_tokens"] + 0.3 * read + 3.75 * write) / 1e6 * tokens / prompt
    assert finding.evidence.counts["cost"] == pytest.approx(expected, abs=1e-4)


def test_without_prices_no_money_is_told(tmp_path: Path) -> None:
    session = looked(tmp_path)
    for line in session.lines:
        if line["type"] == "assistant":
            line["message"]["model"] = "a-model-nobody-knows"
    (finding,) = found(session)
    assert finding.evidence is not None and "cost" not in finding.evidence.counts and "$" not in finding.message


@pytest.mark.parametrize(
    "use",
    [
        "The culprit is entry_17, I will fix that.",  # an identifier
        "It says flag=1 for all, and 7919 for the second.",  # a number
        "    entry_3 = compute_entry(3750, flag=0)",  # a line
    ],
)
def test_one_use_is_enough(tmp_path: Path, use: str) -> None:
    session = looked(tmp_path)
    session.answer(use)
    assert found(session) == []


def test_a_file_that_comes_up_again_was_used(tmp_path: Path) -> None:
    for name, later in (("read", "edit"), ("unread", "")):
        session = ClaudeSession(tmp_path, name)
        session.user("Look into src/table.py.")
        session.read("src/table.py", LISTING)
        for number in range(5):
            session.bash(f"make step{number}", f"ok {number}")
        if later:
            session.edit("src/table.py", "a", "b")
        session.answer("Fine.")
        assert len(found(session)) == (0 if later else 1)


def test_a_text_that_is_told_again_in_plain_words_was_used(tmp_path: Path) -> None:
    prose = "\n".join(
        f"Chapter {n}: whenever gardeners prune orchards carefully, harvest improves during autumn." for n in range(200)
    )
    for name, said in (
        ("told", "Pruning an orchard improves it: gardeners prune carefully during autumn harvest."),
        ("not", "."),
    ):
        session = ClaudeSession(tmp_path, name)
        session.user("What does the book say?")
        session.call("WebFetch", {"url": "https://books.example/1", "prompt": "all"}, prose)
        session.answer(said)
        for number in range(5):
            session.bash(f"make step{number}", f"ok {number}")
        session.answer("Done.")
        assert len(found(session)) == (0 if name == "told" else 1)


def test_what_was_loaded_a_moment_ago_may_be_used_yet(tmp_path: Path) -> None:
    assert found(looked(tmp_path, turns=4)) == []


def test_a_small_share_of_the_window_is_not_worth_a_word(tmp_path: Path) -> None:
    session = looked(tmp_path)
    session.call("mcp__notes__append", {"text": "x"}, "ok", prompt=120_000)
    session.answer("Done.", prompt=120_000)
    assert found(session) == []


def test_several_are_one_finding(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path)
    session.user("Fix the typo in the greeting.")
    for number in range(5):
        session.call("mcp__wiki__search_pages", {"text": f"hello {number}"}, lines_of(240 + 20 * number, f"e{number}x"))
    for number in range(6):
        session.bash(f"make step{number}", f"ok {number}")
    session.answer("Fixed.")
    (finding,) = found(session)
    assert "5 large results" in finding.message and " and 2 more" in finding.message
    assert finding.evidence is not None and finding.evidence.turns == (1, 2, 3, 4, 5)

"""Facts in an agent's own words, and what the user said."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.facts.prose import sentences
from ctxctl.model.summary import DecisionFact


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I decided to use msgspec because it is faster.", "decision"),
        ("We'll use fetch instead of axios.", "decision"),
        ("Let me go with the second approach since it keeps the API.", "decision"),
        ("I'm going with SQLite for the store.", "decision"),
        ("**Decision:** keep the old schema for a release.", "decision"),
        ("We have not decided on the format yet, sadly.", None),
        ("Should we use fetch instead of axios?", None),
        ("Is it decided that we use fetch?", None),
        ("I tried a regex, but it failed on nested quotes.", "dead"),
        ("This doesn't work because the cache is cold.", "dead"),
        ("The root cause is a missing await in the handler.", "learned"),
        ("It turns out that the server sends 204 here.", "learned"),
        ("Two tests are still failing on Windows.", "open"),
        ("Retries are not yet implemented in the client.", "open"),
        ("If this still fails, we can build locally.", None),
        ("Next, I'll update the documentation.", "next"),
        ("The file has 300 lines and works well.", None),
        ("我们决定改用 fetch，因为它更小，依赖更少，也更容易测试。", "decision"),
    ],
)
def test_sentences(text: str, kind: str | None) -> None:
    assert [found for found, _ in sentences(text)] == ([kind] if kind else [])


def test_code_is_no_prose() -> None:
    assert sentences("```\n# I decided to use x because y\n```\nFine so far, nothing else.") == []


def test_decisions_with_reasons(script: Any) -> None:
    script.said("Some text. I decided to use msgspec because it is faster. More text.")
    (found,) = script.summary().decisions
    assert (found.what, found.why) == ("I decided to use msgspec", "it is faster.")


def test_decisions_that_structure_shows(script: Any) -> None:
    answer = 'User has answered your questions: "Which one?"="The first", "How?"="Fast". You can now continue'
    script.call("AskUserQuestion", {"questions": []}, answer)
    script.call("ExitPlanMode", {"plan": "# Move to fetch\n\nSteps"}, "User has approved your plan. Go on.")
    assert [fact.what for fact in script.summary().decisions] == [
        "Which one? The first (the user's answer)",
        "How? Fast (the user's answer)",
        "the user approved the plan: Move to fetch",
    ]


def test_an_open_question_until_it_is_answered(script: Any) -> None:
    script.user("Do the thing that I described.")
    script.said("Done.\n\nShall I also remove the old adapter?")
    assert script.summary().open_issues == ("Shall I also remove the old adapter?",)
    script.user("yes please, remove it")
    assert script.summary().open_issues == ()


def test_goal_requests_constraints_and_corrections(script: Any) -> None:
    first = script.user(
        "Migrate to fetch. Never touch src/legacy.\n\nAcceptance criteria:\n- all tests pass\n- no axios left\n\nBye"
    )
    script.said("ok")
    script.user("Also update the docs of the client")
    script.user("no, don't rename the public functions")
    script.user("ok")
    summary = script.summary()
    assert summary.goal.startswith("Migrate to fetch.")
    assert summary.success_criteria == ("all tests pass", "no axios left")
    assert summary.requests == ("Also update the docs of the client", "no, don't rename the public functions")
    assert "Never touch src/legacy." in summary.constraints
    assert summary.learnings == ("the user corrected: no, don't rename the public functions",)
    assert script.summary(frozenset((first,))).goal == "Also update the docs of the client"


def test_links_of_what_was_opened(script: Any) -> None:
    script.bash("gh pr create --fill", "Creating pull request\nhttps://example.org/o/r/pull/7\n")
    assert script.summary().artifacts == ("https://example.org/o/r/pull/7",)


def test_a_decision_says_what_it_was() -> None:
    assert DecisionFact("x") == DecisionFact("x", "", None)

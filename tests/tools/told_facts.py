"""A summary's sections, read from its text alone, held against what a session really held: no import of ctxctl."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

TALES = ("What happened", "What was said", "Lines that may be needed again")


@dataclass
class Told:
    """items: lines of each section without the dash; more: how many it says are left out, by title in lower case; any:
    how many are left out of sections that are not named; quoted: lines that are quoted."""

    items: dict[str, list[str]] = field(default_factory=dict)
    more: dict[str, int] = field(default_factory=dict)
    any: int = 0
    quoted: list[str] = field(default_factory=list)
    turns: tuple[int, int] = (0, 0)


def told_by(text: str) -> Told:
    found = Told()
    head, _, rest = text.partition("\n")
    if match := re.match(r"\[summary\] turns (\d+)-(\d+)", head):
        found.turns = int(match[1]), int(match[2])
    title = ""
    for line in rest.split("\n"):
        if line.startswith("## ") and title not in TALES:
            title = line[3:]
            assert title in TALES or title not in found.items, f"section {title} twice"
            found.items[title] = []
        elif line.startswith("## ") and line[3:] in TALES:
            title = line[3:]
        elif match := re.fullmatch(r"\((\d+) more\)", line):
            found.more[title.lower()] = int(match[1])
        elif (match := re.fullmatch(r"\(left out: (.*)\)", line)) and title not in TALES:
            if match[1].isdecimal():
                found.any += int(match[1])
            for name, number in re.findall(r"([a-z ]+?) (\d+)(?:, |$)", match[1]):
                found.more[name.strip()] = int(number)
        elif line.startswith("> "):
            found.quoted.append(line)
        elif line.startswith("- ") and title in found.items:
            found.items[title].append(line[2:])
    return found


def held(
    told: Told,
    titles: Iterable[str],
    truth: Iterable[str],
    key: Callable[[str], str],
    elsewhere: Callable[[str], bool],
) -> None:
    """Nothing in the sections that is not true, nothing true missing that is neither counted there as left out nor to
    be seen elsewhere, nothing twice."""
    names = list(titles)
    true = set(truth)
    shown = [key(item) for name in names for item in told.items.get(name, ())]
    assert set(shown) <= true, (names, set(shown) - true)
    assert len(shown) == len(set(shown)), (names, shown)
    missing = [fact for fact in true - set(shown) if not elsewhere(fact)]
    counted = sum(told.more.get(name.lower(), 0) for name in names) + told.any
    assert len(missing) <= counted, (names, counted, missing)


def same_facts(whole: Any, found: Any) -> None:
    """What a compacted file tells is what the session held; what has no place in its summary is counted."""
    more = {item.section: item.count for item in found.left_out}
    rest = more.get("", 0)

    def close(had: set[object], has: set[object], *sections: str) -> None:
        assert has <= had, has - had
        assert len(had - has) <= sum(more.get(s, 0) for s in sections) + rest, (sections, had - has, more)

    close(
        {f.path for f in whole.files if f.role == "modified"},
        {f.path for f in found.files if f.role == "modified"},
        "files modified",
    )
    close(
        {(t.agent, t.text, t.status) for t in whole.todos},
        {(t.agent, t.text, t.status) for t in found.todos},
        "todos",
        "done",
    )
    # of an output that shrank, the outcome or a commit's id may not be known any more, but nothing else may be
    outcome = {r.command: r.outcome for r in whole.tests}
    runs = {(r.command, outcome.get(r.command) if r.outcome == "unknown" else r.outcome) for r in found.tests}
    close(set(outcome.items()), runs, "tests", "failing tests")
    ids = {c.message: c.id for c in whole.commits}
    made = {(c.id or ids.get(c.message), c.message) for c in found.commits}
    close({(c.id, c.message) for c in whole.commits}, made, "commits")
    close({d.what for d in whole.decisions}, {d.what for d in found.decisions}, "decisions")

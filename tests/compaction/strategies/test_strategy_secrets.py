"""No strategy leaves a part of a credential in what it writes, wherever it cuts a text (requirement G3)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from planted import Planted, leaked, planted

from ctxctl.compaction.base import STRATEGIES
from ctxctl.compaction.cascade import Cascade
from ctxctl.compaction.clean import Cleaner
from ctxctl.compaction.delegate import find_subtasks
from ctxctl.compaction.options import CompactionOptions
from ctxctl.facts.session import SessionFacts
from ctxctl.guard.sanitize import sanitize
from ctxctl.guard.spanning import keyless

SECRETS = planted()
STARTS = (0, 10, 58, 70, 74, 93, 95, 118, 134, 153, 159, 180, 193, 198, 199, 200, 201, 294, 560, 594)
"""Characters in front of a credential: each cut of a strategy (80, 100, 140, 160, 200, 300, 600) goes through one."""
WORDS = "the job of stage 12 says in src/app/main.py:88 that it was done well and then "


def padded(size: int) -> str:
    """Words of so many characters, a space behind the last one."""
    return (WORDS * (size // len(WORDS) + 1))[:size].rsplit(" ", 1)[0].ljust(size) if size else ""


def line(secret: Planted, start: int) -> str:
    return f"{padded(start)}{secret.carrier} and error goes on in tests/unit/test_more.py:12 {WORDS * 6}"


def text(secret: Planted, start: int, way: str) -> str:
    rest = "\n".join(f"src/mod_{n}/file_{n}.py:{n}: value_{n} = {n * 37}" for n in range(40))
    told = line(secret, start)
    if way == "first":
        return f"{told}\n{rest}"
    if way == "last":
        return f"{rest}\n{told}"
    if way == "packed":
        return json.dumps({"text": padded(start), "next": [secret.carrier, "x" * 2000]}, separators=(",", ":"))
    if way == "one word":
        word = (padded(start).replace(" ", "_") + "," + secret.carrier) if not secret.lines else told
        return f"{word},{'y' * 3000}\n{rest}"
    return f"{rest}\n{told}\n{rest}"


def talk(session: Any, start: int, way: str) -> None:
    session.user("Find out why the deployment fails. You must never print what it says.")
    for n, secret in enumerate(SECRETS):
        told = text(secret, start, way)
        match n % 4:
            case 0:
                session.say("I look.", ("Read", {"file_path": f"src/a{n}.py"}, told), error=n % 8 == 0)
            case 1:
                target = line(secret, start).replace("\n", " ") if not secret.lines else "cat key.pem"
                session.say("", ("Bash", {"command": target[:2000]}, told))
                session.say(told)
            case 2:
                session.say(f"We decided to go on because {told}")
                session.user(told)
                session.say("TODO: it is not yet handled. " + told)
            case 3:
                session.say(told, ("Bash", {"command": "python -m pytest -q"}, f"{told}\n1 failed in 0.1s\n{told}"))
    for n in range(8):
        session.say(f"Step {n}.", ("Read", {"file_path": f"src/z{n}.py"}, "nothing of note\n" * 20))
    session.say("All is done.")


def facts_of(session: Any) -> Any:
    facts, clean = SessionFacts(), Cleaner()
    for number, block in enumerate(session.blocks):
        facts.see(keyless(block, clean), number)
    return facts.summary()


def test_each_is_known_whole() -> None:
    for secret in SECRETS:
        assert not leaked([sanitize(f"a {secret.carrier} b").text], [secret]), secret.name


@pytest.mark.parametrize("way", ["first", "last", "middle", "packed", "one word"])
@pytest.mark.parametrize("name", sorted(STRATEGIES.names()))
def test_no_part_of_a_credential_is_written(name: str, way: str, sessions: Any) -> None:
    ways = ("first", "last", "middle", "packed", "one word")
    for start in STARTS[ways.index(way) % 4 :: 4]:
        session = sessions()
        talk(session, start, way)
        session.facts = facts_of(session)
        scene = session.scene(0.2, clean=Cleaner(), recall="ctxctl recall out.jsonl")
        steps = Cascade(CompactionOptions(), scene.clean).run((name,), scene)
        noted = [note for step in steps for note in step.edits.entries]
        new = [entry.text or "" for entry in scene.window.entries.values() if entry.replaced]
        new += [note.text for note in noted]
        kept = {block.text for block in session.blocks}
        assert leaked((t for t in new if t not in kept), SECRETS) == [], (name, way, start)


@pytest.mark.parametrize("way", ["first", "last", "packed"])
def test_briefs_hold_none(way: str, sessions: Any) -> None:
    for cut in (79, 119, 139, 300):
        session = sessions()
        session.user("Find it. " + text(SECRETS[0], 4, "first"))
        for n, secret in enumerate(SECRETS):
            session.say(text(secret, cut - 9, way), ("Grep", {"pattern": line(secret, cut - 9)[:500]}, f"a{n}.py:1: x"))
        session.say("Done.")
        session.facts = facts_of(session)
        scene = session.scene(0.2, clean=Cleaner())
        for task in find_subtasks(scene):
            assert leaked([scene.clean(task.brief), scene.clean(task.result)], SECRETS) == []

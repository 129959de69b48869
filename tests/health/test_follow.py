"""Following a session: what is shown after reading on is what a fresh analysis of the whole file says."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import ClaudeSession, lines_of

import ctxctl
from ctxctl import analyze, load_models
from ctxctl.budgets.cost import session_cost
from ctxctl.errors import CtxctlError, InputError
from ctxctl.health.follow import Follower
from ctxctl.health.session import Examining
from ctxctl.health.view import View
from ctxctl.pressure.result import AnalysisOptions

SAMPLES = Path(ctxctl.__file__).resolve().parents[1] / "sample_transcripts"
TABLE = load_models()
FOLLOWED = ("axios-to-fetch.jsonl", "codex-rollout.jsonl")


class Clock:
    """Jumps far ahead each time it is asked, so that no reading waits for a rest to end."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1000
        return self.now


def follower(path: Path, options: Examining | None = None, **more: Any) -> Follower:
    return Follower(str(path), TABLE, options, clock=Clock(), **more)


def shown(view: View) -> dict[str, object]:
    return {
        "reported": view.reported,
        "window": (view.window, view.window_source),
        "velocity": view.velocity,
        "cost": view.cost if view.cost is None else round(view.cost, 9),
        "compactions": view.compactions,
        "model": view.model,
        "requests": view.requests,
    }


def analyzed(path: Path, *, reported_only: bool = False) -> dict[str, object]:
    """The same out of a fresh analysis of the whole."""
    a = analyze(str(path), TABLE, AnalysisOptions(reported_only=reported_only))
    cost = session_cost(a.transcript.usage, TABLE, a.transcript.model)
    return {
        "reported": a.context.reported,
        "window": (a.window.tokens, a.window.source),
        "velocity": a.forecast.velocity if a.forecast is not None and a.context.reported is not None else None,
        "cost": cost if cost is None else round(cost, 9),
        "compactions": sum(c.kind == "full" and not c.abandoned for c in a.transcript.compactions),
        "model": a.transcript.model,
        "requests": a.usage.requests,
    }


def claude(folder: Path, name: str = "session", turns: int = 12) -> ClaudeSession:
    made = ClaudeSession(folder, name)
    made.user("Port the parser to the new grammar.")
    for n in range(turns):
        made.read(f"/code/app/part_{n}.py", lines_of(40 + n, f"part{n}"))
    return made


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 40)),
        st.tuples(st.just("torn"), st.floats(0.1, 0.9)),
        st.tuples(st.just("cut"), st.integers(1, 60)),
        st.tuples(st.just("rotate"), st.integers(1, 60)),
        st.tuples(st.just("gone"), st.just(0)),
        st.tuples(st.just("empty"), st.just(0)),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("name", FOLLOWED)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_becomes_of_the_file(name: str, steps: Sequence[tuple[str, Any]], tmp_path: Path) -> None:
    lines = (SAMPLES / name).read_bytes().splitlines(keepends=True)
    path = tmp_path / "s.jsonl"
    path.unlink(missing_ok=True)
    at = 3
    path.write_bytes(b"".join(lines[:at]))
    following = follower(path)
    view = following.poll()
    for what, amount in steps:
        if what == "grow":
            more = lines[at : at + amount]
            at = min(len(lines), at + amount)
            path.write_bytes(b"".join(lines[: at - len(more)]))  # what was torn is written whole
            with path.open("ab") as file:
                file.write(b"".join(more))
        elif what == "torn" and at < len(lines):
            with path.open("ab") as file:
                file.write(lines[at][: max(1, int(amount * (len(lines[at]) - 2)))])
        elif what == "cut":
            at = min(at, amount)
            path.write_bytes(b"".join(lines[:at]))
        elif what == "rotate":
            at = amount = min(len(lines), amount)
            other = tmp_path / "other.jsonl"
            other.write_bytes(b"".join(lines[:amount]))
            os.replace(other, path)
        elif what == "gone":
            path.unlink()
            assert (found := following.poll()) is None or found.state == "missing"
            path.write_bytes(b"".join(lines[:at]))
        elif what == "empty":
            path.write_bytes(b"")
            assert (found := following.poll()) is None or found.state == "waiting"
            path.write_bytes(b"".join(lines[:at]))
        view = following.poll() or view
        assert view is not None
        try:
            expected = analyzed(path)
        except CtxctlError:
            assert view.state != "live"
            continue
        assert view.state == "live"
        assert shown(view) == expected


def test_a_poll_without_news_reads_nothing(tmp_path: Path) -> None:
    made = claude(tmp_path)
    following = follower(made.save())
    assert following.poll() is not None
    assert [following.poll() for _ in range(20)] == [None] * 20
    assert following.reads == 1
    made.answer("Done.")
    made.save()
    view = following.poll()
    assert view is not None and view.turn == 13
    assert following.reads == 2


def test_a_reading_is_followed_by_a_rest(tmp_path: Path) -> None:
    class Slow(Clock):
        """A reading takes one second by this clock."""

        def __call__(self) -> float:
            self.now += 0.5
            return self.now

    clock = Slow()
    made = claude(tmp_path)
    following = Follower(str(made.save()), TABLE, clock=clock)
    assert following.poll() is not None  # nothing follows the first
    for _ in range(2):
        made.answer("more")
        made.save()
        while following.poll() is None:
            pass
        ended = clock.now
    made.answer("and more")
    made.save()
    while following.poll() is None:
        pass
    assert clock.now - ended > 10


def test_waiting_tokens_are_near_those_of_an_analysis(tmp_path: Path) -> None:
    made = claude(tmp_path)
    path = made.save()
    view, analysis = follower(path).poll(), analyze(str(path), TABLE)
    assert view is not None and view.waiting is not None and analysis.context.pending is not None
    assert analysis.context.pending > 300
    assert view.waiting == pytest.approx(analysis.context.pending, rel=0.25)
    assert view.tokens is not None and view.reported is not None
    assert view.tokens > view.reported + view.waiting  # and the answer
    made.answer("All is done.")
    view = follower(made.save()).poll()
    assert view is not None and (view.waiting, view.tokens) == (0, view.reported)


def test_after_a_compaction_until_the_next_call(tmp_path: Path) -> None:
    made = claude(tmp_path)
    following = follower(made.save())
    before = following.poll()
    assert before is not None and before.reported is not None
    made.compact("The parser is half ported.")
    made.save()
    view = following.poll()
    assert view is not None
    assert (view.reported, view.tokens, view.source, view.compactions) == (None, None, None, 1)
    made.lines[-2]["compactMetadata"]["postTokens"] = 4321
    made.save()
    view = following.poll()
    assert view is not None and (view.tokens, view.source) == (4321, "stated")
    made.answer("I go on.")
    path = made.save()
    view = following.poll()
    assert view is not None and view.source == "reported"
    assert shown(view) == analyzed(path)


def test_alerts_come_from_the_one_engine(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path)
    made.user("go")
    codes: list[set[str]] = []
    following = None
    for prompt in (100_000, 181_000, 182_000, 183_000, 60_000):
        made.answer("step", prompt=prompt)
        path = made.save()
        following = following or follower(path)
        view = following.poll()
        assert view is not None
        codes.append({f"{alert.level} {alert.code}" for alert in view.alerts if alert.code.startswith("util")})
    assert codes == [
        set(),
        {"info utilization_prepare"},
        {"info utilization_prepare"},
        {"info utilization_prepare", "critical utilization_critical"},
        set(),  # that it was critical is for who looks at the whole session
    ]


def test_what_sub_agents_cost(tmp_path: Path) -> None:
    made = claude(tmp_path)
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 9000,
        "cache_read_input_tokens": 0,
        "output_tokens": 500,
    }
    records = []
    for n in range(4):
        head = {"id": f"sub_{n}", "type": "message", "role": "assistant", "model": made.model}
        message = {**head, "usage": usage, "content": [{"type": "text", "text": "x"}]}
        records += [
            {"type": "user", "message": {"role": "user", "content": f"look {n}"}},
            {
                "type": "assistant",
                "requestId": f"r{n}",
                "message": {**message, "content": [{"type": "text", "text": "x"}]},
            },
        ]
    path = made.save()
    following = follower(path)
    alone = following.poll()
    assert alone is not None and alone.cost is not None
    made.subagent("one", records[:4])
    view = next(v for _ in range(6) if (v := following.poll()) is not None)  # looked for now and then
    assert shown(view) == analyzed(path)
    assert view.cost is not None and view.cost > alone.cost and view.turn == alone.turn
    made.subagent("one", records)
    view = next(v for _ in range(6) if (v := following.poll()) is not None)
    assert shown(view) == analyzed(path)
    without = follower(path, Examining(AnalysisOptions(companions=False))).poll()
    assert without is not None and without.cost == alone.cost


def test_of_a_large_file_only_usage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = (SAMPLES / FOLLOWED[0]).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:150]))
    following = follower(path, large=1)
    for upto in (150, 200, len(lines)):
        path.write_bytes(b"".join(lines[:upto]))
        view = following.poll()
        assert view is not None and view.partial and view.waiting is None
        assert shown(view) == analyzed(path, reported_only=True)


def test_packed_files_and_documents_are_read_whole(tmp_path: Path) -> None:
    lines = (SAMPLES / FOLLOWED[0]).read_bytes().splitlines(keepends=True)
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(lines[:100])))
    following = follower(path)
    assert following.poll() is not None
    path.write_bytes(gzip.compress(b"".join(lines)))
    view = following.poll()
    assert view is not None and shown(view) == analyzed(path)
    document = tmp_path / "chat.json"
    document.write_bytes((SAMPLES / "anthropic-request.json").read_bytes())
    view = follower(document).poll()
    assert view is not None and view.format == "anthropic-messages" and view.state == "live"


def test_what_was_never_readable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        follower(tmp_path / "none.jsonl").poll()
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1}\n' * 3)
    with pytest.raises(InputError):
        follower(other).poll()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError):
        follower(tmp_path / "pipe").poll()
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    following = follower(empty)
    view = following.poll()
    assert view is not None and view.state == "waiting"
    made = claude(tmp_path)
    empty.write_bytes(made.save().read_bytes())
    view = following.poll()
    assert view is not None and view.state == "live"
    empty.write_text("not a session any more\n")
    view = following.poll()
    assert view is not None and view.state == "unreadable" and view.note

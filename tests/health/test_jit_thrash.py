"""The same file read over and over within one exchange."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import ClaudeSession, lines_of

from ctxctl.health.detectors.jit_thrash import JitThrash
from ctxctl.model.finding import Finding

TEXT = lines_of(60)
AREA = "src/area.py"


def found(session: ClaudeSession) -> list[Finding]:
    return list(JitThrash().find(session.examine()))


def asked(folder: Path, name: str = "session") -> ClaudeSession:
    session = ClaudeSession(folder, name)
    session.user("Fix the rounding in the area module.")
    return session


def test_five_readings_of_one_file_in_an_exchange(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for tool in (session.read, session.read, session.read):
        tool("/code/app/src/area.py", TEXT)
    session.bash("cat src/area.py", TEXT)
    session.bash("cd /code/app && sed -n '11,20p' src/area.py", "\n".join(TEXT.split("\n")[10:20]))
    session.answer("Nothing to fix.")
    (finding,) = found(session)
    assert finding.code == "jit_thrash" and finding.turn == 5
    assert finding.evidence is not None and finding.evidence.turns == (1, 2, 3, 4, 5)
    assert finding.evidence.counts["reads"] == 5 and finding.evidence.counts["repeats"] == 4
    assert finding.evidence.counts["tokens"] > 1_500
    assert finding.message.startswith("src/area.py was read 5 times in one exchange (turns 1, 2, 3, 4 and 5)")
    assert "turn 1" in finding.hint


def test_four_readings_are_below_the_threshold(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for _ in range(4):
        session.read(AREA, TEXT)
    assert found(session) == []


def test_paging_through_a_large_file_is_none(tmp_path: Path) -> None:
    session = asked(tmp_path)
    lines = TEXT.split("\n")
    for first in range(0, 60, 10):
        numbered = "\n".join(f"{n + 1:>6}\t{lines[n]}" for n in range(first, first + 10))
        session.call("Read", {"file_path": AREA, "offset": first + 1, "limit": 10}, numbered)
    assert found(session) == []


def test_readings_after_changes_are_none(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for number in range(6):
        session.read(AREA, TEXT.replace("value_0 ", f"value_{number}_0 "))
        session.edit(AREA, f"value_{number}_0 ", f"value_{number + 1}_0 ")
    assert found(session) == []


def test_a_check_after_a_command_that_may_have_changed_it_is_none(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for _ in range(6):
        session.read(AREA, TEXT)
        session.bash("python tools/format.py", "done")
    assert found(session) == []


def test_readings_of_several_exchanges_do_not_add_up(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for number in range(6):
        session.read(AREA, TEXT)
        session.answer("There it is.")
        session.user(f"And what about case {number}?")
    assert found(session) == []


def test_what_a_compaction_removed_has_to_be_read_again(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for _ in range(6):
        session.read(AREA, TEXT)
        session.compact("The area module rounds wrongly.")
    session.answer("Done.")
    assert found(session) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.integers(0, 2), max_size=16))
def test_each_file_with_five_readings_is_told_once(tmp_path: Path, files: list[int]) -> None:
    session = asked(tmp_path)
    for file in files:
        session.read(f"src/part{file}.py", lines_of(20, f"part{file}"))
    session.answer("I have read it all.")
    expected = {f"src/part{file}.py": files.count(file) for file in set(files) if files.count(file) >= 5}
    told = {finding.message.split(" ", 1)[0]: finding for finding in found(session)}
    assert told.keys() == expected.keys()
    for path, count in expected.items():
        evidence = told[path].evidence
        assert evidence is not None and evidence.counts["reads"] == count


def test_no_more_than_ten_are_listed(tmp_path: Path) -> None:
    session = asked(tmp_path)
    for file in range(13):
        for _ in range(5):
            session.read(f"src/part{file}.py", lines_of(5 + file, f"part{file}"))
    told = found(session)
    assert len(told) == 10
    assert "; 3 more like it, " in told[-1].message
    assert told[0].message.startswith("src/part3.py")  # the three smallest are not listed

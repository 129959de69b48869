"""Scripts are cut as a shell would cut them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.facts.shell import commands, join


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("cd /x && FOO=1 sudo pytest -k 'a or b' | tail", [["cd", "/x"], ["pytest", "-k", "a or b"], ["tail"]]),
        ("echo a # b; c\nd", [["echo", "a"], ["d"]]),
        ("echo a#b", [["echo", "a#b"]]),
        ("bash -lc 'go test ./... | tail' && x", [["go", "test", "./..."], ["tail"], ["x"]]),
        ("cat <<'E' > f\nrm -rf /\nE\nls", [["cat"], ["ls"]]),
        ("cat <<-E\n\tx\n\tE\nls", [["cat"], ["ls"]]),
        ("cat <<E\nx\n E\nE\nls", [["cat"], ["ls"]]),
        ('git commit -m "a \\"b\\" $(x)"', [["git", "commit", "-m", 'a "b" $(x)']]),
        (
            'git commit -m "$(cat <<\'EOF\'\nAn "odd" one\n\nmore\nEOF\n)" && ls',
            [["git", "commit", "-m", 'An "odd" one\n\nmore'], ["ls"]],
        ),
        ("for f in a; do rm $f; done", [["for", "f", "in", "a"], ["rm", "$f"], ["done"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("x 2>&1 >/dev/null", [["x"]]),
        ("grep x <<< word", [["grep", "x", "word"]]),
        ("", []),
    ],
)
def test_words(script: str, words: list[list[str]]) -> None:
    assert [command.words for command in commands(script)] == words


def test_documents_and_redirections() -> None:
    first, second = commands("cat <<'E' > a.py\nx = 1\nE\npytest >> out.log 2> err.log")
    assert (first.doc, first.literal, first.writes, first.after) == ("x = 1\n", True, [(False, "a.py")], "\n")
    assert second.writes == [(True, "out.log"), (False, "err.log")]
    assert commands("cat <<E\n$x\nE")[0].literal is False


def test_folders() -> None:
    found = commands("cd src && ls; cd /abs; ls", "/base")
    assert [command.folder for command in found] == ["/base", "/base/src", "/base/src", "/abs"]
    assert join("a", "./b//c") == "a/b/c"
    assert join("/a", "/b") == "/b"
    assert join("", "./x") == "x"


@given(st.text(alphabet="ab \n\t'\"\\$(){}<>|&;#-EO", max_size=200))
def test_any_text_is_cut(script: str) -> None:
    for command in commands(script):
        assert command.words or command.writes


@pytest.mark.parametrize("piece", ["'", '"', "$(", "<<E\n", '"$(cat <<E\n', "\\", "((", "a>"])
def test_hostile_scripts_take_bounded_time(piece: str) -> None:
    started = time.perf_counter()
    commands(piece * (200_000 // len(piece)))
    assert time.perf_counter() - started < 2

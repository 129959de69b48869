"""Names to implementations: registered once, loaded when first asked for, suggested when mistyped."""

from __future__ import annotations

import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from ctxctl.errors import UsageError
from ctxctl.registry import Registry, closest


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[type]:
    """A registry of a package with two implementations, one file each."""
    package = tmp_path / "zoo_of_tests"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from ctxctl.registry import Registry\nROOM = Registry('animal', 'zoo_of_tests', 'zoo.tests')\n",
        encoding="utf-8",
    )
    for name in ("lion", "otter"):
        code = f"""
            from zoo_of_tests import ROOM

            @ROOM.register("{name}")
            class Animal:
                sound = "{name}!"
        """
        (package / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import zoo_of_tests  # type: ignore[import-not-found]

    yield zoo_of_tests.ROOM  # type: ignore[misc]
    for name in [n for n in sys.modules if n.startswith("zoo_of_tests")]:
        del sys.modules[name]


def test_nothing_is_loaded_before_it_is_asked_for(room: Registry[type]) -> None:
    assert "zoo_of_tests.lion" not in sys.modules
    assert room.names() == ["lion", "otter"]
    assert "zoo_of_tests.lion" in sys.modules


def test_get_and_iterate(room: Registry[type]) -> None:
    assert room.get("otter").sound == "otter!"  # type: ignore[attr-defined]
    assert [name for name, _ in room] == ["lion", "otter"]


def test_an_unknown_name_gets_a_suggestion_or_the_list(room: Registry[type]) -> None:
    with pytest.raises(UsageError) as caught:
        room.get("Oter")
    assert caught.value.message == "unknown animal 'Oter'" and caught.value.hint == "did you mean 'otter'?"
    with pytest.raises(UsageError) as caught:
        room.get("zzzz")
    assert caught.value.hint == "known: lion, otter"


def test_a_name_is_taken_once(room: Registry[type]) -> None:
    room.names()
    with pytest.raises(ValueError, match="animal 'lion' is registered twice"):
        room.register("lion")(object)


def test_others_come_in_by_entry_points_but_replace_nothing(
    room: Registry[type], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        metadata.EntryPoint("newt", "builtins:str", "zoo.tests"),
        metadata.EntryPoint("lion", "builtins:int", "zoo.tests"),
    ]
    asked: list[str] = []

    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        asked.append(group)
        return entries

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    assert room.get("lion") is not int and asked == []
    assert room.get("newt") is str and asked == ["zoo.tests"]
    assert room.names() == ["lion", "newt", "otter"] and asked == ["zoo.tests"]


@pytest.mark.parametrize(
    ("name", "found"), [("hybird", "hybrid"), ("HYBRID", "hybrid"), ("lfu", "lru"), ("xyz", None), ("", None)]
)
def test_closest(name: str, found: str | None) -> None:
    assert closest(name, ["fifo", "hybrid", "lru"]) == found

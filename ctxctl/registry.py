"""name -> implementation, for everything that is one file each: formats, policies, renderers.

A module registers its class with a decorator; the modules of the room are imported when a name is first looked up.
Third parties come in by entry points of the group `ctxctl.<kind>`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ctxctl.errors import UsageError

T = TypeVar("T")


def closest(name: str, known: list[str]) -> str | None:
    """The known name that a user most likely meant, or None."""
    import difflib  # takes longer to load than most commands need for all else

    matches = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return matches[0] if matches else None


class Registry(Generic[T]):
    """Implementations of one kind by name.

    kind: what the entries are, in the singular, for messages ("format"). package: the room whose modules register
    themselves. group: entry-point group of third parties.
    """

    def __init__(self, kind: str, package: str, group: str) -> None:
        self.kind = kind
        self.package = package
        self.group = group
        self._entries: dict[str, T] = {}
        self._loaded = False
        self._asked_others = False

    def register(self, name: str) -> Callable[[T], T]:
        """Class decorator that files an implementation under its name; a name can be taken once."""

        def add(implementation: T) -> T:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = implementation
            return implementation

        return add

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")

    def _load_others(self) -> None:
        """Entry points of other packages; looking for them takes longer than reading a small file."""
        self._load()
        if self._asked_others:
            return
        self._asked_others = True
        from importlib import metadata

        for entry in metadata.entry_points(group=self.group):
            if entry.name not in self._entries:
                self._entries[entry.name] = entry.load()

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load_others()
        return sorted(self._entries)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self._load_others()
        return iter(sorted(self._entries.items()))

    def get(self, name: str) -> T:
        """The implementation; UsageError with a did-you-mean for an unknown name."""
        self._load()
        if name not in self._entries:
            self._load_others()
        try:
            return self._entries[name]
        except KeyError:
            near = closest(name, list(self._entries))
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(self.names())}"
            raise UsageError(f"unknown {self.kind} {name!r}", hint=hint) from None

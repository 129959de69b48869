"""Where a file is, as CI systems want to hear it: relative to the root of the repository."""

from __future__ import annotations

import os
from urllib.parse import quote

STDIN = "-"


def root_of(folder: str | os.PathLike[str]) -> str | None:
    """The root of the repository that a folder lies in: the nearest folder upwards with a `.git`. None without one."""
    here = os.path.abspath(folder)
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def within(path: str, root: str | None) -> str | None:
    """A path relative to the root, with slashes; None when it is not inside, or there is no root."""
    if root is None or path == STDIN:
        return None
    for real in (os.path.abspath, os.path.realpath):
        try:
            found = os.path.relpath(real(path), real(root))
        except ValueError:  # another drive, or a NUL in it
            return None
        if found != os.curdir and found != os.pardir and not found.startswith(os.pardir + os.sep):
            return found.replace(os.sep, "/")
    return None


def place(path: str, root: str | None) -> str:
    """A path for people and for annotations: relative to the root where it lies inside, else as it was given."""
    return within(path, root) or path


def uri(path: str, root: str | None) -> tuple[str, bool]:
    """A path as URI reference (RFC 3986), and whether it is relative to the root."""
    inside = within(path, root)
    if inside is not None:
        return _quoted(inside), True
    if path == STDIN:
        return STDIN, False
    if os.path.isabs(path):
        return "file://" + _quoted("/" + path.replace(os.sep, "/").lstrip("/")), False
    return _quoted(path.replace(os.sep, "/")), False


def _quoted(path: str) -> str:
    try:
        return quote(path, safe="/", errors="surrogateescape")
    except UnicodeEncodeError:
        return quote(path, safe="/", errors="replace")

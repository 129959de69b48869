"""Paths in tables: what all of them share would push the figures off the screen."""

from __future__ import annotations

import os
from collections.abc import Sequence


def shared_folder(paths: Sequence[str]) -> str:
    """The folder that all paths share, with a separator at its end; empty when there is none worth leaving out
    (standard input, absolute and relative paths, a single path)."""
    try:
        shared = os.path.commonpath(paths) if len(paths) > 1 else ""
    except ValueError:
        return ""
    return shared + os.sep if len(shared) > 1 else ""

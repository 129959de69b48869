"""How much of what a window could answer can still be answered after it was compacted (requirement H5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fidelity:
    """score: answered / asked over all probes, None without one."""

    score: float | None


def fidelity_of(session: object) -> Fidelity:
    """Not measured yet."""
    return Fidelity(None)

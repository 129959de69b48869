"""What got better or worse since another run (requirement H3).

Sessions that stand on both sides, by their id, are compared one with the other. Where the same path holds another
session, as when CI records the same tasks anew, the pairs are compared with a margin for noise. Otherwise the means of
all sessions are. Margins are two-sided 99 % intervals: of paired differences (Student's t), or of the difference of two
means with unequal variances (B. L. Welch, Biometrika 34, 1947).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from os.path import isfile
from pathlib import Path
from statistics import fmean, variance
from typing import Literal

from ctxctl.errors import NothingFoundError, UsageError
from ctxctl.health.figures import FIGURES, Better, Measured, Unit, measured
from ctxctl.health.history import Run, is_history, refs, runs
from ctxctl.health.recorded import reported
from ctxctl.health.result import Health
from ctxctl.model.finding import FINDING_LEVELS
from ctxctl.registry import closest
from ctxctl.state import git

How = Literal["session", "path", "distribution"]
Verdict = Literal["worse", "better", "same", "changed", "unknown"]
TOLERANCE = 0.05
"""Share of the base value up to which a change is none."""
PAIRED = 0.5
"""Share of the sessions on the smaller side that must have a partner for pairs to be compared."""
T99 = (
    *(63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169),
    *(3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845),
    *(2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750),
)
"""Student's t, two-sided 99 %, for 1 to 30 degrees of freedom. With 95 % one of the some twenty figures and codes would
seem worse in every third run of which nothing changed."""
NORMAL99 = 2.576


@dataclass(frozen=True, slots=True)
class Base:
    """What is compared with. label: as it was asked for; ref, commit, time: of the run, as far as known."""

    label: str
    sessions: tuple[Measured, ...]
    ref: str | None = None
    commit: str | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A figure, or how often a code is found per session, on both sides: means over the sessions that were compared.

    level: of a code, None for a figure. margin: a change up to this is none. base_sessions, now_sessions: over how many
    the means are. worse: it got worse; `changed`: it changed, and neither way is better; `unknown`: one side was not
    measured. new: the base has no such finding.
    """

    name: str
    better: Better
    unit: Unit
    base: float | None
    now: float | None
    change: float | None
    margin: float | None
    verdict: Verdict
    base_sessions: int
    now_sessions: int
    level: str | None = None
    new: bool = False

    @property
    def relative(self) -> float | None:
        """Change as a share of the base, None where that is 0 or unknown."""
        return self.change / abs(self.base) if self.change is not None and self.base else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """how: `session` and `path` compare pairs that have it in common, `distribution` the means of all. pairs: how many.
    changes: figures first and then codes, each with what got worse in front."""

    base: Base
    how: How
    pairs: int
    base_sessions: int
    now_sessions: int
    changes: tuple[Change, ...]

    @property
    def worse(self) -> tuple[str, ...]:
        """Names of what got worse."""
        return tuple(change.name for change in self.changes if change.verdict == "worse")


def base_of(text: str, history: str | Path | None = None, *, folder: str | Path = ".") -> Base:
    """What --compare-to names: a report that `health` wrote as JSON or JSON lines, another history (its newest run), or
    a branch, tag or commit that a run in the history is recorded at (the newest one).

    Raises InputError for a file that is neither, UsageError when there is no such file and no history, and
    NothingFoundError when no run is recorded at it.
    """
    if isfile(text):
        if not is_history(text):
            return Base(text, reported(text))
        newest = runs(text, most=1)
        if not newest:
            raise NothingFoundError("no run is recorded in it", path=text)
        return _of(text, newest[0])
    if history is None:
        raise UsageError(
            f"--compare-to {text}: no such file, and without --history there is no run to look for",
            hint="give a JSON report that `ctxctl health --json -o` wrote, or --history FILE with the runs",
        )
    found = runs(history, text, most=1)
    if not found and (commit := git.resolved(folder, text)) is not None:
        found = runs(history, commit, most=1)
    if not found:
        known = refs(history)
        near = closest(text, known)
        hint = f"did you mean {near!r}?" if near else f"recorded: {', '.join(known[:10]) or 'nothing'}"
        more = f"; `ctxctl health --history {history} --ref {text} PATH...` records one"
        raise NothingFoundError(f"no run is recorded at {text!r}", path=str(history), hint=hint + more)
    return _of(text, found[0])


def _of(label: str, run: Run) -> Base:
    return Base(label, run.sessions, run.where.ref, run.where.commit, run.time)


def compare(base: Base, now: Sequence[Health]) -> Comparison:
    """What changed since the base."""
    return compared(base, [measured(health) for health in now])


def compared(base: Base, now: Sequence[Measured]) -> Comparison:
    """`compare`, of figures."""
    how, pairs = _matched(base.sessions, now)
    before = [b for b, _ in pairs] if pairs else list(base.sessions)
    after = [n for _, n in pairs] if pairs else list(now)
    # a session that went on cost more, which is no fault of its own; what a call costs still tells
    grown = how == "session" and _values(before, "turns") != _values(after, "turns")
    figures = [
        _change(
            f.name,
            "neither" if grown and f.name == "cost" else f.better,
            f.unit,
            f.floor,
            _values(before, f.name),
            _values(after, f.name),
            how,
        )
        for f in FIGURES
    ]
    keys = sorted({key for session in (*before, *after) for key in session.codes})
    codes = [_code(level, code, before, after, how) for level, code in keys] if before and after else []
    shown = [change for change in figures if change.base is not None or change.now is not None]
    changes = (*sorted(shown, key=_order), *sorted(codes, key=_order))
    return Comparison(base, how, len(pairs), len(base.sessions), len(now), changes)


def _values(sessions: Sequence[Measured], name: str) -> list[float | None]:
    return [session.values.get(name) for session in sessions]


def _matched(base: Sequence[Measured], now: Sequence[Measured]) -> tuple[How, list[tuple[Measured, Measured]]]:
    """Pairs of sessions, as long as enough sessions are in one."""
    least = max(1.0, PAIRED * min(len(base), len(now)))
    ids = _pairs([s.session for s in base], [s.session for s in now])
    paths = _pairs([s.path for s in base], [s.path for s in now])
    # a format without ids: the file is the session
    ids += [(a, b) for a, b in paths if base[a].session is None and now[b].session is None]
    if len(ids) >= least:
        return "session", [(base[a], now[b]) for a, b in ids]
    if len(paths) < least:
        paths = _pairs(_below([s.path for s in base]), _below([s.path for s in now]))
    if len(paths) >= least:
        return "path", [(base[a], now[b]) for a, b in paths]
    return "distribution", []


def _pairs(base: Sequence[str | None], now: Sequence[str | None]) -> list[tuple[int, int]]:
    """Positions with the same name on both sides; a name that stands twice on one side says nothing."""
    left, right = Counter(base), Counter(now)
    at = {name: number for number, name in enumerate(base) if name and left[name] == 1}
    return [(at[name], number) for number, name in enumerate(now) if name in at and right[name] == 1]


def _below(paths: Sequence[str]) -> list[str | None]:
    """Paths below the folder that they share; of a single one nothing is known."""
    parts = [path.replace("\\", "/").split("/") for path in paths]
    if len(parts) < 2:
        return [None] * len(parts)
    shared = 0
    while all(len(p) > shared + 1 and p[shared] == parts[0][shared] for p in parts):
        shared += 1
    return ["/".join(p[shared:]) for p in parts]


def _change(
    name: str,
    better: Better,
    unit: Unit,
    floor: float,
    base: Sequence[float | None],
    now: Sequence[float | None],
    how: How,
    level: str | None = None,
) -> Change:
    if how == "distribution":
        before = [value for value in base if value is not None]
        after = [value for value in now if value is not None]
    else:
        both = [(b, n) for b, n in zip(base, now, strict=True) if b is not None and n is not None]
        before, after = [b for b, _ in both], [n for _, n in both]
        if not both:  # told, though not compared
            before = [value for value in base if value is not None]
            after = [value for value in now if value is not None]
            one = (fmean(before) if before else None, fmean(after) if after else None)
            return Change(name, better, unit, *one, None, None, "unknown", len(before), len(after), level)
    if not before or not after:
        one = (fmean(before) if before else None, fmean(after) if after else None)
        return Change(name, better, unit, *one, None, None, "unknown", len(before), len(after), level)
    first, last = fmean(before), fmean(after)
    noise = 0.0 if how == "session" else _paired(before, after) if how == "path" else _welch(before, after)
    margin = max(floor, TOLERANCE * abs(first), noise)
    change = last - first
    verdict: Verdict = "same"
    if abs(change) > margin:
        rose = "changed" if better == "neither" else "better" if better == "higher" else "worse"
        fell = "changed" if better == "neither" else "worse" if better == "higher" else "better"
        verdict = rose if change > 0 else fell  # type: ignore[assignment]
    return Change(name, better, unit, first, last, change, margin, verdict, len(before), len(after), level)


def _code(level: str, code: str, before: Sequence[Measured], after: Sequence[Measured], how: How) -> Change:
    """How often a code is found per session. What is only information gets neither better nor worse."""
    better: Better = "neither" if level == "info" else "lower"
    base = [float(s.codes.get((level, code), 0)) for s in before]
    now = [float(s.codes.get((level, code), 0)) for s in after]
    change = _change(code, better, "number", 0.0, base, now, how, level)
    new = not any(base)
    return replace(change, new=new)


def _paired(before: Sequence[float], after: Sequence[float]) -> float:
    """Half the 99 % interval of the mean difference of pairs; 0 for a single one, of which no spread is known."""
    differences = [n - b for b, n in zip(before, after, strict=True)]
    n = len(differences)
    return _t(n - 1) * sqrt(variance(differences) / n) if n > 1 else 0.0


def _welch(before: Sequence[float], after: Sequence[float]) -> float:
    """Half the 99 % interval of the difference of two means. A side of a single session has the spread of the other; of
    two single ones none is known."""
    a, b = len(before), len(after)
    if a == b == 1:
        return 0.0
    spread_a = variance(before) if a > 1 else variance(after)
    spread_b = variance(after) if b > 1 else variance(before)
    part_a, part_b = spread_a / a, spread_b / b
    if part_a + part_b == 0:
        return 0.0
    if a == 1 or b == 1:
        freedom = float(max(a, b) - 1)
    else:
        freedom = (part_a + part_b) ** 2 / (part_a**2 / (a - 1) + part_b**2 / (b - 1))
    return _t(freedom) * sqrt(part_a + part_b)


def _t(freedom: float) -> float:
    whole = int(freedom)
    return T99[whole - 1] if 1 <= whole <= len(T99) else NORMAL99 if whole > len(T99) else T99[0]


def _order(change: Change) -> tuple[int, int, float]:
    """What got worse first, the most severe codes and the largest changes in front."""
    rank = ("worse", "changed", "better", "unknown", "same").index(change.verdict)
    level = -FINDING_LEVELS.index(change.level) if change.level in FINDING_LEVELS else 0
    size = round(abs(change.relative), 9) if change.relative is not None else inf if change.change else 0.0
    return rank, level, -size

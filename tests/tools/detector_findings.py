"""Findings of the detectors on real sessions, as JSON lines, for verdicts by hand (tests/health/labels.tsv).

    python tests/tools/detector_findings.py FOLDER [CODE ...] [--all] [--unlabelled]
    python tests/tools/detector_findings.py --table

The second prints the precision of each detector by these verdicts, as README shows it. Without --all at most 20 per
detector: those whose file, turn and code hash lowest, so that the choice does not depend on what is found.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from ctxctl import load_models
from ctxctl.errors import CtxctlError
from ctxctl.health.detectors.base import DETECTORS
from ctxctl.health.session import Examining, Session, examine
from ctxctl.model.finding import Finding

MOST = 20
LABELS = Path(__file__).parents[1] / "health" / "labels.tsv"


def sessions(folder: Path) -> Iterator[tuple[str, Session]]:
    """Every transcript of a folder that can be read, with its path in it."""
    table = load_models()
    for path in sorted(p for p in folder.rglob("*") if (p.is_file() and ".json" in p.name) or p.suffix == ".traj"):
        try:
            yield str(path.relative_to(folder)), examine(str(path), table, Examining())
        except CtxctlError:
            continue


def findings(folder: Path, codes: list[str] | None = None) -> dict[str, list[tuple[str, Finding]]]:
    """All findings by code: path in the folder, and the finding."""
    chosen = [(code, kind()) for code, kind in DETECTORS if not codes or code in codes]
    found: dict[str, list[tuple[str, Finding]]] = {code: [] for code, _ in chosen}
    notes: dict[str, list[tuple[str, Any]]] = {code: [] for code, _ in chosen}
    for path, session in sessions(folder):
        for code, detector in chosen:
            found[code] += ((path, finding) for finding in detector.find(session))
            if (note := detector.note(session)) is not None:
                notes[code].append((path, note))
    for code, detector in chosen:
        found[code] += detector.over(notes[code])
    return found


def sampled(found: list[tuple[str, Finding]]) -> list[tuple[str, Finding]]:
    """At most 20 of a detector's findings."""

    def order(item: tuple[str, Finding]) -> str:
        path, finding = item
        return hashlib.sha256(f"{path}|{finding.turn}|{finding.code}".encode()).hexdigest()

    return sorted(found, key=order)[:MOST]


def labels() -> dict[tuple[str, str, str], tuple[str, str]]:
    """(code, file, turn) -> (verdict, reason)."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {(r["code"], r["file"], r["turn"]): (r["verdict"], r["reason"]) for r in rows}


def precision() -> dict[str, tuple[int, int]]:
    """Of every detector: labelled findings, and those that are true."""
    counts = {code: [0, 0] for code, _ in DETECTORS}
    for (code, _, _), (verdict, _) in labels().items():
        counts[code][0] += 1
        counts[code][1] += verdict == "true"
    return {code: (found, true) for code, (found, true) in counts.items()}


def earned(found: int, true: int) -> bool:
    """Whether a detector may say more than `info`."""
    return found >= 5 and true / found >= 0.8


def table() -> str:
    """The precision of every detector, as Markdown."""
    rows = [
        f"| `{code}` | {kind.level} | {found} | {true} | {f'{true / found:.2f}' if found else '-'} |"
        for (code, kind), (found, true) in zip(DETECTORS, precision().values(), strict=True)
    ]
    return "\n".join(["| detector | level | findings | true | precision |", "|---|---|---:|---:|---:|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("codes", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--unlabelled", action="store_true")
    asked = parser.parse_args()
    if asked.table or asked.folder is None:
        print(table())
        return
    known = labels() if LABELS.exists() else {}
    for code, found in findings(asked.folder, asked.codes).items():
        chosen = found if asked.all else sampled(found)
        print(f"{code}: {len(found)} findings, {len(chosen)} shown", file=sys.stderr)
        for path, finding in chosen:
            key = (code, path, str(finding.turn or ""))
            if not (asked.unlabelled and key in known):
                row = {"file": path, "label": known.get(key), "finding": finding}
                sys.stdout.buffer.write(orjson.dumps(row, default=list) + b"\n")


if __name__ == "__main__":
    main()

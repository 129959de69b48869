"""GitHub Actions: annotations as workflow commands, and the job summary.

Workflow commands: docs.github.com/en/actions/reference/workflow-commands-for-github-actions. Data escapes `%`, CR and
LF, properties also `:` and `,` (actions/toolkit, packages/core/src/command.ts). The runner shows at most 10 annotations
of each kind per step, and takes at most 1 MiB of summary from one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ctxctl.model.finding import FINDING_LEVELS, Finding, FindingLevel, Gate
from ctxctl.model.text import clean
from ctxctl.reports import markdown
from ctxctl.reports.document import Checked, Column, Report, Table
from ctxctl.reports.places import STDIN, place
from ctxctl.reports.plot import plural

Kind = Literal["error", "warning", "notice"]
KINDS: dict[FindingLevel, Kind] = {"critical": "error", "warning": "warning", "info": "notice"}
MOST = 10
"""Annotations of a kind that one step can have."""
SUMMARY_BYTES = 1024 * 1024
"""Bytes of a step's summary; a larger one is refused as a whole."""
LONGEST = 4000
"""Characters of a message: annotations hold 64 KB, and nobody reads so much."""
TOLD = 100
"""Rows of a table in the summary."""


@dataclass(frozen=True, slots=True)
class _Annotation:
    kind: Kind
    title: str
    message: str
    path: str | None = None
    line: int | None = None


def render(checked: Sequence[Checked], gates: Sequence[Gate] = (), *, root: str | None = None) -> str:
    """One workflow command per line: files that could not be read, gates that did not pass, findings. Of each kind as
    many as GitHub shows, one of each code before a second one; the last says how many more there are.

    gates: over all files. root: of the repository; paths inside are told relative to it.
    """
    lines: list[str] = []
    found = list(_annotations(checked, gates, root))
    for kind in KINDS.values():
        some = _spread([item for item in found if item.kind == kind])
        shown = some if len(some) <= MOST else some[: MOST - 1]
        lines += (_command(item) for item in shown)
        if left := some[len(shown) :]:
            names = ", ".join(sorted({item.title for item in left})[:8])
            more = f"{len(left):,} more of this kind ({names}); the job summary and --json tell more"
            lines.append(_command(_Annotation(kind, "ctxctl: more", more)))
    return "".join(f"{line}\n" for line in lines)


def data(text: str) -> str:
    """A message as the data of a workflow command."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def value(text: str) -> str:
    """A text as the property of a workflow command."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def _command(item: _Annotation) -> str:
    properties = []
    if item.path is not None:
        properties.append(f"file={value(item.path)}")
        if item.line is not None and item.line > 0:
            properties.append(f"line={item.line}")
    properties.append(f"title={value(item.title)}")
    message = item.message if len(item.message) <= LONGEST else item.message[: LONGEST - 1] + "…"
    # without a message the runner makes no annotation
    return f"::{item.kind} {','.join(properties)}::{data(message) or '-'}"


def _annotations(checked: Sequence[Checked], gates: Sequence[Gate], root: str | None) -> Iterator[_Annotation]:
    for file in checked:
        if file.error is not None:
            said = f"{_where(file, root)}{file.error.message}" + _hint(file.error.hint)
            yield _Annotation("error", f"ctxctl: {file.error.code}", said, _file(file, root), file.error.line)
    for gate in gates:
        if not gate.ok:
            yield _Annotation("error", f"ctxctl: {gate.name}", f"failed: {gate.text}")
    for file in checked:
        for gate in file.gates:
            if not gate.ok:
                said = f"{_where(file, root)}failed: {gate.text}"
                yield _Annotation("error", f"ctxctl: {gate.name}", said, _file(file, root))
    for file in checked:
        for item in file.findings:
            said = f"{_where(file, root)}{turn_of(item)}{item.message}" + _hint(item.hint)
            yield _Annotation(KINDS[item.level], f"ctxctl: {item.code}", said, _file(file, root), item.line)


def _spread(items: list[_Annotation]) -> list[_Annotation]:
    """The first of each title, then the second of each, and so on."""
    seen: dict[str, int] = {}
    order = []
    for number, item in enumerate(items):
        seen[item.title] = seen.get(item.title, 0) + 1
        order.append((seen[item.title], number))
    return [items[number] for _, number in sorted(order)]


def _file(file: Checked, root: str | None) -> str | None:
    return None if file.path == STDIN else place(file.path, root)


def _where(file: Checked, root: str | None) -> str:
    return "standard input: " if file.path == STDIN else f"{place(file.title, root)}: "


def turn_of(item: Finding) -> str:
    """`turn 7: `, where the finding is of one."""
    return f"turn {item.turn}: " if item.turn is not None else ""


def _hint(hint: str | None) -> str:
    return f"\nhint: {hint}" if hint else ""


def summary(
    checked: Sequence[Checked],
    gates: Sequence[Gate] = (),
    reports: Sequence[Report] = (),
    *,
    command: str = "health",
    root: str | None = None,
    room: int = SUMMARY_BYTES,
) -> str:
    """The job summary, in Markdown: gates, then the reports; without reports a table of the files, and the findings.

    room: bytes that it may take; what is longer is cut at the end of a line, and says so.
    """
    parts = [f"# ctxctl {command}: {_verdict(checked, gates)}\n\n"]
    failed = [("", gate) for gate in gates] + [(place(c.title, root), gate) for c in checked for gate in c.gates]
    if failed:
        rows = [(("passed" if g.ok else "FAILED"), path, g.text) for path, g in sorted(failed, key=lambda f: f[1].ok)]
        columns = (Column("gate"), Column("session"), Column("what it says"))
        parts.append(_table("Gates", columns, rows))
    errors = [(place(c.title, root), c.error.message, c.error.hint or "") for c in checked if c.error is not None]
    if errors:
        parts.append(_table("Not read", (Column("file"), Column("why"), Column("what to do")), errors))
    if reports:
        parts.append(markdown.render(reports))
    else:
        parts.append(_sessions(checked, root))
        parts.append(_findings(checked, root))
    return _cut("".join(parts), room)


def _verdict(checked: Sequence[Checked], gates: Sequence[Gate]) -> str:
    failed = sum(not gate.ok for gate in (*gates, *(gate for c in checked for gate in c.gates)))
    counts = dict.fromkeys(FINDING_LEVELS, 0)
    for file in checked:
        for item in file.findings:
            counts[item.level] += 1
    said = [f"{plural(failed, 'gate')} failed"] if failed else []
    said += [f"{counts[level]:,} {level}" for level in reversed(FINDING_LEVELS) if counts[level]]
    unread = sum(c.error is not None for c in checked)
    said += [f"{plural(unread, 'file')} not read"] if unread else []
    return f"{', '.join(said) or 'nothing found'} in {plural(len(checked), 'session')}"


def _sessions(checked: Sequence[Checked], root: str | None) -> str:
    rows = []
    for file in checked:
        if file.error is None:
            levels = [sum(item.level == level for item in file.findings) for level in reversed(FINDING_LEVELS)]
            failed = sum(not gate.ok for gate in file.gates)
            rows.append(
                (place(file.title, root), *(f"{n:,}" if n else "" for n in levels), f"{failed:,}" if failed else "")
            )
    titles = (*reversed(FINDING_LEVELS), "gates failed")
    return _table("Sessions", (Column("session"), *(Column(title, "right") for title in titles)), rows)


def _findings(checked: Sequence[Checked], root: str | None) -> str:
    found = [(file, item) for file in checked for item in file.findings]
    found.sort(key=lambda pair: -FINDING_LEVELS.index(pair[1].level))
    rows = [
        (item.level, item.code, place(file.title, root), f"{turn_of(item)}{item.message}", item.hint)
        for file, item in found
    ]
    columns = tuple(Column(title) for title in ("level", "code", "session", "what was found", "what to do"))
    return _table("Findings", columns, rows)


def _table(title: str, columns: tuple[Column, ...], rows: Sequence[tuple[str, ...]]) -> str:
    left = f"{len(rows) - TOLD:,} more" if len(rows) > TOLD else ""
    return "\n".join(markdown.table(Table(title, columns, tuple(rows[:TOLD]), left))) + "\n" if rows else ""


def _cut(text: str, room: int) -> str:
    whole = clean(text).encode()
    if len(whole) <= room:
        return whole.decode()
    end = b"\n\nThe rest did not fit into the summary of a step.\n"
    kept = whole[: max(0, room - len(end))]
    kept = kept[: kept.rfind(b"\n") + 1]
    return (kept + end).decode() if kept else ""

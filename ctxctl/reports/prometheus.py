"""Prometheus' text exposition format, version 0.0.4, for the textfile collector of node_exporter and for `promtool`.

Source: prometheus.io/docs/instrumenting/exposition_formats. Comments with help and type come before a
metric's samples; backslash and line feed are escaped in both, in label values also the double quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxctl.reports.family import Family, Labels


def render(families: Iterable[Family]) -> str:
    """The families that have samples, in their order; each line ends with a line feed."""
    return "".join(line for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for labels, value in family.samples:
        yield f"{family.name}{_labels(labels)} {number(value)}\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quotable(value)}"' for name, value in labels) + "}"


def _quotable(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def number(value: float) -> str:
    """A value that reads back as the same double; whole numbers without a fraction."""
    if float(value).is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(float(value))

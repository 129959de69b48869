"""The rows of a few models out of config/models.yaml, without reading it as YAML.

The table is made by a tool, a line per model, so that the line of a model can be picked out: 1 ms instead of 20, for
what has to answer at once. A test holds it to `load_models`, model by model.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ctxctl.model.limits import ModelRow, ModelTable, candidates
from ctxctl.settings.models import ATTRIBUTES, parse_row


def load_rows(models: Iterable[str | None], path: Path | None = None) -> ModelTable:
    """A table that finds what the whole one finds for these names, and knows no others.

    path: of a file in the form of the shipped one. Raises OSError when it can't be read and ValueError for a malformed
    row.
    """
    if path is None:
        from ctxctl.settings.paths import config_file

        path = config_file("models.yaml")
    sections: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        name, colon, value = line.rstrip().rpartition(":") if line.endswith(":") else line.partition(": ")
        if not colon or line.startswith("#"):
            continue
        if line.startswith(" "):
            section[_plain(name)] = _plain(value)
        else:
            section = sections.setdefault(name, {"": value})
    columns = [ATTRIBUTES[name] for name in sections["columns"][""].split()]
    known, others = sections["models"], sections.get("aliases", {})
    rows: dict[str, ModelRow] = {}
    aliases: dict[str, str] = {}
    for model in models:
        for name in candidates(model) if model else ():
            target = others.get(name, name)
            if target in known and target:
                rows[target] = parse_row(target, columns, known[target].split())
                if target != name:
                    aliases[name] = target
    return ModelTable(rows, aliases)


def _plain(text: str) -> str:
    """A scalar as the table writes it: bare, or in quotes."""
    return text.strip().strip("'\"")

"""Reads the model table (config/models.yaml) and lays a user's own rows over it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxctl.model.limits import IMAGE_RULES, ModelRow, ModelTable, spellings

TOKENS = {"window": "window", "long_window": "long_window", "output": "output", "long_from": "long_from"}
PRICES = {
    "in": "input_price",
    "out": "output_price",
    "read": "cache_read_price",
    "write": "cache_write_price",
    "write_1h": "cache_write_1h_price",
    "long_in": "long_input_price",
    "long_out": "long_output_price",
}
WORDS = {"image": "image_rule", "date": "date"}
ATTRIBUTES = TOKENS | PRICES | WORDS
"""Column of the file, and key of an override -> attribute of ModelRow."""


def load_models(path: Path | None = None) -> ModelTable:
    """The table in a file, by default the one that is shipped.

    Raises OSError when it can't be read and ValueError, with the file and the model, when it is malformed.
    """
    if path is None:
        from ctxctl.settings.paths import config_file

        path = config_file("models.yaml")
    import yaml  # not for `model_rows`, which has no time for it

    # the C loader reads the file in 2 ms, the other one in 30; wheels without it are rare but exist
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
        columns = [ATTRIBUTES[name] for name in data["columns"].split()]
        rows = {name: parse_row(name, columns, text.split()) for name, text in data["models"].items()}
        return ModelTable(rows, data.get("aliases"))
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a model table: {error}") from error


def parse_row(name: str, columns: list[str], cells: list[str]) -> ModelRow:
    """A row of the file. Raises ValueError naming the model."""
    if len(cells) != len(columns):
        raise ValueError(f"{name}: {len(cells)} values for {len(columns)} columns")
    values: dict[str, Any] = {}
    try:
        for attribute, cell in zip(columns, cells, strict=True):
            if cell != "-":
                values[attribute] = _CONVERT[attribute](cell)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return ModelRow(name, **values)


_CONVERT: dict[str, Any] = {
    **dict.fromkeys(TOKENS.values(), int),
    **dict.fromkeys(PRICES.values(), float),
    **dict.fromkeys(WORDS.values(), str),
}


def merge(table: ModelTable, overrides: Mapping[str, Mapping[str, object]]) -> ModelTable:
    """The table with a user's rows: name -> {column: value}, columns as in the file, and `aliases` (a list of names).

    A known id, or another spelling or alias of it, changes that row; a more specific name (with a date or a provider)
    becomes a row of its own that starts as a copy of what it would have found; any other name is a new model. None
    clears a value, and a window alone clears the long window. Tokens are whole numbers above 0, prices USD per million
    tokens, 0 or more.

    Raises ValueError naming the model and the key for an unknown key, a value of the wrong kind, and figures that
    contradict each other (output above the window, a long window that is no longer, a long price without long_from).
    """
    rows = {row.id: row for row in table.rows()}
    aliases = dict(table.aliases)
    for model, values in overrides.items():
        name = model.strip().lower()
        if not name:
            raise ValueError("models: a name is empty")
        if not isinstance(values, Mapping):
            raise ValueError(f"models.{model}: want a mapping of {', '.join(ATTRIBUTES)}, not {values!r}")
        found = table.find(name)
        if name in aliases:
            name = aliases[name]
        elif found is not None and name not in rows and found.id in spellings(name):
            name = found.id
        base = rows.get(name) or (replace(found, id=name) if found else ModelRow(name))
        rows[name] = _changed(base, model, values)
        for alias in _names(values.get("aliases"), model):
            if alias in rows:
                raise ValueError(f"models.{model}.aliases: {alias!r} is a model itself")
            aliases[alias] = name
    return ModelTable(rows, aliases)


def _changed(base: ModelRow, model: str, values: Mapping[str, object]) -> ModelRow:
    """The row with the given columns, checked."""
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key == "aliases":
            continue
        if key not in ATTRIBUTES:
            raise ValueError(f"models.{model}: unknown key {key!r}; known: {', '.join((*ATTRIBUTES, 'aliases'))}")
        changes[ATTRIBUTES[key]] = None if value is None else _checked(key, value, f"models.{model}.{key}")
    if "window" in changes:
        changes.setdefault("long_window", None)  # who says how large the window is leaves nothing open
    row = replace(base, **changes)
    if row.window and row.output and row.output > row.window:
        raise ValueError(f"models.{model}.output: {row.output} is more than the window of {row.window}")
    if row.long_window and (not row.window or row.long_window <= row.window):
        raise ValueError(f"models.{model}.long_window: {row.long_window} is not longer than the window, {row.window}")
    if (row.long_input_price is not None or row.long_output_price is not None) and row.long_from is None:
        raise ValueError(f"models.{model}.long_from: missing; long prices hold above a number of tokens")
    return row


def _checked(key: str, value: object, where: str) -> int | float | str:
    """The value as its column wants it. Raises ValueError naming the place."""
    if key in TOKENS:
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ValueError(f"{where}: want a whole number of tokens above 0, not {value!r}")
        return value
    if key in PRICES:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise ValueError(f"{where}: want USD per million tokens, 0 or more, not {value!r}")
        return float(value)
    if key == "image":
        if value not in IMAGE_RULES:
            raise ValueError(f"{where}: unknown rule {value!r}; known: {', '.join(IMAGE_RULES)}")
        return str(value)
    try:  # YAML reads a bare day as a date, JSON as text
        day = value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{where}: want a day as YYYY-MM-DD, not {value!r}") from None
    return day.isoformat()[:10]


def _names(value: object, model: str) -> list[str]:
    """The aliases of an override, in lower case."""
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError(f"models.{model}.aliases: want a list of names, not {value!r}")
    return [item.strip().lower() for item in value]

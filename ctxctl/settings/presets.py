"""Reads the shipped presets (config/presets/*.yaml), and finds those that a user names."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import yaml

from ctxctl.errors import ConfigError, UsageError
from ctxctl.registry import closest
from ctxctl.settings.paths import config_file
from ctxctl.settings.yamlfile import LOADER
from ctxctl.simulate.presets.schema import Preset

ALL = "all"


@cache
def _shipped(folder: Path) -> dict[str, Preset]:
    return {path.stem: read_preset(path) for path in sorted(folder.glob("*.yaml"), key=lambda p: p.stem)}


def load_presets(folder: Path | None = None) -> dict[str, Preset]:
    """All presets of a folder by id, in the order of their ids; by default those that are shipped.

    ConfigError with the file for one that can't be read or says something that a preset can't say.
    """
    return dict(_shipped(config_file("presets") if folder is None else folder))


def read_preset(path: Path) -> Preset:
    """The preset of one file; its name is the preset's id."""
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
        if not isinstance(tree, dict):
            raise ValueError("a preset is a mapping")
        tree["class_"] = tree.pop("class", None)
        if isinstance(tree.get("date"), datetime.date):  # YAML reads a bare day as one
            tree["date"] = tree["date"].isoformat()
        _known(tree, Preset, "")
        preset = msgspec.convert(tree, Preset)
        if preset.id != path.stem:
            raise ValueError(f"id {preset.id!r} is not the file's name")
        return preset
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
        raise ConfigError(f"not a preset: {error}", path=str(path)) from None


@cache
def _types(cls: Any) -> dict[str, Any]:
    """Attribute -> the dataclass in its type, None where there is none."""
    hints = get_type_hints(cls)
    return {f.name: _inner(hints[f.name]) for f in fields(cls)}


def _inner(hint: Any) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next((found for part in get_args(hint) if (found := _inner(part)) is not None), None)


def _known(tree: Any, cls: Any, where: str) -> None:
    """Raise ValueError for a key that the schema does not have."""
    if isinstance(tree, list):
        for item in tree:
            _known(item, cls, where)
    elif isinstance(tree, dict):
        types = _types(cls)
        for key, value in tree.items():
            if key not in types:
                near = closest(str(key), list(types))
                raise ValueError(f"unknown key {where}{key}" + (f"; did you mean {near!r}?" if near else ""))
            if types[key] is not None:
                _known(value, types[key], f"{where}{key}.")


def find_presets(names: Iterable[str], presets: dict[str, Preset] | None = None) -> list[Preset]:
    """The presets that names stand for, each once, in their order: an id, `all`, or a family (`codex`: `codex` and all
    whose id starts with `codex-`). UsageError with a did-you-mean for a name that is none."""
    presets = load_presets() if presets is None else presets
    found: dict[str, Preset] = {}
    for name in names:
        key = name.strip().lower()
        chosen = [i for i in presets if key in (ALL, i) or i.startswith(f"{key}-")] if key else []
        if not chosen:
            families = {i.split("-")[0] for i in presets}
            near = closest(key, sorted({*presets, *families, ALL}))
            hint = f"did you mean {near!r}?" if near else "`ctxctl list presets` shows them"
            raise UsageError(f"unknown preset {name!r}", hint=hint)
        found.update((i, presets[i]) for i in chosen)
    return list(found.values())

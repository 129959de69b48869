"""Settings from all layers: flags > environment > project file > user file > defaults, each value with its origin."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml

from ctxctl.errors import ConfigError
from ctxctl.model.limits import ModelTable
from ctxctl.registry import closest
from ctxctl.settings import yamlfile
from ctxctl.settings.models import load_models, merge
from ctxctl.settings.paths import project_file, user_file
from ctxctl.settings.schema import SECTION_ALIASES, SIZES, Settings, canonical, section_type
from ctxctl.settings.sizes import size

PREFIX = "CTXCTL_"
NOT_SETTINGS = frozenset(("CTXCTL_TOKENIZER", "CTXCTL_CONFIG", "CTXCTL_OUTPUT", "CTXCTL_HOOK_LOG"))
AT = re.compile(r" - at (?P<key>`?key`? in )?`\$(?P<path>[^`]*)`$")
KEY = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")

FILE_AND_LINE = re.compile(r"file (.+):(\d+)$")

Keys = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Resolved settings. origins: where each value that is not a default came from, by its path. files: the settings
    files that were read."""

    settings: Settings
    origins: Mapping[Keys, str]
    files: tuple[Path, ...] = ()

    def flat(self) -> Iterator[tuple[str, Any, str]]:
        """(key, value, origin) of every setting, in the order of the schema."""
        for path, value in _leaves(asdict(self.settings), ()):
            origin = next(
                (self.origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.origins), "default"
            )
            yield ".".join(map(str, path)), value, origin


@dataclass(slots=True)
class _Layer:
    name: str
    tree: dict[Any, Any]
    lines: dict[Keys, int] = field(default_factory=dict)
    path: str | None = None

    def where(self, path: Keys) -> tuple[str | None, int | None]:
        """File and line of a value: of its key, else of the nearest section."""
        for n in range(len(path), 0, -1):
            if path[:n] in self.lines:
                return self.path, self.lines[path[:n]]
        return self.path, None


def load_settings(
    path: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings in force. path: a file to use instead of the project's. ConfigError names file, key and value."""
    return load(path, overrides=overrides, environment=environment, folder=folder).settings


def load(
    path: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Loaded:
    """`load_settings` with the origin of each value. overrides: flags, by dotted key."""
    environment = os.environ if environment is None else environment
    layers = []
    own = user_file()
    if own.is_file():
        layers.append(_file(own, "user file"))
    given = path or environment.get("CTXCTL_CONFIG")
    project = Path(given) if given else project_file(folder)
    if project is not None:
        layers.append(_file(project, "settings file" if given else "project file"))
    layers.append(_environment(environment))
    layers.append(_flags(overrides or {}))
    origins: dict[Keys, str] = {}
    merged: dict[Any, Any] = {}
    settings = Settings()
    for layer in layers:
        _check(layer)
        _merge(merged, layer.tree, (), layer, origins)
        settings = _convert(merged, layer)
    return Loaded(settings, origins, tuple(Path(x.path) for x in layers if x.path))


def validate(path: Path) -> Settings:
    """The settings of one file alone, over the defaults; ConfigError when it is refused."""
    layer = _file(path, "settings file")
    _check(layer)
    settings = _convert(layer.tree, layer)
    _, line = layer.where(("models",))
    model_table(Loaded(settings, {("models",): f"settings file {path}:{line or 1}"}, (path,)))
    return settings


def model_table(loaded: Loaded) -> ModelTable:
    """The shipped model table with the rows of the settings laid over it; ConfigError for a row that is refused."""
    table = load_models()
    if not loaded.settings.models:
        return table
    try:
        return merge(table, loaded.settings.models)
    except ValueError as error:
        place = FILE_AND_LINE.search(loaded.origins.get(("models",), ""))
        raise ConfigError(
            str(error),
            path=place[1] if place else None,
            line=int(place[2]) if place else None,
            hint="`ctxctl list models -v` shows the columns",
        ) from None


def _file(path: Path, name: str) -> _Layer:
    tree, lines = yamlfile.load(path)
    layer = _Layer(name, tree, lines, str(path))
    try:
        layer.tree = canonical(tree)
    except ValueError as error:
        raise ConfigError(str(error), path=str(path)) from None
    for alias, key in SECTION_ALIASES.items():
        for at in [at for at in lines if at[0] == alias]:
            lines[(key, *at[1:])] = lines[at]
    return layer


def _environment(environment: Mapping[str, str]) -> _Layer:
    """`CTXCTL_PRESSURE_THRESHOLDS__YELLOW=0.6`: two underscores go down one level; values are read as YAML."""
    layer = _Layer("environment", {})
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        keys = name.removeprefix(PREFIX).lower().split("__")
        try:
            value = yaml.load(environment[name], Loader=yamlfile.LOADER)
            _put(layer.tree, keys, value)
        except (yaml.YAMLError, ValueError):
            raise ConfigError(f"{name}: {environment[name]!r} is not a value") from None
        except TypeError:
            raise ConfigError(f"{name}: another variable sets the whole section", hint="unset one of them") from None
    try:
        layer.tree = canonical(layer.tree)
    except ValueError as error:
        raise ConfigError(f"environment: {error}") from None
    return layer


def _flags(overrides: Mapping[str, Any]) -> _Layer:
    layer = _Layer("flag", {})
    for key, value in overrides.items():
        if value is not None:
            _put(layer.tree, key.split("."), value)
    return layer


def _put(tree: dict[Any, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    if not isinstance(tree, dict) or isinstance(tree.get(keys[-1]), dict):
        raise TypeError(keys)
    tree[keys[-1]] = value


def _check(layer: _Layer) -> None:
    """Refuse what a layer says wrongly, where it stands: unknown keys first, then values."""
    _unknown(layer, layer.tree, Settings, ())
    for path, value in _leaves(layer.tree, ()):
        if isinstance(value, float) and not math.isfinite(value):
            raise _error(layer, path, f"{value} is not a finite number")
    for path in SIZES:
        _size(layer, path)
    if layer.tree.get("max_context_tokens", 0) is None:
        raise _error(layer, ("max_context_tokens",), "null is not a number of tokens; leave the key out")


def _size(layer: _Layer, path: tuple[str, ...]) -> None:
    """A number of tokens that a user wrote as `200k`, in its place."""
    tree: Any = layer.tree
    for key in path[:-1]:
        tree = tree.get(key) if isinstance(tree, dict) else None
    if isinstance(tree, dict) and isinstance(written := tree.get(path[-1]), str):
        try:
            tree[path[-1]] = size(written)
        except ValueError as error:
            raise _error(layer, path, str(error)) from None


def _unknown(layer: _Layer, tree: Any, cls: Any, path: Keys) -> None:
    if isinstance(tree, list):
        for number, item in enumerate(tree):
            _unknown(layer, item, cls, (*path, number))
    if not isinstance(tree, dict):
        return
    known = [f.name for f in fields(cls)]
    for key, value in tree.items():
        if key not in known:
            near = closest(str(key), known)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"
            raise _error(layer, (*path, key), "unknown key", hint)
        section = section_type(cls, key)
        if section is not None and is_dataclass(section):
            _unknown(layer, value, section, (*path, key))


def _convert(tree: dict[Any, Any], layer: _Layer) -> Settings:
    try:
        return msgspec.convert(tree, Settings)
    except msgspec.ValidationError as error:
        text = str(error)
        match = AT.search(text)
        path: list[Any] = []
        for name, index in KEY.findall((match and match["path"]) or ""):
            path.append(name or (int(index) if index.isdigit() else index))
        reason = AT.sub("", text).replace("`", "")
        at = tuple(path)
        if match and match["key"]:
            at = _offender(tree, at, reason)
        elif at and at[-1] == "...":  # some entry of a free mapping
            at = _offender(tree, at[:-1], reason)
        value = at[-1] if match and match["key"] else _at(tree, at)
        hint = None
        if "enum value" in reason and (choices := _choices(at)):
            near = closest(str(value), choices)
            reason, hint = (
                f"{value!r} is not known",
                f"did you mean {near!r}?" if near else f"known: {', '.join(choices)}",
            )
        elif value is not _MISSING and not isinstance(value, (dict, list)):
            reason = f"{reason.partition(', got')[0]}, got {value!r}"
        raise _error(layer, at, reason[:1].lower() + reason[1:], hint) from None


def _offender(tree: Any, path: Keys, reason: str) -> Keys:
    """The entry of a free mapping that a message without a key is about."""
    mapping = _at(tree, path)
    for name, value in mapping.items() if isinstance(mapping, dict) else ():
        try:
            part: Any = {}
            for step in reversed(path):
                part = {step: part if part else {name: value}}
            msgspec.convert(part, Settings)
        except msgspec.ValidationError as error:
            if AT.sub("", str(error)).replace("`", "") == reason:
                return (*path, name)
    return path


def _choices(path: Keys) -> list[str]:
    """The words that a setting knows, empty where it takes any value."""
    hint: Any = Settings
    for step in path:
        if is_dataclass(hint):
            hint = get_type_hints(hint).get(str(step))
        else:
            hint = next((a for a in reversed(get_args(hint)) if a is not ...), None)
    return [str(word) for word in get_args(hint)] if get_origin(hint) is Literal else []


_MISSING = object()


def _at(tree: Any, path: Keys) -> Any:
    for key in path:
        if isinstance(tree, dict):
            tree = tree.get(key, _MISSING)
        elif isinstance(tree, list) and isinstance(key, int) and key < len(tree):
            tree = tree[key]
        else:
            return _MISSING
    return tree


def _error(layer: _Layer, path: Keys, message: str, hint: str | None = None) -> ConfigError:
    key = ".".join(map(str, path))
    where, line = layer.where(path)
    if layer.name == "environment":
        key = PREFIX + "__".join(map(str, path)).upper()
    return ConfigError(
        f"{key}: {message}" if key else message,
        path=where,
        line=line,
        hint=hint or "`ctxctl config schema` and the shipped file (`ctxctl config path`) show what is allowed",
    )


def _merge(into: dict[Any, Any], tree: dict[Any, Any], path: Keys, layer: _Layer, origins: dict[Keys, str]) -> None:
    """Sections are merged key by key; lists and free mappings are replaced as a whole."""
    for key, value in tree.items():
        here = (*path, key)
        section = section_type(_section(path), key) if _section(path) is not None else None
        if isinstance(value, dict) and section is not None:
            _merge(into.setdefault(key, {}), value, here, layer, origins)
            continue
        into[key] = value
        _, line = layer.where(here)
        place = (
            f" {layer.path}:{line}" if layer.path else (f" {_variable(here)}" if layer.name == "environment" else "")
        )
        origins[here] = layer.name + place


def _section(path: Keys) -> Any:
    cls: Any = Settings
    for key in path:
        cls = section_type(cls, key) if cls is not None else None
    return cls


def _variable(path: Keys) -> str:
    return PREFIX + "__".join(map(str, path)).upper()


def _leaves(tree: Any, path: Keys) -> Iterator[tuple[Keys, Any]]:
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, tree

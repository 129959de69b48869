"""Reading a YAML settings file so that every value keeps its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ctxctl.errors import ConfigError

Path_ = tuple[Any, ...]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path) -> tuple[dict[Any, Any], dict[Path_, int]]:
    """The mapping of a file, and the 1-based line of each key by its path.

    An empty file is an empty mapping. ConfigError for a file that can't be read, is not YAML, holds something other
    than one mapping, or a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such settings file", path=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't be read: {error}", path=str(path)) from None
    return parse(text, str(path))


def parse(text: str, name: str) -> tuple[dict[Any, Any], dict[Path_, int]]:
    """`load` for a text; name: of the file, for messages."""
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        lines: dict[Path_, int] = {}
        tree = _value(loader, node, (), lines, name) if node is not None else {}
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(f"not valid YAML: {error.problem}", path=name, line=line) from None
    except RecursionError:
        raise ConfigError("nested too deep, or an alias that contains itself", path=name) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"not valid YAML: {error}", path=name) from None
    finally:
        loader.dispose()
    if tree is None:
        return {}, {}
    if not isinstance(tree, dict):
        raise ConfigError(f"a mapping of settings is expected, not a {type(tree).__name__}", path=name, line=1)
    return tree, lines


def _value(loader: Any, node: yaml.Node, path: Path_, lines: dict[Path_, int], name: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            where = ".".join(map(str, (*path, key)))
            try:
                known = key in found
            except TypeError:
                raise ConfigError(f"a key must be a plain value, not {key!r}", path=name, line=line) from None
            if known:
                raise ConfigError(
                    f"{where}: the key stands twice, first in line {lines[(*path, key)]}", path=name, line=line
                )
            lines[(*path, key)] = line
            found[key] = _value(loader, value_node, (*path, key), lines, name)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*path, i), lines, name) for i, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)

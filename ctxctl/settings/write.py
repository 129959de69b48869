"""Writing a settings file that `load` reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml


def settings_text(tree: dict[str, Any], comments: Sequence[str] = ()) -> str:
    """YAML of some settings under comment lines, in the order of the tree."""
    head = "".join(f"# {line}\n" for line in comments)
    if not tree:
        return head
    return head + yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, default_flow_style=False)

"""Which tool is meant: a tool of another agent counts as the runtime's own when it does the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ctxctl.model.window import Window
from ctxctl.simulate.presets.items import Item

FAMILIES = (
    ("read", "read_file", "readfile", "view", "cat", "open_file", "view_file", "read_many_files"),
    ("bash", "shell", "exec_command", "local_shell", "run_shell_command", "execute_command", "execute_bash", "run",
     "terminal", "local_shell_call", "developer__shell"),
    ("grep", "search_file_content", "search_files", "ripgrep", "grep_search", "search"),
    ("glob", "find", "list_files", "ls", "find_files", "list_directory", "list_dir"),
    ("edit", "edit_file", "replace", "str_replace", "diff_edit", "apply_patch", "multiedit", "replace_in_file",
     "apply_diff"),
    ("write", "write_file", "write_to_file", "create_file"),
    ("webfetch", "web_fetch", "fetch", "fetch_url"),
    ("websearch", "web_search", "google_web_search"),
    ("browser", "browse_interactive", "browser_action", "browse"),
    ("todowrite", "update_plan", "todo_write", "write_todos", "update_todo_list"),
)  # fmt: skip
"""Names that known agents give to tools of one purpose."""
_FAMILY = {name: number for number, names in enumerate(FAMILIES) for name in names}


@cache
def is_one_of(tool: str | None, names: tuple[str, ...]) -> bool:
    """Whether a tool is one of those named, or does the same as one."""
    if tool is None:
        return False
    tool = tool.lower()
    family = _FAMILY.get(tool)
    return any(tool == n.lower() or (family is not None and _FAMILY.get(n.lower()) == family) for n in names)


def call_of(item: Item, window: Window) -> int | None:
    """The number of the call whose result an item is."""
    if item.unit < 0:
        return None
    return next((b for b in window.units[item.unit].blocks if window.blocks[b].kind == "tool_call"), None)


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call by name; empty when they are no JSON object. text: `tool arguments`."""
    import orjson

    try:
        found = orjson.loads(text[text.index("{") :])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


PATHS = ("path", "file_path", "filePath", "filename", "absolute_path", "target_file")
STARTS = ("start_line", "offset")


class Files:
    """What calls do to files, each told once."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[str | None, tuple[Any, ...]]] = {}

    def of(self, item: Item, window: Window) -> tuple[str | None, tuple[Any, ...]]:
        """(path, range) that the call of a result acts on; path None when it names none."""
        call = call_of(item, window)
        if call is None:
            return None, ()
        if call not in self._told:
            block = window.blocks[call]
            told = arguments(block.text)
            path = next((str(told[p]) for p in PATHS if p in told), block.target)
            start = next((told[s] for s in STARTS if s in told), None)
            self._told[call] = (path, (str(start), str(told.get("end_line")), str(told.get("limit"))))
        return self._told[call]


def reads(items: Sequence[Item], names: tuple[str, ...]) -> list[Item]:
    """Results of reading tools, oldest first."""
    return [i for i in items if i.side == "result" and i.kind == "tool_result" and is_one_of(i.tool, names)]

"""What a tool does, by its name, over the names that agents give it; and the arguments of a call."""

from __future__ import annotations

from typing import Any

import orjson

from ctxctl.model.block import Block

SHELL, WRITE, EDIT, EDITOR, READ, PATCH, TODO, ASK = "shell", "write", "edit", "editor", "read", "patch", "todo", "ask"

_NAMES = {
    SHELL: "bash shell shell_command exec_command local_shell execute_bash run_terminal_cmd run_shell_command terminal "
    "run_command execute_command container.exec run_in_terminal cmdrunaction",
    WRITE: "write write_file writefile create_file write_to_file",
    EDIT: "edit multiedit multi_edit notebookedit edit_file editfile replace replace_in_file search_replace "
    "str_replace apply_diff insert_content insert_edit_into_file edit_notebook_file",
    EDITOR: "str_replace_editor str_replace_based_edit_tool file_editor text_editor",
    READ: "read read_file readfile view view_file open_file notebookread",
    PATCH: "apply_patch applypatch",
    TODO: "todowrite todo_write write_todos update_plan taskcreate taskupdate task_tracker update_todo_list",
    ASK: "askuserquestion ask_followup_question ask_user request_user_input",
}
KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""What tools of these names (lower case) do: Claude Code, Codex, Gemini CLI, OpenHands, opencode, Cline, Cursor."""

PATHS = ("file_path", "path", "absolute_path", "notebook_path", "filePath", "target_file", "filename", "file")
CONTENTS = ("content", "contents", "file_text", "text")


def kind_of(name: str) -> str | None:
    """What a tool does, None when it says nothing of the task's state. Prefixes of MCP servers don't count."""
    found = KINDS.get(name)
    if found is None:
        found = KINDS.get(name.rsplit("__", 1)[-1].lower())
        if len(KINDS) < _MOST:
            KINDS[name] = found or ""
    return found or None


_MOST = 2_000


def raw_arguments(block: Block) -> str:
    """The arguments of a call as they stand in its text: JSON, or free text."""
    return block.text[len(block.tool_name or "") + 1 :]


def arguments(block: Block) -> dict[str, Any] | None:
    """The arguments of a call, None where they are no JSON object."""
    try:
        value = orjson.loads(raw_arguments(block).encode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def path_of(given: dict[str, Any]) -> str | None:
    """The file that a call names."""
    for key in PATHS:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def content_of(given: dict[str, Any]) -> str | None:
    """The whole content that a call writes."""
    return next((given[key] for key in CONTENTS if isinstance(given.get(key), str)), None)


def script_of(given: dict[str, Any]) -> tuple[str, str]:
    """The script that a call runs, and the folder that it names."""
    folder = next((given[key] for key in ("workdir", "cwd", "dir_path") if isinstance(given.get(key), str)), "")
    for key in ("command", "cmd", "script"):
        value = given.get(key)
        if isinstance(value, str):
            return value, folder
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            if len(value) > 2 and value[1] in ("-c", "-lc"):
                return value[2], folder
            return " ".join(_quoted(item) for item in value), folder
    return "", folder


def _quoted(word: str) -> str:
    plain = word and not any(sign in word for sign in " \t\n;&|<>()'\"\\$`#")
    return word if plain else "'" + word.replace("'", "'\\''") + "'"

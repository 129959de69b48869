"""A repository in memory. The tools of the story read, search and edit it, so their results fit each other."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

TODO_DONE = "Todos have been modified successfully. Keep the list up to date and go on with the current item."


@dataclass
class Tool:
    """A call with its outcome: `content` is what the model sees, `ui` the copy that the client keeps."""

    name: str
    input: dict[str, Any]
    content: Any
    ui: Any
    is_error: bool | None = None
    seconds: float = 0.3


def patch(old: str, new: str) -> list[dict[str, Any]]:
    hunks = []
    a, b = old.split("\n"), new.split("\n")
    for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [" " + x for x in a[i1:i2]]
            else:
                lines += ["-" + x for x in a[i1:i2]] + ["+" + x for x in b[j1:j2]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks


def bash(
    command: str,
    description: str,
    output: str,
    *,
    fails: bool = False,
    seconds: float = 1.0,
    timeout: int | None = None,
) -> Tool:
    arguments: dict[str, Any] = {"command": command, "description": description}
    if timeout:
        arguments["timeout"] = timeout
    output = output.rstrip("\n")
    if fails:
        text = "Exit code 1\n" + output
        return Tool("Bash", arguments, text, "Error: " + text, True, seconds)
    ui = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return Tool("Bash", arguments, output, ui, False, seconds)


class Workspace:
    def __init__(self, root: str, files: dict[str, str], more_paths: list[str]) -> None:
        self.root = root
        self.files = dict(files)
        self.paths = sorted({*files, *more_paths})
        self.todos: list[dict[str, str]] = []

    def read(self, path: str, offset: int | None = None, limit: int | None = None) -> Tool:
        lines = self.files[path].rstrip("\n").split("\n")
        start = (offset or 1) - 1
        part = lines[start : start + limit] if limit else lines[start:]
        arguments: dict[str, Any] = {"file_path": f"{self.root}/{path}"}
        if offset:
            arguments["offset"] = offset
        if limit:
            arguments["limit"] = limit
        shown = "\n".join(f"{n}\t{line}" for n, line in enumerate(part, start + 1))
        meta = {
            "filePath": arguments["file_path"],
            "content": "\n".join(part),
            "numLines": len(part),
            "startLine": start + 1,
            "totalLines": len(lines),
        }
        return Tool("Read", arguments, shown, {"type": "text", "file": meta}, None, 0.1)

    def hits(self, pattern: str, under: str) -> list[tuple[str, int, str]]:
        rule = re.compile(pattern)
        found = []
        for path in sorted(self.files):
            if path.startswith(under):
                for n, line in enumerate(self.files[path].split("\n"), 1):
                    if rule.search(line):
                        found.append((path, n, line))
        return found

    def grep_count(self, pattern: str, under: str) -> Tool:
        per: dict[str, int] = {}
        for path, _, _ in self.hits(pattern, under):
            per[path] = per.get(path, 0) + 1
        listing = "\n".join(f"{path}:{n}" for path, n in per.items())
        total = sum(per.values())
        text = f"{listing}\n\nFound {total} total occurrences across {len(per)} files."
        ui = {"mode": "count", "numFiles": len(per), "filenames": [], "content": listing, "numMatches": total}
        return Tool("Grep", {"pattern": pattern, "path": under, "output_mode": "count"}, text, ui)

    def grep_lines(self, pattern: str, under: str) -> Tool:
        found = self.hits(pattern, under)
        text = "\n".join(f"{path}:{n}:{line}" for path, n, line in found) or "No matches found"
        ui = {"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": len(found)}
        return Tool("Grep", {"pattern": pattern, "path": under, "output_mode": "content", "-n": True}, text, ui)

    def grep_files(self, pattern: str, under: str) -> Tool:
        names = sorted({path for path, _, _ in self.hits(pattern, under)})
        text = f"Found {len(names)} files\n" + "\n".join(names) if names else "No files found"
        ui = {"mode": "files_with_matches", "filenames": names, "numFiles": len(names)}
        return Tool("Grep", {"pattern": pattern, "path": under}, text, ui)

    def glob(self, pattern: str, start: str, end: str) -> Tool:
        names = [p for p in self.paths if p.startswith(start) and p.endswith(end)]
        ui = {"filenames": names, "durationMs": 14, "numFiles": len(names), "truncated": False}
        return Tool("Glob", {"pattern": pattern}, "\n".join(names), ui)

    def edit(self, path: str, old: str, new: str, *, every: bool = False) -> Tool:
        before = self.files[path]
        times = before.count(old)
        if times == 0 or (times > 1 and not every):
            raise ValueError(f"{path}: {times} matches for {old[:60]!r}")
        after = before.replace(old, new)
        self.files[path] = after
        arguments = {"replace_all": every, "file_path": f"{self.root}/{path}", "old_string": old, "new_string": new}
        ui = {
            "filePath": arguments["file_path"],
            "oldString": old,
            "newString": new,
            "originalFile": before,
            "structuredPatch": patch(before, after),
            "userModified": False,
            "replaceAll": every,
        }
        text = f"The file {arguments['file_path']} has been updated successfully."
        return Tool("Edit", arguments, text, ui, None, 0.2)

    def write(self, path: str, content: str) -> Tool:
        before = self.files.get(path)
        self.files[path] = content
        full = f"{self.root}/{path}"
        ui = {
            "type": "create" if before is None else "update",
            "filePath": full,
            "content": content,
            "structuredPatch": [] if before is None else patch(before, content),
            "originalFile": before,
        }
        word = "File created successfully at: " + full
        if before is not None:
            word = f"The file {full} has been updated successfully."
        return Tool("Write", {"file_path": full, "content": content}, word, ui, None, 0.2)

    def todo(self, items: list[tuple[str, str]], done: int, doing: bool = True) -> Tool:
        """The first `done` items are completed, the next one is in progress."""
        new = []
        for n, (content, active) in enumerate(items):
            status = "completed" if n < done else "in_progress" if n == done and doing else "pending"
            new.append({"content": content, "status": status, "activeForm": active})
        ui = {"oldTodos": self.todos, "newTodos": new}
        self.todos = new
        return Tool("TodoWrite", {"todos": new}, TODO_DONE, ui, None, 0.1)

"""What the tool calls of a raw session say was changed, planned, tested and committed: raw records, `shlex` for
scripts, rules of its own. It shares no code with ctxctl.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from real_readers import objects


@dataclass
class Call:
    """A tool call with its result. text is None where the call has none."""

    name: str
    given: dict[str, Any]
    text: str | None = None
    failed: bool = False
    code: int | None = None


@dataclass
class Found:
    """What a session did. todos: its newest list, lists: each that was written, oldest first."""

    changed: set[str] = field(default_factory=set)
    todos: list[tuple[str, str]] | None = None
    tests: dict[tuple[str, ...], str] = field(default_factory=dict)
    commits: list[tuple[str, str]] = field(default_factory=list)
    lists: list[list[tuple[str, str]]] = field(default_factory=list)


# ---------------------------------------------------------------- raw records to calls


def plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or [] if isinstance(part, dict) and "text" in part)


def claude(path: Path) -> Iterator[Call]:
    waiting: dict[str, Call] = {}
    for _, record in objects(path):
        message = record.get("message")
        if record.get("isSidechain") or not isinstance(message, dict) or not isinstance(message.get("content"), list):
            continue
        for part in message["content"]:
            if not isinstance(part, dict):
                continue
            if part.get("type") == "tool_use":
                waiting[part["id"]] = Call(part["name"], part["input"])
            elif part.get("type") == "tool_result" and part["tool_use_id"] in waiting:
                call = waiting.pop(part["tool_use_id"])
                call.text, call.failed = plain(part.get("content")), part.get("is_error") is True
                call.code = int(call.failed)
                yield call
    yield from waiting.values()


def codex(path: Path) -> Iterator[Call]:
    waiting: dict[str, Call] = {}
    for _, record in objects(path):
        item = record.get("payload")
        if record.get("type") != "response_item" or not isinstance(item, dict):
            continue
        if item.get("type") in ("function_call", "custom_tool_call") and item.get("call_id"):
            try:
                given = json.loads(item.get("arguments") or "{}")
            except ValueError:
                given = {"input": item.get("arguments")}
            waiting[item["call_id"]] = Call(item["name"], given)
        elif item.get("type") in ("function_call_output", "custom_tool_call_output"):
            call = waiting.pop(item["call_id"])
            call.text = item["output"]
            if call.text.startswith("{"):
                value = json.loads(call.text)
                call.text, call.code = value["output"], value["metadata"]["exit_code"]
                call.failed = call.code != 0
            yield call


def mini(path: Path) -> Iterator[Call]:
    value = json.loads(path.read_bytes())
    messages = value if isinstance(value, list) else value["messages"]
    for said, heard in pairwise(messages):
        if said["role"] != "assistant" or heard["role"] != "user":
            continue
        text = heard["content"] if isinstance(heard["content"], str) else plain(heard["content"])
        if text.startswith("Please always provide EXACTLY"):
            continue
        scripts = re.findall(r"```(?:mswea_)?bash(?:_command)?\n(.*?)\n```", said["content"], re.S)
        if len(scripts) == 1:
            code = re.match(r"<returncode>(\d+)", text)
            status = int(code[1]) if code else None
            yield Call("bash", {"command": scripts[0]}, text, status not in (None, 0), status)


def chat(path: Path) -> Iterator[Call]:
    """Chat messages, one file or one message per line."""
    try:
        messages = json.loads(path.read_bytes())
    except ValueError:
        messages = [record for _, record in objects(path)]
    if isinstance(messages, dict):
        messages = messages.get("messages", [])
    waiting: dict[str, Call] = {}
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call["function"]
            given = function["arguments"]
            waiting[call["id"]] = Call(function["name"], json.loads(given) if isinstance(given, str) else given)
        if message.get("role") == "tool" and message.get("tool_call_id") in waiting:
            call = waiting.pop(message["tool_call_id"])
            call.text = plain(message["content"])
            yield call


# ---------------------------------------------------------------- scripts


DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*)\n((?s:.*?))\n?^\2$", re.M)
SIGNS = frozenset(("|", "||", "&&", ";", "&", "\n", ";;", "(", ")"))


def simple(script: str) -> list[tuple[list[str], str, str]]:
    """(words, here-document, operator behind) of the commands of a script."""
    documents: list[str] = []

    def keep(match: re.Match[str]) -> str:
        documents.append(match[4])
        return f" __DOC{len(documents) - 1}__ {match[3]}"

    if "$(cat <<" in script:  # a commit message: not of interest here
        script = re.sub(r'"\$\(cat <<.*?\n\)"', "MESSAGE", script, flags=re.S)
    script = DOCUMENT.sub(keep, script).replace("\\\n", " ")
    found: list[tuple[list[str], str, str]] = []
    text = ""
    for line in script.split("\n"):
        text = f"{text}\n{line}" if text else line
        lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # a quote goes on in the next line
            continue
        text = ""
        now: list[str] = []
        document = ""
        for word in [*words, "\n"]:
            if word in SIGNS:
                if now:
                    found.append((now, document, word))
                now, document = [], ""
            elif (match := re.fullmatch(r"__DOC(\d+)__", word)) is not None:
                document = documents[int(match[1])]
            else:
                now.append(word)
    return found


OPENS = re.compile(r"""open\(\s*(?:r?(['"])([^'"]+)\1|(\w+))\s*,\s*(?:mode=)?['"][wa]""")


def opened(program: str) -> set[str]:
    names = dict(re.findall(r"""^\s*(\w+)\s*=\s*['"]([^'"\n]+)['"]""", program, re.M))
    found = {match[2] or names.get(match[3] or "", "") for match in OPENS.finditer(program)}
    return found - {""}


def changes(call: Call, programs: dict[str, set[str]]) -> set[str]:
    """Files that a script changes. Of one that failed the last command did not do its work."""
    found: set[str] = set()
    parts = simple(str(call.given["command"]))
    for at, (words, document, _) in enumerate(parts):
        here: set[str] = set()
        while words and re.match(r"\w+=", words[0]):
            words = words[1:]
        targets = [words[i + 1] for i, word in enumerate(words[:-1]) if word in (">", ">>")]
        behind = (">", ">>")
        words = [w for i, w in enumerate(words) if w not in (*behind, ">&") and not (i and words[i - 1] in behind)]
        here.update(targets)
        if document and words == ["cat"]:
            programs.update({target: opened(document) for target in targets if target.endswith(".py")})
        files = [word for word in words[1:] if not word.startswith("-")]
        if words[:1] == ["sed"] and any(re.match(r"-\w*i", word) for word in words):
            scripts = {words[i + 1] for i, word in enumerate(words) if word == "-e"}
            here.update(set(files) - scripts if scripts else files[1:])
        elif words[:1] in (["touch"], ["tee"]) or (words[:1] == ["rm"] and not {"-r", "-rf", "-fr"} & set(words)):
            here.update(files)
        elif words[:1] == ["mv"] or words[:2] == ["git", "mv"] or (words[:1] == ["cp"] and "-r" not in words):
            here.update(files[-2:] if words[0] != "cp" else files[-1:])
        elif words and re.match(r"(?:.*/)?python", words[0]):
            if document:
                here.update(opened(document))
            elif "-c" in words:
                here.update(opened(words[words.index("-c") + 1]))
            elif files:
                here.update(programs.get(files[0], set()))
        if words[:1] == ["rm"]:
            here = {path for path in here if f"cannot remove '{path}'" not in (call.text or "")}
        if not (call.failed and at == len(parts) - 1):
            found.update(here)
    return {p for p in found if p and not re.search(r"[*?$`{]", p) and not p.startswith("/dev/") and p[-1] not in "/-&"}


RUNS = re.compile(
    r"^(?:go test|mise run test|pnpm .*\btest|(?:\S*/)?pytest|python3? -m (?:pytest|unittest)|\S*/python3? -m pytest"
    r"|(?:python3? )?\S*(?:runtests|run_tests)\.py|bin/test|npm test)\b"
)


def runs(call: Call, found: Found) -> None:
    parts = simple(str(call.given["command"]))
    for at, (words, _, _) in enumerate(parts):
        words = [w for i, w in enumerate(words) if w not in (">", ">>", ">&") and words[i - 1 : i] != [">&"]]
        words = words[:-1] if words[-1:] == ["2"] else words
        if not RUNS.match(" ".join(words)):
            continue
        text = call.text or ""
        if "No module named pytest" in text or "command not found" in text:
            continue
        last = at == len(parts) - 1
        chained = all(s == "&&" for _, _, s in parts[at:-1])
        if call.code is not None and (last or (chained and call.code == 0)):
            outcome = "passed" if call.code == 0 else "failed"
        elif re.search(r"^(?:FAIL|--- FAIL|FAILED)\b|\b[1-9]\d* (?:failed|exceptions)|ERROR task failed", text, re.M):
            outcome = "failed"
        else:
            good = re.search(r"^(?:ok\s|PASS|OK\b)|\b\d+ passed", text, re.M)
            outcome = "passed" if good else "unknown"
        key = tuple(words)
        found.tests.pop(key, None)
        found.tests[key] = outcome


STATUS = {"pending": "planned", "in_progress": "doing", "completed": "done"}


def extract(calls: Iterator[Call]) -> Found:
    found = Found()
    programs: dict[str, set[str]] = {}
    for call in calls:
        given, text = call.given, call.text
        if call.name in ("TodoWrite", "update_plan") and not call.failed:
            items = given.get("todos") or given.get("plan") or []
            shaped = [item for item in items if isinstance(item, dict)]
            found.todos = [(i.get("content") or i.get("step"), STATUS[i["status"]]) for i in shaped]
            found.lists.append(found.todos)
        if text is None or text.startswith(("patch rejected", "failed in sandbox", "The user doesn't want")):
            continue
        command = given.get("command", given.get("cmd"))
        if isinstance(command, list):
            given["command"] = command = command[-1]
        if call.name in ("Edit", "MultiEdit", "Write", "NotebookEdit", "replace"):
            if not call.failed:
                found.changed.add(given["file_path"])
        elif call.name == "str_replace_editor":
            if command != "view" and not text.startswith(("Ran into", "Invalid", "ERROR")):
                found.changed.add(given["path"])
        elif isinstance(command, str) and "*** Begin Patch" in command:
            if not call.failed:
                found.changed.update(re.findall(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", command, re.M))
        elif isinstance(command, str) and call.name.lower() in ("bash", "shell", "execute_bash", "exec_command"):
            given["command"] = command
            found.changed |= changes(call, programs)
            runs(call, found)
            if "git commit" in command:
                found.commits += re.findall(r"^\[[^\]]* ([0-9a-f]{7,})\] (.*)$", text, re.M)
    return found


READERS = {"claude-code": claude, "codex": codex, "mini-swe-agent": mini, "openai-chat": chat}
READERS["openai-chat-message"] = chat

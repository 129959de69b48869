"""Which format a file has, by content: file names lie, and the first record often says nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctxctl.errors import NotATranscriptError
from ctxctl.formats.base import FORMATS, Format, Json, word

HINT = "`ctxctl list formats` shows what it reads; `--from FORMAT` forces one"

Rule = Callable[[dict[str, Json]], bool]


def _any(*keys: str) -> Rule:
    return lambda record: all(key in record for key in keys)


# Formats that users have and ctxctl knows by sight but does not read: naming them beats "unknown format".
# The rules follow each tool's own writer.
UNREAD: tuple[tuple[str, Rule], ...] = (
    ("the event stream of `codex exec --json`", lambda r: str(r.get("type", "")).startswith(("thread.", "item."))),
    (
        "the stream of `claude -p --output-format stream-json`",
        lambda r: "session_id" in r and word(r, "type") in ("system", "assistant", "user", "result"),
    ),
    ("a Claude Code web export", lambda r: isinstance(r.get("loglines"), list)),
    ("a Gemini CLI session", lambda r: "sessionId" in r and "projectHash" in r),
    ("a pi session", lambda r: r.get("type") == "session" and "cwd" in r and "id" in r),
    (
        "an opencode export",
        lambda r: (
            ("info" in r and ("parts" in r or _any_item(_list(r.get("messages")), "parts")))
            or str(r.get("type", "")).startswith(("message.updated", "message.part"))
        ),
    ),
    ("an ATIF trajectory", lambda r: str(r.get("schema_version", "")).startswith("ATIF-v")),
    (
        "a SWE-agent trajectory",
        lambda r: (
            isinstance(r.get("history"), list)
            and ("trajectory" in r or _any_item(r["history"], "message_type", "agent"))
        ),
    ),
    ("an OpenHands run", lambda r: isinstance(r.get("history"), list) or ("kind" in r and "llm_message" in r)),
    ("an Inspect log", _any("eval", "samples", "status")),
    ("a tau-bench result", _any("task_id", "traj", "reward")),
    ("a Cline SDK session", _any("agent", "sessionId", "messages", "version")),
    (
        "a LangChain message dump",
        lambda r: r.get("lc") == 1 or word(r, "type") in ("human", "ai") or ("data" in r and "type" in r),
    ),
    (
        "OpenTelemetry spans",
        lambda r: (
            "resourceSpans" in r or any(str(key).startswith("gen_ai.") for key in (*_keys(r.get("attributes")), *r))
        ),
    ),
    ("a ShareGPT set", lambda r: isinstance(r.get("conversations"), list)),
    ("a Goose session", _any("working_dir", "message_count")),
)


def _keys(value: Json) -> list[Json]:
    return list(value) if isinstance(value, dict) else []


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _any_item(items: list[Json], *keys: str) -> bool:
    return any(isinstance(item, dict) and any(key in item for key in keys) for item in items[:50])


def is_aider(lines: Sequence[bytes]) -> bool:
    """Whether a file is an aider chat history: Markdown, so that no line of it need be JSON."""
    if any(line.startswith(b"# aider chat started at ") for line in lines):
        return True
    asked = sum(line.startswith(b"#### ") for line in lines)
    return asked > 2 and sum(line.startswith(b"> ") for line in lines) > 2


def detect(records: Sequence[Json], path: str) -> type[Format]:
    """The format whose rule matches the first records of a file; NotATranscriptError when none does."""
    known = sorted((entry for _, entry in FORMATS), key=lambda entry: entry.priority)
    specific = [entry for entry in known if entry.priority < 50]
    for entry in specific:
        if entry.sniff(records, path):
            return entry
    objects = [r for r in _flat(records) if isinstance(r, dict)]
    for what, rule in UNREAD:
        if any(rule(record) for record in objects):
            raise NotATranscriptError(
                f"this looks like {what}, which ctxctl does not read",
                path=path,
                hint=HINT,
            )
    for entry in known[len(specific) :]:
        if entry.sniff(records, path):
            return entry
    seen = sorted({str(key) for record in objects for key in record})[:8]
    found = f" (keys seen: {', '.join(seen)})" if seen else ""
    raise NotATranscriptError(
        f"not a transcript format that ctxctl knows{found}",
        path=path,
        hint=HINT,
    )


def _flat(records: Sequence[Json]) -> list[Json]:
    """Records, with the members of a whole-file array in place of the array."""
    return [item for record in records for item in (record[:50] if isinstance(record, list) else [record])]

"""Claude Code.

Protocol: code.claude.com/docs/en/hooks as of September 2026 (version 2.1.270), looked up in November 2026. The event
comes as JSON on stdin (session_id, transcript_path, cwd, hook_event_name, and source, trigger, reason or
stop_hook_active). Exit 0: stdout is read as JSON. Exit 2: the event is blocked, with stderr as the reason. Any other
status is an error that the user is shown. `timeout` is in seconds, by default 600 for commands. All SessionEnd hooks
together have 1.5 s, or the longest `timeout` of those in settings files, up to 60 s. Only SessionStart takes
`additionalContext` at the start of a window (sources startup, resume, clear, compact); PreCompact takes none and only
`decision: block`, and Stop `decision: block` with a reason.

A hook's text of more than 10,000 characters is saved to a file, and the model sees its first 2 KB
(github.com/anthropics/claude-code issues 44086, 91614).

Settings, all of which apply: ~/.claude/settings.json, .claude/settings.json, .claude/settings.local.json.
`disableAllHooks` in any of them switches hooks off.
"""

from __future__ import annotations

import json
from pathlib import Path

from ctxctl.adapters.hooks.base import EventSpec, HookAgent, registry, utf16

LIMIT = 10_000
FILES = ("settings.json", "settings.local.json")


def _switched_off(home: Path, project: Path) -> str | None:
    for path in (*(project / name for name in FILES), home / FILES[0]):
        try:
            value = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(value, dict) and value.get("disableAllHooks") is True:
            return f"`disableAllHooks` in {path}"
    return None


AGENT = HookAgent(
    name="claude-code",
    title="Claude Code",
    folder=".claude",
    home_variable="CLAUDE_CONFIG_DIR",
    project_variable="CLAUDE_PROJECT_DIR",
    files={"local": "settings.local.json", "project": "settings.json", "user": "settings.json"},
    events={
        "SessionStart": EventSpec("resume", "startup|resume|clear|compact", 10, 8.0),
        "PreCompact": EventSpec("checkpoint", "manual|auto", 10, 8.0),
        "Stop": EventSpec("checkpoint", None, 10, 8.0),
        "SessionEnd": EventSpec("checkpoint", None, 5, 4.0),
    },
    defaults=("SessionStart", "PreCompact"),
    context_limit=LIMIT,
    measured=utf16,
    switched_off=_switched_off,
    notes=("/hooks in Claude Code shows what is installed; a session that runs may have to be started again",),
)
registry.register("claude-code")(AGENT)

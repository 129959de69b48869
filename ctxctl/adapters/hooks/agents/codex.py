"""Codex.

Protocol: developers.openai.com/codex/hooks and codex-rs/hooks of github.com/openai/codex as of September 2026, looked
up in November 2026. The event comes as JSON on stdin (session_id, transcript_path, which may be null, cwd,
hook_event_name, model, and turn_id, source, trigger or stop_hook_active). Exit 0: stdout is read as JSON (SessionStart
would take other text as context, Stop calls it invalid). Exit 2 with a text on stderr makes Stop go on; any other
status is shown as a failed hook. `timeout` is in seconds, by default 600; SessionEnd, since 0.145, has 1 s by default
and 3 s at most. SessionStart has the sources startup, resume, clear and, since May 2026, compact. PreCompact came with
the same release.

A hook's text of more than 2,500 tokens, at 4 bytes each, is saved to a file and the model sees its beginning and end
(codex-rs/hooks/src/output_spill.rs).

Settings, all of which apply: hooks.json and `[hooks]` of config.toml, in ~/.codex and in .codex of the project. Those
of a project load only when it is trusted, and each command runs only once its user has reviewed it (`/hooks`); a
changed command must be reviewed again. `[features] hooks = false` (formerly `codex_hooks`) switches hooks off.
"""

from __future__ import annotations

from pathlib import Path

from ctxctl.adapters.hooks.base import EventSpec, HookAgent, registry, utf8

LIMIT = 2_500 * 4


def _switched_off(home: Path, project: Path) -> str | None:
    import tomllib

    for path in (project / "config.toml", home / "config.toml"):
        try:
            features = tomllib.loads(path.read_text("utf-8")).get("features")
        except (OSError, ValueError):
            continue
        for key in ("hooks", "codex_hooks"):
            if isinstance(features, dict) and features.get(key) is False:
                return f"`features.{key} = false` in {path}"
    return None


AGENT = HookAgent(
    name="codex",
    title="Codex",
    folder=".codex",
    home_variable="CODEX_HOME",
    project_variable="",
    files={"project": "hooks.json", "user": "hooks.json"},
    events={
        "SessionStart": EventSpec("resume", "startup|resume|clear|compact", 10, 8.0),
        "PreCompact": EventSpec("checkpoint", "manual|auto", 10, 8.0),
        "Stop": EventSpec("checkpoint", None, 10, 8.0),
        "SessionEnd": EventSpec("checkpoint", None, 3, 2.5),
    },
    defaults=("SessionStart", "PreCompact"),
    context_limit=LIMIT,
    measured=utf8,
    switched_off=_switched_off,
    notes=(
        "Codex runs a hook only once you have reviewed it: start Codex and type /hooks",
        "hooks of a project load only where Codex trusts the project",
    ),
)
registry.register("codex")(AGENT)

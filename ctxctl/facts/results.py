"""What the result of a call says about its fate: exit status, output without its wrapping, whether it ran at all."""

from __future__ import annotations

import re

import orjson

# mini-swe-agent, Codex (JSON, plain, unified exec), Claude Code, OpenHands, Gemini CLI: each states the exit status so
_STATUS = re.compile(
    r"<returncode>(-?\d+)</returncode>"
    r'|"exit_code"\s*:\s*(-?\d+)'
    r"|^Exit code:? (-?\d+)"
    r"|^Process exited with code (-?\d+)"
    r"|\[Command finished with exit code (-?\d+)\]"
    r"|^Exit Code: (-?\d+)",
    re.MULTILINE,
)
_NEAR = 400
"""Characters at both ends of a result in which its exit status is looked for."""
_REFUSED = (
    "patch rejected",
    "failed in sandbox",
    "rejected by user",
    "exec command rejected",
    "The user doesn't want to",
    "[Request interrupted by user",
    "Permission to use",
    "Claude requested permissions",
    "<tool_use_error>",
    "Please always provide EXACTLY",
    "apply_patch verification failed",
    "This command requires approval",
    "Tool execution was cancelled",
    "aborted by user",
)
_BROKEN = re.compile(
    r"\s*(?:<tool_use_error>|error\b|failed\b|fatal\b|invalid\b|traceback\b|ran into\b|exception\b|permission denied"
    r"|no such file|rejected\b|could not\b|cannot\b|unable to\b|file not found|access denied)",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Exit code|Process exited|Original token count|Total output)[^\n]*\n)+"
)
_WRAPPED = re.compile(r"\A<returncode>-?\d+</returncode>\s*<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL)


def status(text: str) -> int | None:
    """The exit status that a result states, None where it states none."""
    for near in (text[:_NEAR], text[-_NEAR:]):
        if "ode" in near and (match := _STATUS.search(near)) is not None:
            return int(next(group for group in match.groups() if group is not None))
    return None


def output(text: str) -> str:
    """What the command printed, without what its agent wrapped around it."""
    if text.startswith('{"output":'):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
        printed = value.get("output") if isinstance(value, dict) else None
        return printed if isinstance(printed, str) else text
    if text.startswith("<returncode>"):
        match = _WRAPPED.match(text)
        return match.group(1) if match is not None else text
    match = _HEADER.match(text)
    if match is None:
        return text.removeprefix("Exit code 1\n")
    return text[match.end() :].removeprefix("Output:\n")


def refused(text: str) -> bool:
    """Whether the call never ran: the user, a sandbox or the agent's own checks stopped it."""
    return text.startswith(_REFUSED)


def broken(text: str) -> bool:
    """Whether the text reads as a failure. For tools whose results carry no flag."""
    return _BROKEN.match(text) is not None

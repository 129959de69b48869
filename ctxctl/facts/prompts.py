"""What the user asked: the goal, its success criteria, later requests, and corrections."""

from __future__ import annotations

import re
from collections.abc import Container

from ctxctl.facts.goal import Goal, GoalFinder
from ctxctl.model.block import MAIN, Block
from ctxctl.model.text import shortened

WHOLE = 40_000
"""Characters of a prompt that are kept in case it states the goal."""
LONGEST, SHORTEST = 300, 10
"""Characters of a later request that are kept."""
_CRITERIA = re.compile(
    r"^[ \t#*_-]*(?:(?:success|acceptance|completion)[ \t]+criteria|definition of done|done when|验收标准|成功标准)"
    r"[ \t*_:：-]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(\S.*?)[ \t]*$")
_CORRECTION = re.compile(
    r"^(?:no[,.! ]|nope\b|wrong\b|actually[, ]|that'?s (?:not|wrong)|this is (?:not|wrong)|stop\b"
    r"|please (?:don'?t|stop)|don'?t\b|revert\b|undo\b|i (?:said|meant|asked)|you (?:forgot|missed|should(?:n'?t| not))"
    r"|instead[, ]|not (?:that|what)|不对|不是|错了|别)",
    re.IGNORECASE,
)
_BEHIND = "## My request for Codex:"
"""What the editor's part of a prompt ends with."""
_COMMAND = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_CLIENT = frozenset(
    (
        *(
            "add-dir",
            "agents",
            "bug",
            "clear",
            "color",
            "compact",
            "config",
            "context",
            "copy",
            "cost",
            "doctor",
            "exit",
        ),
        *("export", "fast", "feedback", "help", "hooks", "ide", "login", "logout", "mcp", "memory", "model", "plugin"),
        *("output-style", "permissions", "privacy-settings", "release-notes", "rename", "resume", "rewind", "sandbox"),
        *("status", "statusline", "terminal-setup", "theme", "todos", "upgrade", "usage", "vim"),
    )
)
"""Slash commands that reach no model."""
_GO_ON = re.compile(
    r"(?:ok(?:ay)?[,. ]+|yes[,. ]+|please )*"
    r"(?:continue|go on|go ahead|carry on|keep going|proceed|resume|next|pick up)\b"
    r"|(?:yes|ok(?:ay)?|sure)[.! ]*$|继续|weiter\b|continuez?\b",
    re.IGNORECASE,
)
_NOT_SAID = ("<command-", "[Request interrupted", "<local-command", "<bash-input")


class Prompts:
    """Collects what the user typed in the main thread."""

    def __init__(self) -> None:
        self._finder = GoalFinder()
        self._seen: list[Goal] = []

    def see(self, block: Block, number: int) -> bool:
        """Take a user message; whether the user typed it."""
        self._finder.see(block, number)
        current = self._finder.current.get(MAIN)
        if current is not None and current.block == number:
            self._seen.append(Goal(number, shortened(block.text, WHOLE)))  # word for word, not only its beginning
        elif block.thread == MAIN and block.kind == "user_message" and (asked := command(block.text)):
            self._seen.append(Goal(number, shortened(asked, WHOLE)))
            return True
        return not block.text.startswith(_NOT_SAID)

    def carry(self) -> int:
        """What `go_on` needs."""
        return self._finder.exchange(MAIN)

    def go_on(self, exchange: int) -> None:
        """Only what is typed in later exchanges is new."""
        self._finder.go_on(MAIN, exchange)

    def requests(self, gone: Container[int], *, told: bool = False) -> tuple[str, ...]:
        """What the user asked after the goal, each as one line. An answer of a word or two says nothing by itself.
        told: the goal is known from elsewhere, so that the first prompt does not state it."""
        lines = (request(prompt.text) for prompt in self.live(gone)[0 if told else 1 :])
        return tuple(dict.fromkeys(line for line in lines if len(line) >= SHORTEST))

    def newest(self, gone: Container[int], *, told: bool = False) -> str:
        """The newest prompt after the goal as it was typed, empty when there is none."""
        prompts = self.live(gone)[0 if told else 1 :]
        return said(prompts[-1].text) if prompts else ""

    def live(self, gone: Container[int]) -> list[Goal]:
        """The prompts that count, oldest first."""
        return [prompt for prompt in self._seen if prompt.block not in gone]


def command(text: str) -> str:
    """A slash command with what was typed behind it, as Claude Code records it: a prompt like any other. Empty for any
    other text, for one without arguments, and for those that the client carries out itself."""
    if not text.startswith("<command-"):
        return ""
    found = {key: value.strip() for key, value in _COMMAND.findall(text)}
    name, given = found.get("name", ""), found.get("args", "")
    return f"{name} {given}" if name and given and name.lstrip("/") not in _CLIENT else ""


def said(text: str) -> str:
    """A prompt without what an editor put in front of it."""
    return text.partition(_BEHIND)[2].lstrip() or text if text.startswith("# Context from my IDE") else text


def request(text: str) -> str:
    """A later request as one line."""
    line = " ".join(shortened(said(text), 4 * LONGEST).split())
    return line if len(line) <= LONGEST else shortened(line, LONGEST - 1) + "…"


def correction(text: str) -> str:
    """A prompt that takes back what was done before, as a lesson."""
    return f"the user corrected: {request(text)}"


def is_correction(text: str) -> bool:
    """Whether a prompt takes back what was done before."""
    return _CORRECTION.match(text.lstrip()) is not None


def is_go_on(text: str) -> bool:
    """Whether a prompt says no more than that the work goes on."""
    return len(text) <= LONGEST and _GO_ON.match(text.strip()) is not None


def criteria(goal: str) -> tuple[str, ...]:
    """The success criteria that a task states under a heading of its own."""
    found: list[str] = []
    for match in _CRITERIA.finditer(goal):
        if match.group(1).strip(" *_"):
            found.append(match.group(1).strip(" *_"))
            continue
        for line in goal[match.end() :].lstrip("\n").split("\n"):
            if (bullet := _BULLET.match(line)) is None:
                break
            found.append(bullet.group(1))
    return tuple(dict.fromkeys(found))

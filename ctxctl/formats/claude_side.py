"""Records of a Claude Code session that hold no block but belong to it: notes about the session, snapshots of files,
system records of the chain. A reader notes their lines; a writer fetches those that stay."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from ctxctl.formats.base import Json, word
from ctxctl.formats.claude_tree import Tree

NEWEST = ("custom-title", "ai-title", "agent-name", "mode", "permission-mode", "agent-setting")
"""Types of which the newest record says how the session stands."""

LINKS = "pr-link"
PROMPT = "last-prompt"
SNAPSHOT = "file-history-snapshot"
SIDE_RECORDS = frozenset(
    ("queue-operation", "mode", "permission-mode", "ai-title", "last-prompt", "custom-title", "pr-link", "agent-name")
)
HEADS = frozenset((*NEWEST, LINKS, PROMPT, SNAPSHOT))


@dataclass(slots=True)
class SideLines:
    """Lines of side records. newest: of each type of NEWEST, and the last prompt. links: all. snapshots: all, with the
    hash of the id of the message that each belongs to, beside. bare: records of the tree without blocks, with the line
    of their parent, beside."""

    newest: dict[str, int] = field(default_factory=dict)
    links: array[int] = field(default_factory=lambda: array("i"))
    snapshots: array[int] = field(default_factory=lambda: array("i"))
    messages: array[int] = field(default_factory=lambda: array("q"))
    bare: array[int] = field(default_factory=lambda: array("i"))
    parents: array[int] = field(default_factory=lambda: array("i"))

    def note(self, type_: str, line: int, message: object) -> None:
        """A record of a type of HEADS. message: of a snapshot, the id that it names."""
        if type_ == LINKS:
            self.links.append(line)
        elif type_ == SNAPSHOT:
            self.snapshots.append(line)
            self.messages.append(hash(message) if isinstance(message, str) else 0)
        else:
            self.newest[type_] = line

    def resolve(self, tree: Tree) -> SideLines:
        """`bare`, so far nodes of the tree, as lines; what hangs on nothing is left out."""
        nodes, self.bare = self.bare, array("i")
        for node in nodes:
            if (parent := tree.parent[node]) >= 0:
                self.bare.append(tree.line[node])
                self.parents.append(tree.line[parent])
        return self


def is_record(r: dict[str, Json]) -> bool:
    """Whether an object is a record of a session, by its envelope."""
    type_ = word(r, "type")
    if "sessionId" in r and "projectHash" not in r and ("uuid" in r or type_ in SIDE_RECORDS):
        return True
    if (type_ == "summary" and "leafUuid" in r) or (type_ == "file-history-snapshot" and "messageId" in r):
        return True
    message = r.get("message")
    return (
        type_ in ("user", "assistant") and isinstance(message, dict) and "content" in message and "session_id" not in r
    )

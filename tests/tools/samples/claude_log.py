"""Writes a session as Claude Code does: a line per content block, a uuid chain, usage that follows the content."""

from __future__ import annotations

from typing import Any

from .core import Clock, compact, hex_id, opaque, pick, short_id, tokens, uuid4
from .workspace import Tool

# Characters per token, about what the model's tokenizer gives for such text.
PROSE, THOUGHT, CODE = 3.6, 4.0, 3.0
MESSAGE_FRAME = 4
TOOL_FRAME = 6


def block_tokens(block: dict[str, Any]) -> int:
    kind = block["type"]
    if kind == "text":
        return tokens(block["text"], PROSE)
    if kind == "thinking":
        return tokens(block["thinking"], THOUGHT)
    if kind == "tool_use":
        return tokens(block["name"] + compact(block["input"]), CODE) + TOOL_FRAME
    content = block["content"]
    if isinstance(content, list):
        return sum(block_tokens(b) for b in content) + TOOL_FRAME
    return tokens(content, CODE) + TOOL_FRAME


class ClaudeLog:
    def __init__(
        self,
        name: str,
        session_id: str,
        clock: Clock,
        *,
        cwd: str,
        version: str,
        branch: str,
        model: str,
        overhead: int,
        prefix_cached: int,
        agent_id: str | None = None,
    ) -> None:
        self.name, self.session_id, self.clock = name, session_id, clock
        self.cwd, self.version, self.branch, self.model = cwd, version, branch, model
        self.overhead, self.cached, self.agent_id = overhead, prefix_cached, agent_id
        self.records: list[dict[str, Any]] = []
        self.parent: str | None = None
        self.live = 0  # tokens of the messages in the window
        self.calls: list[dict[str, int]] = []
        self.serial = 0
        self.since_prompt = 0
        self.prompt_started = clock.now

    # -- envelope ---------------------------------------------------------------------------------------------------
    def next_uuid(self) -> str:
        self.serial += 1
        return uuid4(f"{self.name}/{self.serial}")

    def head(self) -> dict[str, Any]:
        out: dict[str, Any] = {"parentUuid": self.parent, "isSidechain": self.agent_id is not None}
        if self.agent_id:
            out["agentId"] = self.agent_id
        return out

    def tail(self) -> dict[str, Any]:
        return {
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.branch,
        }

    def add(self, body: dict[str, Any], *, when: str, uuid: str | None = None, parent: str | None = None) -> str:
        uuid = uuid or self.next_uuid()
        head = self.head()
        if parent is not None:
            head["parentUuid"] = parent
        self.records.append({**head, **body, "uuid": uuid, "timestamp": when, **self.tail()})
        self.parent = uuid
        self.since_prompt += 1
        return uuid

    def side(self, record: dict[str, Any], *, session: bool = True) -> None:
        self.records.append({**record, "sessionId": self.session_id} if session else record)

    # -- user side --------------------------------------------------------------------------------------------------
    def snapshot(self, message: str, backups: dict[str, int] | None = None, *, update: bool = False) -> None:
        tracked = {
            path: {
                "backupFileName": f"{hex_id(path, 16)}@v{version}",
                "version": version,
                "backupTime": self.clock.iso(),
            }
            for path, version in (backups or {}).items()
        }
        inner = {"messageId": message, "trackedFileBackups": tracked, "timestamp": self.clock.iso()}
        self.side(
            {"type": "file-history-snapshot", "messageId": message, "snapshot": inner, "isSnapshotUpdate": update},
            session=False,
        )

    def user(self, text: str, *, wait: float = 1.0, snapshot: bool = True, **extra: Any) -> str:
        self.clock.tick(wait)
        uuid = self.next_uuid()
        self.since_prompt, self.prompt_started = 0, self.clock.now
        if snapshot:
            self.snapshot(uuid)
        body = {"type": "user", "message": {"role": "user", "content": text}, **extra}
        self.live += tokens(text, PROSE) + MESSAGE_FRAME
        return self.add(body, when=self.clock.iso(), uuid=uuid)

    def meta(self, text: str, *, when: str | None = None) -> str:
        body = {"type": "user", "message": {"role": "user", "content": text}, "isMeta": True}
        self.live += tokens(text, PROSE) + MESSAGE_FRAME
        return self.add(body, when=when or self.clock.tick(0.002))

    def command_line(self, text: str, *, when: str) -> str:
        self.live += tokens(text, PROSE) + MESSAGE_FRAME
        return self.add({"type": "user", "message": {"role": "user", "content": text}}, when=when)

    # -- model side -------------------------------------------------------------------------------------------------
    def usage(self, key: str) -> dict[str, Any]:
        prompt = self.overhead + self.live
        fresh = pick(key + "/in", 2, 12)
        read = min(self.cached, prompt - fresh)
        written = prompt - fresh - read
        self.cached = read + written
        self.calls.append({"prompt": prompt, "input": fresh, "write": written, "read": read})
        return {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        }

    def call(self, *tools: Tool, think: str = "", say: str = "") -> None:
        """One model call: its blocks as lines of their own, then the results of its tools."""
        key = f"{self.name}/call{len(self.calls) + 1}"
        usage = self.usage(key)
        blocks: list[dict[str, Any]] = []
        if think:
            signature = opaque(key + "/sig", 180 + len(think) // 2, "Eq")
            blocks.append({"type": "thinking", "thinking": think, "signature": signature})
        if say:
            blocks.append({"type": "text", "text": say})
        for n, tool in enumerate(tools):
            use = {"type": "tool_use", "id": "toolu_01" + short_id(f"{key}/{n}"), "name": tool.name}
            blocks.append({**use, "input": tool.input})
        output = sum(block_tokens(b) for b in blocks)
        self.calls[-1]["output"] = output
        message_id, request_id = "msg_01" + short_id(key + "/m"), "req_011C" + short_id(key + "/r", 20)
        stop = "tool_use" if tools else "end_turn"
        owners: list[str] = []
        self.clock.tick(1.4 + pick(key + "/lag", 0, 1200) / 1000)
        for n, block in enumerate(blocks, 1):
            last = n == len(blocks)
            seen = output if last else pick(f"{key}/out", 1, 8)
            message = {
                "model": self.model,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop if last else None,
                "stop_sequence": None,
                "usage": {**usage, "output_tokens": seen, "service_tier": "standard"},
            }
            body = {"message": message, "requestId": request_id, "type": "assistant"}
            uuid = self.add(body, when=self.clock.tick(0.2 + block_tokens(block) / 85))
            if block["type"] == "tool_use":
                owners.append(uuid)
        self.live += output + MESSAGE_FRAME
        uses = [b for b in blocks if b["type"] == "tool_use"]
        for tool, use, owner in zip(tools, uses, owners, strict=True):
            self.result(tool, use["id"], owner)

    def result(self, tool: Tool, call_id: str, owner: str) -> None:
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": tool.content}
        if tool.is_error is not None:
            block["is_error"] = tool.is_error
        self.live += block_tokens(block)
        body: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": [block]}}
        body["toolUseResult"] = tool.ui
        body["sourceToolAssistantUUID"] = owner
        self.add(body, when=self.clock.tick(tool.seconds), parent=owner)

    def api_error(self, text: str) -> str:
        """The client writes such a record itself; nothing of it was sent to or by the model."""
        usage = {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": None,
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        }
        message = {
            "id": uuid4(f"{self.name}/synthetic/{self.serial}"),
            "container": None,
            "model": "<synthetic>",
            "role": "assistant",
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": usage,
            "content": [{"type": "text", "text": text}],
            "context_management": None,
        }
        body = {"type": "assistant", "message": message, "error": "server_error", "isApiErrorMessage": True}
        return self.add(body, when=self.clock.tick(21.4))

    # -- client side ------------------------------------------------------------------------------------------------
    def stopped(self, hook: str) -> None:
        """What the client writes when the model has finished its answer."""
        body: dict[str, Any] = {
            "type": "system",
            "subtype": "stop_hook_summary",
            "hookCount": 1,
            "hookInfos": [{"command": hook, "durationMs": pick(f"hook{self.serial}", 60, 190)}],
            "hookErrors": [],
            "preventedContinuation": False,
            "stopReason": "",
            "hasOutput": False,
            "level": "suggestion",
            "toolUseID": uuid4(f"{self.name}/hook{self.serial}"),
        }
        self.add(body, when=self.clock.tick(0.2))
        spent = round((self.clock.now - self.prompt_started).total_seconds() * 1000)
        body = {"type": "system", "subtype": "turn_duration", "durationMs": spent, "isMeta": False}
        body["messageCount"] = self.since_prompt
        self.add(body, when=self.clock.tick(0.002))

    def prompt_marker(self, text: str) -> None:
        self.side({"type": "last-prompt", "lastPrompt": text, "leafUuid": self.parent})

    def compacted(self, summary: str, instructions: str, *, wait: float, prefix_cached: int) -> int:
        """`/compact`: boundary, summary, then the command's own lines with the time at which it was typed."""
        before = self.overhead + self.live
        typed = self.clock.tick(wait)
        later = self.clock.tick(1.0)
        self.clock.tick(61.0)
        logical = self.parent
        self.parent = None
        head = {"logicalParentUuid": logical}
        body = {
            **head,
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "manual", "preTokens": before, "userContext": instructions},
        }
        self.add(body, when=self.clock.iso())
        self.live = tokens(summary, PROSE) + MESSAGE_FRAME
        self.cached = prefix_cached
        body = {
            "type": "user",
            "message": {"role": "user", "content": summary},
            "isVisibleInTranscriptOnly": True,
            "isCompactSummary": True,
        }
        self.add(body, when=self.clock.tick(0.001))
        caveat = (
            "<local-command-caveat>The next lines come from a command that the user ran in the client. "
            "They are not a request: do not answer them.</local-command-caveat>"
        )
        self.meta(caveat, when=typed)
        command = "<command-name>/compact</command-name>\n            <command-message>compact</command-message>\n"
        self.command_line(f"{command}            <command-args>{instructions}</command-args>", when=typed)
        self.command_line(
            "<local-command-stdout>Compacted (ctrl+o to see full summary)</local-command-stdout>", when=later
        )
        return before

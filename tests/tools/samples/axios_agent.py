"""The subagent of the Claude Code sample: looks up which tests mock axios and returns a short list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .claude_log import ClaudeLog
from .core import Clock
from .workspace import Workspace

MODEL = "claude-sonnet-4-5-20250929"
HELPER_MODEL = "claude-haiku-4-5-20251001"
AGENT_ID = "a7c41f9"
OVERHEAD = 6_180


@dataclass
class Agent:
    log: ClaudeLog
    seconds: float
    tool_use_id: str = ""

    @property
    def last(self) -> dict[str, int]:
        return self.log.calls[-1]

    def total_tokens(self) -> int:
        return self.last["prompt"] + self.last["output"]

    def tool_uses(self) -> int:
        lines = [r["message"]["content"] for r in self.log.records if r["type"] == "assistant"]
        return sum(block["type"] == "tool_use" for content in lines for block in content)

    def usage_note(self) -> str:
        rows = [f"total_tokens: {self.total_tokens()}", f"tool_uses: {self.tool_uses()}"]
        return "\n".join(["<usage>", *rows, f"duration_ms: {round(self.seconds * 1000)}", "</usage>"])

    def ui(self, prompt: str, content: list[dict[str, str]]) -> dict[str, Any]:
        return {
            "status": "completed",
            "prompt": prompt,
            "agentId": AGENT_ID,
            "agentType": "Explore",
            "content": content,
            "totalDurationMs": round(self.seconds * 1000),
            "totalTokens": self.total_tokens(),
            "totalToolUseCount": self.tool_uses(),
            "usage": {
                "input_tokens": self.last["input"],
                "cache_creation_input_tokens": self.last["write"],
                "cache_read_input_tokens": self.last["read"],
                "output_tokens": self.last["output"],
                "service_tier": "standard",
            },
        }


def run_agent(ws: Workspace, text: dict[str, str], session: str, start: datetime) -> Agent:
    log = ClaudeLog(
        "axios-to-fetch/agent",
        session,
        Clock(start.isoformat()),
        cwd=ws.root,
        version="2.1.112",
        branch="no-axios",
        model=HELPER_MODEL,
        overhead=OVERHEAD,
        prefix_cached=0,
        agent_id=AGENT_ID,
    )
    log.user(text["agent-prompt"], wait=0, snapshot=False)
    log.call(ws.grep_files("axios", "test/"), think=text["agent-think"])
    log.call(ws.grep_lines("axios|MockAdapter|vi\\.mock", "test/"), say=text["agent-say-2"])
    log.call(ws.read("test/api/payments.test.ts"), say=text["agent-say-3"])
    both = [ws.read("test/services/taxService.test.ts"), ws.read("test/webhooks/deliver.test.ts")]
    log.call(*both, say=text["agent-say-4"])
    log.call(ws.grep_files("MockAdapter|axios", "test/helpers/"), say=text["agent-say-5"])
    log.call(say=text["agent-result"])
    return Agent(log, (log.clock.now - start).total_seconds())

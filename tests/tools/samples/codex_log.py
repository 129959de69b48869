"""Writes a rollout as Codex does: envelope, response items with their event copies, token counts per call."""

from __future__ import annotations

import json
from typing import Any

from .core import Clock, compact, opaque, pick, short_id, tokens, uuid7

WINDOW = 272_000
STEP = 128  # the provider caches whole steps
ITEM_FRAME = 5
PER_TOKEN = 3.7
Call = tuple[dict[str, Any], str, float]  # item, output, seconds


def item_tokens(item: dict[str, Any]) -> int:
    kind = item["type"]
    if kind == "message":
        return sum(tokens(part["text"], PER_TOKEN) for part in item["content"]) + ITEM_FRAME
    if kind == "function_call":
        return tokens(item["name"] + item["arguments"], PER_TOKEN) + ITEM_FRAME
    if kind == "custom_tool_call":
        return tokens(item["name"] + item["input"], PER_TOKEN) + ITEM_FRAME
    if kind in ("function_call_output", "custom_tool_call_output"):
        return tokens(item["output"], PER_TOKEN) + ITEM_FRAME
    return 0  # reasoning: known by the call's own count


def message(role: str, *texts: str, phase: str | None = None) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    item: dict[str, Any] = {"type": "message", "role": role, "content": [{"type": kind, "text": t} for t in texts]}
    if phase:
        item["phase"] = phase
    return item


def shell_output(text: str, code: int = 0, seconds: float = 0.1) -> str:
    meta = {"exit_code": code, "duration_seconds": seconds}
    return json.dumps({"output": text, "metadata": meta}, ensure_ascii=False)


class CodexLog:
    def __init__(self, clock: Clock, *, overhead: int, prefix: int) -> None:
        self.clock, self.overhead, self.prefix = clock, overhead, prefix
        self.records: list[dict[str, Any]] = []
        self.history: list[tuple[dict[str, Any], int]] = []  # items in the window, with their tokens
        self.calls: list[dict[str, int]] = []
        self.cacheable = prefix
        self.total = dict.fromkeys(
            ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"], 0
        )
        self.turn = ""

    # -- envelope ---------------------------------------------------------------------------------------------------
    def write(self, kind: str, payload: dict[str, Any], wait: float = 0.001) -> None:
        self.records.append({"timestamp": self.clock.tick(wait), "type": kind, "payload": payload})

    def event(self, kind: str, wait: float = 0.001, **fields: Any) -> None:
        self.write("event_msg", {"type": kind, **fields}, wait)

    def item(self, item: dict[str, Any], wait: float = 0.001, size: int | None = None) -> None:
        self.history.append((item, item_tokens(item) if size is None else size))
        self.write("response_item", item, wait)

    def start_turn(self, wait: float, context: dict[str, Any] | None) -> None:
        self.clock.tick(wait)
        self.turn = uuid7(f"codex/turn{len(self.records)}", self.clock.now)
        self.event("task_started", turn_id=self.turn, model_context_window=WINDOW, collaboration_mode_kind="default")
        if context:
            self.write("turn_context", {"turn_id": self.turn, **context})

    def end_turn(self, last: str | None) -> None:
        self.event("task_complete", turn_id=self.turn, last_agent_message=last)

    def user(self, text: str) -> None:
        self.item(message("user", text))
        self.event("user_message", message=text, images=[], local_images=[], text_elements=[])

    # -- one model call ---------------------------------------------------------------------------------------------
    def call(self, *tools: Call, think: str = "", say: str = "", final: bool = False) -> None:
        """Order as in the client: items, token count, outputs."""
        key = f"codex/call{len(self.calls) + 1}"
        prompt = self.overhead + sum(size for _, size in self.history)
        cached = min(self.cacheable, prompt) // STEP * STEP
        output = reasoning = 0
        self.clock.tick(1.2)
        if think or tools:
            reasoning = pick(key, 24, 90) + tokens(think, 2.2)
            summary = [{"type": "summary_text", "text": think}] if think else []
            sealed = opaque(key, 120 + reasoning, "gAAAAAB")
            item: dict[str, Any] = {
                "type": "reasoning",
                "summary": summary,
                "content": None,
                "encrypted_content": sealed,
            }
            self.item(item, reasoning / 70, size=reasoning)
            if think:
                self.event("agent_reasoning", text=think)
        if say:
            phase = "final_answer" if final else "commentary"
            self.event("agent_message", tokens(say, 4) / 60, message=say, phase=phase)
            self.item(message("assistant", say, phase=phase))
            output += self.history[-1][1]
        outputs = []
        for n, (use, result, seconds) in enumerate(tools):
            call_id = "call_" + short_id(f"{key}/{n}", 24)
            name = use["type"] + "_output"
            self.item({**use, "call_id": call_id}, 0.4)
            output += self.history[-1][1]
            outputs.append(({"type": name, "call_id": call_id, "output": result}, seconds))
        self.count(prompt, cached, output + reasoning, reasoning)
        for answer, seconds in outputs:
            self.item(answer, seconds)
        self.cacheable = prompt

    def count(self, prompt: int, cached: int, output: int, reasoning: int) -> None:
        last = {
            "input_tokens": prompt,
            "cached_input_tokens": cached,
            "output_tokens": output,
            "reasoning_output_tokens": reasoning,
            "total_tokens": prompt + output,
        }
        self.total = {k: self.total[k] + last[k] for k in self.total}
        self.calls.append(last)
        self.token_count()

    def token_count(self, *, empty: bool = False) -> None:
        """Without a new call in between this repeats the last count, as the client sometimes does."""
        info = None
        if not empty:
            info = {
                "total_token_usage": dict(self.total),
                "last_token_usage": dict(self.calls[-1]),
                "model_context_window": WINDOW,
            }
        limits = {"primary": {"used_percent": 4.0, "window_minutes": 300, "resets_at": 1773936000}, "secondary": None}
        self.event("token_count", info=info, rate_limits=limits)

    def compacted(self, summary: str, kept: list[dict[str, Any]]) -> None:
        text = "Another model worked on this task before and left this summary:\n" + summary
        replacement = [*kept, message("user", text)]
        self.write("compacted", {"message": summary, "replacement_history": replacement}, 7.5)
        self.history = [(item, item_tokens(item)) for item in replacement]
        self.cacheable = self.prefix


def shell(script: str) -> dict[str, Any]:
    arguments = {"command": ["bash", "-lc", script], "workdir": "/home/dev/ledger-sync"}
    return {"type": "function_call", "name": "shell", "arguments": compact(arguments)}


def plan(steps: list[str], done: int, note: str = "") -> dict[str, Any]:
    rows = []
    for n, step in enumerate(steps):
        status = "completed" if n < done else "in_progress" if n == done else "pending"
        rows.append({"step": step, "status": status})
    arguments = {"explanation": note, "plan": rows} if note else {"plan": rows}
    return {"type": "function_call", "name": "update_plan", "arguments": compact(arguments)}


def patch(text: str) -> dict[str, Any]:
    return {"type": "custom_tool_call", "status": "completed", "name": "apply_patch", "input": text}

"""The Anthropic Messages sample: one request in the middle of looking for slow checkouts."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from .core import bundle, opaque, short_id, write_pretty
from .png import bar_chart

P95 = [11, 12, 11, 13, 12, 12, 27, 35, 41, 39, 40, 38]  # one bar per 10 minutes
CACHE = {"type": "ephemeral"}


def tool(name: str, description: str, required: list[str], **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": required}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    tool(
        "query_metrics",
        "Runs a query against the metrics store. Returns one line per series.",
        ["query"],
        query={"type": "string"},
        since={"type": "string", "description": "ISO 8601, default one hour ago"},
    ),
    tool(
        "read_logs",
        "Log lines of a service, newest last, at most 200.",
        ["service"],
        service={"type": "string"},
        filter={"type": "string"},
        limit={"type": "integer", "minimum": 1, "maximum": 200},
    ),
    tool(
        "list_deploys",
        "Deployments of the last 24 hours with their change lists.",
        [],
        service={"type": "string"},
    ),
]


def thinking(name: str, text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": opaque("anthropic/" + name, 300, "Eu")}


def use(name: str, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_01" + short_id("anthropic/" + name), "name": tool_name, "input": arguments}


def result(call: dict[str, Any], content: Any, *, failed: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
    return {**block, "is_error": True} if failed else block


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def build(folder: Path) -> dict[str, Any]:
    words = {k: v.rstrip("\n") for k, v in bundle("anthropic_texts.txt").items()}
    image = base64.b64encode(bar_chart(P95, 64, 48, 20)).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}
    deploys = use("deploys", "list_deploys", {"service": "checkout"})
    latency = use(
        "latency", "query_metrics", {"query": "p95(checkout.request) by (step)", "since": "2026-02-10T13:00Z"}
    )
    logs = use("logs", "read_logs", {"service": "checkout", "filter": "step=tax AND level>=warn", "limit": 20})
    pool = use("pool", "query_metrics", {"query": "max(tax_client.pool.in_use) by (version)"})
    again = use("again", "query_metrics", {"query": "max(http_client_pool_in_use{client='tax'}) by (version)"})
    messages = [
        {"role": "user", "content": [picture, text(words["question"])]},
        {"role": "assistant", "content": [thinking("1", words["think-1"]), text(words["say-1"]), deploys, latency]},
        {"role": "user", "content": [result(deploys, words["deploys"]), result(latency, words["latency"])]},
        {"role": "assistant", "content": [thinking("2", words["think-2"]), logs, pool]},
        {
            "role": "user",
            "content": [result(logs, [text(words["logs"])]), result(pool, words["pool-error"], failed=True)],
        },
        {"role": "assistant", "content": [thinking("3", words["think-3"]), text(words["say-3"]), again]},
        {"role": "user", "content": [{**result(again, words["pool"]), "cache_control": CACHE}]},
    ]
    request = {
        "model": "claude-opus-4-5",
        "max_tokens": 8192,
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "system": [text(words["system"]), {**text(words["runbook"]), "cache_control": CACHE}],
        "tools": [*TOOLS[:-1], {**TOOLS[-1], "cache_control": CACHE}],
        "messages": messages,
    }
    write_pretty(folder / "anthropic-request.json", request)
    return request

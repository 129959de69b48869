"""What ctxctl is held against: the least that any program must do with the same file.

`bare FILE`: parse every line, take the texts of its content blocks, count them with the same engine; nothing else.
`floor FILE`: parse only lines that can carry usage, keep one number per call.
"""

from __future__ import annotations

import sys

import orjson


def bare(path: str) -> None:
    """Parse and count: blocks of user and assistant messages, one total."""
    import os

    from ctxctl.tokens.engines import engine

    count = engine(size_hint=os.path.getsize(path)).count
    texts: list[str] = []
    pending = total = 0
    with open(path, "rb", buffering=1 << 20) as file:
        for line in file:
            content = (orjson.loads(line).get("message") or {}).get("content")
            if isinstance(content, str):
                texts.append(content)
                pending += len(content)
            for block in content if isinstance(content, list) else ():
                text = _text(block)
                texts.append(text)
                pending += len(text)
            if pending > 1 << 20:
                total += sum(count(texts))
                texts, pending = [], 0
    print(total + sum(count(texts)))


def _text(block: dict[str, object]) -> str:
    kind = block["type"]
    if kind == "tool_use":
        return orjson.dumps(block["input"]).decode()
    if kind == "tool_result":
        content = block["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)  # type: ignore[attr-defined]
    return str(block.get("text") or block.get("thinking") or "")


def floor(path: str) -> None:
    """One number per call: the size of its prompt."""
    seen: dict[tuple[object, object], int] = {}
    with open(path, "rb", buffering=1 << 20) as file:
        for line in file:
            if b'"usage"' not in line or b'"assistant"' not in line:
                continue
            record = orjson.loads(line)
            message = record.get("message") or {}
            usage = message.get("usage")
            if usage:
                prompt = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
                seen[(message.get("id"), record.get("requestId"))] = prompt
    print(len(seen), max(seen.values()))


if __name__ == "__main__":
    {"bare": bare, "floor": floor}[sys.argv[1]](sys.argv[2])

"""Tokens below which no compaction can go, told from the request alone (chat_views): ctxctl only counts texts here.

What may not leave: system texts, the message that states the task, what `<preserve>` marks, the user's newest words,
calls that are open and results that no call has answered, with the answer that holds them, and the newest answer where
it has reasoning. The results that no call has answered may be cut to 60 tokens each. Beside it stand the tokens that
are in no message, and 300 for what a compaction writes itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from chat_views import Message, Part, View

SPARE = 300
CUT = 60
PICTURE = 1600
OUTSIDE = ("system prompt and tools (not in the file)", "growth that no block explains")
PRESERVED = re.compile(r"<preserve>.*?</preserve>", re.S)
KINDS = {"call": "tool_call", "result": "tool_result", "thinking": "thinking"}


def floor_of(view: View, count: Callable[[str, str], int], overhead: int, frame: int) -> int:
    """The floor of a window. overhead: tokens that are in no message; frame: of one message."""
    held: list[Part] = []
    messages = 0
    newest = max((i for i, m in enumerate(view.messages) if m.role == "assistant"), default=-1)
    prompt = max((i for i, m in enumerate(view.messages) if any(p.typed for p in m.parts)), default=-1)
    for at, message in enumerate(view.messages):
        parts = _held(message, view, at, newest, prompt)
        held += parts
        messages += len({p.where for p in parts})
    last = {id(p) for m in view.messages[newest + 1 :] for p in m.parts if p.kind == "result"}
    sizes = ((_tokens(p, message_role(view, p), count), id(p) in last) for p in held)
    return overhead + SPARE + frame * messages + sum(min(size, CUT) if cut else size for size, cut in sizes)


def _held(message: Message, view: View, at: int, newest: int, prompt: int) -> list[Part]:
    if message.role == "system" or at > newest:
        return message.parts
    if at == newest:
        thinks = any(p.kind == "thinking" for p in message.parts)
        waits = at + 1 < len(view.messages) and any(p.kind == "result" for p in view.messages[at + 1].parts)
        open_ = any(p.kind == "call" for p in message.parts) and at + 1 == len(view.messages)
        return message.parts if thinks or waits or open_ else []
    texts = [p.text for p in message.parts]
    task = any(p.typed and p.text in view.first_typed for p in message.parts)
    # a result that came later than the answer behind it, or the pair of the newest reasoning, is found by its id
    if task or at == prompt or (message.role == "user" and any(PRESERVED.search(t) for t in texts)):
        return [p for p in message.parts if p.kind != "result"]
    return []


def message_role(view: View, part: Part) -> str:
    return next(m.role for m in view.messages if any(p is part for p in m.parts))


def _tokens(part: Part, role: str, count: Callable[[str, str], int]) -> int:
    if part.kind == "media":
        return PICTURE
    plain: dict[str, Any] = {"system": "system", "user": "user_message"}
    return count(part.text, KINDS.get(part.kind, plain.get(role, "assistant")))

"""Long results are cut down, when they come in or later; so are arguments of calls, reasoning, and repeated reads."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.clear import results
from ctxctl.simulate.presets.estimate import Estimate
from ctxctl.simulate.presets.items import CLEARED, CUT, Item
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.operations import DedupeReads, DropThinking, Truncate, TruncateInputs
from ctxctl.simulate.presets.tools import Files, is_one_of, reads

BYTES_PER_TOKEN = 4


def shortened(step: Truncate, text: str, tool: str | None) -> str | None:
    """The cut text, None when it is short enough or of a tool that is not meant."""
    if step.tools and not is_one_of(tool, step.tools):
        return None
    if step.max_lines is not None:
        return _whole_lines(step, text, tool)
    length = _length(step, text)
    if length < step.limit or (length == step.limit and not step.at):
        return None
    lines = text.split("\n")
    if step.head_lines or step.tail_lines:
        left = max(0, len(lines) - step.head_lines - step.tail_lines)
        head = "\n".join(lines[: step.head_lines])
        tail = "\n".join(lines[max(step.head_lines, len(lines) - step.tail_lines) :])
    else:
        head, tail = _ends(step, text)
        left = len(text) - len(head) - len(tail)
    parts = (step.header, head, step.marker, tail, step.suffix)
    return "".join(p if n % 2 else _told(p, left, length, len(lines)) for n, p in enumerate(parts))


def _length(step: Truncate, text: str) -> int:
    if step.measure == "characters":
        return len(text)
    if step.measure == "tokens":
        return len(text) // BYTES_PER_TOKEN
    return len(text.encode("utf-8", "surrogatepass"))


def _ends(step: Truncate, text: str) -> tuple[str, str]:
    """The first and last part; of bytes, whole characters only."""
    if step.measure != "bytes" or text.isascii():
        return text[: step.head], text[-step.tail :] if step.tail else ""
    raw = text.encode("utf-8", "surrogatepass")
    head = raw[: step.head].decode("utf-8", "ignore")
    return head, raw[-step.tail :].decode("utf-8", "ignore") if step.tail else ""


def _told(template: str, left: int, length: int, lines: int) -> str:
    total = -(-length // BYTES_PER_TOKEN)
    return template.replace("{n}", str(left)).replace("{total}", str(total)).replace("{lines}", str(lines))


def _whole_lines(step: Truncate, text: str, tool: str | None) -> str | None:
    """At most so many lines and bytes, whichever ends first; a part of a line alone only when the first is too long."""
    lines = text.split("\n")
    assert step.max_lines is not None
    if len(lines) <= step.max_lines and len(text.encode("utf-8", "surrogatepass")) <= step.limit:
        return None
    backwards = is_one_of(tool, step.from_end)
    kept: list[str] = []
    used = 0
    for line in reversed(lines) if backwards else lines:
        size = len(line.encode("utf-8", "surrogatepass")) + bool(kept)
        if len(kept) == step.max_lines or used + size > step.limit:
            break
        kept.append(line)
        used += size
    if not kept:
        raw = lines[-1 if backwards else 0].encode("utf-8", "surrogatepass")
        kept = [(raw[-step.limit :] if backwards else raw[: step.limit]).decode("utf-8", "ignore")]
    if backwards:
        kept.reverse()
    note = _told(step.suffix, len(lines) - len(kept), len(text), len(lines))
    return "\n".join(kept) + note


def truncate(step: Truncate, changes: Changes, groups: Sequence[Group], estimate: Estimate) -> None:
    """Cut results that are in the window already."""
    last = len(groups)
    if step.select == "before_user":
        last = next((n for n in range(len(groups) - 1, -1, -1) if groups[n].prompt), 0)
    budget = 0.0
    for place in range(last - 1, -1, -1):
        group = groups[place]
        if group.side != "result":
            continue
        for item in reversed(results(group.items)):
            if step.select != "budget" or budget + estimate.item(item) > step.budget:
                text = None if item.mark == CUT else shortened(step, item.text, item.tool)
                if text is not None and text != item.text:
                    changes.rewrite(item, text, CUT, cut=True)
            budget += estimate.item(item)


def truncate_inputs(
    step: TruncateInputs, changes: Changes, groups: Sequence[Group], estimate: Estimate, keep: float
) -> None:
    """Cut long arguments of calls that are older than the newest messages of `keep` tokens."""
    import orjson

    total = 0.0
    for group in reversed(groups):
        total += estimate.group(group)
        if total <= keep:
            continue
        for item in group.calls:
            if item.mark == CUT or len(item.text) <= step.longer_than:
                continue
            name, _, told = item.text.partition(" ")
            try:
                values = orjson.loads(told)
            except ValueError:
                values = told
            short = _short(step, values)
            if short == values:
                continue
            text = short if isinstance(short, str) else orjson.dumps(short).decode()
            changes.rewrite(item, f"{name} {text}", CUT, cut=True)


def _short(step: TruncateInputs, value: object) -> object:
    if isinstance(value, str):
        return value[: step.head] + step.suffix if len(value) > step.longer_than else value
    if isinstance(value, dict):
        return {k: _short(step, v) if isinstance(v, str) else v for k, v in value.items()}
    return value


def drop_thinking(step: DropThinking, changes: Changes, groups: Sequence[Group]) -> None:
    """Reasoning leaves, but for the newest assistant messages."""
    answers = [g for g in groups if g.side == "assistant"]
    old = answers[: max(0, len(answers) - step.keep_turns)]
    changes.drop([i for g in old for i in g.items if i.kind == "thinking"])


def dedupe_reads(step: DedupeReads, changes: Changes, items: Sequence[Item], files: Files) -> bool:
    """All but the newest read of each file become a notice; whether that saved enough characters."""
    newest: dict[str, Item] = {}
    found = reads(items, step.read_tools)
    paths = {i.number: files.of(i, changes.window)[0] for i in found}
    for item in found:
        if (path := paths[item.number]) is not None:
            newest[path] = item
    total = sum(len(i.text) for i in items if i.side not in ("system", "tools"))
    saved = 0
    for item in found:
        path = paths[item.number]
        if path is None or newest[path] is item or item.mark == CLEARED or len(item.text) <= len(step.notice):
            continue
        saved += len(item.text) - len(step.notice)
        changes.rewrite(item, step.notice, CLEARED)
    return total > 0 and saved / total >= step.enough

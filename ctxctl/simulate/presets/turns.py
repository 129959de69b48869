"""Cline's compaction without a model: what users typed stays, and work that left becomes a notice behind it."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.carrier import carrier_of
from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.cuts import Cutter
from ctxctl.simulate.presets.items import Item
from ctxctl.simulate.presets.messages import Group
from ctxctl.simulate.presets.operations import CompactTurns
from ctxctl.simulate.presets.pairs import snap
from ctxctl.simulate.presets.tools import Files, arguments, is_one_of


def pairs_of(groups: Sequence[Group]) -> int:
    """How often an assistant's message follows one of the user's, results among them."""
    count, waiting = 0, False
    for group in groups:
        if group.side == "assistant":
            count += waiting
            waiting = False
        elif group.side != "system":
            waiting = True
    return count


def compact_turns(step: CompactTurns, changes: Changes, groups: Sequence[Group], cutter: Cutter, files: Files) -> None:
    """Keep prompts, the newest messages and last answers; drop and tell the rest."""
    estimate = cutter.estimate
    target = int(cutter.tokens(step.long_target if pairs_of(groups) >= step.long_pairs else step.target))
    starts = [n for n, g in enumerate(groups) if g.prompt]
    if not starts:
        return
    used = sum(estimate.group(g) for g in groups if g.prompt or g.side in ("notice", "summary"))
    end = len(groups)
    first = end
    while first - 1 > starts[-1] and used + estimate.group(groups[first - 1]) <= target:
        first -= 1
        used += estimate.group(groups[first])
    if first > starts[-1] + 1:
        first = snap(groups, first, starts[-1] + 1, "snap_forward_assistant")
    kept = set(range(first, end))
    for at in range(len(starts) - 2, -1, -1):
        answer = next(
            (
                n
                for n in range(starts[at + 1] - 1, starts[at], -1)
                if groups[n].side == "assistant" and not groups[n].calls
            ),
            None,
        )
        if answer is None:
            continue
        said = [i for i in groups[answer].items if i.kind != "thinking"]
        if used + estimate.items(said) <= target:
            used += estimate.items(said)
            kept.add(answer)
            changes.drop([i for i in groups[answer].items if i.kind == "thinking"])
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        gone = [
            item
            for n in range(start + 1, stop)
            if n not in kept and groups[n].side in ("assistant", "result")
            for item in groups[n].items
        ]
        carrier = carrier_of(gone, last=False)
        if carrier is None:
            continue
        text = _notice(step, gone, changes, files)
        changes.drop([i for i in gone if i is not carrier])
        changes.turn_into(carrier, "notice", text, changes.count(text, "user_message"))


def _notice(step: CompactTurns, gone: Sequence[Item], changes: Changes, files: Files) -> str:
    """Files read and edited, commands run, and the last texts as they were."""
    read: dict[str, None] = {}
    edited: dict[str, None] = {}
    commands: list[str] = []
    for item in gone:
        if item.kind != "tool_call":
            continue
        path, _ = files.of(item, changes.window)
        if is_one_of(item.tool, step.read_tools) and path is not None:
            read[path] = None
        elif is_one_of(item.tool, step.edit_tools) and path is not None:
            edited[path] = None
        elif is_one_of(item.tool, step.shells):
            told = arguments(item.text)
            commands.append(str(told.get("command", told.get("cmd", item.text)))[: step.command])
    said = [i.text for i in gone if i.kind == "assistant"][-step.answers :]
    parts = ["Earlier messages were compacted. What was done after the request above:"]
    for title, lines in (("Files read:", list(read)), ("Files edited:", list(edited)), ("Commands ran:", commands)):
        if lines:
            parts += [title, *lines]
    return "\n".join((*parts, *said))

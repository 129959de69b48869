"""One block stands for all of an old part, in its place."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.cuts import Part
from ctxctl.simulate.presets.items import Item
from ctxctl.simulate.presets.messages import Group


def replace_part(
    changes: Changes,
    groups: Sequence[Group],
    part: Part,
    side: str,
    text: str | None,
    tokens: int,
    *,
    last: bool = False,
) -> Item | None:
    """The old part leaves, and one block stands in its place (last: at its end). Returns that."""
    old = [i for n in range(part.head, part.start) if n not in part.spared for i in groups[n].items]
    carrier = carrier_of(old, last=last)
    if carrier is None:
        return None
    changes.drop([i for i in old if i is not carrier])
    changes.turn_into(carrier, side, text, tokens)
    return carrier


def carrier_of(old: Sequence[Item], *, last: bool) -> Item | None:
    """Whose place the new block takes: all of the old part goes, so that any of it will do; one that is no call and no
    result where there is one."""
    order = list(reversed(old)) if last else list(old)
    return next((i for i in order if i.kind not in ("tool_call", "tool_result")), order[0] if order else None)

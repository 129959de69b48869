"""A model's summary takes the place of the old part: its text is not known, its size is told or assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxctl.simulate.presets.amounts import Cut
from ctxctl.simulate.presets.carrier import carrier_of
from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.cuts import Cutter, Part
from ctxctl.simulate.presets.items import CLEARED, CUT, Item
from ctxctl.simulate.presets.messages import Group, head_of
from ctxctl.simulate.presets.pairs import repair
from ctxctl.simulate.presets.schema import Size, Summary
from ctxctl.simulate.presets.tools import Files, is_one_of, reads

BYTES_PER_TOKEN = 4
EVERYTHING = Cut("everything")


class Summariser:
    """Carries out one preset's summaries. failed: one was refused because it was no shorter."""

    def __init__(self, summary: Summary, cutter: Cutter, size: Size, files: Files) -> None:
        self.told = summary
        self.cutter = cutter
        self.size = size
        self.files = files
        self.failed = False

    @property
    def tokens(self) -> int:
        """What a summary is taken to have."""
        return self._size(self.told.assumed)

    def run(self, changes: Changes, groups: list[Group], *, fresh: bool, hard: bool) -> bool:
        """Summarise the old part of `groups`; whether it did. fresh: a new exchange stands behind them. hard: the
        window is too full, so that a runtime which finds no part resets."""
        told = self.told
        if self.failed:
            return False
        if told.cut.kind == "users":
            return self._users(changes, groups)
        part = self.cutter.part(told.cut, groups, changes.window.overhead)
        if part is None and hard and told.hard_reset:
            part = self.cutter.part(EVERYTHING, groups)
        if part is None:
            return False
        latest = next((n for n in range(len(groups) - 1, -1, -1) if groups[n].prompt), None)
        if told.latest_user and latest is not None and part.head <= latest < part.start and not fresh:
            part = replace(part, spared=frozenset((latest,)))
        old = [i for n in range(part.head, part.start) if n not in part.spared for i in groups[n].items]
        size = self._size(told.assumed) + self._carried(changes, old)
        read = sum(i.tokens for i in old) + (changes.window.overhead if told.cut.kind == "everything" else 0)
        calls = [(read, size, told.shares_prefix)] * told.calls
        if told.split is not None and part.start < len(groups) and not groups[part.start].prompt:
            extra = self._size(told.split)
            size += extra
            calls.append((read, extra, told.shares_prefix))
        if told.reject_larger and size > sum(i.tokens for i in old):
            self.failed = True
            changes.helper += calls
            return False
        changes.helper += calls
        copies = self._copies(changes, old)
        tail = self._tail(changes, groups[part.start :]) if told.tail_as_text is not None else None
        self._place(changes, old, part, groups, size)
        if tail is not None:
            changes.insert("summary", "summary", told.role, tail, changes.count(tail, "summary"))
        for text, tokens in copies:
            changes.insert("user", "memory_injection", "user", text, tokens)
        if self.cutter.preset.pair == "repair_after":
            repair(changes, self.cutter.preset.missing_result)
        return True

    def _size(self, sizes: object) -> int:
        return int(getattr(sizes, self.size))

    def _place(self, changes: Changes, old: list[Item], part: Part, groups: Sequence[Group], size: int) -> None:
        """Put the summary where the old part was: before what is spared, if there is anything before it."""
        front = old
        if part.spared:
            first = min(part.spared)
            front = [i for n in range(part.head, first) for i in groups[n].items] or old
        carrier = carrier_of(front, last=False)
        if carrier is None:
            return
        ack = None
        if self.told.ack is not None:
            behind = front[front.index(carrier) + 1 :]
            ack = carrier_of(behind, last=False)
            if ack is None:  # one message holds both
                size += changes.count(self.told.ack, "assistant")
        changes.drop([i for i in old if i is not carrier and i is not ack])
        changes.turn_into(carrier, "summary", None, size)
        if ack is not None and self.told.ack is not None:
            changes.turn_into(ack, "assistant", self.told.ack, changes.count(self.told.ack, "assistant"))

    def _carried(self, changes: Changes, old: Sequence[Item]) -> int:
        """Tokens of a plan that comes along."""
        if not self.told.carry_tool:
            return 0
        plan = next(
            (i for i in reversed(old) if i.kind == "tool_call" and is_one_of(i.tool, (self.told.carry_tool,))), None
        )
        if plan is None:
            return 0
        text = plan.text.partition(" ")[2].encode("utf-8", "surrogatepass")[: self.told.carry_bytes]
        return changes.count(text.decode("utf-8", "ignore"), "summary")

    def _copies(self, changes: Changes, old: Sequence[Item]) -> list[tuple[str, int]]:
        """The newest reads of files, cut down, as they come in again."""
        told = self.told.files
        if told is None:
            return []
        newest: dict[str, Item] = {}
        for item in reads(old, told.read_tools):
            path, _ = self.files.of(item, changes.window)
            if path is not None and item.mark != CLEARED:
                newest.pop(path, None)
                newest[path] = item
        left = told.total
        found: list[tuple[str, int]] = []
        for item in list(reversed(newest.values()))[: told.most]:
            room = min(told.each, left)
            text, tokens = item.text, item.tokens
            if tokens > room:
                text = text[: len(text) * room // tokens]
                tokens = room
            if tokens <= 0:
                break
            found.append((text, tokens))
            left -= tokens
        return found

    def _tail(self, changes: Changes, kept: Sequence[Group]) -> str:
        """The kept part as text; its messages leave."""
        told = self.told
        assert told.tail_as_text is not None
        lines = []
        for item in (i for g in kept for i in g.items):
            text = item.text
            if item.side == "result" and len(text) > told.tail_as_text:
                text = text[: told.tail_as_text] + told.tail_suffix
            if text:
                lines.append(f"{item.side}: {text}")
        changes.drop([i for g in kept for i in g.items])
        return "\n\n".join(lines)

    def _users(self, changes: Changes, groups: list[Group]) -> bool:
        """Codex: what users typed stays, newest first, within a budget; all else becomes the summary behind it."""
        cut = self.told.cut
        room = self.cutter.tokens(cut.limit)
        head = head_of(groups)
        kept: set[int] = set()
        crossing: Group | None = None
        for place in range(len(groups) - 1, head - 1, -1):
            group = groups[place]
            if not group.prompt:
                continue
            size = self.cutter.estimate.group(group)
            if size > room:
                if cut.reach and room >= 1:
                    crossing = group
                    kept.add(place)
                break
            room -= size
            kept.add(place)
        first = next((n for n, g in enumerate(groups) if g.prompt), len(groups))
        context = {n for n in range(head, first) if all(i.kind == "memory_injection" for i in groups[n].items)}
        context = {n for n in context if groups[n].side == "user"}
        old_places = [n for n in range(head, len(groups)) if n not in kept and n not in context]
        old = [i for n in old_places for i in groups[n].items]
        if not old:
            return False
        size = self._size(self.told.assumed)
        read = changes.window.overhead + sum(i.tokens for g in groups for i in g.items)
        changes.helper.append((read, size, self.told.shares_prefix))
        if crossing is not None:
            for item in crossing.items:
                changes.rewrite(item, _middle(item.text, int(room) * BYTES_PER_TOKEN), CUT, cut=True)
        newest = max(kept, default=-1)
        behind = [i for n in old_places if n > newest for i in groups[n].items]
        carrier = carrier_of(behind, last=True)
        changes.drop([i for i in old if i is not carrier])
        if carrier is None:
            changes.insert("summary", "summary", "user", None, size)
        else:
            changes.turn_into(carrier, "summary", None, size)
        return True


def _middle(text: str, most: int) -> str:
    """Text with its middle left out, so that so many bytes stay."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= most:
        return text
    half = most // 2
    left = -(-(len(raw) - most) // BYTES_PER_TOKEN)
    head = raw[:half].decode("utf-8", "ignore")
    tail = raw[len(raw) - (most - half) :].decode("utf-8", "ignore")
    return f"{head}…{left} tokens truncated…{tail}"

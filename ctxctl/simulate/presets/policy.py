"""A preset as a policy: it does before each call what the runtime would have done."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.errors import UsageError
from ctxctl.eviction.base import Policy, Setting
from ctxctl.model.edits import Edits, Replace
from ctxctl.model.window import Window
from ctxctl.simulate.presets.carrier import replace_part
from ctxctl.simulate.presets.changes import Changes
from ctxctl.simulate.presets.clear import clear_by_rule, clear_old
from ctxctl.simulate.presets.cuts import Cutter
from ctxctl.simulate.presets.estimate import Estimate
from ctxctl.simulate.presets.extract import extract
from ctxctl.simulate.presets.items import CUT, Item, Items
from ctxctl.simulate.presets.limits import limit_tokens, trigger_tokens
from ctxctl.simulate.presets.mask import clear_budget
from ctxctl.simulate.presets.messages import Group, Grouping
from ctxctl.simulate.presets.operations import Drop
from ctxctl.simulate.presets.pairs import repair
from ctxctl.simulate.presets.schema import Preset, Size, Step, Trigger
from ctxctl.simulate.presets.summary import Summariser
from ctxctl.simulate.presets.tools import Files
from ctxctl.simulate.presets.triggers import fires
from ctxctl.simulate.presets.truncate import dedupe_reads, drop_thinking, shortened, truncate, truncate_inputs
from ctxctl.simulate.presets.turns import compact_turns

NOTHING = Edits()
RECORD = "record"


class PresetPolicy(Policy):
    """What a known agent's runtime does to its window.

    Complexity: O(blocks) per call.
    Strength: shows what another agent would have made of this session.
    Weakness: the sizes of a model's summaries are assumed.
    Fit: comparisons between agents, and with one's own policy.
    """

    ranks = False
    group = "preset"

    def __init__(self, preset: Preset, setting: Setting, summary_size: Size = "typ") -> None:
        super().__init__(setting)
        assert preset.trigger is not None
        self.name = preset.id  # type: ignore[misc]  # one class, as many names as presets
        self.preset = preset
        self.trigger: Trigger = preset.trigger
        self.estimate = Estimate(preset, setting.model)
        self.items = Items(self.estimate.measure)
        self.cutter = Cutter(preset, setting, self.estimate)
        self.files = Files()
        self.new_exchange = False
        self.compacted = False
        self._exchange = 0
        self._grouping = Grouping(preset)
        told = preset.summary
        self._summary = Summariser(told, self.cutter, summary_size, self.files) if told is not None else None
        self._at_record = [s for s in preset.steps if (s.when or self.trigger).kind == RECORD]
        self._steps = [s for s in preset.steps if (s.when or self.trigger).kind != RECORD]

    def warning(self, overhead: int = 0) -> str | None:
        """Why the preset makes no sense in this window: its trigger is not above 0, or not above what it leaves there.
        overhead: tokens of the system prompt and tools. None when nothing is wrong."""
        name, window, output = self.preset.id, self.setting.window, self.setting.output
        if self.trigger.kind == "never":
            return f"{name} has no trigger unless its application sets one: nothing leaves"
        at = trigger_tokens(self.preset, window, output, self.setting.model)
        if at is None or self.trigger.finished:
            return None
        if at <= 0:
            return (
                f"{name} acts from {at:,} tokens on in a window of {window:,} with answers of up to {output:,}: "
                "before every call"
            )
        told = self.preset.summary
        tail = self.cutter.tail(told.cut) if told is not None else 0
        summary = self._summary.tokens if self._summary is not None else 0
        if at <= overhead + tail + summary:
            parts = ((overhead, "system prompt and tools"), (tail, "the part that stays"), (summary, "the summary"))
            said = ", ".join(f"{part} {tokens:,}" for tokens, part in parts if tokens)
            return f"{name} acts from {at:,} tokens on, and what it leaves is no less: {said}"
        return None

    # what the engine asks

    def record(self, window: Window, block: int) -> Replace | None:
        item = self.items.enter(window, block)
        if item.side != "assistant":
            self.compacted = False
        if item.kind != "tool_result":
            return None
        for step in self._at_record:
            assert step.truncate is not None
            text = shortened(step.truncate, item.text, item.tool)
            if text is not None:
                tokens = min(item.tokens, self.setting.count(text, "tool_result"))
                item.text, item.tokens, item.mark = text, tokens, CUT
                item.resize(self.items.measure(text, item.kind, tokens))
                return Replace(block, text, tokens, self.preset.id)
        return None

    def rule(self, window: Window) -> Edits:
        self.new_exchange = window.exchange > self._exchange > 0
        first = window.exchange > self._exchange
        self._exchange = window.exchange
        self.items.sync(window)
        changes = Changes(window, self.items, self.setting, self.preset.id, keep_sizes=not self.preset.persist)
        due: bool | None = None  # steps of one trigger run together, whatever the first of them freed
        for step in self._steps:
            if step.when is None and due is None:
                due = fires(self.trigger, self, window)
            if fires(step.when, self, window) if step.when is not None else due:
                enough = self._run(step, changes, window, full=first)
                if enough:
                    break
        if self._summary is not None and fires(self.trigger, self, window):
            self._summarise(self._summary, changes, window)
        edits = changes.edits()
        return edits if edits or edits.helper else NOTHING

    # what triggers look at

    def groups(self, window: Window) -> list[Group]:
        """What the preset counts, now."""
        return self._grouping.groups(self.items, window.overhead > 0)

    @property
    def apart(self) -> Sequence[Item]:
        """What is sent and in no group, when last asked."""
        return self._grouping.apart

    def finished(self, window: Window) -> list[Group]:
        """What came before the current exchange."""
        return [g for g in self.groups(window) if not g.items or g.items[0].exchange < window.exchange]

    # what it does

    def _run(self, step: Step, changes: Changes, window: Window, *, full: bool) -> bool:
        """One step; whether what follows is needless."""
        when = step.when or self.trigger
        groups = self.finished(window) if when.kind == "exchange_end" else self.groups(window)
        if step.clear_by_rule is not None:
            clear_by_rule(step.clear_by_rule, changes, groups, self.files, full=full)
        elif step.clear_old is not None:
            clear_old(step.clear_old, changes, groups)
        elif step.clear_budget is not None:
            clear_budget(step.clear_budget, changes, groups, self.estimate)
        elif step.truncate is not None:
            truncate(step.truncate, changes, groups, self.estimate)
        elif step.truncate_inputs is not None:
            keep = self.cutter.tokens(step.truncate_inputs.keep)
            truncate_inputs(step.truncate_inputs, changes, groups, self.estimate, keep)
        elif step.drop_thinking is not None:
            drop_thinking(step.drop_thinking, changes, groups)
        elif step.dedupe_reads is not None:
            return dedupe_reads(step.dedupe_reads, changes, self.items.list, self.files)
        elif step.drop is not None:
            self._drop(step.drop, changes, window)
        elif step.extract is not None:
            extract(step.extract, changes, groups, self.cutter)
        elif step.compact_turns is not None:
            compact_turns(step.compact_turns, changes, groups, self.cutter, self.files)
        return False

    def _drop(self, step: Drop, changes: Changes, window: Window) -> None:
        while True:
            groups = self.groups(window)
            self.cutter.last_usage = window.prompt + window.output
            part = self.cutter.part(step.cut, groups, window.overhead)
            if part is None:
                return
            old = [i for n in range(part.head, part.start) if n not in part.spared for i in groups[n].items]
            if step.notice is None:
                changes.drop(old)
            else:
                text = step.notice.replace("{n}", str(part.start - part.head - len(part.spared)))
                replace_part(changes, groups, part, "notice", text, changes.count(text, "user_message"), last=True)
            if self.preset.pair == "repair_after":
                repair(changes, self.preset.missing_result)
            if not old or not step.repeat or self._tokens(window) <= self.setting.window:
                return

    def _tokens(self, window: Window) -> int:
        return window.overhead + sum(i.tokens for i in self.items.list)

    def _summarise(self, summariser: Summariser, changes: Changes, window: Window) -> None:
        told = summariser.told
        for _ in range(1 + told.again_above):
            fresh = self.trigger.finished or (told.new_exchange_after and self.new_exchange)
            groups = self.finished(window) if fresh else self.groups(window)
            hard = self._tokens(window) > self.setting.window
            done = summariser.run(changes, groups, fresh=fresh, hard=hard)
            self.compacted = self.compacted or done
            if not done or self.trigger.limit is None or not told.again_above:
                return
            setting = self.setting
            limit = float(limit_tokens(self.trigger.limit, setting.window, setting.output, setting.model))
            if self.estimate.groups(self.finished(window)) <= limit:
                return


def preset_policy(preset: Preset, setting: Setting, summary_size: Size = "typ") -> PresetPolicy:
    """The policy that replays a preset. summary_size: which of the assumed sizes a model's summary has.

    UsageError for a preset that can't be replayed.
    """
    if preset.unsupported is not None:
        raise UsageError(f"preset {preset.id!r} can't be replayed: {preset.unsupported}")
    return PresetPolicy(preset, setting, summary_size)

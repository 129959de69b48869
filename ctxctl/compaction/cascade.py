"""The cascade: the cheapest step that still has something to do first, measured anew after each (requirements C7, C8,
C14, C18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ctxctl.compaction.base import STRATEGIES, Scene, Strategy
from ctxctl.compaction.options import CompactionOptions
from ctxctl.model.edits import SUMMARY, Edits, Note, Replace
from ctxctl.model.text import MARK, marked
from ctxctl.model.window import Window


@dataclass(frozen=True, slots=True)
class Step:
    """One strategy that changed the window. units: that it touched; fallback: why the extractive text was used although
    a model was asked for, None when it was not."""

    strategy: str
    before: int
    after: int
    units: int
    edits: Edits
    fallback: str | None = None


def allowed_steps(options: CompactionOptions, utilization: float) -> list[str]:
    """Steps that a utilization allows, the cheapest first: at 0.74 none, from 0.75 on tool-results, and so on."""
    return [name for at, name in sorted(options.cascade.items()) if utilization >= at]


class Cascade:
    """Carries out steps on a window. clean: what every new text passes. One object serves one run, or one live session;
    what a step wants noted (`Edits.entries`) is for whoever runs it.

    Strategies mark with the default mark; another one that the settings name takes its place here, in what they write
    and in what they measure."""

    def __init__(
        self,
        options: CompactionOptions,
        clean: Callable[[str], str],
    ) -> None:
        self.options = options
        self._clean = clean
        self._strategies: dict[str, Strategy] = {}

    def run(self, names: Sequence[str], scene: Scene, *, minimum: int = 0) -> list[Step]:
        """Run steps until the window holds no more than the target; those that changed something. minimum: tokens that
        a step must free, so that the cached prefix is not broken for little."""
        steps: list[Step] = []
        if self.options.mark != MARK:
            scene = replace(scene, count=self._as_marked(scene.count))
        for name in names:
            if scene.over <= 0:
                break
            step = self._step(name, scene, minimum)
            if step is not None:
                steps.append(step)
        return steps

    def _step(self, name: str, scene: Scene, minimum: int) -> Step | None:
        strategy = self._strategies.get(name)
        if strategy is None:
            strategy = self._strategies[name] = STRATEGIES.get(name)()
        window = scene.window
        before = window.tokens
        missing = _fell_back(scene)
        edits = self._cleaned(strategy.plan(scene), scene)
        freed = freed_by(window, edits)
        if freed <= 0 or freed < min(minimum, before - scene.target):
            return None
        units = {d.unit for d in edits.drops} | {window.unit_of[c.block] for c in edits.replaces if c.block >= 0}
        window.apply(edits)
        reason = _reason(scene, missing)
        return Step(name, before, window.tokens, len(units), edits, reason)

    def _as_marked(self, count: Callable[[str, str], int]) -> Callable[[str, str], int]:
        mark = self.options.mark
        return lambda text, kind: count(marked(text, mark), kind)

    def _cleaned(self, edits: Edits, scene: Scene) -> Edits:
        changes: list[Replace] = []
        for change in edits.replaces:
            if change.text is not None:
                text = self._clean(change.text)
                if text != change.text:
                    tokens = scene.measure(change.block, text, summary=change.kind == SUMMARY)
                    change = change._replace(text=text, tokens=tokens)
                if (text := marked(text, self.options.mark)) != change.text:
                    change = change._replace(text=text)
            changes.append(change)
        entries = tuple(Note(note.type, self._clean(note.text)) for note in edits.entries)
        return replace(edits, replaces=tuple(changes), entries=entries)


def freed_by(window: Window, edits: Edits) -> int:
    """Tokens that edits would free; negative when they add some."""
    dropped = sum(window.entries[b].tokens for d in edits.drops for b in d.blocks)
    shrunk = sum(window.entries[c.block].tokens - c.tokens for c in edits.replaces)
    return dropped + shrunk - sum(new.tokens for new in edits.inserts)


def _fell_back(scene: Scene) -> int:
    return int(getattr(scene.helper, "fell_back", 0))


def _reason(scene: Scene, missing: int) -> str | None:
    """Why a text of this step is not the model's, None when all are or when no model was asked for. missing: texts that
    it had not written before the step."""
    if scene.helper is None or _fell_back(scene) <= missing:
        return None
    reasons = getattr(scene.helper, "reasons", ())
    return str(reasons[-1]) if reasons else "the model gave no usable text"

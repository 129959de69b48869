"""The old part of a window, which strategies may replace as a whole."""

from __future__ import annotations

from ctxctl.compaction.base import Scene
from ctxctl.compaction.boundary import held_tokens, recent
from ctxctl.compaction.replacing import old_units, summary_room


def old_part(scene: Scene) -> set[int]:
    """Units before the recent tail that may be replaced, earlier summaries among them."""
    window, options = scene.window, scene.options
    held = held_tokens(window, window.summaries)
    limit = held + (scene.target - held) * options.recent_share
    old, _ = recent(window, limit, summary_room(scene, options.summary_share))
    return old_units(window, old)

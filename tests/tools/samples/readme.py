"""The README of the sample folder; its numbers come from the sessions themselves."""

from __future__ import annotations

from pathlib import Path

from .axios_story import Story
from .codex_log import CodexLog
from .core import bundle


def spike(prompts: list[int]) -> tuple[int, float]:
    """The turn that adds most compared with the mean of the four before it."""
    added = [max(0, b - a) for a, b in zip([0, *prompts], prompts, strict=False)]
    ratios = [(4 * added[i] / max(1, sum(added[i - 4 : i])), i + 1) for i in range(4, len(added))]
    ratio, turn = max(ratios)
    return turn, ratio


def write_readme(folder: Path, story: Story, codex: CodexLog) -> None:
    records = story.log.records
    line = next(n for n, r in enumerate(records, 1) if r.get("subtype") == "compact_boundary")
    turn, ratio = spike([call["prompt"] for call in story.log.calls])
    assert story.agent is not None
    text = bundle("readme.txt")["README.md"].format(
        calls=len(story.log.calls),
        spike=turn,
        ratio=f"{ratio:.1f}",
        pre=f"{records[line - 1]['compactMetadata']['preTokens']:,}",
        line=line,
        helper=len(story.agent.log.calls),
        codex=len(codex.calls),
    )
    (folder / "README.md").write_bytes(text.encode())

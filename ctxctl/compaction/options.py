"""Settings of the compaction room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

Strategy = Literal["tool-results", "progressive", "conversation", "notes", "delegate"]
Turns = Annotated[int, Meta(ge=0, le=1_000_000)]


@dataclass(frozen=True, slots=True)
class ProgressiveOptions:
    """Age in turns up to which each level of detail holds."""

    l0_full: Annotated[Turns, Meta(description="kept as it is")] = 1
    l1_keypoints: Annotated[Turns, Meta(description="key points")] = 5
    l2_oneline: Annotated[Turns, Meta(description="one line")] = 15
    l3_title: Annotated[Turns, Meta(description="a title that carries the outcome")] = 50

    def __post_init__(self) -> None:
        ages = (self.l0_full, self.l1_keypoints, self.l2_oneline, self.l3_title)
        if not ages[0] < ages[1] < ages[2] < ages[3]:
            raise ValueError(f"the ages must grow from l0_full to l3_title, not {', '.join(map(str, ages))}")


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which step comes at which utilization, and what the steps do."""

    summarization_threshold_tokens: Annotated[
        int, Meta(ge=1, description="tool results above this many tokens are condensed")
    ] = 500
    cascade: Annotated[
        dict[Annotated[float, Meta(gt=0, le=1)], Strategy],
        Meta(description="utilization from which on a step is allowed"),
    ] = field(
        default_factory=lambda: {0.75: "tool-results", 0.85: "progressive", 0.92: "conversation", 0.95: "delegate"}
    )
    progressive: ProgressiveOptions = field(default_factory=ProgressiveOptions)
    notes_file: Annotated[str, Meta(min_length=1, description="Markdown notes that the next window starts from")] = (
        "agent_notes.md"
    )

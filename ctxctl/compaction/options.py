"""Settings of the compaction room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from ctxctl.model.block import KINDS

Strategy = Literal["tool-results", "progressive", "conversation", "notes", "delegate"]
Mark = Literal["[summary]", "[摘要]"]
"""Marks that are recognized when a transcript is read again: any other would let summaries nest."""
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
class LlmOptions:
    """A model that writes summaries: a command that reads a prompt on stdin and writes text on stdout, or a model
    behind an OpenAI-compatible endpoint. Without either, all summaries are extracts."""

    command: Annotated[
        str | tuple[str, ...] | None, Meta(description="a shell command, or a program with its arguments as a list")
    ] = None
    endpoint: Annotated[str | None, Meta(description="base URL of an OpenAI-compatible endpoint")] = None
    model: Annotated[str | None, Meta(description="name of the model that the endpoint serves")] = None
    api_key_env: Annotated[str, Meta(min_length=1, description="variable that holds the endpoint's API key")] = (
        "OPENAI_API_KEY"
    )
    window: Annotated[int, Meta(ge=1000, description="tokens that the model reads and writes at most in one call")] = (
        32_000
    )
    timeout: Annotated[float, Meta(gt=0, le=86_400, description="seconds that one call may take")] = 120.0
    retries: Annotated[int, Meta(ge=0, le=10, description="how often a failed call is tried again")] = 2
    on_failure: Annotated[
        Literal["extractive", "fail"], Meta(description="what happens when the model fails: an extract, or an error")
    ] = "extractive"

    def __post_init__(self) -> None:
        if self.command is not None and self.endpoint is not None:
            raise ValueError("a command and an endpoint are set; keep one of them")
        if self.endpoint is not None and not self.model:
            raise ValueError("an endpoint needs the name of a model")
        if self.model and self.endpoint is None and self.command is None:
            raise ValueError("a model needs the endpoint that serves it (https://api.openai.com/v1 for OpenAI)")
        if self.command is not None and not any(part.strip() for part in self.command):
            raise ValueError("the command is empty")


@dataclass(frozen=True, slots=True)
class LevelRule:
    """How much of a block stays, for those that all of its conditions hold for. older_than: age in turns."""

    level: Literal["full", "truncate", "compact", "summary"]
    older_than: Turns = 0
    kind: str | None = None
    tool: str | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of block; known: {', '.join(KINDS)}")


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which step comes at which utilization, and what the steps do."""

    mark: Annotated[Mark, Meta(description="how a text begins that stands for something longer")] = "[summary]"
    summarization_threshold_tokens: Annotated[
        int, Meta(ge=1, description="tool results above this many tokens are condensed")
    ] = 500
    findings_tokens: Annotated[int, Meta(ge=20, description="tokens that the key findings of an output take")] = 200
    recent_share: Annotated[
        float, Meta(gt=0, lt=1, description="share of the target that the recent part may fill")
    ] = 0.5
    summary_share: Annotated[
        float, Meta(gt=0, lt=1, description="share of the target that a summary of the old part may fill")
    ] = 0.4
    minimum_saving: Annotated[
        int, Meta(ge=0, description="tokens that a step must free to be worth breaking the cached prefix")
    ] = 1000
    expected_turns: Annotated[
        int, Meta(ge=0, description="further calls within which a compaction must pay back what it costs the cache")
    ] = 50
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
    levels: Annotated[
        tuple[LevelRule, ...], Meta(description="fidelity by age, kind or tool; the first rule that fits holds")
    ] = (
        LevelRule("full", kind="user_message"),
        LevelRule("compact", older_than=15),
        LevelRule("truncate", kind="tool_result"),
    )
    full_messages: Annotated[int, Meta(ge=0, description="newest messages that keep all of their text")] = 6
    prompts_dir: Annotated[
        str | None, Meta(description="folder whose files (`notes.md` ...) stand for the shipped prompts")
    ] = None
    llm: LlmOptions = field(default_factory=LlmOptions)

"""Settings of the state room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class StateOptions:
    """Names of the companion files."""

    state_file: Annotated[str, Meta(min_length=1, description="state for machines")] = "agent_state.json"
    progress_file: Annotated[str, Meta(min_length=1, description="progress for people")] = "agent_progress.md"

"""Settings of the state room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Something that must run for the task: a TCP port of this machine that answers, or a command that exits with 0."""

    name: Annotated[str, Meta(min_length=1, description="what the checks call it")]
    port: Annotated[int, Meta(ge=1, le=65535, description="TCP port on this machine")] | None = None
    command: Annotated[str, Meta(min_length=1, description="shell command; 0 means it runs")] | None = None


@dataclass(frozen=True, slots=True)
class StateOptions:
    """Names of the companion files, and how much of a session a state holds."""

    state_file: Annotated[str, Meta(min_length=1, description="state for machines")] = "agent_state.json"
    progress_file: Annotated[str, Meta(min_length=1, description="progress for people")] = "agent_progress.md"
    audit_file: Annotated[str, Meta(min_length=1, description="the audit trail, hash-chained")] = "agent_audit.jsonl"
    tail_turns: Annotated[int, Meta(ge=0, description="newest turns that a state holds as they are")] = 3
    tail_characters: Annotated[int, Meta(ge=0, description="characters of them at most")] = 24_000
    working_set: Annotated[int, Meta(ge=0, description="files in use that a state names")] = 20
    resume_budget: Annotated[int, Meta(ge=1, description="tokens of a resume prompt at most")] = 4000
    lock_wait: Annotated[float, Meta(ge=0, description="seconds to wait for another writer of the state")] = 10.0
    services: Annotated[tuple[ServiceOptions, ...], Meta(description="what must run: name, and port or command")] = ()

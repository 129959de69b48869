"""Settings of the contract gate: what must still be there after a compaction, and what must still pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

KINDS = ("file", "text", "regex", "id")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")

Name = Annotated[str, Meta(min_length=1, description="how reports call it")]
Required = Annotated[bool, Meta(description="whether the command fails without it; otherwise it warns")]


@dataclass(frozen=True, slots=True)
class Artifact:
    """One thing that must be there: a file, or something in the window. Exactly one of file, text, regex and id."""

    name: Name
    file: Annotated[str | None, Meta(description="a path that exists, from the working folder")] = None
    sha256: Annotated[str | None, Meta(description="and the hash of its content")] = None
    text: Annotated[str | None, Meta(description="stands in the window, word for word")] = None
    regex: Annotated[str | None, Meta(description="is found in the window")] = None
    id: Annotated[str | None, Meta(description="a name or number that the window still holds, or a call's id")] = None
    required: Required = True

    def __post_init__(self) -> None:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(
                f"artifact {self.name!r} needs one of {', '.join(KINDS)}, not {' and '.join(given) or 'none'}"
            )
        if not str(getattr(self, given[0])).strip():
            raise ValueError(f"artifact {self.name!r}: {given[0]} is empty")
        if self.sha256 is not None and (self.file is None or not _SHA256.fullmatch(self.sha256)):
            raise ValueError(f"artifact {self.name!r}: sha256 is 64 hex digits, and goes with file")
        try:
            re.compile(self.regex or "")
        except re.error as error:
            raise ValueError(f"{self.regex!r} is no regular expression: {error}") from None

    @property
    def kind(self) -> str:
        """Which of file, text, regex and id it is about."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)


@dataclass(frozen=True, slots=True)
class Validator:
    """A command that must end with status 0. A list runs as it is; a text runs in the shell."""

    name: Name
    command: Annotated[str | tuple[str, ...], Meta(description="[program, argument, ...], or a line for the shell")]
    timeout: Annotated[float, Meta(gt=0, le=86_400, description="seconds after which it has failed")] = 60.0
    required: Required = True

    def __post_init__(self) -> None:
        first = self.command if isinstance(self.command, str) else next(iter(self.command), "")
        if not first.strip():
            raise ValueError(f"validator {self.name!r}: the command is empty")
        if "\x00" in "".join(self.command):
            raise ValueError(f"validator {self.name!r}: the command holds a zero byte")


@dataclass(frozen=True, slots=True)
class ContractOptions:
    """What a compaction is held to, beside the rules that always hold."""

    artifacts: Annotated[tuple[Artifact, ...], Meta(description="what must still be there")] = ()
    validators: Annotated[tuple[Validator, ...], Meta(description="commands that must still pass")] = ()
    ledger_file: Annotated[str, Meta(min_length=1, description="what became of each, JSON lines")] = (
        "agent_ledger.jsonl"
    )

    def __post_init__(self) -> None:
        _distinct("artifacts", [artifact.name for artifact in self.artifacts])
        _distinct("validators", [validator.name for validator in self.validators])

    def __bool__(self) -> bool:
        return bool(self.artifacts or self.validators)


def _distinct(what: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what}: the name {name!r} stands twice")

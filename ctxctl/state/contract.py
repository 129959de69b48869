"""The contract gate: after a compaction the declared artifacts are still there, and the validators pass (C15)."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ctxctl.model.text import shortened
from ctxctl.state.contract_options import Artifact, ContractOptions, Validator
from ctxctl.state.files import sanitized
from ctxctl.state.validators import run

OUTPUT = "CTXCTL_OUTPUT"
"""Variable that tells validators the path of the compacted transcript."""
SHOWN = 60


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of one clause. kind: file, text, regex, id or validator. detail: why it failed, or what a validator
    said last. seconds: that it took."""

    name: str
    kind: str
    ok: bool
    required: bool
    detail: str
    seconds: float


def check_contract(
    options: ContractOptions,
    window_text: Iterable[str] | Callable[[], Iterable[str]],
    cwd: Path,
    *,
    output: str | None = None,
    ids: Collection[str] = (),
) -> list[Checked]:
    """Check every clause, artifacts first, in the order of the settings.

    window_text: texts of the blocks in the compacted window; each artifact is looked for in every one of them. cwd:
    folder that files are relative to and validators run in. output: the compacted transcript. ids: of the blocks and
    calls in the window. A clause that can't be checked has failed, and its detail says why; nothing is raised.
    """
    found: list[Checked] = []
    texts: list[str] = []
    if any(artifact.kind != "file" for artifact in options.artifacts):
        texts = list(window_text() if callable(window_text) else window_text)
    for artifact in options.artifacts:
        start = time.monotonic()
        fault = _file(artifact, cwd) if artifact.file is not None else sanitized(_window(artifact, texts, ids))
        name, seconds = sanitized(artifact.name), time.monotonic() - start
        found.append(Checked(name, artifact.kind, not fault, artifact.required, fault, seconds))
    found += [_validate(validator, cwd, output) for validator in options.validators]
    return found


def _file(artifact: Artifact, cwd: Path) -> str:
    path = cwd / os.path.expanduser(artifact.file or "")
    try:
        if not os.path.lexists(path):
            return f"{artifact.file} is not there"
        os.stat(path)  # a link that leads nowhere
        if artifact.sha256 is None:
            return ""
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        return f"{artifact.file} can't be read: {getattr(error, 'strerror', None) or error}"
    return "" if digest == artifact.sha256.lower() else f"{artifact.file} was changed: its SHA-256 is {digest}"


def _window(artifact: Artifact, texts: list[str], ids: Collection[str]) -> str:
    if artifact.text is not None:
        wanted = artifact.text.strip("\n")
        return "" if any(wanted in text for text in texts) else f"not in the window: {_shown(wanted)}"
    if artifact.regex is not None:
        pattern = re.compile(artifact.regex, re.MULTILINE)
        return "" if any(pattern.search(text) for text in texts) else f"nothing in the window fits {artifact.regex!r}"
    name = artifact.id or ""
    whole = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    there = name in ids or any(name in text and whole.search(text) for text in texts)
    return "" if there else f"not in the window: {name}"


def _shown(text: str) -> str:
    line = text.strip().split("\n")[0]
    return repr(line if line == text and len(line) <= SHOWN else shortened(line, SHOWN - 3) + "...")


def _validate(validator: Validator, cwd: Path, output: str | None) -> Checked:
    environment = {**os.environ, **({OUTPUT: os.path.abspath(output)} if output is not None else {})}
    done = run(validator.command, cwd=cwd, timeout=validator.timeout, environment=environment)
    return Checked(
        sanitized(validator.name),
        "validator",
        done.ok,
        validator.required,
        sanitized(done.detail),
        round(done.seconds, 3),
    )

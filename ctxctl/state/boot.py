"""The boot sequence of a window that begins: verify the environment, say what is wrong, make the prompt (S4, S5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxctl.model.state import AgentState
from ctxctl.state.checks import Verified, verify
from ctxctl.state.environment import OTHERS
from ctxctl.state.options import StateOptions
from ctxctl.state.resume import Resume, prompt
from ctxctl.state.validate import StateWarning, validate


@dataclass(frozen=True, slots=True)
class Boot:
    """What a window starts from. verified: the environment as it is now; warnings: what is wrong with the state."""

    resume: Resume
    verified: Verified
    warnings: tuple[StateWarning, ...]


def boot(
    state: AgentState,
    folder: Path,
    *,
    budget: int,
    count: Callable[[str], int] | None = None,
    options: StateOptions | None = None,
    others: Sequence[str] = OTHERS,
    run_commands: bool = False,
    where: str = "",
) -> Boot:
    """Check a state and make its prompt. The transcript that it came from is not read.

    folder: where the state lies. count: tokens of a text, by default those of o200k_base. options: names of ctxctl's
    own files in the folder, and services that are declared; others: names of further files of its own. run_commands:
    whether services that are commands may run them. where: the state's file, which the prompt names. Raises TargetError
    as `prompt` does, nothing else.
    """
    verified = verify(state, folder, options, others=others, run_commands=run_commands)
    warnings = validate(state, verified)
    made = prompt(
        state,
        count=count or counter(None),
        budget=budget,
        checks=verified.checks,
        stale=verified.stale,
        warnings=warnings,
        where=where,
    )
    return Boot(made, verified, warnings)


def counter(model: str | None) -> Callable[[str], int]:
    """Counts the tokens of a prompt as the model does, of o200k_base for a model that is not known."""
    from ctxctl.tokens.estimate import counter_for, family_for

    count = counter_for(model, family_for(model).encoding)
    return lambda text: count(text, "user_message")

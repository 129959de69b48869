"""The errors that ctxctl raises, and the exit status of each."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of the command line. Scripts rely on these numbers: they never change meaning."""

    OK = 0
    FINDING = 1  # done, and a check or gate did not pass
    USAGE = 2
    INPUT = 3  # not readable, not a known format, or no record usable
    CONFIG = 4
    TARGET = 5  # the target can't be met
    NOTHING = 6  # empty or blank file, folder or glob without a transcript
    BUG = 70
    INTERRUPTED = 130
    PIPE = 141


def shown_path(path: str) -> str:
    """A path on one line: CI systems take a line that begins with `::` for a command, and names may hold one."""
    return "".join("\ufffd" if c in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029" else c for c in path)


class CtxctlError(Exception):
    """Base of all errors that a user can act on.

    message: what is wrong, with the value. hint: the next thing to type. path and line: where, when it lies in a file.
    """

    exit_code = ExitCode.BUG
    code = "error"

    def __init__(
        self, message: str, *, hint: str | None = None, path: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
        self.line = line

    def where(self) -> str:
        """`path:line: ` as far as known, else an empty string."""
        if self.path is None:
            return ""
        path = shown_path(self.path)
        return f"{path}:{self.line}: " if self.line is not None else f"{path}: "

    def __str__(self) -> str:
        return f"{self.where()}{self.message}"


class UsageError(CtxctlError):
    """A wrong option, argument or name."""

    exit_code = ExitCode.USAGE
    code = "usage"


class InputError(CtxctlError):
    """A transcript that can't be read: missing, unreadable, of an unknown format, or without a usable record."""

    exit_code = ExitCode.INPUT
    code = "input"


class NotATranscriptError(InputError):
    """A file of another kind: nothing is wrong with it, but it is no transcript that ctxctl reads."""


class ConfigError(CtxctlError):
    """A settings file, environment variable or option value that is refused."""

    exit_code = ExitCode.CONFIG
    code = "config"


class NothingFoundError(CtxctlError):
    """An empty input, or a folder or glob without a transcript."""

    exit_code = ExitCode.NOTHING
    code = "nothing_found"


class SummaryFailedError(CtxctlError):
    """A model was to write a summary, failed, and an extract was not to take its place."""

    exit_code = ExitCode.TARGET
    code = "summary_failed"


class RefusedError(CtxctlError):
    """Nothing was done, since something else was there first: a newer state, a lock that stayed taken."""

    exit_code = ExitCode.FINDING
    code = "refused"


class TargetError(CtxctlError):
    """What may not be cut is larger than the limit that was given."""

    exit_code = ExitCode.TARGET
    code = "target"


class BudgetExceeded(CtxctlError):  # noqa: N818 - its public name
    """A system prompt or tool definitions that do not fit their share of the window: nothing can be taken from them
    while a task runs. limit, current: tokens; excess: how many more than the limit it would be."""

    exit_code = ExitCode.TARGET
    code = "budget_exceeded"

    def __init__(self, message: str, *, component: str, limit: int, current: int, excess: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.component = component
        self.limit = limit
        self.current = current
        self.excess = excess

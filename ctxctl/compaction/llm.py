"""Models that answer a prompt: any command, or an OpenAI-compatible endpoint."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from ctxctl.errors import ConfigError
from ctxctl.model.text import shortened

LONGEST_OUTPUT = 4 << 20
"""Bytes of an answer at most; whatever writes more is stopped."""
LONGEST_ERROR = 64 << 10
GRACE = 0.5
"""Seconds between asking a process group to end and ending it, and that output may lag behind its process."""


class AskFailedError(Exception):
    """A call that brought no answer. The message says why, in a few words."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote. prompt, output: tokens as it reported them, None where it did not."""

    text: str
    prompt: int | None = None
    output: int | None = None


class Asks(Protocol):
    """A model. tries: how often a prompt is given to it before it counts as failed."""

    tries: int

    def ask(self, prompt: str) -> Answer:
        """The answer to one prompt; AskFailedError when there is none."""


class Command:
    """A command that reads the prompt on stdin and writes its answer on stdout; anything but exit status 0 is a
    failure, whatever it wrote.

    command: a line for the shell, or a program with its arguments. timeout: seconds. On a time-out, and when ctxctl is
    interrupted, all processes that the command started end with it.
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float = 120.0, retries: int = 2) -> None:
        self._command = command if isinstance(command, str) else list(command)
        self._timeout = timeout
        self.tries = retries + 1

    def ask(self, prompt: str) -> Answer:
        process: subprocess.Popen[bytes] | None = None
        flooded = threading.Event()

        def flood() -> None:
            flooded.set()
            _end(process)

        try:
            process = subprocess.Popen(
                self._command,
                shell=isinstance(self._command, str),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            out, err = _Drain(process.stdout, LONGEST_OUTPUT, flood), _Drain(process.stderr, LONGEST_ERROR)
            out.start()
            err.start()
            threading.Thread(target=_feed, args=(process.stdin, prompt), daemon=True).start()
            process.wait(self._timeout)
        except (OSError, ValueError) as error:
            _end(process)
            raise AskFailedError(f"it can't be started: {getattr(error, 'strerror', None) or error}") from None
        except subprocess.TimeoutExpired:
            _end(process)
            raise AskFailedError(f"no answer within {self._timeout:g} s") from None
        except BaseException:  # an interrupt: nothing that was started may outlive us
            _end(process)
            raise
        out.join(GRACE)
        if out.is_alive():  # a process that was left behind holds the pipe open
            _end(process)
            out.join(GRACE)
        err.join(GRACE)
        if flooded.is_set():
            raise AskFailedError(f"its answer is longer than {LONGEST_OUTPUT >> 20} MiB")
        if process.returncode:
            said = err.text().strip().splitlines()
            ended = f"signal {-process.returncode}" if process.returncode < 0 else f"exit status {process.returncode}"
            raise AskFailedError(ended + (f": {shortened(said[-1], 200)}" if said else ""))
        return Answer(out.text())


class _Drain(threading.Thread):
    """Reads a pipe to its end and keeps its beginning. full: called once there is more than is kept."""

    def __init__(self, pipe: IO[bytes], most: int, full: Callable[[], None] | None = None) -> None:
        super().__init__(daemon=True)
        self._pipe, self._most, self._full = pipe, most, full
        self._kept = bytearray()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._pipe:
            while chunk := os.read(self._pipe.fileno(), 1 << 16):
                if len(self._kept) + len(chunk) > self._most:
                    if self._full is not None:
                        self._full()
                        return
                    chunk = chunk[: self._most - len(self._kept)]
                self._kept += chunk

    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace").lstrip("\ufeff")


def _feed(pipe: IO[bytes], prompt: str) -> None:
    """Writes the prompt; a command may end without reading it."""
    with contextlib.suppress(OSError, ValueError), pipe:
        pipe.write(prompt.encode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """Ends a process and all of its group: asks first, then kills what is left."""
    if process is None:
        return
    if not hasattr(os, "killpg"):  # Windows has no process groups to signal
        process.kill()
        process.wait()
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


class Endpoint:
    """A model behind an OpenAI-compatible endpoint (`/chat/completions`), by the official client, which tries again
    after a limit, a server error or a time-out.

    url: base URL, to `/v1`. key: may be empty for a server that asks for none. Raises ConfigError where the client is
    not installed.
    """

    tries = 1

    def __init__(self, url: str, model: str, *, key: str = "", timeout: float = 120.0, retries: int = 2) -> None:
        try:
            import openai
        except ImportError:
            raise ConfigError(
                "the client for an OpenAI-compatible endpoint is not installed", hint="pip install 'ctxctl[llm]'"
            ) from None
        self._failures: tuple[type[Exception], ...] = (openai.OpenAIError,)
        self._client: Any = openai.OpenAI(base_url=url, api_key=key or "none", timeout=timeout, max_retries=retries)
        self._model = model

    def ask(self, prompt: str) -> Answer:
        try:
            reply = self._client.chat.completions.create(
                model=self._model, messages=[{"role": "user", "content": prompt}]
            )
        except self._failures as error:
            raise AskFailedError(_said(error)) from None
        except ValueError:  # a body that says it is JSON and is none
            raise AskFailedError("the answer is no JSON") from None
        try:
            choice = reply.choices[0]
            text, reason = choice.message.content, choice.finish_reason
        except (AttributeError, IndexError, TypeError):
            raise AskFailedError("the answer is no chat completion") from None
        if reason == "length":
            raise AskFailedError("the answer was cut off")
        usage = getattr(reply, "usage", None)
        return Answer(
            text if isinstance(text, str) else "", _whole(usage, "prompt_tokens"), _whole(usage, "completion_tokens")
        )


def _said(error: Exception) -> str:
    """What went wrong, without the body of the answer: it may repeat the prompt or the key."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return f"HTTP status {status}"
    name = type(error).__name__
    return {
        "APITimeoutError": "no answer in time",
        "APIConnectionError": "the endpoint can't be reached",
        "APIResponseValidationError": "the answer is no chat completion",
    }.get(name, name)


def _whole(usage: Any, name: str) -> int | None:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value >= 0 else None

"""The helper: a model that writes summaries, held to their length, with an extract in its place when it fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from math import ceil
from time import monotonic
from typing import Literal

from ctxctl.compaction.clean import Cleaner
from ctxctl.compaction.llm import AskFailedError, Asks, Command, Endpoint
from ctxctl.compaction.options import CompactionOptions
from ctxctl.compaction.templates import Prompts
from ctxctl.errors import ConfigError, SummaryFailedError
from ctxctl.facts.condense import SUMMARIES

Policy = Literal["extractive", "fail"]
MOST_FAILURES = 3
"""Failures in a row after which the extract stays (requirement C13)."""
PART_SHARE = 8
"""The text of a part has at most one in so many of the window's tokens, so that several are merged at once."""
LEAST_ROOM = 100
"""Tokens of material below which a part is not worth a call."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model. prompt, output: tokens, as it reported them or as counted. seconds: how long it took.
    failure: why the answer was not used, empty when it was."""

    task: str
    prompt: int
    output: int
    seconds: float
    failure: str = ""


class Helper:
    """Writes summaries by a model (`ctxctl.compaction.base.Writes`).

    model: what is asked. window: tokens that it reads and writes at most in one call; longer material comes in parts
    whose texts are merged. count: tokens of a text of some kind. on_failure: `extractive`: a failed summary is None;
    `fail`: it raises SummaryFailedError. clean: takes out what must not go into a prompt or a summary.

    log: all calls. failures: those whose answer was not used. fallback: whether it failed three times in a row, so that
    it is asked no more. reasons: of the failures, in their order. fell_back: summaries that it did not
    write.
    """

    def __init__(
        self,
        model: Asks,
        *,
        window: int,
        count: Callable[[str, str], int],
        prompts: Prompts | None = None,
        on_failure: Policy = "extractive",
        clean: Callable[[str], str] | None = None,
    ) -> None:
        self._model = model
        self._window = window
        self._count = count
        self._prompts = prompts or Prompts()
        self._on_failure = on_failure
        self._clean = clean or Cleaner()
        self._in_a_row = 0
        self._written: dict[bytes, str] = {}
        self.log: list[Call] = []
        self.failures = 0
        self.fell_back = 0
        self.fallback = False
        self.reasons: list[str] = []

    @property
    def calls(self) -> int:
        """How often the model was asked."""
        return len(self.log)

    @property
    def seconds(self) -> float:
        """Waiting time that the model added (requirement C18)."""
        return sum(call.seconds for call in self.log)

    @property
    def spent(self) -> list[tuple[int, int, bool]]:
        """All calls as `Edits.helper` takes them; none goes on with the session's own prompt."""
        return [(call.prompt, call.output, False) for call in self.log]

    def write(self, task: str, goal: str, material: str, most: int) -> str | None:
        """A text of at most `most` tokens that is shorter than the material; None when there is none.

        What it wrote for the same task, goal and material it gives again while that is short enough: a compaction may
        be planned several times. Credentials, data and injections are taken out of what the model gets, and out of what
        it writes. Raises SummaryFailedError where a failure is to be one.
        """
        whole = self._tokens(material)
        most = min(most, whole - 1)
        if most < 1 or not material.strip():
            return None
        key = _key(task, goal, material)
        before = self._written.get(key)
        if before is not None and self._tokens(before) <= most:
            return before
        if self.fallback:
            self.fell_back += 1
            return None
        try:
            made = self._write(task, self._cut(self._clean(goal)), self._clean(material), most)
            self._written[key] = made
            return made
        except AskFailedError as error:
            self.fell_back += 1
            if self._on_failure == "fail":
                raise SummaryFailedError(
                    f"the summary failed ({task}): {error}",
                    hint="--on-llm-failure extractive puts an extract in its place",
                ) from None
            return None

    def _write(self, task: str, goal: str, material: str, most: int) -> str:
        prompts = self._prompts
        prompt = prompts.fill(task, goal, material, most)
        if self._tokens(prompt) + most <= self._window:
            return self._ask(task, prompt, most)
        part_most = max(1, min(most, self._window // PART_SHARE))
        frame = prompts.fill(task, goal, "", part_most)
        fixed = max(self._tokens(prompts.part(frame, 999, 999)), self._tokens(prompts.merge(frame)))
        room = self._window - part_most - fixed
        if room < max(LEAST_ROOM, 2 * part_most):
            raise self._refuse(f"its window of {self._window:,} tokens has no room for material")
        parts = self._parts(material, room)
        texts = [
            self._ask(task, prompts.part(prompts.fill(task, goal, part, part_most), i, len(parts)), part_most)
            for i, part in enumerate(parts, 1)
        ]
        return self._merge(task, goal, texts, most, part_most, room)

    def _merge(self, task: str, goal: str, texts: list[str], most: int, part_most: int, room: int) -> str:
        """One text of several, neighbours first while they are too many for one prompt."""
        prompts = self._prompts
        while True:
            prompt = prompts.merge(prompts.fill(task, goal, "\n\n".join(texts), most))
            if self._tokens(prompt) + most <= self._window:
                return self._ask(task, prompt, most)
            groups: list[list[str]] = [[]]
            for text in texts:
                if groups[-1] and self._tokens("\n\n".join((*groups[-1], text))) > room:
                    groups.append([])
                groups[-1].append(text)
            if len(groups) == len(texts):
                raise self._refuse(f"its window of {self._window:,} tokens has no room for {most:,} tokens of summary")
            texts = [
                self._ask(task, prompts.merge(prompts.fill(task, goal, "\n\n".join(group), part_most)), part_most)
                if len(group) > 1
                else group[0]
                for group in groups
            ]

    def _parts(self, text: str, room: int) -> list[str]:
        """A text in parts of at most so many tokens, cut between lines where they are short enough."""
        total = self._tokens(text)
        even = min(room, ceil(total / ceil(total / room)) + LEAST_ROOM // 2)
        parts: list[str] = []
        lines: list[str] = []
        size = 0
        for line in text.splitlines(keepends=True):
            tokens = self._tokens(line) + 1
            if lines and size + tokens > even:
                parts.append("".join(lines))
                lines, size = [], 0
            lines.append(line)
            size += tokens
        if lines:
            parts.append("".join(lines))
        return [piece for part in parts for piece in self._pieces(part, room)]

    def _pieces(self, text: str, room: int) -> list[str]:
        """A text that is too long, in equal pieces of whole characters."""
        tokens = self._tokens(text)
        if tokens <= room or len(text) < 2:
            return [text]
        many = min(len(text), max(2, ceil(tokens / room)))
        cuts = [len(text) * i // many for i in range(many + 1)]
        return [piece for a, b in pairwise(cuts) for piece in self._pieces(text[a:b], room)]

    def _ask(self, task: str, prompt: str, most: int) -> str:
        """An answer that may be used; AskFailedError when no try brought one."""
        why = ""
        for _ in range(self._model.tries):
            if self.fallback:
                break
            started = monotonic()
            text, told_prompt, told_output = "", None, None
            try:
                answer = self._model.ask(prompt)
                text, told_prompt, told_output = _bare(self._clean(answer.text)), answer.prompt, answer.output
                why = self._fault(text, most)
            except AskFailedError as error:
                why = _bare(self._clean(str(error)))
            prompt_tokens = self._tokens(prompt) if told_prompt is None else told_prompt
            output = self._tokens(text) if told_output is None else told_output
            self.log.append(Call(task, prompt_tokens, output, monotonic() - started, why))
            if not why:
                self._in_a_row = 0
                return text
            self._failed(why)
        raise AskFailedError(why)

    def _fault(self, text: str, most: int) -> str:
        """Why a text must not replace anything; empty when it may."""
        if not text:
            return "an empty answer"
        tokens = self._tokens(text)
        return f"an answer of {tokens:,} tokens where {most:,} are allowed" if tokens > most else ""

    def _refuse(self, why: str) -> AskFailedError:
        self._failed(why)
        return AskFailedError(why)

    def _failed(self, why: str) -> None:
        self.failures += 1
        self._in_a_row += 1
        self.reasons.append(why)
        if self._in_a_row >= MOST_FAILURES:
            self.fallback = True

    def _cut(self, goal: str) -> str:
        """A goal that leaves most of the window to the material."""
        most = self._window // 4
        while len(goal) > 2 and (tokens := self._tokens(goal)) > most:
            goal = goal[: max(1, len(goal) * most // (tokens + 1) - 1)] + "…"
        return goal

    def _tokens(self, text: str) -> int:
        return self._count(text, "user_message")


def _key(*texts: str) -> bytes:
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return sha256(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


def _bare(text: str) -> str:
    """A text without the space around it and a mark of its own; the strategies put theirs in front."""
    text = text.strip()
    for mark in SUMMARIES:
        text = text.removeprefix(mark).lstrip(" :\n")
    return text


def helper_of(
    options: CompactionOptions,
    command: str | None = None,
    on_failure: Policy | None = None,
    *,
    count: Callable[[str, str], int],
    environment: Mapping[str, str] | None = None,
    clean: Callable[[str], str] | None = None,
) -> Helper | None:
    """The helper that the settings ask for, None when they name none.

    command, on_failure: given on the command line, and stronger than the settings. Raises ConfigError where the client
    of an endpoint is not installed, its key is missing, or the folder of prompts can't be used.
    """
    llm = options.llm
    if command is not None:
        if not command.strip():
            raise ConfigError(
                "the command that writes summaries is empty", hint="--llm 'COMMAND' reads a prompt on stdin"
            )
        llm = replace(llm, command=command, endpoint=None, model=None)
    if llm.command is not None:
        model: Asks = Command(llm.command, timeout=llm.timeout, retries=llm.retries)
    elif llm.endpoint is not None and llm.model is not None:
        key = (os.environ if environment is None else environment).get(llm.api_key_env, "")
        if not key and "api.openai.com" in llm.endpoint:
            raise ConfigError(f"{llm.api_key_env} is not set", hint=f"export {llm.api_key_env}=..., or set api_key_env")
        model = Endpoint(llm.endpoint, llm.model, key=key, timeout=llm.timeout, retries=llm.retries)
    else:
        return None
    return Helper(
        model,
        window=llm.window,
        count=count,
        prompts=Prompts(options.prompts_dir),
        on_failure=on_failure or llm.on_failure,
        clean=clean,
    )

"""Counting blocks while they are read. Columns are kept, texts are not: 200 MB of transcript leave a few megabytes.

Texts are counted in batches of about a megabyte by a second thread, since the engines release the interpreter while
they count: reading and counting run side by side.
"""

from __future__ import annotations

import queue
import threading
from array import array
from collections.abc import Mapping

from ctxctl.model.block import KINDS, Block, Media
from ctxctl.tokens.engines import Engine, engine
from ctxctl.tokens.estimate import UNKNOWN, family_for, text_class
from ctxctl.tokens.media import document_tokens, image_tokens

BATCH_CHARACTERS = 1 << 20
BATCH_TEXTS = 4096
MEDIA_CLASS = 255
"""Text class of what is not counted as text (images, documents, encrypted reasoning): its tokens are the model's own,
no factor applies."""

KIND_NUMBER = {kind: number for number, kind in enumerate(KINDS)}
ERROR, ANSWER, NEW_MESSAGE = 1, 2, 4
"""Flags of a block: a failed tool result; written by the model; the first of its message."""

LARGEST = (1 << 31) - 1
"""Tokens of one block are kept in 32 bits; nothing real is larger, a damaged file may say so."""

_ANSWERS = frozenset(("assistant", "thinking", "tool_call"))


class Tally:
    """Columns of a transcript's blocks, each as long as there are blocks.

    kind: index into KINDS. counted: tokens of the encoding. text_class: index into TEXT_CLASSES, or MEDIA_CLASS.
    turn, line, index: see Block. tool, target, thread: indexes into `names`. same: of a tool call, equal for
    equal calls; of a result, the number of its call's block or -1.
    """

    def __init__(self, *, encoding: str | None = None, size_hint: int | None = None) -> None:
        self.kind = bytearray()
        self.text_class = bytearray()
        self.flags = bytearray()
        self.counted = array("i")
        self.turn = array("i")
        self.line = array("i")
        self.index = array("i")
        self.tool = array("i")
        self.target = array("i")
        self.thread = array("i")
        self.same = array("q")
        self.names: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        self._calls: dict[str, int] = {}
        self._message = -1
        self._media: list[tuple[int, str, Media]] = []
        self._encoding = encoding
        self._size_hint = size_hint
        self._engine: Engine | None = None
        self._blocks: list[int] = []
        self._texts: list[str] = []
        self._pending = 0
        self._queue: queue.Queue[tuple[list[int], list[str]] | None] = queue.Queue(2)
        self._worker: threading.Thread | None = None
        self._failure: BaseException | None = None
        self.family = family_for(None)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def encoding(self) -> str:
        """The encoding of the counts."""
        return self._engine.encoding if self._engine is not None else self._encoding or self.family.encoding

    def saw_model(self, model: str) -> None:
        """A model of the transcript. Until the first batch is counted it decides the encoding."""
        if self._engine is None and self._encoding is None:
            self.family = family_for(model)

    def add(self, block: Block) -> None:
        """Take the next block; its number is the count of blocks before it."""
        number = len(self.kind)
        kind, text = block.kind, block.text
        self.kind.append(KIND_NUMBER[kind])
        self.turn.append(block.turn)
        self.line.append(block.source.line)
        self.index.append(block.source.index)
        name = block.tool_name
        self.tool.append(self._number(name) if name else 0)
        target = block.target
        self.target.append(self._number(target) if target else 0)
        self.thread.append(self._number(block.thread))
        flags = (ERROR if block.is_error else 0) | (ANSWER if kind in _ANSWERS else 0)
        if block.message != self._message:
            self._message = block.message
            flags |= NEW_MESSAGE
        self.flags.append(flags)
        same = -1
        if kind == "tool_call":
            same = hash(text)
            if block.call_id is not None:
                self._calls[block.call_id] = number
        elif block.call_id is not None:
            # pictures of a result come right behind its text and share the id
            same = self._calls.pop(block.call_id, -1)
        self.same.append(same)
        if block.media is not None and not text:
            self.text_class.append(MEDIA_CLASS)
            self.counted.append(0)
            self._media.append((number, kind, block.media))
        else:
            self.text_class.append(text_class(kind, text) if text else 0)
            self.counted.append(0)
            if text:
                self._blocks.append(number)
                self._texts.append(text)
                self._pending += len(text)
                if self._pending > BATCH_CHARACTERS or len(self._texts) > BATCH_TEXTS:
                    self._flush()

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number

    def _flush(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._worker is None:
            self._start_engine()
            self._worker = threading.Thread(target=self._count_batches, name="ctxctl-count", daemon=True)
            self._worker.start()
        self._queue.put((self._blocks, self._texts))
        self._blocks, self._texts, self._pending = [], [], 0

    def _start_engine(self) -> Engine:
        if self._engine is None:
            self._engine = engine(self._encoding or self.family.encoding, size_hint=self._size_hint)
        return self._engine

    def _count_batches(self) -> None:
        while (batch := self._queue.get()) is not None:
            if self._failure is None:
                try:
                    self._count(*batch)
                except BaseException as error:  # handed to the reading thread, which raises it
                    self._failure = error

    def _count(self, blocks: list[int], texts: list[str]) -> None:
        counted = self.counted
        for block, tokens in zip(blocks, self._start_engine().count(texts), strict=True):
            counted[block] = tokens

    def finish(self, model: str | None, image_rule: str | None = None, stated: Mapping[int, int] | None = None) -> None:
        """Count what is left. model: whose tokens are estimated; image_rule: for a model of no known family; stated:
        tokens of blocks that the provider counted."""
        if self._texts:
            blocks, texts, self._blocks, self._texts = self._blocks, self._texts, [], []
            if self._worker is None:
                if self._engine is None and self._encoding is None:
                    self.family = family_for(model)
                self._count(blocks, texts)
            else:
                self._queue.put((blocks, texts))
        self.close()
        if self._failure is not None:
            raise self._failure
        self.family = family_for(model)
        rule = self.family.image_rule if self.family is not UNKNOWN else image_rule or self.family.image_rule
        for number, kind, media in self._media:
            if kind == "image":
                tokens = image_tokens(media.width, media.height, rule)
            else:
                tokens = document_tokens(media.pages, media.size)
            self.counted[number] = min(tokens, LARGEST)
        for number, tokens in (stated or {}).items():
            self.counted[number] = min(tokens, LARGEST)
            self.text_class[number] = MEDIA_CLASS

    def close(self) -> None:
        """End the counting thread once its batches are done. Needed when reading fails before `finish`."""
        if self._worker is not None:
            self._queue.put(None)
            self._worker.join()
            self._worker = None

    def count_texts(self, texts: list[str]) -> list[int]:
        """Tokens of the encoding in further texts."""
        return self._start_engine().count(texts) if texts else []

    def estimates(self) -> array[float]:
        """Tokens of the model per block: counted tokens times the factor of their class."""
        factors = (*self.family.factors, *(1.0,) * (256 - len(self.family.factors)))
        return array("d", (n * factors[c] for n, c in zip(self.counted, self.text_class, strict=True)))

    def is_exact(self) -> bool:
        """Whether the encoding is the model's own."""
        return self.family.exact and self.encoding == self.family.encoding

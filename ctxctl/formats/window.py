"""The blocks of a transcript's live window, without those that the agent's own compactions left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxctl.formats.base import Emit
from ctxctl.formats.read import scan
from ctxctl.formats.store import LineStore
from ctxctl.formats.streams import Progress
from ctxctl.model.block import Block
from ctxctl.model.transcript import Transcript


def live_blocks(
    path: str,
    *,
    format_name: str | None = None,
    everything: bool = False,
    see: Emit | None = None,
    store: LineStore | None = None,
    progress: Progress | None = None,
    on_model: Callable[[str], None] | None = None,
) -> tuple[Transcript, Mapping[int, Block]]:
    """The transcript at a path (or `-`) and, by number, at least the blocks of its live window; sub-agents are left
    out. everything: all of its blocks. see: is handed every block once.

    What a full compaction replaced is not kept in memory; where a part of it stays in the window, the file is read a
    second time. Raises InputError and NothingFoundError as `ctxctl.formats.read` does.
    """
    found: dict[int, Block] = {}
    count = 0

    def emit(block: Block) -> None:
        nonlocal count
        found[count] = block
        count += 1
        if see is not None:
            see(block)

    keep_all = everything or path == "-"
    transcript = scan(
        path,
        emit,
        format_name=format_name,
        companions=False,
        progress=progress,
        on_model=on_model,
        store=store,
        on_cut=None if keep_all else found.clear,
    )
    missing = {number for number in transcript.live if number not in found}
    if missing:
        count = 0

        def fetch(block: Block) -> None:
            nonlocal count
            if count in missing:
                found[count] = block
            count += 1

        scan(path, fetch, format_name=format_name, companions=False)
    return transcript, found

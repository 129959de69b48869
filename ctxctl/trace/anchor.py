"""Token sizes that match the provider's bill: reported growth, shared out over the blocks that brought it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def share_out(growth: int, weights: Sequence[float]) -> list[int]:
    """Whole tokens that add up to `growth`, in proportion to the weights; by cumulative rounding, so deterministic."""
    total = sum(weights)
    if not weights or total <= 0:
        return [0] * len(weights)
    shares, before, running = [], 0, 0.0
    for weight in weights:
        running += weight
        now = round(growth * running / total)
        shares.append(now - before)
        before = now
    return shares


def anchor(
    arrivals: Sequence[Sequence[int]],
    estimates: Sequence[float],
    prompts: Sequence[int | None],
    cut: frozenset[int],
    leaving: Mapping[int, Sequence[int]],
) -> tuple[list[int], int, list[int]]:
    """Tokens per block, the overhead of the first request, and per turn the growth that no block explains.

    arrivals: blocks that each call reads first (index 0 is turn 1). estimates: their counted tokens with the frames of
    their messages. prompts: reported tokens of each call's prompt, None where nothing was; growth over such calls is
    shared out over all that came since. cut: turns before which the window was cut down, so that growth says nothing.
    leaving: blocks that the client took back before a turn.
    """
    tokens = [round(e) for e in estimates]
    unseen = [0] * len(arrivals)
    overhead = 0
    first = True
    before: int | None = None
    waiting: dict[int, None] = {}
    left = 0
    for index, blocks in enumerate(arrivals):
        for b in leaving.get(index + 1, ()):
            if b in waiting:
                del waiting[b]
            else:
                left += tokens[b]
        waiting.update(dict.fromkeys(blocks))
        prompt = prompts[index]
        if index + 1 in cut:
            first, before, waiting, left = False, None, {}, 0
        if prompt is None:
            continue
        if first:
            overhead = max(0, prompt - sum(tokens[b] for b in waiting))
            if not overhead:
                _spread(tokens, waiting, prompt, estimates)
        elif before is not None:
            growth = prompt - before + left
            if growth > 0 and sum(estimates[b] for b in waiting) > 0:
                _spread(tokens, waiting, growth, estimates)
            else:
                unseen[index] = growth - sum(tokens[b] for b in waiting)
        first, before, waiting, left = False, prompt, {}, 0
    return tokens, overhead, unseen


def _spread(tokens: list[int], blocks: Iterable[int], growth: int, estimates: Sequence[float]) -> None:
    for block, share in zip(blocks, share_out(growth, [estimates[b] for b in blocks]), strict=True):
        tokens[block] = share

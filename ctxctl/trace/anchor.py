"""Token sizes that match the provider's bill: reported growth, shared out over the blocks that brought it."""

from __future__ import annotations

from collections.abc import Sequence


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
    arrivals: Sequence[Sequence[int]], estimates: Sequence[float], prompts: Sequence[int | None], cut: frozenset[int]
) -> tuple[list[int], int, list[int]]:
    """Tokens per block, the overhead of the first request, and per turn the growth that no block explains.

    arrivals: blocks that each call reads first (index 0 is turn 1). estimates: their counted tokens with the frames of
    their messages. prompts: reported tokens of each call's prompt, None where nothing was. cut: turns before which the
    window was cut down, so that growth says nothing.
    """
    tokens = [round(e) for e in estimates]
    unseen = [0] * len(arrivals)
    overhead = 0
    for index, blocks in enumerate(arrivals):
        prompt = prompts[index]
        if index == 0:
            if prompt is not None:
                expected = sum(tokens[b] for b in blocks)
                overhead = max(0, prompt - expected)
                if prompt < expected:
                    _spread(tokens, blocks, prompt, estimates)
            continue
        before = prompts[index - 1]
        if prompt is None or before is None or index + 1 in cut:
            continue
        growth = prompt - before
        if growth > 0 and sum(estimates[b] for b in blocks) > 0:
            _spread(tokens, blocks, growth, estimates)
        else:
            unseen[index] = growth - sum(tokens[b] for b in blocks)
    return tokens, overhead, unseen


def _spread(tokens: list[int], blocks: Sequence[int], growth: int, estimates: Sequence[float]) -> None:
    for block, share in zip(blocks, share_out(growth, [estimates[b] for b in blocks]), strict=True):
        tokens[block] = share

"""From what was read of a Claude Code session to its `Transcript`: window, branches, compactions, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.formats.base import Json
from ctxctl.formats.claude_tree import MESSAGE, SIDE, Live, Tree
from ctxctl.model.block import MAIN
from ctxctl.model.transcript import Branch, Compaction, MessageCounts, Transcript
from ctxctl.model.usage import Usage

if TYPE_CHECKING:
    from ctxctl.formats.claude_code import ClaudeCode


def build(reader: ClaudeCode) -> Transcript:
    """The transcript of a reader that has been fed the whole file."""
    session, tree = reader.session, reader.tree
    main = _main_thread(reader)
    side = SIDE if main != MAIN else 0
    live = Live()
    if main != MAIN:
        reader.boundaries = reader.side_boundaries
    if not reader.usage_only:
        live = tree.resolve(reader.boundaries, reader.logical, reader.leaf_hint, side, reader.diagnostics)
        reader.dead = live.dead
    usage = session.usage()
    _unread(reader, usage)
    compactions = _compactions(reader, live)
    users, assistants = reader.users, reader.assistants
    sidechain = sum(n for counts in (users, assistants) for name, n in counts.items() if name != main)
    blocks = [b for node in live.nodes for b in _blocks(tree, node)]
    window_blocks = set(blocks)
    return Transcript(
        id=reader.id,
        format=reader.name,
        path=reader.path,
        main=main,
        model=_model(reader, usage, main),
        models=tuple(session.models),
        live=tuple(b for b in blocks if b not in reader.snapshots.superseded),
        cleared=frozenset(b for c in compactions for b in c.cleared if b in window_blocks),
        superseded=_superseded(reader),
        order=tuple(tree.uuid(node) for node in live.nodes if tree.flags[node] & MESSAGE),
        usage=usage,
        call_keys=[hash(key) if key[0] else 0 for key in zip(reader.call_keys, reader.requests, strict=True)],
        compactions=tuple(compactions),
        branches=tuple(_branches(reader, usage, live)),
        abandoned=_abandoned(reader, usage, live),
        overflows=tuple(reader.overflows),
        threads=tuple(session.threads),
        parts=tuple(reader.parts),
        records=reader.records,
        exchanges=session.threads[main].exchange,
        messages=MessageCounts(users.get(main, 0), assistants.get(main, 0), sidechain),
        unreachable=live.unreachable,
        errors=reader.errors,
        complete=reader.complete,
        cwd=reader.cwd,
        ratio=next((b.ratio for b in reversed(reader.boundaries) if b.node < 0 or not live.dead[b.node]), None),
        side=reader.side.resolve(tree),
        diagnostics=reader.diagnostics.items(),
    )


def _unread(reader: ClaudeCode, usage: tuple[Usage, ...]) -> None:
    """Say which helpers are known by their progress alone: these records repeat a helper's own file, which is missing
    or was not asked for."""
    known = {call.thread for call in usage} | {prefix.rstrip(":").removeprefix("agent-") for _, prefix in reader.parts}
    missing = {name: line for name, line in reader.shown.items() if name not in known}
    if missing:
        reader.diagnostics.add(
            "warning",
            "subagents_not_counted",
            f"{'one sub-agent stands' if len(missing) == 1 else f'{len(missing)} sub-agents stand'} only in progress "
            "records, the files of which were not read: that usage is not in the figures",
            min(missing.values()),
        )


def _main_thread(reader: ClaudeCode) -> str:
    """`main`, unless the file is a helper's own: then the window is that of the helper with most messages."""
    counts = dict(reader.users) or {call.thread: call.turn for call in reader.session.calls}
    if not counts or reader.goes_on or counts.get(MAIN) or reader.assistants.get(MAIN):
        return MAIN
    return max(counts, key=lambda name: counts[name])


def _model(reader: ClaudeCode, usage: tuple[Usage, ...], main: str) -> str | None:
    """The model of the newest call of the main thread."""
    for call in reversed(usage):
        if call.thread == main and call.model:
            return call.model
    return reader.session.main_model()


def _blocks(tree: Tree, node: int) -> range:
    first = tree.first[node]
    return range(first, first + tree.count[node])


def _superseded(reader: ClaudeCode) -> frozenset[int]:
    copies = {b for node in reader.tree.moved for b in _blocks(reader.tree, node)}
    return frozenset(copies | reader.snapshots.superseded)


def _compactions(reader: ClaudeCode, live: Live) -> list[Compaction]:
    tree = reader.tree
    found = []
    for boundary in reader.boundaries:
        kept = tuple(b for n in live.kept.get(boundary.node, ()) if n < boundary.node for b in _blocks(tree, n))
        found.append(
            Compaction(
                reader.boundary_turns[boundary.node],
                tree.first[boundary.node] if boundary.node >= 0 else 0,
                "full",
                boundary.line,
                boundary.trigger,
                boundary.before,
                boundary.after,
                kept,
                abandoned=boundary.node >= 0 and bool(live.dead[boundary.node]),
            )
        )
    for turn, at, line, data, node, cleared in reader.micro:
        if node >= 0 and live.dead[node]:
            continue  # it cleared what an abandoned path held
        notes = (tree.find(uuid) for uuid in words(data.get("clearedAttachmentUUIDs")))
        cleared = cleared + [b for note in notes if note is not None for b in _blocks(tree, note)]
        trigger = data.get("trigger")
        found.append(
            Compaction(
                turn,
                at,
                "micro",
                line,
                trigger if isinstance(trigger, str) else None,
                cleared=tuple(b for b in cleared if b < at),
            )
        )
    found.extend(_rewinds(reader, live))
    return sorted(found, key=lambda c: (c.at, c.line))


def words(value: Json) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _rewinds(reader: ClaudeCode, live: Live) -> list[Compaction]:
    """Each rewind as a point where the window fell back to what the new path shares with the old."""
    tree = reader.tree
    calls = reader.session.threads[MAIN].calls
    found = []
    for fork in live.forks:
        for head in fork.heads[1:]:
            later = (tree.turn[n] for n in range(head, len(tree)) if tree.turn[n] and not tree.flags[n] & SIDE)
            shared = tree.first[fork.node] + tree.count[fork.node]
            line, trigger = tree.line[head], "rewind"
            turn = next(later, calls + 1)
            found.append(Compaction(turn, tree.first[head], "rollback", line, trigger, back_to=shared))
    return found


MOST_BRANCHES = 50
"""Branches that are described one by one; a session that was rewound more often is no session of a person."""


def _branches(reader: ClaudeCode, usage: tuple[Usage, ...], live: Live) -> list[Branch]:
    """One branch per path; none when the session was never rewound."""
    if not live.forks:
        return []
    tree = reader.tree
    nodes = [n for n in range(len(tree)) if tree.flags[n] & MESSAGE and not tree.flags[n] & SIDE]
    number = {tree.line[n]: n for n in nodes}
    kept = [n for n in nodes if not live.dead[n]]
    branches = [_branch(reader, usage, kept, True, number)] if kept else []
    for fork in live.forks:
        for head in fork.heads:
            if live.dead[head] and len(branches) < MOST_BRANCHES:
                end = min((h for h in fork.heads if h > head), default=len(tree))
                path = [n for n in nodes if (n <= fork.node and not live.dead[n]) or (head <= n < end and live.dead[n])]
                if path:
                    branches.append(_branch(reader, usage, path, False, number))
    return branches


def _branch(
    reader: ClaudeCode, usage: tuple[Usage, ...], path: list[int], live: bool, number: dict[int, int]
) -> Branch:
    on_path = set(path)
    calls = frozenset(
        index for index, call in enumerate(usage) if call.thread == MAIN and number.get(call.line) in on_path
    )
    return Branch(reader.tree.uuid(path[-1]), live, len(path), calls)


def _abandoned(reader: ClaudeCode, usage: tuple[Usage, ...], live: Live) -> frozenset[int]:
    """Calls of the main thread whose answers no longer are on the live path."""
    if not live.forks:
        return frozenset()
    tree = reader.tree
    dead = {tree.line[n] for n in range(len(tree)) if live.dead[n]}
    return frozenset(i for i, call in enumerate(usage) if call.thread == MAIN and call.line in dead)

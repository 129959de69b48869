"""Carrying out repairs in Claude Code sessions: messages, and the references between records."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import orjson

from ctxctl.formats.base import Json, dumps
from ctxctl.formats.store import LineStore
from ctxctl.validity.chain import Chain
from ctxctl.validity.findings import Repair
from ctxctl.validity.mend_messages import Stage
from ctxctl.validity.plan import BEGINNING, carry_out, plan_for
from ctxctl.validity.view import View

ENVELOPE = (
    "isSidechain",
    "agentId",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "slug",
    "timestamp",
)
"""Fields that a new record takes over from its neighbour."""

REFERENCES = ("parentUuid", "logicalParentUuid", "leafUuid", "sourceToolAssistantUUID")


def mend_chain(chain: Chain, store: LineStore) -> Stage | None:
    """Ids that two records share first, then references that lead nowhere or in a circle."""
    return _rename_twins(chain) or _set_links(chain)


def _rename_twins(chain: Chain) -> Stage | None:
    twins = dict(chain.twins())
    if not twins:
        return None
    new = {line: fresh_uuid(f"{uuid}:{line}") for line, uuid in twins.items()}
    current: dict[str, str] = {}

    def change(line: int, data: bytes) -> Sequence[bytes]:
        record = orjson.loads(data) if current or line in twins else None
        if not isinstance(record, dict):
            return (data,)
        made = with_references(record, current)
        if line in twins:
            current[twins[line]] = new[line]
            made = {**made, "uuid": new[line]}
        return (data,) if made is record else (dumps(made) + b"\n",)

    text = "the second record of a uuid got one of its own"
    return change, [Repair("duplicate_uuid", line, text, uuid) for line, uuid in twins.items()]


def _set_links(chain: Chain) -> Stage | None:
    links = chain.links()
    if not links:
        return None
    repairs = []
    by_line: dict[int, dict[str, str | None]] = {}
    for link in links:
        by_line.setdefault(link.line, {})[link.field] = link.uuid
        to = "is null now: nothing stands before it" if link.uuid is None else f"names {link.uuid} now"
        repairs.append(Repair(link.code, link.line, f"{link.field} {to}", link.owner))

    def change(line: int, data: bytes) -> Sequence[bytes]:
        fields = by_line.get(line)
        return (data,) if fields is None else (dumps({**orjson.loads(data), **fields}) + b"\n",)

    return change, repairs


def mend_messages(view: View, store: LineStore) -> Stage | None:
    """The messages of the live branch. Records that leave hand their children to their parent."""
    plan = plan_for(view)
    if not plan:
        return None

    def record(index: int) -> dict[str, Json]:
        found: dict[str, Json] = orjson.loads(store.get(view.messages[index].line))
        return found

    outcome = carry_out(plan, lambda index: record(index)["message"])
    edited = {view.messages[i].line: message for i, message in outcome.edited.items()}
    order = [m.uuid for m in view.messages]
    heirs: dict[str, str | None] = {}
    after: dict[str, str | None] = {}
    for i, message in outcome.edited.items():
        uuid = view.messages[i].uuid
        if message is None and uuid is not None:
            heirs[uuid] = record(i).get("parentUuid")
            after[uuid] = next(
                (order[k] for k in range(i + 1, len(order)) if outcome.edited.get(k, True) is not None), None
            )
    for uuid in heirs:
        heirs[uuid] = _settle(uuid, heirs)
    opening = view.messages[outcome.opening].line if outcome.opening is not None else 0

    def change(line: int, data: bytes) -> Sequence[bytes]:
        if line in edited and edited[line] is None:
            return ()
        if not heirs and line not in edited and line != opening:
            return (data,)
        value = orjson.loads(data)
        if not isinstance(value, dict):
            return (data,)
        made = with_references(value, heirs, after)
        if line in edited:
            made = {**made, "message": edited[line]}
        lines = []
        if line == opening:
            first = _opening(made)
            lines.append(dumps(first) + b"\n")
            if "uuid" in first:
                made = {**made, "parentUuid": first["uuid"]}
        lines.append(data if made is value else dumps(made) + b"\n")
        return lines

    return change, plan.repairs


def _settle(uuid: str, heirs: dict[str, str | None]) -> str | None:
    """The nearest ancestor that stays."""
    found, steps = heirs[uuid], len(heirs)
    while found in heirs and steps:
        found, steps = heirs[found], steps - 1
    return found


def _opening(before: dict[str, Json]) -> dict[str, Json]:
    """A record of the user in front of another one."""
    made: dict[str, Json] = {"parentUuid": before.get("parentUuid")} if "uuid" in before else {}
    made |= {key: before[key] for key in ENVELOPE if key in before}
    made |= {"type": "user", "message": {"role": "user", "content": BEGINNING}}
    if "uuid" in before:
        made["uuid"] = fresh_uuid(f"{before['uuid']}:opening")
    return made


def with_references(
    record: dict[str, Json], heirs: dict[str, Json], after: dict[str, str | None] | None = None
) -> dict[str, Json]:
    """A record that names the heirs of records that left or were renamed; the same object when it names none. after:
    by uuid the next record that stays, for the head of a run."""
    changes: dict[str, Json] = {}
    for key in REFERENCES:
        if isinstance(record.get(key), str) and record[key] in heirs:
            changes[key] = heirs[record[key]]
    data = record.get("compactMetadata")
    if isinstance(data, dict):
        made = _kept_references(data, heirs, heirs if after is None else after)
        if made != data:
            changes["compactMetadata"] = made
    return {**record, **changes} if changes else record


def _kept_references(data: dict[str, Json], heirs: dict[str, Json], after: dict[str, Json]) -> dict[str, Json]:
    """What a compaction preserved, as runs or lists of uuids."""
    made = dict(data)
    segment, listed = data.get("preservedSegment"), data.get("preservedMessages")
    if isinstance(segment, dict):
        made["preservedSegment"] = {
            key: (after if key == "headUuid" else heirs).get(value, value) if isinstance(value, str) else value
            for key, value in segment.items()
        }
    if isinstance(listed, dict) and isinstance(listed.get("uuids"), list):
        gone = heirs if after is not heirs else {}
        uuids = [heirs.get(u, u) if not gone else u for u in listed["uuids"] if u not in gone]
        made["preservedMessages"] = {**listed, "uuids": uuids}
    return made


def fresh_uuid(seed: str) -> str:
    """A uuid of the form of version 4, always the same for one seed: repairs are deterministic."""
    digest = bytearray(hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x40
    digest[8] = digest[8] & 0x3F | 0x80
    h = digest.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

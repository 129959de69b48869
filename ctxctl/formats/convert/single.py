"""A session that begins with one prompt, in any format that is written."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.formats.convert.base import TARGETS, Ids, Scene
from ctxctl.formats.message import Chat, Losses, Message, Text


@dataclass(frozen=True, slots=True)
class Begun:
    """session: id of what was written."""

    session: str
    data: bytes


def begin(
    prompt: str, target: str, *, now: str, session: str | None = None, cwd: str = "", model: str | None = None
) -> Begun:
    """A session, or the body of a request, whose only message is what the user says first.

    now: ISO 8601 time of its records. session: by default a uuid that follows from the prompt and the time. cwd: folder
    that the agent works in. Raises UsageError for an unknown target.
    """
    writer = TARGETS.get(target)
    session = session or Ids(f"{target}\n{now}\n{prompt}")()
    chat = Chat((Message("user", (Text(prompt),)),), id=session, model=model, cwd=cwd or None)
    return Begun(session, b"".join(writer.write([chat], Scene(session, now, cwd), Losses())))

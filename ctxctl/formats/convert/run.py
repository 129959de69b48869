"""A conversion: read, put into the other format, and say what could not be carried."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.errors import NothingFoundError, UsageError
from ctxctl.formats.convert.base import TARGETS, Ids, Scene
from ctxctl.formats.convert.gather import gather
from ctxctl.formats.message import Losses
from ctxctl.formats.streams import Progress
from ctxctl.model.transcript import Transcript

OTHERS = "other conversations of the file"
SILENT = "conversations without a message"


@dataclass(frozen=True, slots=True)
class Converted:
    """A transcript in another format. session: id of what was written; conversations, messages: how many it holds."""

    transcript: Transcript
    target: str
    session: str
    conversations: int
    messages: int
    data: bytes
    losses: dict[str, int]


def convert(
    path: str,
    target: str,
    *,
    now: str,
    session: str | None = None,
    cwd: str = "",
    format_name: str | None = None,
    conversation: int | None = None,
    progress: Progress | None = None,
) -> Converted:
    """The live window of the transcript at a path (or `-`) in the format `target`.

    now: ISO 8601 time for records whose time is not known. session: id of the session, by default a uuid that follows
    from the input. conversation: which one of a file with several, counted from 1.

    Raises UsageError for an unknown target, and for several conversations where one file holds one; InputError and
    NothingFoundError as `ctxctl.formats.read` does.
    """
    writer = TARGETS.get(target)
    losses = Losses()
    transcript, chats = gather(path, losses, format_name=format_name, progress=progress)
    count = len(chats)
    if conversation is not None:
        if not 1 <= conversation <= count:
            raise UsageError(f"there is no conversation {conversation}: the file holds {count}")
        chats = [chats[conversation - 1]]
        losses.add(OTHERS, count - 1)
    elif count > 1 and not writer.several:
        raise UsageError(
            f"the file holds {count} conversations, and one of {target} holds one",
            hint=f"--conversation 1 to {count} chooses one; openai-chat and anthropic-messages take all",
        )
    spoken = [chat for chat in chats if any(m.role != "system" for m in chat.messages)]
    losses.add(SILENT, len(chats) - len(spoken))
    if not spoken:
        raise NothingFoundError("the window holds no message: nothing to convert", path=path)
    chats = spoken
    session = session or Ids(f"{target}\n{transcript.id}\n{transcript.path}\n{sum(len(c.messages) for c in chats)}")()
    data = b"".join(writer.write(chats, Scene(session, now, cwd), losses))
    messages = sum(len(chat.messages) for chat in chats)
    return Converted(transcript, target, session, len(chats), messages, data, dict(losses.counts))

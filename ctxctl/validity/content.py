"""What messages hold: blank texts, thinking that can't be sent, and who speaks first."""

from __future__ import annotations

from ctxctl.validity.findings import Finding, Level, Report
from ctxctl.validity.parts import OTHER, RESULT, TEXT, THINKING, Part
from ctxctl.validity.view import Message, View


def is_blank(message: Message, part: Part, view: View) -> bool:
    """Whether a part is a blank text that matters: beside calls, chat agents write an empty string for no text, and
    system messages and tool outputs may be empty."""
    if not part.blank or message.role in ("system", "tool"):
        return False
    return view.rules.merged or part.kind != TEXT or len(message.parts) == 1


def unsigned(view: View) -> set[tuple[int, int]]:
    """(message, part) of thinking that lacks its signature; a later line of the response may repeat it with one."""
    if not view.rules.signatures:
        return set()
    found = set()
    signed: dict[str, list[tuple[int, str]]] = {}
    for i, message in enumerate(view.messages):
        if message.response is not None:
            texts = [(i, p.text) for p in message.parts if p.kind == THINKING and p.signed and p.text]
            if texts:
                signed.setdefault(message.response, []).extend(texts)
    for i, message in enumerate(view.messages):
        for k, part in enumerate(message.parts):
            if part.kind == THINKING and not part.signed:
                later = signed.get(message.response or "", ())
                if not (part.text and any(at > i and text.startswith(part.text) for at, text in later)):
                    found.add((i, k))
    return found


def bare_thinking(view: View) -> list[int]:
    """Messages of responses that are nothing but thinking, where the conversation went on."""
    if not view.rules.signatures:
        return []
    groups: dict[str, list[int]] = {}
    for i, message in enumerate(view.messages):
        if message.role == "assistant":
            groups.setdefault(message.response or f"#{i}", []).append(i)
    found = []
    for members in groups.values():
        parts = [p for i in members for p in view.messages[i].parts]
        if parts and members[-1] < len(view.messages) - 1 and all(p.kind == THINKING for p in parts):
            found.extend(members)
    return found


def judge_content(view: View, report: Report) -> None:
    """Name blank texts, empty messages, thinking that would be refused, and a first message that is not the user's."""
    lacking = unsigned(view)
    bare = set(bare_thinking(view))
    for i, message in enumerate(view.messages):

        def tell(code: str, level: Level, text: str, part: Part | None = None, m: Message = message) -> None:
            id_ = part.id if part is not None and part.id is not None else m.uuid
            report(Finding(code, level, m.line, text, id_, m.number, None, not m.fixed))

        for k, part in enumerate(message.parts):
            if is_blank(message, part, view):
                level: Level = "warning" if part.kind == RESULT else view.rules.blank
                what = "a blank text within a result" if part.kind == RESULT else f"a blank text of the {message.role}"
                tell("blank_text", level, what, part)
            elif (i, k) in lacking:
                why = "cut at the token limit, " if message.cut else ""
                tell("unsigned_thinking", "error", f"thinking without its signature ({why}it would be refused)")
        if not message.parts and message.role != "system":
            tell("empty_message", view.rules.blank, f"a message of the {message.role} without content")
        elif i in bare and not any((i, k) in lacking for k in range(len(message.parts))):
            tell("thinking_only", "warning", "an answer that is nothing but thinking")
    first = next((m for m in view.messages if m.role != "system"), None)
    if first is not None and first.role != "user":
        what = "an answer" if first.role == "assistant" else "a result"
        text = f"the conversation begins with {what}, not with the user"
        level = view.rules.begins
        mend = level == "error" and not first.fixed
        report(Finding("first_not_user", level, first.line, text, first.uuid, first.number, None, mend))


def is_empty(message: Message) -> bool:
    """Whether nothing in a message can be sent."""
    return not any(not p.blank or p.kind in (RESULT, OTHER) for p in message.parts)

"""A task of many subtasks that an agent works off over many windows, with what is true after every record.

Each window is a session file in the shape of a real agent, growing record by record. The generator keeps the truth by
itself: which subtasks are planned, in work and done, what was decided, committed and changed. It never looks at what
ctxctl makes of the file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

PLANNED, DOING, DONE = "planned", "doing", "done"
START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)

GOAL = (
    "Move the billing service from the old HTTP client to the new one, module by module, and keep every public name.\n"
    "The rate limiter and the retry rules stay as they are.\n\n"
    "Constraints:\n- Never change the files under vendor/.\n- You must not raise any timeout.\n\n"
    "Success criteria:\n- All tests pass.\n- No module imports the old client."
)
AREAS = ("invoices", "refunds", "ledger", "exports", "webhooks", "taxes", "accounts", "reports", "audits", "imports")
WORK = (
    "Port {0} part {1} to the new client",
    "Write tests for {0} part {1}",
    "Remove the old client from {0} part {1}",
    "Check retries of {0} part {1} (limits, back-off)",
)


def subtasks(count: int) -> list[str]:
    """Texts of subtasks, each once; many are the beginning of others (part 1, part 10)."""
    texts = [WORK[n % len(WORK)].format(AREAS[n // len(WORK) % len(AREAS)], n // 8 + 1) for n in range(count)]
    for number in range(3, count, 17):  # marks that mean something in Markdown and in JSON, and other scripts
        texts[number] += (" [x] `a|b`", ' "quoted" \\ back', " — 税率の確認", " # not a heading", " - [ ] none")[
            number % 5
        ]
    assert len(set(texts)) == count
    return texts


class Clock:
    """Times that only go on."""

    def __init__(self, random_: random.Random) -> None:
        self.now = START
        self._random = random_

    def stamp(self) -> str:
        self.now += timedelta(milliseconds=self._random.randrange(300, 9000))
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Session:
    """A session file that grows. Subclasses write an agent's records."""

    def __init__(self, path: Path, clock: Clock, cwd: str, number: int) -> None:
        self.path = path
        self.clock = clock
        self.cwd = cwd
        self.number = number
        self.count = 0
        self._open: bytes = b""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")

    def put(self, record: Any) -> None:
        line = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        with self.path.open("ab") as file:
            file.write(self._open + line)
        self._open = b""

    def tear(self, random_: random.Random) -> None:
        """Write the beginning of a record, as a reader sees it that comes in between. It is made whole with the next
        one."""
        line = self.idle()
        cut = random_.randrange(1, len(line) - 1)
        with self.path.open("ab") as file:
            file.write(line[:cut])
        self._open = line[cut:]

    def idle(self) -> bytes:
        """A whole line that changes nothing."""
        raise NotImplementedError

    def id(self) -> str:
        self.count += 1
        return f"{self.number:08d}-0000-4000-9000-{self.count:012d}"

    def user(self, text: str) -> None: ...
    def said(self, text: str) -> None: ...
    def plan(self, items: list[tuple[str, str]], changed: list[tuple[str, str]]) -> None: ...
    def read(self, path: str, text: str) -> None: ...
    def edit(self, path: str, *, answered: bool = True) -> None: ...
    def shell(self, command: str, output: str, *, failed: bool = False, answered: bool = True) -> None: ...
    def interrupted(self) -> None: ...
    def compact(self, summary: str) -> None: ...


class Claude(Session):
    """Claude Code, with the tool that writes the whole list."""

    def __init__(self, path: Path, clock: Clock, cwd: str, number: int) -> None:
        super().__init__(path, clock, cwd, number)
        self.session = path.stem
        self.leaf: str | None = None
        self.tokens = 9000

    def envelope(self, type_: str, **fields: Any) -> dict[str, Any]:
        record = {
            "parentUuid": self.leaf,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.20",
            "gitBranch": "main",
            "type": type_,
            "uuid": self.id(),
            "timestamp": self.clock.stamp(),
            **fields,
        }
        self.leaf = record["uuid"]
        return record

    def user(self, text: str) -> None:
        self.put(self.envelope("user", message={"role": "user", "content": text}))

    def assistant(self, block: dict[str, Any]) -> None:
        id_ = f"msg_{self.number:03d}_{self.count:06d}"
        self.tokens += 120
        usage = {"input_tokens": 4, "cache_creation_input_tokens": 120, "cache_read_input_tokens": self.tokens}
        message = {
            "id": id_,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 60},
        }
        self.put(self.envelope("assistant", message=message, requestId=f"req_{id_}"))

    def said(self, text: str) -> None:
        self.assistant({"type": "text", "text": text})

    def call(self, name: str, given: dict[str, Any], result: str | None, *, failed: bool = False) -> None:
        id_ = f"toolu_{self.number:03d}_{self.count:06d}"
        self.assistant({"type": "tool_use", "id": id_, "name": name, "input": given})
        if result is not None:
            flag = {"is_error": True} if failed else {}
            block = {"tool_use_id": id_, "type": "tool_result", "content": result, **flag}
            self.put(self.envelope("user", message={"role": "user", "content": [block]}))

    def plan(self, items: list[tuple[str, str]], changed: list[tuple[str, str]]) -> None:
        words = {PLANNED: "pending", DOING: "in_progress", DONE: "completed"}
        todos = [{"content": text, "status": words[status], "activeForm": text} for text, status in items]
        self.call("TodoWrite", {"todos": todos}, "Todos have been modified successfully.")

    def read(self, path: str, text: str) -> None:
        lines = [f"{number:6}\u2192{line}" for number, line in enumerate(text.split("\n"), 1)]
        self.call("Read", {"file_path": path}, "\n".join(lines))

    def edit(self, path: str, *, answered: bool = True) -> None:
        given = {"file_path": path, "old_string": "client.get(", "new_string": "fetch("}
        self.call("Edit", given, f"The file {path} has been updated." if answered else None)

    def shell(self, command: str, output: str, *, failed: bool = False, answered: bool = True) -> None:
        self.call("Bash", {"command": command}, output if answered else None, failed=failed)

    def interrupted(self) -> None:
        content = [{"type": "text", "text": "[Request interrupted by user]"}]
        self.put(self.envelope("user", message={"role": "user", "content": content}))

    def compact(self, summary: str) -> None:
        leaf, self.leaf = self.leaf, None
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False}
        metadata = {"trigger": "auto", "preTokens": self.tokens}
        self.put(self.envelope("system", **boundary, level="info", logicalParentUuid=leaf, compactMetadata=metadata))
        text = (
            "This session is being continued from a previous conversation that ran out of context. The conversation "
            f"is summarized below:\n{summary}"
        )
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self.put(self.envelope("user", message={"role": "user", "content": text}, **flags))
        self.tokens = 12_000

    def idle(self) -> bytes:
        record = {"type": "queue-operation", "operation": "dequeue", "timestamp": self.clock.stamp()}
        return json.dumps({**record, "sessionId": self.session}).encode() + b"\n"


class ClaudeTasks(Claude):
    """Claude Code, with the tools that make and update one task at a time; ids begin at 1 in each session."""

    def __init__(self, path: Path, clock: Clock, cwd: str, number: int) -> None:
        super().__init__(path, clock, cwd, number)
        self.ids: dict[str, str] = {}
        self.last = 0
        self.told: dict[str, str] = {}

    def plan(self, items: list[tuple[str, str]], changed: list[tuple[str, str]]) -> None:
        listed = dict(items)
        for text in [text for text in self.told if text not in listed]:
            given = {"taskId": self.ids.pop(text), "status": "deleted"}
            self.call("TaskUpdate", given, f"Updated task #{given['taskId']} deleted")
            del self.told[text]
        for text, status in items:
            if text not in self.told:
                self.last += 1
                self.ids[text] = str(self.last)
                given = {"subject": text, "description": f"As planned: {text}", "activeForm": text}
                self.call("TaskCreate", given, f"Task #{self.last} created successfully: {text}")
                self.told[text] = PLANNED
            if status != self.told[text]:
                word = {PLANNED: "pending", DOING: "in_progress", DONE: "completed"}[status]
                given = {"taskId": self.ids[text], "status": word}
                self.call("TaskUpdate", given, f"Updated task #{self.ids[text]} status")
                self.told[text] = status


class Checklist(Claude):
    """Claude Code without any of these tools: the agent writes checklists into its answers, all of it the first time
    and then what changed, with a neighbour."""

    def __init__(self, path: Path, clock: Clock, cwd: str, number: int) -> None:
        super().__init__(path, clock, cwd, number)
        self.written: list[str] = []

    def plan(self, items: list[tuple[str, str]], changed: list[tuple[str, str]]) -> None:
        marks = {PLANNED: "[ ]", DOING: "[~]", DONE: "[x]"}
        wanted = list(changed) if self.written else list(items)
        beside = [item for item in items if item not in wanted][:1]
        if len(wanted) + len(beside) == 1:  # one item alone is no checklist
            beside = [(text, DONE) for text in self.written if text != wanted[0][0]][-1:]
        wanted += beside
        self.written = list(dict.fromkeys([*self.written, *(text for text, status in items if status == DONE)]))
        for at in range(0, len(wanted), 50):
            part = wanted[at : at + 50]
            part = part if len(part) > 1 else [*wanted[at - 1 : at], *part]
            self.said("Where it stands:\n\n" + "\n".join(f"- {marks[status]} {text}" for text, status in part))


class Codex(Session):
    """Codex, with its plan."""

    def __init__(self, path: Path, clock: Clock, cwd: str, number: int) -> None:
        super().__init__(path, clock, cwd, number)
        self.history: list[dict[str, Any]] = []
        self.total = 0
        meta = {"id": path.stem[-36:], "timestamp": clock.stamp(), "cwd": cwd, "originator": "codex_cli_rs"}
        self.write("session_meta", {**meta, "cli_version": "0.114.0", "source": "cli", "model_provider": "openai"})

    def write(self, type_: str, payload: dict[str, Any]) -> None:
        self.put({"timestamp": self.clock.stamp(), "type": type_, "payload": payload})

    def message(self, role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self.write("response_item", item)
        return item

    def user(self, text: str) -> None:
        self.history.append(self.message("user", text))
        event = {"type": "user_message", "message": text, "images": [], "local_images": [], "text_elements": []}
        self.write("event_msg", event)
        context = {"turn_id": self.id(), "cwd": self.cwd, "approval_policy": "never", "model": "gpt-5.4"}
        self.write("turn_context", {**context, "sandbox_policy": {"type": "read-only"}, "summary": "auto"})

    def spent(self) -> None:
        self.total += 4600
        parts = {"cached_input_tokens": 4000, "reasoning_output_tokens": 0}
        last = {"input_tokens": 4500, "output_tokens": 100, "total_tokens": 4600, **parts}
        total = {"input_tokens": self.total - 100, "output_tokens": 100, "total_tokens": self.total, **parts}
        info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 258_400}
        self.write("event_msg", {"type": "token_count", "info": info, "rate_limits": None})

    def said(self, text: str) -> None:
        self.message("assistant", text)
        self.write("event_msg", {"type": "agent_message", "message": text})
        self.spent()

    def call(self, name: str, given: dict[str, Any], output: str | None) -> None:
        id_ = f"call_{self.number:03d}_{self.count:06d}"
        self.count += 1
        arguments = json.dumps(given, separators=(",", ":"), ensure_ascii=False)
        self.write("response_item", {"type": "function_call", "name": name, "arguments": arguments, "call_id": id_})
        if output is not None:
            self.write("response_item", {"type": "function_call_output", "call_id": id_, "output": output})

    def plan(self, items: list[tuple[str, str]], changed: list[tuple[str, str]]) -> None:
        words = {PLANNED: "pending", DOING: "in_progress", DONE: "completed"}
        steps = [{"step": text, "status": words[status]} for text, status in items]
        self.call("update_plan", {"plan": steps}, "Plan updated")

    def read(self, path: str, text: str) -> None:
        self.shell(f"cat {path}", text)

    def edit(self, path: str, *, answered: bool = True) -> None:
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-client.get(\n+fetch(\n*** End Patch"
        done = json.dumps({"output": "Success. Updated the following files:\n", "metadata": {"exit_code": 0}})
        self.call("shell", {"command": ["apply_patch", patch]}, done if answered else None)

    def shell(self, command: str, output: str, *, failed: bool = False, answered: bool = True) -> None:
        metadata = {"exit_code": int(failed), "duration_seconds": 0.1}
        done = json.dumps({"output": output, "metadata": metadata}, ensure_ascii=False)
        self.call("shell", {"command": ["bash", "-lc", command]}, done if answered else None)

    def interrupted(self) -> None:
        self.write("event_msg", {"type": "turn_aborted", "reason": "interrupted"})

    def compact(self, summary: str) -> None:
        bridge = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}
        history = [*self.history, bridge]
        self.write("compacted", {"message": summary, "replacement_history": history})

    def idle(self) -> bytes:
        payload = {"type": "token_count", "info": None, "rate_limits": None}
        return json.dumps({"timestamp": self.clock.stamp(), "type": "event_msg", "payload": payload}).encode() + b"\n"


AGENTS: dict[str, type[Session]] = {"todos": Claude, "tasks": ClaudeTasks, "codex": Codex, "checklist": Checklist}


@dataclass
class Truth:
    """What holds. items: every subtask with its status, in the order in which they came up; finished: those done, in
    the order in which they were; window: 1 and one more for each later session and each compaction. interrupted: words
    of a call that the subtask in work stopped at, None when it did not."""

    items: dict[str, str] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    commits: list[tuple[str, str]] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    window: int = 0
    interrupted: str | None = None

    def of(self, status: str) -> list[str]:
        return [text for text, now in self.items.items() if now == status]


class SyntheticTask:
    """The agent at work. `open` begins a window, `work` goes on with it and stops at each moment at which a checkpoint
    may be taken."""

    def __init__(
        self, folder: Path, seed: int, *, count: int = 200, windows: int = 10, agents: tuple[str, ...]
    ) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.clock = Clock(self.random)
        self.truth = Truth()
        self.windows = windows
        self.agents = agents
        self.texts = subtasks(count)
        self.hidden = self.texts[count - 4 * (windows - 1) :]
        """Subtasks that nobody knows of at the start: four more turn up in each later window."""
        self.listed: list[str] = []
        self.session: Session = Session(folder / "none", self.clock, "", 0)
        self.number = 0

    # -- one window

    def open(self, prompt: str | None, progress: str = "") -> Path:
        """Begin a window with a prompt; the first one with the goal. progress: of the progress file, which the agent
        reads."""
        self.number += 1
        agent = AGENTS[self.agents[(self.number - 1) % len(self.agents)]]
        id_ = f"{self.number:08d}-1111-4000-8000-{self.random.randrange(10**12):012d}"
        day = self.clock.now.strftime("%Y-%m-%dT%H-%M-%S")
        name = f"rollout-{day}-{id_}.jsonl" if agent is Codex else f"{id_}.jsonl"
        self.session = agent(self.folder / "sessions" / name, self.clock, str(self.folder), self.number)
        self.truth.window += 1
        self.truth.interrupted = None
        self.session.user(GOAL if prompt is None else prompt)
        if prompt is None:
            self.session.said("I'll plan this first.")
            self._learn(self.texts[: len(self.texts) - len(self.hidden)])
            self.listed = list(self.truth.items)
            self._write(list(self.listed))
        else:
            self.listed = []
            if self.random.random() < 0.7:
                self.session.read(str(self.folder / "agent_progress.md"), progress)
        return self.session.path

    def work(self) -> Iterator[None]:
        """The rest of a window."""
        share = -(-len(self.truth.of(PLANNED) + self.truth.of(DOING)) // (self.windows - self.number + 1))
        last = self.number == self.windows
        compaction = self.random.randrange(2, 9) if self.number % 3 == 2 else None
        if self.number > 1:
            yield from self._maybe(0.5)
            fresh = [self.hidden.pop(0) for _ in range(min(4, len(self.hidden)))]
            self._list_anew(begins=True)
            yield from self._maybe(0.3)
            if fresh:
                self.session.said("Some more work has turned up.")
                self._learn(fresh)
                self.listed += fresh
                self._write(fresh)
        share += 4 if last else 0
        for at in range(share):
            if at == compaction:
                yield from self._compaction()
            todo = self.truth.of(DOING) or self._next()
            if not todo:
                break
            yield from self._subtask(todo[0])
            if self.random.random() < 0.08:
                self._list_anew()
        if not last:
            yield from self._left_in_the_middle()
        yield None

    @property
    def next_step(self) -> str | None:
        """What comes after the step in work: the first planned subtask of the agent's own list, else of all."""
        return (self._next() or [None])[0]

    # -- what happens to one subtask

    def _subtask(self, text: str) -> Iterator[None]:
        session, truth = self.session, self.truth
        if truth.items[text] != DOING:
            self._mark(text, DOING)
        yield from self._maybe(0.06)
        module = f"{self.folder}/src/{self.texts.index(text):03d}.py"
        if self.random.random() < 0.3:
            session.read(module, "from old import client\n\n- [x] Port everything\n- [ ] nothing\n")
        if self.random.random() < 0.1:
            yield from self._interruption(text, module)
        session.edit(module)
        truth.changed.add(module)
        yield from self._maybe(0.05)
        if self.random.random() < 0.25:
            number = len(truth.decisions)
            what = f"I decided to keep adapter {number} of {AREAS[number % 10]} behind a flag"
            session.said(f"{what} because release {number} still calls it.\n\nOn with the work.")
            truth.decisions.append(what)
        if self.random.random() < 0.5:
            if self.random.random() < 0.3:
                session.shell("pytest -q tests", "1 failed, 40 passed in 2.1s", failed=True)
                session.edit(module)
            session.shell("pytest -q tests", "41 passed in 2.0s")
        yield from self._maybe(0.04)
        if self.random.random() < 0.6:  # the commit comes first: it alone ends no subtask
            id_ = f"{self.random.randrange(16**7):07x}"
            message = text.replace('"', "'").replace("`", "'").replace("\\", "/")
            session.shell(f'git commit -am "{message}"', f"[main {id_}] {message}\n 1 file changed, 1 insertion(+)")
            truth.commits.append((id_, message))
            yield from self._maybe(0.06)
        following = self._next()
        if self.random.random() < 0.6 and following:
            self._mark(text, DONE, following[0], DOING)
        else:
            self._mark(text, DONE)
        yield from self._maybe(0.05)
        if self.random.random() < 0.03:
            session.shell("pytest -q tests", "2 failed, 39 passed in 2.1s", failed=True)
            session.said("That was too early: it goes back to work.")
            self._mark(text, DOING)
            yield None
            session.edit(module)
            session.shell("pytest -q tests", "41 passed in 2.0s")
            self._mark(text, DONE)
            yield from self._maybe(0.5)

    def _interruption(self, text: str, module: str) -> Iterator[None]:
        if self.random.random() < 0.5:
            self.session.edit(module, answered=False)
            self.truth.interrupted = module
        else:
            self.session.shell("pytest -q tests/slow", "", answered=False)
            self.truth.interrupted = "pytest -q tests/slow"
        yield from self._maybe(0.5)
        self.session.interrupted()
        yield from self._maybe(0.7)
        self.session.user("please go on")
        self.session.said("Going on where I was.")
        self.truth.interrupted = None

    def _left_in_the_middle(self) -> Iterator[None]:
        """The window ends with a step in work, stopped in a call or not; or between two steps."""
        if self.random.random() < 0.25:
            return
        todo = self.truth.of(DOING) or self._next()
        if todo and self.truth.items[todo[0]] != DOING:
            self._mark(todo[0], DOING)
        if todo and self.random.random() < 0.6:
            module = f"{self.folder}/src/{self.texts.index(todo[0]):03d}.py"
            self.session.edit(module, answered=False)
            self.truth.interrupted = module
            yield from self._maybe(0.3)
            if self.random.random() < 0.5:
                self.session.interrupted()

    def _compaction(self) -> Iterator[None]:
        yield None
        todo = self.truth.of(DOING) + self.truth.of(PLANNED)
        lines = "\n".join(f"   - {text}" for text in todo[:6])
        done = "\n".join(f"   - {text}" for text in self.truth.finished[-3:])
        self.session.compact(
            "1. Primary Request and Intent:\n   Move the billing service to the new client.\n"
            f"4. Problem Solving:\n{done}\n7. Pending Tasks:\n{lines}\n8. Current Work:\n   {todo[0]}\n"
        )
        self.truth.window += 1
        yield from self._maybe(0.6)
        self.session.said("Going on after the summary.")

    # -- the list

    def _learn(self, texts: list[str]) -> None:
        for text in texts:
            self.truth.items[text] = PLANNED

    def _next(self) -> list[str]:
        return [text for text in self.listed if self.truth.items[text] == PLANNED] or self.truth.of(PLANNED)

    def _mark(self, *pairs: str) -> None:
        """Give subtasks a status, and write the list: sometimes without those that were done before."""
        before = dict(self.truth.items)
        changed = list(pairs[::2])
        for text, status in zip(pairs[::2], pairs[1::2], strict=True):
            self.truth.items[text] = status
            if text not in self.listed:
                self.listed.append(text)
            if status == DONE:
                self.truth.finished.append(text)
            elif text in self.truth.finished:
                self.truth.finished.remove(text)
        self.truth.interrupted = None
        if self.random.random() < 0.15:
            kept = [text for text in self.listed if before[text] != DONE or text in changed]
            self.listed = kept or self.listed
        self._write(changed)

    def _list_anew(self, *, begins: bool = False) -> None:
        """Write a new list: all of it, or what is left. One that begins a window may also hold only what comes next:
        what was on no list of the window is not taken off one."""
        items = self.truth.items
        left = [text for text in items if items[text] != DONE]
        how = self.random.random()
        if how < 0.35:
            self.listed = list(items)
        elif how < 0.7 or not begins:
            self.listed = left
        else:
            self.listed = (self.truth.of(DOING) + self.truth.of(PLANNED))[:25]
        self._write(list(self.listed))

    def _write(self, changed: list[str]) -> None:
        items = self.truth.items
        listed = [(text, items[text]) for text in self.listed]
        self.session.plan(listed, [(text, items[text]) for text in changed])

    def _maybe(self, chance: float) -> Iterator[None]:
        if self.random.random() < chance:
            if self.random.random() < 0.2:
                self.session.tear(self.random)
            yield None

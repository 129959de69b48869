"""Random sessions as their agents write them: every kind of thing that facts are taken from, with rewinds and
compactions. A session is a list of lines, so that it can be read as it grows."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any

# no package here: test modules find these writers by this name
sys.modules["growing"] = sys.modules[__name__]

SAID = (
    "I decided to use the {a} because {b} is too slow for it.",
    "Let's go with {a} instead of {b} for the parser.",
    "I tried {a} but the approach failed since {b} is missing.",
    "It turns out the root cause is the {a} in {b}.",
    "The {a} is not yet implemented for {b}.",
    "Known issue: the {a} still fails with {b}.",
    "Next step: move {a} into {b}.",
    "Plan:\n- [ ] write {a}\n- [x] read {b}\n- [ ] test {a}",
    "Plain words about {a} and {b}.",
    "Shall I rename the {a} to {b}?",
    "Run this:\n```bash\ncat > {a}.txt <<'EOF'\n{b}\nEOF\n```",
)
ASKED = (
    "Please change the {a} so that {b} works. You must never touch {b}.",
    "Success criteria:\n- {a} passes\n- {b} is gone\n\nAlways keep {a}.",
    "no, that's wrong: use {a} and not {b}",
    "ok go on with {a}",
)
WORDS = ("cache", "parser", "client", "retry", "schema", "index", "queue", "token", "router", "loader")
TODOS = ("completed", "in_progress", "pending")


class Writer:
    """What both agents do. random: of the session."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[bytes] = []
        self.clock = 0
        self.tasks = 0

    def put(self, record: dict[str, Any]) -> None:
        self.lines.append(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def when(self) -> str:
        self.clock += 1
        return f"2026-03-01T{self.clock // 3600 % 24:02d}:{self.clock // 60 % 60:02d}:{self.clock % 60:02d}.000Z"

    def words(self, of: tuple[str, ...]) -> str:
        return self.random.choice(of).format(a=self.random.choice(WORDS), b=self.random.choice(WORDS))

    def uuid(self) -> str:
        return f"{self.random.getrandbits(128):032x}"

    def script(self) -> tuple[str, str, bool]:
        """A shell script, what it prints, and whether it fails."""
        pick, word = self.random.random(), self.random.choice(WORDS)
        failed = self.random.random() < 0.3
        if pick < 0.2:
            return f'git commit -m "Change {word}"', f"[main {self.random.getrandbits(28):07x}] Change {word}\n", False
        if pick < 0.3:
            out = f"[main {self.random.getrandbits(28):07x}] Better {word}\n"
            return f'git commit --amend -m "Better {word}"', out, False
        if pick < 0.5:
            n = self.random.randint(1, 3)
            out = f"{n} failed, 2 passed in 0.1s" if failed else f"{n} passed in 0.1s"
            return f"python -m pytest tests/{word}", out, failed
        if pick < 0.6:
            return f"cd /w && cat src/{word}.py", "x = 1", False
        if pick < 0.7:
            return f"sed -i s/a/b/ /w/src/{word}.py", "", False
        if pick < 0.75:
            return f"rm -r src/{word}", "", False
        if pick < 0.8:
            script = f"cat > gen_{word}.py <<'EOF'\nopen('out_{word}.txt', 'w')\nEOF"
            return script, "", False
        if pick < 0.85:
            return f"python gen_{word}.py", "", False
        if pick < 0.9:
            return "gh pr create --fill", f"https://example.org/{word}/{self.random.randint(1, 9)}", False
        return f"make {word}", f"Error: {word} is broken" if failed else "made", failed


class Claude(Writer):
    """A Claude Code session."""

    def __init__(self, seed: int, *, rewinds: bool = True, compactions: bool = True) -> None:
        super().__init__(seed)
        self.leaf: str | None = None
        self.path: list[str] = []
        self.messages = 0
        self.put({"type": "mode", "mode": "normal", "sessionId": "session-1"})
        for _ in range(self.random.randint(1, 5)):
            if rewinds and self.path and self.random.random() < 0.15:
                self.leaf = self.random.choice(self.path[-12:])
            self.prompt()
            for _ in range(self.random.randint(0, 6)):
                self.response()
            if compactions and self.random.random() < 0.2:
                self.compact()

    def record(self, **fields: Any) -> str:
        uuid = self.uuid()
        head = {"parentUuid": self.leaf, "isSidechain": False, "cwd": "/w", "sessionId": "session-1", "uuid": uuid}
        self.put({**head, "timestamp": self.when(), **fields})
        self.leaf = uuid
        self.path.append(uuid)
        return uuid

    def prompt(self) -> None:
        self.record(type="user", message={"role": "user", "content": self.words(ASKED)})

    def call(self) -> tuple[str, dict[str, Any], str, bool]:
        """A tool, its arguments, its result, and whether that is an error."""
        pick, word = self.random.random(), self.random.choice(WORDS)
        failed = self.random.random() < 0.15
        if pick < 0.35:
            script, out, failed = self.script()
            return "Bash", {"command": script}, out, failed
        if pick < 0.5:
            texts = self.random.sample(WORDS, self.random.randint(1, 5))
            items = [{"content": f"do {text}", "status": self.random.choice(TODOS)} for text in texts]
            return "TodoWrite", {"todos": items}, "ok", failed
        if pick < 0.55:
            self.tasks += 1
            return "TaskCreate", {"subject": f"task {word}"}, f"Task #{self.tasks} created", failed
        if pick < 0.6 and self.tasks:
            given = {
                "taskId": str(self.random.randint(1, self.tasks)),
                "status": self.random.choice((*TODOS, "deleted")),
            }
            return "TaskUpdate", given, "ok", failed
        if pick < 0.7:
            return "Write", {"file_path": f"/w/src/{word}.py", "content": f"{word} = {self.clock}"}, "written", failed
        if pick < 0.8:
            return "Edit", {"file_path": f"/w/src/{word}.py", "old_string": "a", "new_string": "b"}, "edited", failed
        if pick < 0.9:
            return "Read", {"file_path": f"/w/src/{word}.py"}, "1 x", failed
        if pick < 0.95:
            out = "The user doesn't want to proceed with this tool use. the user said: rather use the other one"
            return "Bash", {"command": f"make {word}"}, out, True
        return "Grep", {"pattern": word}, "Error: bad pattern" if failed else "src/a.py:1", failed

    def response(self) -> None:
        self.messages += 1
        head = {"id": f"msg_{self.messages}", "role": "assistant", "model": "claude-x"}
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}

        def line(part: dict[str, Any]) -> None:
            message = {**head, "content": [part], "usage": usage}
            self.record(type="assistant", requestId=f"req_{self.messages}", message=message)

        if self.random.random() < 0.6:
            line({"type": "text", "text": self.words(SAID)})
        waiting = []
        for _ in range(self.random.randint(0, 3)):
            name, given, out, failed = self.call()
            id_ = f"toolu_{len(self.lines)}"
            line({"type": "tool_use", "id": id_, "name": name, "input": given})
            waiting.append((id_, out, failed))
            if self.random.random() < 0.3:
                self.results(waiting)
        if not waiting and self.random.random() < 0.3:
            line({"type": "text", "text": self.words(SAID)})
        self.results(waiting)

    def results(self, waiting: list[tuple[str, str, bool]]) -> None:
        self.random.shuffle(waiting)
        while waiting:
            id_, out, failed = waiting.pop()
            if self.random.random() < 0.05:
                continue  # interrupted
            part = {"type": "tool_result", "tool_use_id": id_, "content": out, "is_error": failed}
            self.record(type="user", message={"role": "user", "content": [part]})

    def compact(self) -> None:
        last = self.leaf
        self.leaf = None
        data = {"trigger": "auto", "preTokens": 1000}
        self.record(type="system", subtype="compact_boundary", compactMetadata=data, logicalParentUuid=last)
        text = (
            "This session is being continued from a previous conversation.\nSummary:\n"
            f"## Key decisions\n- {self.words(SAID[:1])}\n## Pending tasks\n- look at {self.random.choice(WORDS)}\n"
            f"## Next step\n- go on with {self.random.choice(WORDS)}\n"
        )
        self.record(type="user", isCompactSummary=True, message={"role": "user", "content": text})


class Codex(Writer):
    """A Codex rollout."""

    def __init__(self, seed: int, *, rewinds: bool = True, compactions: bool = True) -> None:
        super().__init__(seed)
        self.total = [0, 0, 0, 0, 0]
        self.said: list[dict[str, Any]] = []
        self.event("session_meta", {"id": "session-1", "cwd": "/w", "timestamp": self.when()})
        for at in range(self.random.randint(1, 5)):
            self.event("turn_context", {"cwd": "/w", "model": self.random.choice(("gpt-x", "gpt-y"))})
            if rewinds and at and self.random.random() < 0.15:
                self.event("event_msg", {"type": "thread_rolled_back", "num_turns": self.random.randint(1, 2)})
            self.message("user", self.words(ASKED))
            for _ in range(self.random.randint(0, 6)):
                self.step()
            if compactions and self.random.random() < 0.2:
                prefix = "Another language model started to solve this problem and produced a summary: "
                summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prefix + "x"}]}
                history = [*self.random.sample(self.said, min(3, len(self.said))), summary]
                self.event("compacted", {"message": "", "replacement_history": history})

    def event(self, type_: str, payload: dict[str, Any]) -> None:
        self.put({"timestamp": self.when(), "type": type_, "payload": payload})

    def message(self, role: str, text: str) -> None:
        kind = "input_text" if role == "user" else "output_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self.said.append(item)
        self.event("response_item", item)

    def call(self, name: str, given: dict[str, Any], out: str) -> None:
        id_ = f"call_{len(self.lines)}"
        text = json.dumps(given)
        self.event("response_item", {"type": "function_call", "name": name, "arguments": text, "call_id": id_})
        if self.random.random() < 0.3:
            self.count()
        if self.random.random() > 0.05:
            self.event("response_item", {"type": "function_call_output", "call_id": id_, "output": out})

    def step(self) -> None:
        if self.random.random() < 0.4:
            item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
            self.event("response_item", item)
        if self.random.random() < 0.4:
            self.message("assistant", self.words(SAID))
        pick, word = self.random.random(), self.random.choice(WORDS)
        script, out, failed = self.script()
        if pick < 0.5:
            text = f"Exit code: {int(failed)}\nWall time: 0.1 seconds\nOutput:\n{out}"
            self.call("shell", {"command": ["bash", "-lc", script], "workdir": "/w"}, text)
        elif pick < 0.65:
            session = self.random.randint(1, 99)
            self.call("exec_command", {"cmd": script}, f"Process running with session ID {session}\nOutput:\n")
            text = f"Process exited with code {int(failed)}\nOutput:\n{out}"
            self.call("write_stdin", {"session_id": session, "chars": ""}, text)
        elif pick < 0.8:
            texts = self.random.sample(WORDS, self.random.randint(1, 5))
            plan = [{"step": f"do {text}", "status": self.random.choice(TODOS)} for text in texts]
            self.call("update_plan", {"plan": plan}, "Plan updated")
        else:
            patch = f"*** Begin Patch\n*** Add File: src/{word}.py\n+x = {self.clock}\n*** End Patch"
            self.call("apply_patch", {"input": patch}, "Success" if not failed else "Error: no such file")
        if self.random.random() < 0.7:
            self.count()

    def count(self) -> None:
        if self.random.random() < 0.8:
            self.total = [n + self.random.randint(1, 50) for n in self.total]
        names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
        counts = dict(zip(names, self.total, strict=True))
        info = {"total_token_usage": counts, "last_token_usage": counts, "model_context_window": 1_000_000}
        self.event("event_msg", {"type": "token_count", "info": info})


class Chat(Writer):
    """A chat with one message per line."""

    def __init__(self, seed: int, **_: Any) -> None:
        super().__init__(seed)
        self.put({"role": "system", "content": "You must never lie."})
        for _ in range(self.random.randint(1, 5)):
            self.put({"role": "user", "content": self.words(ASKED)})
            for _ in range(self.random.randint(0, 5)):
                script, out, _failed = self.script()
                id_ = f"call_{len(self.lines)}"
                function = {"name": "bash", "arguments": json.dumps({"command": script})}
                calls = [{"id": id_, "type": "function", "function": function}]
                self.put({"role": "assistant", "content": self.words(SAID), "tool_calls": calls})
                if self.random.random() < 0.9:
                    self.put({"role": "tool", "tool_call_id": id_, "content": out})


AGENTS: dict[str, Callable[..., Writer]] = {"claude-code": Claude, "codex": Codex, "openai-chat-message": Chat}

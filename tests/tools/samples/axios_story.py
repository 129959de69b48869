"""The Claude Code sample: a service is migrated from axios to fetch. First part, up to the compaction."""

from __future__ import annotations

from datetime import timedelta

from . import portal_output as out
from .axios_agent import AGENT_ID, MODEL, Agent, run_agent
from .claude_log import ClaudeLog
from .core import Clock, bundle, uuid4
from .portal_api import NEW_IMPORTS, OLD_IMPORTS, sources
from .portal_more import generated, other_paths
from .workspace import Tool, Workspace, bash

ROOT = "/home/dev/billing-portal"
SESSION = uuid4("axios-to-fetch/session")
TITLE = "Migrate billing-portal from axios to fetch"
OVERHEAD = 16_412  # system prompt and tool definitions
HOOK = "npx eslint --cache --quiet src test"
API = ["customers", "invoices", "payments", "refunds", "subscriptions"]
TESTFILE = "test/lib/httpClient.test.ts"
RUN = f"npx vitest run {TESTFILE} 2>&1"

TODOS = [
    ("Survey axios usage and the HTTP contract", "Surveying axios usage"),
    ("Write src/lib/httpClient.ts as the only wrapper", "Writing the wrapper"),
    ("Migrate src/api/ (5 files), signatures unchanged", "Migrating src/api/"),
    ("Migrate src/lib/errors.ts and the test helper mockHttp", "Migrating errors.ts and the test helper"),
    ("Get test/lib/httpClient.test.ts green (timeout per attempt)", "Fixing the timeout test"),
    ("Migrate the direct axios users (5 files)", "Migrating the direct axios users"),
    ("Remove axios and axios-mock-adapter, replace axiosInstance.ts", "Removing the packages"),
    ("Full test run, build, size check, one commit", "Checking everything and committing"),
]


class Story:
    def __init__(self) -> None:
        self.text = {k: v.rstrip("\n") for k, v in bundle("axios_texts.txt").items()}
        lib, rest, tests = bundle("portal_lib.txt"), bundle("portal_rest.txt"), bundle("portal_tests.txt")
        self.new_client = lib.pop("src/lib/httpClient.ts")
        self.mock_http = tests.pop("test/helpers/mockHttp.ts")
        self.claude_md = rest.pop("CLAUDE.md")
        self.ws = Workspace(ROOT, {**sources(), **lib, **rest, **tests, **generated()}, other_paths())
        self.log = ClaudeLog(
            "axios-to-fetch",
            SESSION,
            Clock("2026-05-11T09:41:07.318"),
            cwd=ROOT,
            version="2.1.112",
            branch="no-axios",
            model=MODEL,
            overhead=OVERHEAD,
            prefix_cached=15_870,
        )
        self.agent: Agent | None = None
        self.call_sizes: dict[str, int] = {}

    def step(self, key: str, *tools: Tool, think: str = "") -> None:
        say = self.text[key] if key else ""
        self.log.call(*tools, think=self.text[think] if think else "", say=say)

    def replace(self, paths: list[str], *pairs: tuple[str, str]) -> None:
        """What a `sed -i` of the story does."""
        for path in paths:
            text = self.ws.files[path]
            for old, new in pairs:
                text = text.replace(old, new)
            self.ws.files[path] = text

    # -- 1: survey --------------------------------------------------------------------------------------------------
    def begin(self) -> None:
        log = self.log
        log.side({"type": "mode", "mode": "normal"})
        log.side({"type": "permission-mode", "permissionMode": "acceptEdits"})
        prompt = self.text["prompt"]
        log.user(prompt, permissionMode="acceptEdits")
        reminder = f"Contents of {ROOT}/CLAUDE.md (project instructions, checked into the codebase):\n\n"
        log.meta(f"<system-reminder>\n{reminder}{self.claude_md}</system-reminder>")
        log.side({"type": "ai-title", "aiTitle": TITLE})

    def survey(self) -> None:
        ws = self.ws
        count = ws.grep_count("axios", "src")
        count.input["glob"] = "!src/legacy/**"
        legacy = [line for line in count.content.split("\n") if "src/legacy" in line]
        assert len(legacy) == 1
        count = without_legacy(count)
        assert "Found 45 total occurrences across 12 files." in count.content
        self.step("say-survey", count, ws.glob("src/**/*.ts", "src/", ".ts"), think="think-survey")
        self.step("say-count", ws.read("package.json"), ws.read("src/lib/axiosInstance.ts"))
        lines = ws.grep_lines("axios", "src")
        lines.input["glob"] = "!src/legacy/**"
        self.step("", without_legacy(lines), think="think-instance")
        self.step("say-pattern", ws.read("docs/http-behaviour.md"), ws.read("src/lib/errors.ts"))
        self.step("say-invoices", ws.read("src/api/invoices.ts"))
        self.step("say-payments", ws.read("src/api/payments.ts"), ws.read("src/api/customers.ts"))
        self.subagent()
        self.step("say-routes", ws.read("src/routes/billing.ts"))
        self.step("say-rest", ws.read("src/api/subscriptions.ts"), ws.read("src/api/refunds.ts"))
        self.step("say-openapi", ws.read("openapi/billing-core.yaml", 1, 200))
        self.step("decision", ws.todo(TODOS, 1))

    def subagent(self) -> None:
        """The call is logged first, then the helper runs, then its result arrives."""
        text, log = self.text, self.log
        arguments = {
            "description": text["agent-description"],
            "prompt": text["agent-prompt"],
            "subagent_type": "Explore",
        }
        pending = Tool("Agent", arguments, "", {}, None, 0.0)
        start = log.clock.now + timedelta(seconds=9)
        self.agent = run_agent(self.ws, text, SESSION, start)
        spent = self.agent.seconds
        pending.content = [
            {"type": "text", "text": text["agent-result"]},
            {"type": "text", "text": f"agentId: {AGENT_ID} (for resuming this agent)\n{self.agent.usage_note()}"},
        ]
        pending.ui = self.agent.ui(text["agent-prompt"], pending.content[:1])
        pending.seconds = spent + 6
        self.step("say-agent", pending)
        block = log.records[-2]["message"]["content"][0]
        self.agent.tool_use_id = block["id"]

    # -- 2: wrapper and API modules ----------------------------------------------------------------------------------
    def wrapper(self) -> None:
        ws, log = self.ws, self.log
        self.step("say-write", ws.read("test/lib/axiosInstance.test.ts"))
        self.step("", ws.write("src/lib/httpClient.ts", self.new_client), think="think-wrapper")
        edits = [ws.edit(f"src/api/{name}.ts", OLD_IMPORTS, NEW_IMPORTS) for name in API]
        self.step("say-api", *edits[:2])
        self.step("", *edits[2:])
        files = [f"src/api/{name}.ts" for name in API]
        changes = {f: 3 + 2 * sum(self.ws.files[f].count(k) for k in ("billingAxios.", "axios.is")) for f in files}
        self.replace(files, ("billingAxios.", "httpClient."), ("axios.isAxiosError(", "isHttpError("))
        script = "-e 's/billingAxios\\./httpClient./' -e 's/axios\\.isAxiosError(/isHttpError(/'"
        exports = "(git diff src/api | grep '^[-+]export' || echo 'no export changed')"
        command = f"sed -i {script} src/api/*.ts && git diff --stat src/api && {exports}"
        shown = out.stat(changes) + "\nno export changed"
        self.step("say-sed", bash(command, "Rewrite call sites, show the diff", shown, seconds=0.4))
        self.step("say-errors", *self.edit_errors())
        log.api_error(self.text["api-error"])
        log.stopped(HOOK)
        log.prompt_marker(self.text["prompt"])

    def edit_errors(self) -> list[Tool]:
        path, ws = "src/lib/errors.ts", self.ws
        imports = "import { isAxiosError } from 'axios';\nimport type { AxiosError } from 'axios';\n"
        body = """/** Maps what axios throws to an ApiError. Status 0 means that no response arrived. */
export function toApiError(err: unknown, operation: string): ApiError {
  if (!isAxiosError(err)) {
    return new ApiError({ message: String(err), status: 0, code: 'unexpected', operation });
  }
  const failure = err as AxiosError<CoreErrorBody>;
  const body = failure.response?.data?.error;
  return new ApiError({
    message: body?.message ?? failure.message,
    status: failure.response?.status ?? 0,
    code: body?.code ?? networkCode(failure.code),
    operation,
    requestId: failure.response?.headers['x-request-id'] as string | undefined,
"""
        new = """/** Maps a failed request to an ApiError. Status 0 means that no response arrived. */
export function toApiError(err: unknown, operation: string): ApiError {
  if (!isHttpError(err)) {
    return new ApiError({ message: String(err), status: 0, code: 'unexpected', operation });
  }
  const body = (err.response?.data as CoreErrorBody | undefined)?.error;
  return new ApiError({
    message: body?.message ?? err.message,
    status: err.response?.status ?? 0,
    code: body?.code ?? networkCode(err.code),
    operation,
    requestId: err.response?.headers['x-request-id'],
"""
        return [ws.edit(path, imports, "import { isHttpError } from './httpClient';\n"), ws.edit(path, body, new)]

    # -- 3: tests, and the runaway -----------------------------------------------------------------------------------
    def tests(self) -> None:
        ws, log = self.ws, self.log
        log.user(self.text["continue"], wait=74)
        self.step("say-continue", ws.write("test/helpers/mockHttp.ts", self.mock_http))
        files = ["test/api/invoices.test.ts", "test/api/payments.test.ts"]
        adapter = "import MockAdapter from 'axios-mock-adapter';\n"
        helper = "import { MockHttp } from '../helpers/mockHttp';\n"
        self.replace(files, (adapter, helper), ("import { billingAxios } from '../../src/lib/axiosInstance';\n", ""))
        self.replace(files, ("new MockAdapter(billingAxios)", "new MockHttp()"))
        ws.files[TESTFILE] = ws.files.pop("test/lib/axiosInstance.test.ts")
        self.replace([TESTFILE], ("billingAxios", "httpClient"), ("lib/axiosInstance", "lib/httpClient"))
        command = (
            f"git mv test/lib/axiosInstance.test.ts {TESTFILE} && "
            f"sed -i -e 's/billingAxios/httpClient/g' -e 's#lib/axiosInstance#lib/httpClient#' {TESTFILE} && "
            "sed -i -e \"s#MockAdapter from 'axios-mock-adapter'#{ MockHttp } from '../helpers/mockHttp'#\" "
            "-e '/lib\\/axiosInstance/d' -e 's/new MockAdapter(billingAxios)/new MockHttp()/' "
            "test/api/invoices.test.ts test/api/payments.test.ts && npm run -s typecheck && git status --short"
        )
        status = [f" M src/api/{name}.ts" for name in API] + [" M src/lib/errors.ts"]
        status += [f" M {f}" for f in files] + [f"RM test/lib/axiosInstance.test.ts -> {TESTFILE}"]
        status += ["?? src/lib/httpClient.ts", "?? test/helpers/mockHttp.ts"]
        self.step("say-tests", bash(command, "Adapt the tests and check types", "\n".join(status), seconds=9.2))
        source = ws.files[TESTFILE]
        full = bash("npm test", "Run all tests", out.whole_suite(source), fails=True, seconds=40.1, timeout=180000)
        self.step("say-full", ws.todo(TODOS, 4), full)
        self.step("say-one-failure", ws.read("test/helpers/coreStub.ts"))
        old = "  const cause = (err as { cause?: { code?: string } }).cause;\n"
        new = "  if (err instanceof DOMException && err.name === 'TimeoutError') {\n"
        new += "    return new HttpError(err.message, 'ECONNABORTED');\n  }\n" + old
        self.step("say-map", ws.edit("src/lib/httpClient.ts", old, new), think="think-map")
        for run, leaks in enumerate((1, 2, 4, 7, 32), 1):
            tool = bash(RUN, "Run the client's tests", out.one_file(ws.files, leaks, run), fails=True, seconds=3.8)
            self.step(f"say-run-{run}", tool, think="think-run-5" if run == 5 else "")
        log.call(think="", say=self.text["say-stop"])
        log.stopped(HOOK)
        log.prompt_marker(self.text["continue"])


def without_legacy(tool: Tool) -> Tool:
    """Applies the glob `!src/legacy/**` to a search result."""
    keep = [line for line in tool.content.split("\n") if not line.startswith("src/legacy/")]
    if tool.ui["mode"] == "count":
        listing = [line for line in keep if line.startswith("src/")]
        total = sum(int(line.rsplit(":", 1)[1]) for line in listing)
        tool.ui = {**tool.ui, "numFiles": len(listing), "content": "\n".join(listing), "numMatches": total}
        text = "\n".join(listing)
        tool.content = f"{text}\n\nFound {total} total occurrences across {len(listing)} files."
    else:
        tool.content = "\n".join(keep)
        tool.ui = {**tool.ui, "content": tool.content, "numLines": len(keep)}
    return tool

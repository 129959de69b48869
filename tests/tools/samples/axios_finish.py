"""The Claude Code sample, second part: from the compaction to the commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .axios_agent import AGENT_ID
from .axios_story import API, HOOK, OVERHEAD, RUN, TESTFILE, TODOS, Story
from .core import compact, write_jsonl
from .portal_output import one_file_ok, whole_suite
from .workspace import bash

DIRECT = {
    "src/services/dunningService.ts": "post",
    "src/services/taxService.ts": "post",
    "src/jobs/exchangeRates.ts": "get",
    "src/jobs/usageExport.ts": "put",
    "src/webhooks/deliver.ts": "post",
}
ALIAS = """// Kept for src/legacy, which must not change. New code imports httpClient.
export { httpClient as billingAxios, clientDefaults } from './httpClient';
"""
BEFORE_LOOP = """  const signal = combine(AbortSignal.timeout(timeout), options.signal);
  let renewed = false;
  for (let attempt = 1; ; ) {
    const startedAt = Date.now();
    try {
      const response = await send<T>(call, target, body, options, signal);
"""
IN_LOOP = """  let renewed = false;
  for (let attempt = 1; ; ) {
    const startedAt = Date.now();
    // a signal of its own for each attempt: one that has fired would stop the next attempt before it starts
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new DOMException('timed out', 'TimeoutError')), timeout);
    const signal = combine(controller.signal, options.signal);
    try {
      const response = await send<T>(call, target, body, options, signal).finally(() => clearTimeout(timer));
"""


def finish(story: Story) -> None:
    ws, log, text = story.ws, story.log, story.text
    log.compacted(text["summary"], text["compact-instructions"], wait=41, prefix_cached=OVERHEAD - 18)
    log.user(text["prompt-2"], wait=38)
    client = "src/lib/httpClient.ts"
    story.step("say-loop", ws.read(client, 42, 66), think="think-loop")
    fix = ws.edit(client, BEFORE_LOOP, IN_LOOP)
    log.snapshot(log.parent or "", {client: 2, "src/lib/errors.ts": 1}, update=True)
    story.step("say-signal", fix, think="think-signal")
    command = f"rm -f node_modules/.cache/http-replay.jsonl && {RUN}"
    story.step("say-verify", bash(command, "Run the client's tests without the cache", one_file_ok(), seconds=4.1))
    story.step("say-green", ws.todo(TODOS, 5))
    services, others = list(DIRECT)[:2], list(DIRECT)[2:]
    story.step("say-direct-0", *[ws.read(path) for path in services])
    edits = [edit_import(story, path) for path in services]
    story.step("say-direct-1", *edits, *[ws.read(path) for path in others])
    deliver = ws.edit("src/webhooks/deliver.ts", "    validateStatus: () => true,\n", "    anyStatus: true,\n")
    story.step("say-direct-2", *[edit_import(story, path) for path in others], deliver)
    story.replace(list(DIRECT), *((f"axios.{verb}", f"plainHttp.{verb}") for verb in ("post", "get", "put")))
    command = f"sed -i -E 's/\\baxios\\.(get|post|put)\\b/plainHttp.\\1/' {' '.join(DIRECT)} && npm run -s typecheck"
    story.step("say-direct-sed", bash(command, "Rewrite call sites and check types", "", seconds=8.7))
    story.step("say-legacy", ws.grep_lines("axiosInstance|from 'axios'", "src/"))
    ws.files["src/lib/axiosInstance.ts"] = ALIAS
    command = f"cat > src/lib/axiosInstance.ts <<'EOF'\n{ALIAS}EOF\nnpx vitest run test/legacy 2>&1 | tail -4"
    passed = " Test Files  2 passed (2)\n      Tests  16 passed (16)\n   Duration  1.36s"
    story.step("decision-legacy", bash(command, "Write the alias, run the legacy tests", passed, seconds=2.4))
    mocks = ["test/services/taxService.test.ts", "test/webhooks/deliver.test.ts"]
    story.replace(
        mocks,
        ("import axios from 'axios'", "import { plainHttp } from '../../src/lib/httpClient'"),
        ("vi.mock('axios')", "vi.mock('../../src/lib/httpClient')"),
        ("axios.post", "plainHttp.post"),
    )
    rules = "-e \"s#import axios from 'axios'#import { plainHttp } from '../../src/lib/httpClient'#\" "
    rules += "-e \"s#vi.mock('axios')#vi.mock('../../src/lib/httpClient')#\" -e 's/axios.post/plainHttp.post/'"
    command = f"sed -i {rules} {' '.join(mocks)} && npx vitest run {' '.join(mocks)} 2>&1 | tail -4"
    passed = " Test Files  2 passed (2)\n      Tests  5 passed (5)\n   Duration  1.18s"
    story.step("say-mocks", bash(command, "Mock plainHttp instead of axios", passed, seconds=2.3))
    package = ws.files["package.json"]
    package = package.replace('    "axios": "^1.7.9",\n', "").replace('    "axios-mock-adapter": "^2.1.0",\n', "")
    ws.files["package.json"] = package
    removed = "removed 9 packages, and audited 214 packages in 2s\n\nfound 0 vulnerabilities"
    removal = bash("npm uninstall axios axios-mock-adapter", "Remove both packages", removed, seconds=2.9)
    story.step("say-uninstall", ws.todo(TODOS, 6), removal)
    command = "rm -f node_modules/.cache/http-replay.jsonl && npm test 2>&1 | tail -5 && npm run -s typecheck && "
    passed = "\n".join(whole_suite(None).split("\n")[-5:])
    full = bash(command + "npm run -s lint", "Run tests, types and lint", passed, seconds=58.4, timeout=240000)
    story.step("say-run-all", full)
    built = "CLI Building entry: src/index.ts\nESM dist/index.js 371.92 KB\nESM Build success in 412ms\n"
    built += "dist/index.js  371.9 kB (limit 420 kB)  external: fastify, pino, zod"
    story.step("say-build", bash("npm run -s build && npm run -s size", "Build, size", built))
    left = ws.grep_lines("from 'axios|axios-mock-adapter", "")
    assert left.content == "No matches found", left.content
    left.input = {"pattern": "from 'axios|axios-mock-adapter", "path": ".", "output_mode": "content", "-n": True}
    command = f"git add -A && git commit -m \"$(cat <<'EOF'\n{text['commit-message']}\nEOF\n)\""
    changed = [*(f"src/api/{n}.ts" for n in API), *DIRECT, *mocks, TESTFILE, "package.json", "package-lock.json"]
    changed += ["src/lib/axiosInstance.ts", "src/lib/errors.ts", "src/lib/httpClient.ts", "test/helpers/mockHttp.ts"]
    changed += ["test/api/invoices.test.ts", "test/api/payments.test.ts"]
    shown = "[no-axios 3f9c2ae] refactor(http): replace axios by the built-in fetch\n"
    shown += f" {len(changed)} files changed, 318 insertions(+), 402 deletions(-)\n"
    shown += " create mode 100644 src/lib/httpClient.ts\n create mode 100644 test/helpers/mockHttp.ts\n"
    shown += " rename test/lib/{axiosInstance.test.ts => httpClient.test.ts} (91%)"
    story.step("say-commit", left, bash(command, "Commit on this branch", shown, seconds=3.1))
    story.step("", ws.todo(TODOS, len(TODOS)))
    log.call(say=text["done"])
    log.stopped(HOOK)
    log.prompt_marker(text["prompt-2"])
    log.side({"type": "mode", "mode": "normal"})


def edit_import(story: Story, path: str) -> Any:
    depth = "../lib/httpClient"
    return story.ws.edit(path, "import axios from 'axios';\n", f"import {{ plainHttp }} from '{depth}';\n")


def build(folder: Path) -> Story:
    story = Story()
    story.begin()
    story.survey()
    story.wrapper()
    story.tests()
    finish(story)
    assert story.agent is not None
    write_jsonl(folder / "axios-to-fetch.jsonl", story.log.records)
    helper = folder / "axios-to-fetch" / "subagents" / f"agent-{AGENT_ID}"
    write_jsonl(helper.with_suffix(".jsonl"), story.agent.log.records)
    link = {"toolUseId": story.agent.tool_use_id}
    helper.with_suffix(".meta.json").write_bytes(compact(link).encode())
    return story

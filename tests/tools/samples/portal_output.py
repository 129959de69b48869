"""What the commands of the story print: vitest, tsc, the bundle report."""

from __future__ import annotations

from .core import pick
from .portal_more import TESTS

RULE = "-" * 72
GOOD, BAD, AT = "\N{CHECK MARK}", "\N{MULTIPLICATION SIGN}", "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
TIMEOUT_CASE = "aborts each attempt on its own and reports ECONNABORTED"
CASES = [
    "sends the bearer token and the request id",
    "repeats array parameters without indexes",
    "renews the token once on 401",
    "retry > makes 3 attempts on 503, 250 ms and 500 ms apart",
    "retry > honours retry-after",
    "retry > does not repeat a POST without an idempotency key",
    "retry > repeats a POST with an idempotency key",
    "timeout > " + TIMEOUT_CASE,
]
REPLAYED = ["/v1/slow", "/v1/invoices", "/v1/ping", "/v1/payments/py_1/capture", "/v1/customers/cu_1"]


def suite() -> list[tuple[str, int]]:
    files = [(f"test/{folder}/{name}.test.ts", n) for folder, names in TESTS.items() for name, n in names.items()]
    return sorted([*files, ("test/lib/httpClient.test.ts", len(CASES))])


def excerpt(source: str, line: int) -> list[str]:
    rows = source.split("\n")
    out = []
    for n in range(line - 2, line + 2):
        out.append(f"    {n}|{' ' if rows[n - 1] else ''}{rows[n - 1]}")
        if n == line:
            caret = rows[n - 1].index(".to") + 1
            out.append(f"      |{' ' * (caret + 1)}^")
    return out


def failed_case(source: str, message: str, marker: str, expected: str, received: str) -> list[str]:
    line = line_of(source, marker)
    return [
        " FAIL  test/lib/httpClient.test.ts > httpClient > timeout > " + TIMEOUT_CASE,
        message,
        "",
        "- Expected",
        "+ Received",
        "",
        f"- {expected}",
        f"+ {received}",
        "",
        f" {AT} test/lib/httpClient.test.ts:{line}:33",
        *excerpt(source, line),
    ]


def line_of(source: str, marker: str) -> int:
    return next(n for n, text in enumerate(source.split("\n"), 1) if marker in text)


def unhandled(files: dict[str, str], run: int, n: int) -> list[str]:
    client, setup = files["src/lib/httpClient.ts"], files["test/setup/httpReplay.ts"]
    mapped, caught = line_of(client, "(err.message, 'ECONNABORTED')"), line_of(client, "failure = toHttpError(err)")
    replayed = line_of(setup, "void replay")
    url = REPLAYED[pick(f"replay{run}/{n}", 0, len(REPLAYED) - 1)]
    attempt = pick(f"attempt{run}/{n}", 1, 3)
    return [
        f"------ Unhandled Rejection {n} ------",
        "HttpError: The operation was aborted due to timeout",
        f" {AT} toHttpError src/lib/httpClient.ts:{mapped}:12",
        f" {AT} request src/lib/httpClient.ts:{caught}:23",
        f" {AT} replay test/setup/httpReplay.ts:{replayed}:10  GET {url}?replay={n} attempt {attempt} of 3",
        "Serialized Error: { code: 'ECONNABORTED', response: undefined, cause: 'TimeoutError' }",
        'This error originated in "test/lib/httpClient.test.ts" while the file was running. It does not mean the error',
        "was thrown inside the file itself: the rejected promise belongs to a request that nobody awaited.",
        "",
    ]


def duration(case: str, key: str) -> int:
    """Milliseconds of a case; the ones that wait take at least as long as they wait."""
    waits = {"attempts on": 750, "retry-after": 1000, "POST with an": 250, "each attempt": 870}
    return pick(key, 3, 40) + sum(ms for word, ms in waits.items() if word in case)


def one_file(files: dict[str, str], leaks: int, run: int) -> str:
    """The failing test on its own; every run leaves more requests behind that nobody awaits."""
    source = files["test/lib/httpClient.test.ts"]
    ms = 2900 + 40 * leaks
    lines = ["", " RUN  v2.1.8 /home/dev/billing-portal", ""]
    lines.append(f" {AT} test/lib/httpClient.test.ts ({len(CASES)} tests | 1 failed) {ms}ms")
    for n, case in enumerate(CASES):
        mark = BAD if n == len(CASES) - 1 else GOOD
        lines.append(f"   {mark} httpClient > {case} {duration(case, f'{run}/{n}')}ms")
    lines += ["     → expected [ { method: 'GET', ... } ] to have a length of 3 but got 1", "", RULE]
    message = "AssertionError: expected [ { method: 'GET', ... } ] to have a length of 3 but got 1"
    lines += [*failed_case(source, message, "toHaveLength(3)", "3", "1"), "", RULE]
    if leaks:
        lines += [f"Vitest caught {leaks} unhandled error{'s' if leaks > 1 else ''} during the test run.", ""]
        for n in range(1, leaks + 1):
            lines += unhandled(files, run, n)
    lines += [RULE, " Test Files  1 failed (1)", f"      Tests  1 failed | {len(CASES) - 1} passed ({len(CASES)})"]
    if leaks:
        lines.append(f"     Errors  {leaks} error{'s' if leaks > 1 else ''}")
    lines += [f"   Start at  10:{5 + run}:1{run}", f"   Duration  {ms / 1000 + 0.71:.2f}s"]
    return "\n".join(lines)


def whole_suite(source: str | None) -> str:
    """All files; with `source` the timeout test fails as it did first."""
    lines = ["", "> billing-portal@4.18.2 test", "> vitest run", "", " RUN  v2.1.8 /home/dev/billing-portal", ""]
    files = suite()
    total = sum(n for _, n in files)
    for path, n in files:
        bad = source is not None and path.endswith("httpClient.test.ts")
        note = f"{n} tests | 1 failed" if bad else f"{n} tests"
        ms = 2960 if "httpClient" in path else pick(path, 12, 900)
        lines.append(f" {AT if bad else GOOD} {path} ({note}) {ms}ms")
    if source is None:
        lines += ["", f" Test Files  {len(files)} passed ({len(files)})", f"      Tests  {total} passed ({total})"]
    else:
        message = "AssertionError: expected HttpError: aborted due to timeout to match { code: 'ECONNABORTED' }"
        values = ('"code": "ECONNABORTED",', '"code": undefined,')
        lines += ["", RULE, *failed_case(source, message, "timeout: 120", *values)]
        lines += ["", RULE, f" Test Files  1 failed | {len(files) - 1} passed ({len(files)})"]
        lines.append(f"      Tests  1 failed | {total - 1} passed ({total})")
    return "\n".join([*lines, "   Duration  38.42s (transform 2.1s, setup 1.4s, collect 9.8s, tests 31.6s)"])


def one_file_ok() -> str:
    lines = ["", " RUN  v2.1.8 /home/dev/billing-portal", ""]
    lines.append(f" {GOOD} test/lib/httpClient.test.ts ({len(CASES)} tests) 3184ms")
    lines += [f"   {GOOD} httpClient > {case}" for case in CASES]
    return "\n".join([*lines, "", " Test Files  1 passed (1)", f"      Tests  {len(CASES)} passed ({len(CASES)})"])


def stat(changes: dict[str, int]) -> str:
    width = max(len(p) for p in changes)
    rows = [f" {p.ljust(width)} | {n:>3} {'+' * (n // 2)}{'-' * (n - n // 2)}" for p, n in changes.items()]
    plus = sum(n // 2 for n in changes.values())
    minus = sum(n - n // 2 for n in changes.values())
    return "\n".join([*rows, f" {len(changes)} files changed, {plus} insertions(+), {minus} deletions(-)"])

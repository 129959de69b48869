"""More of the story's service, derived from the API modules: routes, tests, the core's OpenAPI file, file names."""

from __future__ import annotations

from .portal_api import INVOICES, MODULES, PAYMENTS, Api, Op, fields_of

TESTS = {
    "api": {"customers": 9, "invoices": 10, "payments": 10, "refunds": 6, "subscriptions": 11},
    "jobs": {"cleanupSessions": 3, "exchangeRates": 4, "reminderMails": 5, "usageExport": 6},
    "legacy": {"envelope": 12, "soapGateway": 4},
    "lib": {"cursor": 5, "errors": 10, "logger": 3, "money": 13, "requestContext": 4, "serviceToken": 7},
    "routes": {"auth": 9, "billing": 25, "health": 3, "webhooks": 7},
    "services": {"dunningService": 8, "entitlements": 15, "taxService": 2},
    "store": {"deliveries": 2, "rates": 3, "sessions": 2, "usage": 3},
    "webhooks": {"deliver": 3, "sign": 2},
}
NO_TEST = [
    "src/config.ts",
    "src/index.ts",
    "src/legacy/certificates.ts",
    "src/routes/schemas.ts",
    "src/server.ts",
    "src/types.ts",
    "src/webhooks/types.ts",
]


SCHEMAS = {
    "query": "invoiceQuery",
    "patch": "customerPatch",
    "request": "paymentRequest",
    "change": "subscriptionChange",
}
FIELDS = {
    "amount": "money.optional()",
    "cursor": "z.string().optional()",
    "now": "z.coerce.boolean()",
    "recipients": "z.array(z.string().email()).max(10)",
}


def name_of(op: Op) -> str:
    return op.signature.split("(")[0]


def params_of(op: Op) -> list[str]:
    inside = op.signature.split("(", 1)[1].rsplit(")", 1)[0]
    return [part.split(":")[0].split("=")[0].strip(" ?") for part in inside.split(",") if part.strip()]


def url_of(op: Op) -> str:
    url = op.rest.split(",")[0].strip("'`")
    url = url.replace("${encodeURIComponent(id)}", "{id}").replace("${", "{")
    return url


def resource(path: str) -> str:
    return path.rsplit("/", 1)[1].removesuffix(".ts")


def routes() -> str:
    head = [
        "import type { FastifyInstance } from 'fastify';",
        "import { z } from 'zod';",
        *(f"import * as {resource(p)} from '../api/{resource(p)}';" for p in MODULES),
        "import { ApiError } from '../lib/errors';",
        "import { requireScope } from './auth';",
        "import { customerPatch, invoiceQuery, money, paymentRequest, subscriptionChange } from './schemas';",
        "",
        "const ident = z.string().min(3).max(40);",
        "const keyed = z.object({ 'idempotency-key': z.string().min(8).max(64) });",
        "",
        "/** Routes of the web client. They add scopes and validation; everything else is the job of `src/api`. */",
        "export async function billingRoutes(app: FastifyInstance): Promise<void> {",
    ]
    body: list[str] = []
    for path, api in MODULES.items():
        for op in api.ops:
            body += ["", *("  " + line for line in route(resource(path), op))]
    tail = [
        "",
        "  app.setErrorHandler((err, request, reply) => {",
        "    if (!(err instanceof ApiError)) return reply.send(err);",
        "    const status = err.status === 0 ? 504 : err.status;",
        "    const { code, message, details, retryable } = err;",
        "    request.log.warn({ code, operation: err.operation, coreRequestId: err.requestId }, 'core refused');",
        "    return reply.status(status).send({ error: { code, message, details, retryable } });",
        "  });",
        "}",
    ]
    return "\n".join(head + body + tail) + "\n"


def route(module: str, op: Op) -> list[str]:
    scope = "read" if op.verb == "get" else "write"
    url = url_of(op).removeprefix("/v1").replace("{", ":").replace("}", "")
    lines, fields = [], []
    place = "query" if op.verb in ("get", "delete") else "body"
    names = params_of(op)
    path_names = [p for p in names if f":{p}" in url]
    if path_names:
        shape = ", ".join(f"{p}: ident" for p in path_names)
        lines.append(f"  const {{ {', '.join(path_names)} }} = z.object({{ {shape} }}).parse(request.params);")
    for p in names:
        if p == "key":
            lines.append("  const key = keyed.parse(request.headers)['idempotency-key'];")
        elif p in SCHEMAS:
            lines.append(f"  const {p} = {SCHEMAS[p]}.parse(request.{place});")
        elif p not in path_names:
            fields.append(p)
    if fields:
        shape = ", ".join(f"{p}: {FIELDS.get(p, 'z.string()')}" for p in fields)
        lines.append(f"  const {{ {', '.join(fields)} }} = z.object({{ {shape} }}).parse(request.{place});")
    call = f"await {module}.{name_of(op)}({', '.join(names)})"
    done = [f"  return reply.send({call});"]
    if op.returns == "void":
        done = [f"  {call};", "  return reply.status(204).send();"]
    return [
        f"// {op.doc}",
        f"app.{op.verb}('{url}', {{ preHandler: requireScope('{module}:{scope}') }}, async (request, reply) => {{",
        *lines,
        *done,
        "});",
    ]


def api_test(path: str, api: Api) -> str:
    name = resource(path)
    lines = [
        "import MockAdapter from 'axios-mock-adapter';",
        "import { afterEach, describe, expect, it } from 'vitest';",
        f"import * as {name} from '../../src/api/{name}';",
        "import { billingAxios } from '../../src/lib/axiosInstance';",
        f"import {{ sample }} from '../fixtures/{name}';",
        "",
        "const core = new MockAdapter(billingAxios);",
        "",
        "afterEach(() => core.reset());",
        "",
        f"describe('{name}', () => {{",
    ]
    for op in api.ops:
        values = ", ".join(f"sample.{p}" for p in params_of(op))
        url = url_of(op).replace("{id}", "in_1" if name == "invoices" else "py_1").replace("{customerId}", "cu_1")
        on = f"core.on{op.verb.capitalize()}('{url.replace('{methodId}', 'pm_1')}')"
        lines += [
            f"  it('{name_of(op)} returns what the core answers', async () => {{",
            f"    {on}.reply(200, sample.answer.{name_of(op)});",
            f"    expect(await {name}.{name_of(op)}({values})).toEqual(sample.answer.{name_of(op)});",
            "  });",
            "",
        ]
        if op.guard:
            lines += [
                f"  it('{name_of(op)} maps a refusal to ApiError', async () => {{",
                f"    {on}.reply(409, {{ error: {{ code: 'conflict', message: 'try later', details: {{ n: 1 }} }} }});",
                f"    await expect({name}.{name_of(op)}({values})).rejects.toMatchObject({{",
                "      name: 'ApiError',",
                "      status: 409,",
                "      code: 'conflict',",
                f"      operation: '{op.guard}',",
                "    });",
                "  });",
                "",
            ]
    return "\n".join([*lines[:-1], "});"]) + "\n"


def openapi() -> str:
    lines = [
        "openapi: 3.0.3",
        "info: { title: Billing core, version: '2025-11' }",
    ]
    lines += [
        "components:",
        "  responses:",
        "    Conflict: { description: State does not allow it, x-schema: CoreError }",
        "    TooManyRequests: { headers: { Retry-After: { type: integer } }, x-schema: CoreError }",
        "    Unavailable: { description: Maintenance or overload. Body may be empty or HTML., x-schema: CoreError }",
        "  schemas:",
        "    CoreError: { error: { code: string, message: string, details: any } }",
    ]
    for api in MODULES.values():
        for name, doc, fields in api.types:
            lines += [f"    {name}:", f"      description: {doc}", "      properties:"]
            for key, kind in fields_of(fields):
                optional = ", nullable: true" if "?" in key else ""
                lines.append(f'        {key.strip("?")}: {{ x-type: "{kind}"{optional} }}')
    lines.append("paths:")
    by_url: dict[str, list[tuple[str, Op]]] = {}
    for path, api in MODULES.items():
        for op in api.ops:
            by_url.setdefault(url_of(op), []).append((resource(path), op))
    for url, ops in by_url.items():
        lines.append(f"  {url}:")
        for tag, op in ops:
            lines += [
                f"    {op.verb}:",
                f"      operationId: {name_of(op)}",
                f"      summary: {op.doc}",
                f"      tags: [{tag}]",
                "      parameters:",
                *(f"        - {{ name: {p}, in: {where(op, p)} }}" for p in params_of(op)),
                "      responses:",
                f"        '200': {{ description: OK, x-schema: {op.returns} }}",
                "        '409': { $ref: '#/components/responses/Conflict' }",
                "        '429': { $ref: '#/components/responses/TooManyRequests' }",
                "        '503': { $ref: '#/components/responses/Unavailable' }",
            ]
    return "\n".join(lines) + "\n"


def where(op: Op, param: str) -> str:
    if param == "key":
        return "header"
    if "{" + param + "}" in url_of(op):
        return "path"
    return "query" if op.verb in ("get", "delete") else "body"


def generated() -> dict[str, str]:
    return {
        "src/routes/billing.ts": routes(),
        "openapi/billing-core.yaml": openapi(),
        "test/api/invoices.test.ts": api_test("src/api/invoices.ts", INVOICES),
        "test/api/payments.test.ts": api_test("src/api/payments.ts", PAYMENTS),
    }


def other_paths() -> list[str]:
    paths = list(NO_TEST)
    for folder, names in TESTS.items():
        for name in names:
            paths += [f"src/{folder}/{name}.ts", f"test/{folder}/{name}.test.ts"]
    return [p for p in paths if p != "src/webhooks/sign.ts"]

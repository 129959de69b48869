"""Builds the five API modules of the story's service, as they are before the migration."""

from __future__ import annotations

from dataclasses import dataclass, field

OLD_IMPORTS = "import axios from 'axios';\nimport { billingAxios } from '../lib/axiosInstance';\n"
NEW_IMPORTS = "import { httpClient, isHttpError } from '../lib/httpClient';\n"


@dataclass
class Op:
    doc: str
    signature: str
    returns: str
    verb: str
    rest: str  # arguments of the call
    guard: str = ""  # operation name for the error, empty: errors pass through


@dataclass
class Api:
    about: str
    types: list[tuple[str, str, str]]  # name, doc, fields
    ops: list[Op]
    imports: str = "import type { Money, Page } from '../types';"
    tail: str = ""
    unions: list[str] = field(default_factory=list)


def fields_of(text: str) -> list[tuple[str, str]]:
    pairs = [part.split(": ", 1) for part in text.split("; ")]
    return [(name, kind) for name, kind in pairs]


def interface(name: str, doc: str, fields: str) -> str:
    body = "\n".join(f"  {key}: {kind};" for key, kind in fields_of(fields))
    return f"/** {doc} */\nexport interface {name} {{\n{body}\n}}\n"


def operation(op: Op) -> str:
    call = f"await billingAxios.{op.verb}<{op.returns}>({op.rest});"
    if op.returns == "void":
        inner = [f"await billingAxios.{op.verb}({op.rest});"]
    else:
        inner = [f"const {{ data }} = {call}", "return data;"]
    if op.guard:
        inner = [
            "try {",
            *("  " + line for line in inner),
            "} catch (err) {",
            f"  if (axios.isAxiosError(err)) throw toApiError(err, '{op.guard}');",
            "  throw err;",
            "}",
        ]
    body = "\n".join("  " + line for line in inner)
    head = f"export async function {op.signature}: Promise<{op.returns}> {{"
    return f"/** {op.doc} */\n{head}\n{body}\n}}\n"


def module(api: Api) -> str:
    parts = [OLD_IMPORTS + "import { toApiError } from '../lib/errors';\n" + api.imports + "\n", f"// {api.about}\n"]
    parts += [line + "\n" for line in api.unions]
    parts += [interface(*t) for t in api.types]
    parts += [operation(op) for op in api.ops]
    if api.tail:
        parts.append(api.tail)
    return "\n".join(parts)


KEYED = "{ headers: { 'Idempotency-Key': key } }"

INVOICES = Api(
    about="Invoices of the billing core. Published: consumed by web-client, admin and finance-export.",
    unions=["export type InvoiceStatus = 'draft' | 'open' | 'past_due' | 'paid' | 'void' | 'uncollectible';"],
    types=[
        (
            "InvoiceLine",
            "One position. Amounts are net; tax is kept per line because rates differ.",
            "id: string; sku: string; description: string; quantity: number; unitPrice: Money; "
            "net: Money; tax: Money; periodStart?: string; periodEnd?: string",
        ),
        (
            "Invoice",
            "An invoice as the core returns it; dates are ISO 8601 in UTC.",
            "id: string; number: string; status: InvoiceStatus; customerId: string; "
            "subscriptionId?: string; issuedAt: string; dueAt: string; paidAt?: string; "
            "lines: InvoiceLine[]; net: Money; tax: Money; total: Money; amountDue: Money; "
            "pdfUrl?: string; metadata: Record<string, string>",
        ),
        (
            "InvoiceQuery",
            "All filters are optional and combined with AND.",
            "id?: string[]; customerId?: string; status?: InvoiceStatus; issuedAfter?: string; "
            "issuedBefore?: string; cursor?: string; limit?: number",
        ),
    ],
    ops=[
        Op(
            "Lists invoices, newest first. Pass `nextCursor` back in as `cursor` for the next page.",
            "listInvoices(query: InvoiceQuery = {})",
            "Page<Invoice>",
            "get",
            "'/v1/invoices', { params: query }",
            "invoices.list",
        ),
        Op(
            "One invoice by id.",
            "getInvoice(id: string)",
            "Invoice",
            "get",
            "`/v1/invoices/${encodeURIComponent(id)}`",
            "invoices.get",
        ),
        Op(
            "Turns a draft into an open invoice and assigns its number.",
            "finalizeInvoice(id: string, key: string)",
            "Invoice",
            "post",
            f"`/v1/invoices/${{id}}/finalize`, {{}}, {KEYED}",
            "invoices.finalize",
        ),
        Op(
            "Voids an open invoice. A paid one needs a refund instead.",
            "voidInvoice(id: string, reason: string)",
            "Invoice",
            "post",
            "`/v1/invoices/${id}/void`, { reason }",
            "invoices.void",
        ),
        Op(
            "Sends the PDF again to the billing contacts of the customer.",
            "resendInvoice(id: string, recipients: string[])",
            "void",
            "post",
            "`/v1/invoices/${id}/send`, { recipients }",
        ),
        Op(
            "The lines that the next invoice of a subscription would have.",
            "previewInvoice(subscriptionId: string)",
            "InvoiceLine[]",
            "get",
            "'/v1/invoices/preview', { params: { subscriptionId } }",
        ),
    ],
    tail="""/** Every invoice that matches, page after page. Use it for exports only. */
export async function* eachInvoice(query: InvoiceQuery = {}): AsyncGenerator<Invoice> {
  let cursor = query.cursor;
  do {
    const page = await listInvoices({ ...query, cursor });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor);
}

export function isOverdue(invoice: Invoice, today = new Date()): boolean {
  return invoice.status === 'past_due' || (invoice.status === 'open' && Date.parse(invoice.dueAt) < today.getTime());
}
""",
)

PAYMENTS = Api(
    about="Payments. Every write takes an idempotency key: the core keeps it for 24 hours.",
    unions=[
        "export type PaymentStatus = 'pending' | 'authorized' | 'captured' | 'failed' | 'canceled';",
        "export type PaymentMethodKind = 'card' | 'sepa_debit' | 'bank_transfer' | 'credit_balance';",
    ],
    types=[
        (
            "PaymentMethod",
            "A stored method. Card numbers never leave the vault; `label` is what may be shown.",
            "id: string; kind: PaymentMethodKind; label: string; expiresAt?: string; isDefault: boolean",
        ),
        (
            "Payment",
            "One attempt to collect money for one invoice.",
            "id: string; invoiceId: string; customerId: string; methodId: string; status: PaymentStatus; "
            "amount: Money; createdAt: string; capturedAt?: string; failureCode?: string; "
            "failureMessage?: string; reference: string",
        ),
        (
            "PaymentRequest",
            "`amount` defaults to what is still due.",
            "invoiceId: string; methodId?: string; amount?: Money; offSession?: boolean",
        ),
    ],
    ops=[
        Op(
            "Payments of an invoice, oldest first, the failed ones too.",
            "listPayments(invoiceId: string)",
            "Page<Payment>",
            "get",
            "'/v1/payments', { params: { invoiceId } }",
            "payments.list",
        ),
        Op(
            "Creates and captures a payment. The same key returns the same payment.",
            "createPayment(request: PaymentRequest, key: string)",
            "Payment",
            "post",
            f"'/v1/payments', request, {KEYED}",
            "payments.create",
        ),
        Op(
            "Captures what was authorized before, up to seven days later.",
            "capturePayment(id: string, key: string)",
            "Payment",
            "post",
            f"`/v1/payments/${{id}}/capture`, {{}}, {KEYED}",
            "payments.capture",
        ),
        Op(
            "Gives an authorization back. Not possible once captured.",
            "cancelPayment(id: string)",
            "Payment",
            "post",
            "`/v1/payments/${id}/cancel`, {}",
            "payments.cancel",
        ),
        Op(
            "Stored methods of a customer, the default one first.",
            "listPaymentMethods(customerId: string)",
            "PaymentMethod[]",
            "get",
            "`/v1/customers/${customerId}/payment-methods`",
        ),
        Op(
            "Detaches a method. Open authorizations stay valid.",
            "removePaymentMethod(customerId: string, methodId: string)",
            "void",
            "delete",
            "`/v1/customers/${customerId}/payment-methods/${methodId}`",
        ),
    ],
    tail="""const DECLINES = new Set(['insufficient_funds', 'do_not_honor', 'expired_card', 'lost_card']);

/** A decline is the customer's to solve, everything else is ours. */
export function isDecline(payment: Payment): boolean {
  return payment.status === 'failed' && DECLINES.has(payment.failureCode ?? '');
}
""",
)

CUSTOMERS = Api(
    about="Customers and their billing contacts.",
    types=[
        (
            "Address",
            "Postal address, as printed on invoices.",
            "line1: string; line2?: string; postalCode: string; city: string; region?: string; country: string",
        ),
        (
            "Customer",
            "A legal entity that receives invoices.",
            "id: string; name: string; email: string; address: Address; vatId?: string; "
            "currency: string; balance: Money; createdAt: string; archived: boolean",
        ),
        (
            "CustomerPatch",
            "Fields left out stay as they are.",
            "name?: string; email?: string; address?: Address; vatId?: string | null",
        ),
    ],
    ops=[
        Op(
            "One customer by id.",
            "getCustomer(id: string)",
            "Customer",
            "get",
            "`/v1/customers/${encodeURIComponent(id)}`",
            "customers.get",
        ),
        Op(
            "Searches name, email and VAT id.",
            "searchCustomers(q: string, cursor?: string)",
            "Page<Customer>",
            "get",
            "'/v1/customers', { params: { q, cursor } }",
            "customers.search",
        ),
        Op(
            "Changes single fields.",
            "updateCustomer(id: string, patch: CustomerPatch)",
            "Customer",
            "patch",
            "`/v1/customers/${id}`, patch",
            "customers.update",
        ),
        Op(
            "Archives a customer without open invoices.",
            "archiveCustomer(id: string)",
            "void",
            "delete",
            "`/v1/customers/${id}`",
        ),
    ],
)

SUBSCRIPTIONS = Api(
    about="Subscriptions: plan, seats, renewal.",
    unions=["export type SubscriptionStatus = 'trialing' | 'active' | 'past_due' | 'paused' | 'canceled';"],
    types=[
        (
            "Subscription",
            "`seats` is what is billed, `usedSeats` what is assigned.",
            "id: string; customerId: string; planId: string; status: SubscriptionStatus; seats: number; "
            "usedSeats: number; price: Money; currentPeriodEnd: string; cancelAtPeriodEnd: boolean; "
            "trialEnd?: string",
        ),
        (
            "SubscriptionChange",
            "Takes effect at once with `prorate`, else at the end of the period.",
            "planId?: string; seats?: number; prorate?: boolean",
        ),
    ],
    ops=[
        Op(
            "Subscriptions of a customer, canceled ones last.",
            "listSubscriptions(customerId: string)",
            "Page<Subscription>",
            "get",
            "'/v1/subscriptions', { params: { customerId } }",
            "subscriptions.list",
        ),
        Op(
            "Changes plan or seats.",
            "changeSubscription(id: string, change: SubscriptionChange, key: string)",
            "Subscription",
            "post",
            f"`/v1/subscriptions/${{id}}/change`, change, {KEYED}",
            "subscriptions.change",
        ),
        Op(
            "Cancels at the end of the period, or now.",
            "cancelSubscription(id: string, now = false)",
            "Subscription",
            "delete",
            "`/v1/subscriptions/${id}`, { params: { now } }",
            "subscriptions.cancel",
        ),
        Op(
            "Undoes a cancellation that has not taken effect yet.",
            "resumeSubscription(id: string)",
            "Subscription",
            "post",
            "`/v1/subscriptions/${id}/resume`, {}",
        ),
    ],
)

REFUNDS = Api(
    about="Refunds of captured payments, in full or in part.",
    types=[
        (
            "Refund",
            "Several partial refunds per payment are possible, never more than was captured.",
            "id: string; paymentId: string; amount: Money; reason: string; "
            "status: 'pending' | 'succeeded' | 'failed'; createdAt: string",
        ),
    ],
    ops=[
        Op(
            "Refunds of a payment, oldest first.",
            "listRefunds(paymentId: string)",
            "Page<Refund>",
            "get",
            "'/v1/refunds', { params: { paymentId } }",
            "refunds.list",
        ),
        Op(
            "Creates a refund. Without `amount` it is what is left of the payment.",
            "createRefund(paymentId: string, reason: string, key: string, amount?: Money)",
            "Refund",
            "post",
            f"'/v1/refunds', {{ paymentId, reason, amount }}, {KEYED}",
            "refunds.create",
        ),
    ],
)

MODULES = {
    "src/api/customers.ts": CUSTOMERS,
    "src/api/invoices.ts": INVOICES,
    "src/api/payments.ts": PAYMENTS,
    "src/api/refunds.ts": REFUNDS,
    "src/api/subscriptions.ts": SUBSCRIPTIONS,
}


def sources() -> dict[str, str]:
    return {path: module(api) for path, api in MODULES.items()}

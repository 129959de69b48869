"""Credentials in text: where they stand, to the character.

The rules are our own. detect-secrets 1.5.0 was weighed: it works on lines and returns values without their place (of a
GitHub token only the first three letters), knows the first line of a private key but not the block, has no rule for
keys of Anthropic, Google or Hugging Face and none for OpenAI keys without their old middle part, brings `requests` into
a tool that never uses the network, and takes 80 ms to import. The shapes below were written by hand from the prefixes
that the issuers give their tokens.

Two sorts: what is a credential by its shape, and the value beside a telling name. The latter must look random: a
placeholder, a path, an identifier or a word is none. Every repetition is bounded: time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxctl.guard.assignments import assigned
from ctxctl.guard.text import Sieved, merged

MARKER = "[credential-redacted]"

TOKENS: tuple[tuple[tuple[str, ...], str], ...] = (
    # AWS access key ids (IAM identifiers, "unique ids")
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    # GitHub, classic and fine-grained
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{36,255}"),
    (("github_pat_",), r"[A-Za-z0-9_]{22,255}"),
    # GitLab: personal, deploy, runner, trigger, CI job, feed, OAuth, mail and agent tokens
    (
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glsoat-", "gloas-", "glimt-", "glagent-"),
        r"[A-Za-z0-9_.-]{20,1024}",
    ),
    # Slack: bot, user, app and refresh tokens
    (("xoxa-", "xoxb-", "xoxe-", "xoxe.xoxp-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), r"[A-Za-z0-9-]{10,250}"),
    # Anthropic, OpenAI, OpenRouter, and keys of the older OpenAI shape
    (("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"), r"[A-Za-z0-9_-]{20,300}"),
    (("sk-",), r"[A-Za-z0-9]{32,64}(?![A-Za-z0-9_-])"),
    # Google: API keys, OAuth access tokens and client secrets
    (("AIza",), r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    (("ya29.",), r"[A-Za-z0-9_-]{20,1024}"),
    (("GOCSPX-",), r"[A-Za-z0-9_-]{24,40}"),
    # Stripe: secret and restricted keys, web hook secrets
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[A-Za-z0-9]{16,247}"),
    (("whsec_",), r"[A-Za-z0-9+/=]{24,90}"),
    # package registries
    (("npm_",), r"[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    (("pypi-AgE",), r"[A-Za-z0-9_-]{50,1024}"),
    (("rubygems_",), r"[a-f0-9]{48}"),
    # Hugging Face, Groq, xAI, Replicate, Perplexity
    (("hf_",), r"[A-Za-z0-9]{30,60}(?![A-Za-z0-9_])"),
    (("gsk_",), r"[A-Za-z0-9]{40,60}(?![A-Za-z0-9_])"),
    (("xai-",), r"[A-Za-z0-9]{60,100}"),
    (("r8_",), r"[A-Za-z0-9]{37}(?![A-Za-z0-9_])"),
    (("pplx-",), r"[A-Za-z0-9]{40,60}"),
    # DigitalOcean, Shopify, Databricks, Atlassian, Linear, Postman, Vault, Figma, Notion, Supabase, Tailscale, Sentry
    (("dop_v1_", "doo_v1_", "dor_v1_"), r"[a-f0-9]{64}"),
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"[a-fA-F0-9]{32}"),
    (("dapi",), r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    (("ATATT3",), r"[A-Za-z0-9_=-]{60,300}"),
    (("lin_api_",), r"[A-Za-z0-9]{40}"),
    (("PMAK-",), r"[a-f0-9]{24}-[a-f0-9]{34}"),
    (("hvs.", "hvb."), r"[A-Za-z0-9_-]{24,300}"),
    (("figd_",), r"[A-Za-z0-9_-]{36,60}"),
    (("ntn_",), r"[A-Za-z0-9]{40,60}"),
    (("sbp_",), r"[a-f0-9]{40}"),
    (("tskey-",), r"[a-z]{2,10}-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{20,60}"),
    (("sntrys_",), r"[A-Za-z0-9+/=_]{40,300}"),
    (("AGE-SECRET-KEY-1",), r"[A-Z0-9]{58}"),
    # SendGrid, Telegram bots
    (("SG.",), r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}"),
    # JSON web tokens (RFC 7519): header and payload are objects, hence both begin with the base64 of `{"`
    (("eyJ",), r"[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{4,8000}(?:\.[A-Za-z0-9_-]{0,2000})?"),
)

_TOKENS = tuple((prefix, re.compile(re.escape(prefix) + rest)) for prefixes, rest in TOKENS for prefix in prefixes)

SLACK_HOOK = re.compile(r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_]{20,120})")
TELEGRAM = re.compile(r"(?<![A-Za-z0-9])\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")
URL = re.compile(r"://([^\s:/@\"'`<>\\?#]{0,100}):([^\s@/\"'`<>\\]{1,256})@(?=[A-Za-z0-9\[%$_{.-])")
HEADER = re.compile(r"(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,4096})", re.I)
AUTHORIZATION = re.compile(
    r"authorization[\"'\]]{0,2}\\{0,3}[\"']?[ \t]{0,4}[:=,][ \t]{0,4}\\{0,3}[\"'`]?(?:[a-z-]{3,12}[ \t]{1,4})?"
    r"([A-Za-z0-9._~+/=:-]{12,4096})",
    re.I,
)
CURL_USER = re.compile(r"curl\b[^\n]{0,160}?[ \t](?:-u|--user)[ =]?[\"']?([^\s:\"'$]{1,64}):([^\s\"'$<{]{3,128})")
SIGNATURE = re.compile(r"sig=([A-Za-z0-9%+/]{40,100}(?:=|%3[dD]){0,2})")

BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BODY = re.compile(
    r"(?:[\s>|→:\d\"'+,-]|\\{1,8}[nrt]){1,40}(?:[A-Za-z][A-Za-z-]{0,30}: ?[^\n]{0,100}|[A-Za-z0-9+/=]{12})"
)
LINES = re.compile(
    r"(?:[A-Za-z0-9+/=]|\\{1,8}[nr](?:[ >|→\d:]{1,12}(?:\\{1,8}t)?(?=[A-Za-z0-9+/=]{12}))?"
    r"|[ \t>|→:,\"'+-]{0,12}\r?\n[ \t>|→\d:\"'+-]{0,12}(?=[A-Za-z0-9+/=]{12})"
    r"|[ \t]{1,4}(?=[A-Za-z0-9+/=]{24}))*+"
)
"""How the lines of a key follow each other: as lines with what tools put in front of them, escaped once or several
times within JSON, or folded to one line."""
LONGEST_KEY = 40_000

FILLER = re.compile(r"x{4}|\*{3}|0{12}|\.{3}|(.)\1{9}|your|redacted|placeholder|insert|replace", re.I)
"""In what stands where a credential would."""


def find_secrets(text: str, sieved: Sieved | None = None) -> list[tuple[int, int]]:
    """The spans of credentials in a text, in order, without overlaps. Of an assignment, a header or a URL the value
    alone, of a private key the whole block. sieved: the text prepared, where it is already."""
    sieved = sieved or Sieved(text)
    spans = [*_tokens(text, sieved), *_keys(text, sieved), *_headers(text, sieved), *_urls(text, sieved)]
    spans += assigned(text, sieved)
    return merged(spans) if spans else []


def _tokens(text: str, sieved: Sieved) -> Iterator[tuple[int, int]]:
    for prefix, pattern in _TOKENS:
        if not sieved.has(prefix.lower()):
            continue
        at = text.find(prefix)
        while at >= 0:
            end = at + len(prefix)
            if not (at and text[at - 1].isalnum() and text[at - 1].isascii()) or _escape(text, at):
                match = pattern.match(text, at)
                if match is not None:
                    if FILLER.search(text, end, match.end()) is None:
                        yield match.span()
                    end = match.end()
            at = text.find(prefix, end)


def _escape(text: str, at: int) -> bool:
    r"""Whether the letter in front of a place is that of an escape (`\n`) in quoted text."""
    return at > 1 and text[at - 2] == "\\" and text[at - 1] in "nrt"


def _keys(text: str, sieved: Sieved) -> Iterator[tuple[int, int]]:
    """Private keys from their first line to their last, or as far as what looks like key goes when that is missing."""
    if not sieved.has("-----begin"):
        return
    done = 0
    for begin in BEGIN.finditer(text):
        if begin.start() < done or BODY.match(text, begin.end()) is None:
            continue
        limit = begin.end() + LONGEST_KEY
        end = END.search(text, begin.end(), limit)
        following = BEGIN.search(text, begin.end(), limit)
        if end is not None and (following is None or following.start() > end.start()):
            done = end.end()
        else:
            start = BODY.match(text, begin.end())
            done = LINES.match(text, start.end() if start else begin.end(), limit).end()  # type: ignore[union-attr]
        yield begin.start(), done


def _headers(text: str, sieved: Sieved) -> Iterator[tuple[int, int]]:
    for needle in ("bearer", "basic"):
        for at in sieved.places(needle):
            match = HEADER.match(text, at)
            if match is not None and _random(match[1], 20 if needle == "bearer" else 16):
                yield match.span(1)
    for at in sieved.places("authorization"):
        match = AUTHORIZATION.match(text, at)
        if match is not None and _random(match[1], 12):
            yield match.span(1)


def _urls(text: str, sieved: Sieved) -> Iterator[tuple[int, int]]:
    for at in sieved.places("://"):
        match = URL.match(text, at)
        if match is not None and not _is_example(match[2]):
            yield match.span(2)
    if sieved.has("hooks.slack.com"):
        for match in SLACK_HOOK.finditer(text):
            if FILLER.search(match[1]) is None:
                yield match.span(1)
    if sieved.has(":aa"):
        yield from (match.span() for match in TELEGRAM.finditer(text))
    if sieved.has("curl"):
        for at in sieved.places("curl"):
            match = CURL_USER.match(text, at)
            if match is not None and not _is_example(match[2]):
                yield match.span(2)
    if sieved.has("sig="):
        yield from (match.span(1) for match in SIGNATURE.finditer(text) if _random(match[1], 40))


EXAMPLES = frozenset(("password", "passwd", "pass", "pwd", "pw", "secret", "token", "port", "xxx", "***", "..."))


def _is_example(value: str) -> bool:
    """Whether what stands for a password names one instead of being one."""
    word = value.strip("_-%*").lower()
    return word in EXAMPLES or not word or value[0] in "$%{<[(" or FILLER.search(value) is not None


def _random(value: str, shortest: int) -> bool:
    """Whether a header's value may be a credential: long enough, with letters and digits, no placeholder."""
    return (
        len(value) >= shortest
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and FILLER.search(value) is None
    )

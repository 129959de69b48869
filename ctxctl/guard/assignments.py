"""Credentials by the name in front of them: environment dumps, JSON, YAML, settings in source code, options."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from ctxctl.guard.text import Sieved

STRONG = (
    "passw", "passphrase", "pwd", "secret", "api_key", "apikey", "api-key", "access_key", "access-key", "accesskey",
    "private_key", "privatekey", "credential", "auth_key", "encryption_key", "signing_key", "account_key", "accountkey",
    "master_key",
)  # fmt: skip
WEAK = ("token",)
"""Words in names of credentials. After a weak one a UUID or a hexadecimal number is as likely a harmless id."""

NAME = r"[A-Za-z0-9_.-]{2,60}+"
FORM = re.compile(
    rf"(?P<name>{NAME})\\{{0,3}}[\"'`]?\]?"
    r"(?:(?P<sign>[ \t]{0,4}(?::=|=>|===?|!=|=|:)[ \t]{0,4})(?P<type>[A-Za-z.\[\]| ]{2,30}[ \t]?=[ \t]{0,4})?"
    r"|(?P<list>[\"']?,?(?:\s|\\{1,8}[nr]){1,40}\\{0,8}[\"']?value\\{0,8}[\"']?:[ \t]{1,4})|(?P<option>[ \t]{1,4}))"
    r"(?:\\{0,3}(?P<quote>[\"'`])(?P<quoted>[^\"'`\\\s]{6,64})|(?P<bare>[^\s\"'`\\,;(){}\[\]<>&|]{6,64}))"
)
LOOK_BACK = 40
NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
REST = {"quoted": re.compile(r"[^\"'`\\\s]*"), "bare": re.compile(r"[^\s\"'`\\,;(){}\[\]<>&|]*")}
"""How a value goes on behind the first characters, by which it is judged."""

NO_CREDENTIAL = re.compile(
    r"(?:hash|sha\d*|digest|checksum|fingerprint|count|counts|limit|length|size|usage|budget|type|name|names|path|paths|"
    r"file|files|url|uri|endpoint|arn|id|ids|field|label|hint|policy|regex|pattern|expir\w*|ttl|at|index|version|prefix|"
    r"suffix|provider|manager|store|tokens|column|env|var|header|algorithm|strength|reset|error|message|class)$"
)
"""Last word of names that are about a credential and don't hold one: `max_tokens`, `secret_name`, `password_hash`."""

PLACEHOLDER = re.compile(
    r"x{4}|\*{3}|\.{3}|(.)\1{6}|your|redacted|placeholder|change[_-]?me|example|insert|replace|dummy|\bfake|sample|"
    r"\$\{|\{\{|\$\(|<[a-z]|process\.env|environ|getenv|secrets\.|config\.|settings\.|-blocked:|12345678|abcdef",
    re.I,
)
FILLER = re.compile(r"x{6}|\*{3}|\.{3}|(.)\1{9}|your_|your-|redacted|\$\{|\{\{|\$\(|<[a-z]", re.I)
"""The same of long values, where a word may stand by chance: vendors' own examples are keys by their shape."""
CODE = re.compile(
    r"[$%@{<\[(/~.#&!*]|https?:|file:|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+[.:]?$|"
    r"[\w./-]+\.(?:py|js|ts|tsx|go|rs|java|rb|json|ya?ml|toml|md|txt|env|pem|key|crt|sh|lock)$"
)
UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
HEX = re.compile(r"[0-9a-fA-F]{16,}$")
IDENTIFIER = re.compile(r"[A-Za-z]+\d{0,2}(?:[_.-][A-Za-z]*\d{0,2})*$")
PATH = re.compile(r"(?:[A-Za-z_.-]*\d{0,3}[A-Za-z_.-]*/)+[A-Za-z_.-]*\d{0,3}[A-Za-z_.-]*$")
CREDENTIAL_WORD = re.compile(r"passw|secret|token|key|credential|pwd", re.I)
RANDOM = 4.2
"""Bits per character from which a value of 32 characters or more is random, whatever it spells."""
SHORTEST_PASSWORD, SHORTEST_KEY = 7, 16
_DIGIT = re.compile(r"\d")
BASE = re.compile(r"(?:sha\d{1,3}|md5)[-:]")


def assigned(text: str, sieved: Sieved) -> Iterator[tuple[int, int]]:
    """The spans of values beside a telling name that look random."""
    for words, strong in ((STRONG, True), (WEAK, False)):
        for word in words:
            done = 0
            for at in sieved.places(word):
                if at < done or (match := FORM.match(text, at)) is None:
                    continue
                group = "quoted" if match["quoted"] is not None else "bare"
                if _DIGIT.search(match[group]) is None:
                    continue
                before = text[max(0, at - LOOK_BACK) : at]
                name = before[len(before.rstrip(NAME_CHARACTERS)) :] + match["name"]
                if match["option"] is not None and not name.startswith("--"):
                    continue
                end = match.end()
                if _looks_real(name.lower(), match[group], text[end : end + 1], strong, group == "quoted"):
                    done = REST[group].match(text, end).end()  # type: ignore[union-attr]
                    yield match.start(group), done


def _looks_real(name: str, value: str, behind: str, strong: bool, quoted: bool) -> bool:
    password = "passw" in name or "pwd" in name or "passphrase" in name
    if len(value) < (SHORTEST_PASSWORD if password else SHORTEST_KEY) or not any(c.isalpha() for c in value):
        return False
    if NO_CREDENTIAL.match(re.split(r"[_.-]", name.strip("_.-"))[-1]):
        return False
    bits = entropy(value)
    random = len(value) >= 32 and bits >= RANDOM
    if (FILLER if random else PLACEHOLDER).search(value):
        return False
    if CODE.match(value) or BASE.match(value) or (not random and PATH.match(value)):
        return False
    if not quoted and behind and behind in "([{<":
        return False  # a call, an index, a type
    if UUID.match(value) or HEX.match(value):
        return strong
    if IDENTIFIER.match(value) and bits < 3.6:
        plain = "_" not in value and "." not in value and CREDENTIAL_WORD.search(value) is None
        return password and len(value) < 16 and plain
    return bits >= (2.3 if password else 3.0)


def entropy(text: str) -> float:
    """Shannon entropy of a text's own characters, bits per character."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values()) if total else 0.0

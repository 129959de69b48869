"""A credential of every kind that the guard knows, and what of them stands in a text."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_letters, ascii_uppercase, digits

from ctxctl.guard.secrets import TOKENS

PIECE = 12
"""Characters of a credential that must not stand in what is written."""
WORD = re.compile(rf"[A-Za-z0-9+/=_.-]{{{PIECE},}}")
BODIES = ("0123456789abcdef", ascii_letters + digits, ascii_uppercase + digits)


@dataclass(frozen=True)
class Planted:
    """carrier: a text with the credential in it; secret: the credential; lines: whether it spans lines."""

    name: str
    carrier: str
    secret: str
    lines: bool = False

    def pieces(self) -> set[str]:
        """Every piece of so many characters of it, none over a line's end."""
        body = [line for line in self.secret.split("\n") if not line.startswith("-----")]
        return {line[at : at + PIECE] for line in body for at in range(max(1, len(line) - PIECE + 1))}


def _token(prefix: str, rest: str, chance: random.Random) -> str:
    if prefix == "eyJ":
        body = "".join(chance.choices(ascii_letters + digits, k=700))
        return f"eyJ{body[:40]}.eyJ{body[40:600]}.{body[600:]}"
    if prefix == "SG.":
        body = "".join(chance.choices(ascii_letters + digits, k=65))
        return f"SG.{body[:22]}.{body[22:]}"
    if prefix == "tskey-":
        body = "".join(chance.choices(ascii_letters + digits, k=44))
        return f"tskey-auth-{body[:12]}-{body[12:]}"
    if prefix == "PMAK-":
        body = "".join(chance.choices(BODIES[0], k=58))
        return f"PMAK-{body[:24]}-{body[24:]}"
    for size in range(100, 9, -1):
        for letters in (BODIES[1], BODIES[0], BODIES[2]):
            made = prefix + "".join(chance.choices(letters, k=size))
            if re.fullmatch(re.escape(prefix) + rest, made) and any(c.isdigit() for c in made[len(prefix) :]):
                return made
    raise AssertionError(prefix)


def planted(seed: int = 7) -> list[Planted]:
    """One of each kind, the same for the same seed."""
    chance = random.Random(seed)

    def some(size: int, letters: str = ascii_letters + digits) -> str:
        return "".join(chance.choices(letters, k=size - 2)) + "7q"

    found = []
    for prefixes, rest in TOKENS:
        for prefix in prefixes:
            token = _token(prefix, rest, chance)
            found.append(Planted(f"token {prefix}", token, token))
    for name, form in (
        ("url", "postgres://app:{}@db.test/main"),
        ("bearer", "Authorization: Bearer {}"),
        ("basic", "Authorization: Basic {}"),
        ("own header", "-H 'authorization: {}'"),
        ("curl user", "curl -s -u admin:{} https://h.test"),
        ("slack hook", "https://hooks.slack.com/services/{}"),
        ("telegram", "123456789:AA{}x"),
        ("signature", "https://a.test/b?sv=1&sig={}"),
        ("environment", "DB_PASSWORD={}"),
        ("quoted", 'client_secret: "{}"'),
        ("json", '{{"api_key":"{}"}}'),
        ("option", "--api-key {}"),
        ("escaped", '{{\\"secret_key\\":\\"{}\\"}}'),
    ):
        body = some(32 if name == "telegram" else 44)
        found.append(Planted(name, form.format(body), f"AA{body}x" if name == "telegram" else body))
    keys = "\n".join(some(64) for _ in range(12))
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{keys}\n-----END RSA PRIVATE KEY-----"
    found.append(Planted("pem", pem, keys, lines=True))
    keys = "\n".join(some(64) for _ in range(9))
    found.append(Planted("pem without end", f"-----BEGIN PRIVATE KEY-----\n{keys}", keys, lines=True))
    keys = "\n".join(some(64) for _ in range(9))
    numbered = "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(keys.split("\n"), 2))
    found.append(Planted("pem with numbers", f"     1\t-----BEGIN EC PRIVATE KEY-----\n{numbered}", keys, lines=True))
    keys = "\n".join(some(64) for _ in range(9))
    packed = '{"key":"-----BEGIN PRIVATE KEY-----\\n' + keys.replace("\n", "\\n") + '\\n-----END PRIVATE KEY-----"}'
    found.append(Planted("pem in json", packed, keys))
    body = some(40)
    found.append(Planted("listed", f"- name: SERVICE_API_KEY\n  value: {body}", body, lines=True))
    return found


def leaked(texts: Iterable[str], secrets: Iterable[Planted]) -> list[tuple[str, str]]:
    """Names and surroundings of pieces of credentials in texts."""
    known = {piece: secret.name for secret in secrets for piece in secret.pieces()}
    found = []
    for text in texts:
        for word in WORD.finditer(text):
            at = next((i for i in range(word.start(), word.end() - PIECE + 1) if text[i : i + PIECE] in known), -1)
            if at >= 0:
                found.append((known[text[at : at + PIECE]], text[max(0, at - 60) : at + 40]))
                break
    return found

"""Credentials are found to the character; placeholders, hashes, identifiers and prose are not taken for them."""

from __future__ import annotations

import time

import pytest

from ctxctl.guard.secrets import TOKENS, find_secrets

JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds\nab==\n-----END RSA PRIVATE KEY-----"
ESCAPED_PEM = PEM.replace("\n", "\\n")
MIXED = "k3Jf9Qw8Rt7yUi6oPa5sDz4xCv2bNm1gHj0LpWq8ErTyUiOp3AsDfGhJ5kLzXcVb"

HITS = [
    ("AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("TOKEN=ghp_" + "A1b2" * 9, "ghp_" + "A1b2" * 9),
    ("\\nghp_" + "A1b2" * 9, "ghp_" + "A1b2" * 9),
    ("github_pat_11AB22CD_" + MIXED, "github_pat_11AB22CD_" + MIXED),
    ("glpat-ab12CD34ef56GH78ij90", "glpat-ab12CD34ef56GH78ij90"),
    ("xoxb-123456789012-AbCdEfGhIjKl", "xoxb-123456789012-AbCdEfGhIjKl"),
    ("key: sk-ant-api03-" + MIXED, "sk-ant-api03-" + MIXED),
    ("sk-proj-" + MIXED, "sk-proj-" + MIXED),
    ("sk-" + MIXED[:48], "sk-" + MIXED[:48]),
    ("?key=AIza" + MIXED[:35] + "&x", "AIza" + MIXED[:35]),
    ("sk_live_" + MIXED[:24], "sk_live_" + MIXED[:24]),
    ("//registry.test/:_authToken=npm_" + MIXED[:36], "npm_" + MIXED[:36]),
    ("hf_" + MIXED[:34], "hf_" + MIXED[:34]),
    (f"cookie {JWT}; x", JWT),
    ("db is postgres://app:hunter2hunter2@db.example.test/main", "hunter2hunter2"),
    ('-H "Authorization: Bearer synthetic.bearer.value.0123456789"', "synthetic.bearer.value.0123456789"),
    ("Authorization: Basic dXNlcjpodW50ZXIyMTIz", "dXNlcjpodW50ZXIyMTIz"),
    (f"a\n{PEM}\nb", PEM),
    (f'{{"private_key": "{ESCAPED_PEM}"}}', ESCAPED_PEM),
    ("-----BEGIN PRIVATE KEY-----\nMIISYNTHETICKEYBODY0000\n-----END PRIVATE KEY-----", None),
    ("password=hunter2hunter2", "hunter2hunter2"),
    ("DB_PASSWORD: 'Tr0ub4dor&3'", "Tr0ub4dor&3"),
    ('{"api_key": "9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c"}', "9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c"),
    ('{\\"client_secret\\":\\"Zk3jf9Qwe8Rty7Uio6Pas5\\"}', "Zk3jf9Qwe8Rty7Uio6Pas5"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLE1KEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLE1KEY",
    ),
    ('const token: string = "a8Kd93jfKd02lsPq83hf"', "a8Kd93jfKd02lsPq83hf"),
    ("- name: DB_PASSWORD\n  value: xK9mQ2pL7v", "xK9mQ2pL7v"),
    ("--password S3cure!pass9x", "S3cure!pass9x"),
    ("curl -u admin:hunter2x https://x.test", "hunter2x"),
    ("https://hooks.slack.com/services/T00000001/B00000002/AbCdEfGhIjKl", "T00000001/B00000002/AbCdEfGhIjKl"),
    ("bot 123456789:AA" + MIXED[:33], "123456789:AA" + MIXED[:33]),
]

NEAR_MISSES = [
    "password: str",
    "password = get_password(user)",
    "token = self.token_1",
    "api_key=<your-key>",
    "API_KEY=xxxxxxxxxxxxxxxx",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-your-api-key-goes-here-0000000000000000000000",
    "TOKEN=${GITHUB_TOKEN}",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "max_tokens=4096",
    "token: 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-abcdEFGH1234567890+/abcdEFGH1234567890=="',
    "postgres://user:password@localhost/db",
    "https://user:${PASS}@host.test",
    "http://localhost:8080/a@b",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "bearer authentication of the second kind",
    "the password is required",
    "if '-----BEGIN PRIVATE KEY-----' in text:",
    "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds\n-----END CERTIFICATE-----",
    "sk-toggleable__content sk-container-id-12345678",
    "def test_password2(self): pass",
    "passwords = passwords1",
    "secret_name: my-secret-2024-prod",
    "csrf_token = csrf_token_2",
    "data = 'iVBORw0KGgoAAAANSUhEUgAAAAUA'",
    "ENCRYPTION_KEY=os.environ['KEY1234']",
    "secret: /run/secrets/db-2024-07-01",
    "token: TokenType2.VALUE",
    "password=[credential-redacted]",
]


@pytest.mark.parametrize(("text", "value"), HITS, ids=lambda value: (value or "whole")[:25])
def test_found(text: str, value: str | None) -> None:
    assert [text[start:end] for start, end in find_secrets(text)] == [value or text]


@pytest.mark.parametrize("text", NEAR_MISSES, ids=lambda text: text[:25])
def test_not_found(text: str) -> None:
    assert find_secrets(text) == []


def test_a_key_without_its_end_goes_as_far_as_it_looks_like_one() -> None:
    lines = "     2→-----BEGIN RSA PRIVATE KEY-----\n     3→MIIEpAIBAAKCAQEA0Z3\n     4→abcdefGHIJKLMNOP"
    text = f"{lines}\n\nThe file was cut here."
    ((start, end),) = find_secrets(text)
    assert text[start:end].endswith("GHIJKLMNOP")
    assert "cut here" in text[end:]


def test_places_of_many() -> None:
    text = "\n".join(t for t, _ in HITS)
    values = [text[start:end] for start, end in find_secrets(text)]
    assert set(filter(None, (v for _, v in HITS))) <= set(values)


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "password=a1",
        "password=1xxxx",
        "token: a1b2",
        "token",
        "secret.",
        "a_secret_",
        "://a:",
        "://",
        "://a:b",
        "Bearer ",
        "Bearer a",
        "authorization: ",
        "curl -u ",
        "curl ",
        "eyJ",
        "eyJaaaaaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "12345678:AA",
        "sig=",
        "hooks.slack.com/services/",
        "a",
        " ",
        "0",
        "ab12",
        *(prefixes[0] for prefixes, _ in TOKENS),
        *(prefixes[0] + "a1" * 30 + " " for prefixes, _ in TOKENS),
    ],
)
def test_a_megabyte_of_hostile_text_takes_less_than_a_second(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    find_secrets(text)
    assert time.process_time() - start < 1.0

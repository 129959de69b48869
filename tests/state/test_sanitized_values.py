"""JSON values without credentials: each text as if it were looked at alone, and fast where there is none."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.state.files import sanitized, sanitized_values

KEY = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
TEXTS = st.sampled_from(["plain", "", f"use {KEY} now", "password: hunter2hunter2", "a\nb", "\udcff", "0f" * 32])
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=20,
)


def alone(value: Any) -> Any:
    if isinstance(value, str):
        return value if value == "0f" * 32 else sanitized(value, tool_output=False)
    if isinstance(value, list):
        return [alone(item) for item in value]
    return {name: alone(item) for name, item in value.items()} if isinstance(value, dict) else value


@given(VALUES)
def test_each_text_is_as_if_alone(value: Any) -> None:
    assert sanitized_values(value) == alone(value)


def test_thousands_of_texts_take_no_longer_than_a_hook_has() -> None:
    value = {"told": [["main", f"Item {at} of the list, to be done"] for at in range(2000)], "call": ["x" * 100_000]}
    value["told"][1234][1] = f"Rotate {KEY}"
    sanitized_values(["load its rules"])
    start = time.perf_counter()
    found = sanitized_values(value)
    assert time.perf_counter() - start < 0.3
    assert found["told"][1234][1] == "Rotate [credential-redacted]" and found["told"][1233] == value["told"][1233]

"""What hints tell a user to set or to type exists."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import pytest

from ctxctl.health.codes import rules
from ctxctl.settings.schema import Settings

DOTTED = re.compile(r"\b([a-z_]+)\.([a-z_]+)\b")


def known(section: str, name: str) -> bool:
    kind: Any = get_type_hints(Settings, include_extras=False).get(section)
    return is_dataclass(kind) and name in {field.name for field in fields(kind)}


def test_a_setting_is_known_by_its_section() -> None:
    assert known("pressure", "act_at") and not known("thresholds", "orange")


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_settings_that_a_rule_names_exist(rule: Any) -> None:
    for section, name in DOTTED.findall(f"{rule.signal} {rule.fix}"):
        assert known(section, name), f"{section}.{name}"

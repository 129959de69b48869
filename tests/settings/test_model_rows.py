"""Single rows of the model table are those of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.settings.model_rows import load_rows
from ctxctl.settings.models import load_models

DECORATED = (
    "anthropic/claude-sonnet-4-5-20250929",
    "us.anthropic.claude-opus-4-6-v1:0[1m]",
    "openrouter/openai/gpt-5.1-codex",
    "claude-sonnet-4.5",
    "no-such-model",
    "<synthetic>",
    "",
    "columns",
    "models",
)


def test_every_model_and_alias() -> None:
    table = load_models()
    for name in [*(row.id for row in table.rows()), *table.aliases, *DECORATED]:
        assert load_rows([name]).find(name) == table.find(name), name
    names = DECORATED[:4]
    assert [load_rows(names).find(name) for name in names] == [table.find(name) for name in names]
    assert load_rows([None]).find(None) is None


def test_a_malformed_row(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text("columns: window in\nmodels:\n  m: 1000\n")
    with pytest.raises(ValueError, match="m: 1 values for 2 columns"):
        load_rows(["m"], path)

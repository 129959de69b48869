"""A metric for monitoring, before it has a form: what Prometheus and OpenTelemetry both take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Labels = tuple[tuple[str, str], ...]
"""Names and values, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name. unit: UCUM, as OpenTelemetry writes it (`1` is a ratio, `{token}` a count of something).
    samples: labels and value, always finite; none when nothing was measured. since: seconds since 1970 from which a
    counter counts, None while unknown."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    unit: str
    samples: tuple[tuple[Labels, float], ...] = ()
    since: float | None = None

"""Sessions with findings for the renderers of CI, and texts as transcripts can hold them."""

from __future__ import annotations

from hypothesis import strategies as st

from ctxctl.errors import InputError
from ctxctl.model.finding import FINDING_LEVELS, Evidence, Finding, Gate, Quote
from ctxctl.reports.document import Checked

TEXTS = st.text(st.characters(exclude_categories=()), max_size=60) | st.text(
    "%:,\r\n&<>\"'[]{}0\\|`\x00\ud800 a", max_size=30
)
"""Any code points, also lone surrogates and control characters, and what the formats give a meaning to."""
LINES = st.none() | st.integers(1, 10**6)
COUNTS = st.dictionaries(TEXTS, st.floats(allow_nan=True) | st.integers(0, 10**9), max_size=3)
QUOTES = st.builds(Quote, st.integers(0, 99), st.integers(1, 99), TEXTS)
EVIDENCE = st.builds(
    Evidence,
    st.lists(st.integers(0, 99), max_size=3).map(tuple),
    st.lists(QUOTES, max_size=4).map(tuple),
    COUNTS,
)
FINDINGS = st.builds(
    Finding,
    st.sampled_from(("token_drift", "repeated_calls", "not_known_yet")),
    st.sampled_from(FINDING_LEVELS),
    TEXTS,
    TEXTS,
    LINES,
    LINES,
    st.none() | EVIDENCE,
)
GATES = st.builds(
    Gate,
    st.sampled_from(("max-cost", "min-hit-rate", "fail-on", "fail-on repeated_calls")),
    st.floats(0, 100) | st.sampled_from(("warning", "critical")),
    st.none() | st.floats(0, 100) | TEXTS,
    st.booleans(),
    TEXTS,
)
PATHS = TEXTS.filter(lambda path: "\0" not in path and path)
ERRORS = st.builds(lambda m, h, n: InputError(m, hint=h, line=n), TEXTS, st.none() | TEXTS, LINES)
READ = st.builds(
    lambda path, found, gates: Checked(path, path, tuple(found), tuple(gates)),
    PATHS,
    st.lists(FINDINGS, max_size=5),
    st.lists(GATES, max_size=3),
)
UNREAD = st.builds(lambda path, error: Checked(path, path, error=error), PATHS, ERRORS)
CHECKED = st.lists(READ | UNREAD, max_size=4)


def found(code: str = "repeated_calls", level: str = "warning", message: str = "said", **more: object) -> Finding:
    return Finding(code, level, message, "do this", **{"turn": 7, "line": 41, **more})  # type: ignore[arg-type]

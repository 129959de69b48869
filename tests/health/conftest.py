"""The writers of sessions stand beside the tests; no package here, so that test modules find them by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

"""The writer of sessions stands beside the tests of health; without packages it is found by its folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "health"))

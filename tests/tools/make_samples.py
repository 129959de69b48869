"""Writes the sample transcripts, always the same bytes: python tests/tools/make_samples.py [OUTDIR]"""

from __future__ import annotations

import sys
from pathlib import Path

from samples import anthropic_request, axios_finish, codex_rollout, mini_swe, support_chat
from samples.readme import write_readme

DEFAULT = Path(__file__).resolve().parents[2] / "sample_transcripts"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    story = axios_finish.build(folder)
    codex = codex_rollout.build(folder)
    support_chat.build(folder)
    anthropic_request.build(folder)
    mini_swe.build(folder)
    write_readme(folder, story, codex)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)

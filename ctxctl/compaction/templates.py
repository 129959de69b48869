"""The prompts that a model gets: files of the package, or of a folder that the user names."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from ctxctl.errors import ConfigError

TASKS = ("conversation", "notes", "tool-results", "progressive", "delegate")
FRAMES = ("chunk", "merge")
"""What stands in front of a task's prompt when the material comes in parts, and when the parts' texts are merged."""
SHIPPED = Path(__file__).with_name("prompts")
WORDS_PER_TOKEN = 0.6
"""English text has about 0.75 words a token; models are asked for less than they may write, as they overrun."""
_FIELD = re.compile(r"\{(goal|material|words|part|parts)\}")


class Prompts:
    """Prompts by the name of their task.

    folder: whose `TASK.md`, `chunk.md` and `merge.md` stand for the shipped ones; what is not there is shipped. Raises
    ConfigError for a folder or file that can't be read, and for a task's prompt without `{material}`.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = Path(folder) if folder is not None else None
        if self._folder is not None and not self._folder.is_dir():
            raise ConfigError(
                "prompts_dir: there is no such folder",
                path=str(self._folder),
                hint="name a folder with files such as conversation.md; what is not in it is taken from ctxctl",
            )
        self._texts = {name: self._load(name) for name in (*TASKS, *FRAMES)}

    def _load(self, name: str) -> str:
        own = self._folder / f"{name}.md" if self._folder is not None else None
        if own is None or not own.exists():
            return _shipped(name)
        try:
            text = own.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
            raise ConfigError(f"the prompt can't be read: {reason}", path=str(own)) from None
        if name in TASKS and "{material}" not in text:
            raise ConfigError(
                "the prompt has no {material}, so the model would not see what it is to sum up",
                path=str(own),
                hint="put {material} where the text goes; {goal} and {words} are filled in too",
            )
        return text

    def fill(self, task: str, goal: str, material: str, most: int) -> str:
        """The prompt of a task for a text of at most `most` tokens. A task without a prompt of its own gets that of
        `conversation`."""
        template = self._texts.get(task) or self._texts["conversation"]
        words = str(max(5, int(most * WORDS_PER_TOKEN)))
        return _filled(template, {"goal": goal.strip() or "(not stated)", "material": material, "words": words})

    def part(self, prompt: str, part: int, parts: int) -> str:
        """A task's prompt for one part of its material."""
        return f"{_filled(self._texts['chunk'], {'part': str(part), 'parts': str(parts)}).strip()}\n\n{prompt}"

    def merge(self, prompt: str) -> str:
        """A task's prompt whose material is the texts of the parts."""
        return f"{self._texts['merge'].strip()}\n\n{prompt}"


def _filled(template: str, values: dict[str, str]) -> str:
    """A template with its fields; what looks like one in a value stays as it is."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


@lru_cache(maxsize=16)
def _shipped(name: str) -> str:
    return (SHIPPED / f"{name}.md").read_text(encoding="utf-8")

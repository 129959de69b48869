"""Where shipped files and the user's settings lie."""

from __future__ import annotations

import os
from pathlib import Path

from ctxctl.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent.parent
PROJECT_FILE = ".ctxctl.yaml"


def _shipped(packaged: str, checkout: str, name: str) -> Path:
    """A wheel holds the folder inside the package, a checkout (or an editable install) beside it."""
    for folder in (PACKAGE / packaged, PACKAGE.parent / checkout):
        if (folder / name).exists():
            return folder / name
    raise ConfigError(f"the installation lacks {checkout}/{name}", hint="reinstall ctxctl")


def config_file(name: str) -> Path:
    """A file of the shipped configuration, such as `models.yaml`."""
    return _shipped("_config", "config", name)


def sample_file(name: str) -> Path:
    """A shipped sample transcript."""
    return _shipped("_samples", "sample_transcripts", name)


def user_file() -> Path:
    """The user's own settings: `$XDG_CONFIG_HOME/ctxctl/config.yaml`, whether it exists or not."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "ctxctl" / "config.yaml"


def project_file(start: Path | None = None) -> Path | None:
    """The nearest `.ctxctl.yaml`, from the working folder up to the root of its repository."""
    try:
        folder = (start or Path.cwd()).resolve()
    except OSError:  # the working folder was deleted
        return None
    for candidate in (folder, *folder.parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate / PROJECT_FILE
        if (candidate / ".git").exists():
            return None
    return None

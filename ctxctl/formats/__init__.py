"""Readers and writers of transcript files: one file per format, each reads and writes it.

`scan` hands out blocks as they are read and keeps none; `read` collects them; `write` gives the bytes back.
"""

from ctxctl.formats.base import FORMATS, Format
from ctxctl.formats.read import read, scan
from ctxctl.formats.write import write

__all__ = ["FORMATS", "Format", "read", "scan", "write"]

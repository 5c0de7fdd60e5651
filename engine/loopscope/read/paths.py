"""Kind of file system entry at an untrusted path."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal


def what_is_at(path: str | os.PathLike[str]) -> Literal["file", "folder", "device"] | None:
    """Return the kind of entry at ``path``, or None if nothing exists there.

    Invalid names return None, for which ``Path.exists`` and similar methods may raise.

    >>> what_is_at("a" * 5000), what_is_at("\\0"), what_is_at("/")
    (None, None, 'folder')
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # ValueError: a zero byte or a character that cannot be encoded
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "device"

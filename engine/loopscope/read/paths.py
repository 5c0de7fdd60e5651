"""What is at a path that somebody has typed, or that came in an address: also of names that no
file can have.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal


def what_is_at(path: str | os.PathLike[str]) -> Literal["file", "folder", "device"] | None:
    """None where there is nothing; ``Path.exists`` and its like raise for a name that is too long.

    >>> what_is_at("a" * 5000), what_is_at("\\0"), what_is_at("/")
    (None, None, 'folder')
    """
    try:
        mode = Path(path).stat().st_mode
    except (
        OSError,
        ValueError,
    ):  # ValueError: of a zero byte, or of a character that no file system takes
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "device"

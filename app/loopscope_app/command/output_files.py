"""Where a command writes to: what cannot be written is said before a run that may take long."""

from __future__ import annotations

from pathlib import Path

from loopscope.errors import EngineError


def refuse_unwritable(path: str) -> None:
    """``EngineError`` for a folder, and for a file in a folder that is not there; nothing for no
    path.
    """
    folder = Path(path).parent
    if path and Path(path).is_dir():
        raise EngineError(f"{path}: this is a folder, and a file is expected to write to")
    if path and not folder.is_dir():
        raise EngineError(f"{path}: there is no folder {str(folder)!r} to write it to")

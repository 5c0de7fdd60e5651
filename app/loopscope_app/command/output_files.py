"""Check of output paths before a run that may take long."""

from __future__ import annotations

from pathlib import Path

from loopscope.errors import EngineError


def refuse_unwritable(path: str) -> None:
    """Raise ``EngineError`` for a folder, and for a file in a folder that does not exist; accept an
    empty path.
    """
    folder = Path(path).parent
    if path and Path(path).is_dir():
        raise EngineError(f"{path}: expected a file to write to, got a folder")
    if path and not folder.is_dir():
        raise EngineError(f"{path}: cannot be written, the folder {str(folder)!r} does not exist")


def refuse_opened(path: str, *opened: str) -> None:
    """Raise ``EngineError`` if ``path`` is a file that was opened; accept a new file."""
    target = Path(path)
    for file in map(Path, opened):
        if target.exists() and file.exists() and target.samefile(file):
            raise EngineError(
                f"{path}: it was opened as the model, expected another path to write to"
            )

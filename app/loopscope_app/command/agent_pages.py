"""Pages that an agent requests: new files in one folder, bounded in size and number."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import loopscope
from loopscope.errors import ReadError, WriteError, shorten
from loopscope.replaced_file import replaced_file
from loopscope_app.page import page_of

MOST_PAGES = 100
"""Pages that one server writes."""
MEGABYTES = 5
_MAX_STEM = 60


class AgentPages:
    """Writer of pages. It replaces no file, and no title leads out of the folder."""

    def __init__(self, folder: str) -> None:
        """Raise ``ReadError`` if the path is not a folder."""
        self.folder = Path(os.path.realpath(folder))
        self._written = 0
        if not self.folder.is_dir():
            raise ReadError(f"--pages {shorten(folder)!r} is not a folder")

    def write(
        self, debugger: loopscope.Debugger, title: str, note: str, *, with_values: bool
    ) -> dict[str, Any]:
        """Write a page; return its path and size. Raise ``WriteError`` if the server wrote its
        maximum.
        """
        if self._written >= MOST_PAGES:
            raise WriteError(f"this server wrote its maximum of {MOST_PAGES} pages")
        page = page_of(
            debugger, title=title, note=note, with_values=with_values, most_bytes=MEGABYTES * 2**20
        ).encode()
        path = self._new_file(title, page)
        self._written += 1
        return {
            "path": str(path),
            "bytes": len(page),
            "opens_at_step": debugger.cursor.step,
            "steps": debugger.steps,
        }

    def _new_file(self, title: str, content: bytes) -> Path:
        stem = re.sub(r"[\W_]+", "_", title, flags=re.ASCII).strip("_")[:_MAX_STEM] or "page"
        for number in range(1, 10_000):
            path = self.folder / f"{stem}{f'_{number}' if number > 1 else ''}.html"
            try:
                path.touch(exist_ok=False)
                _fill(path, content)
            except FileExistsError:
                continue
            except OSError as error:
                raise WriteError(
                    f"{path.name} cannot be written: {error.strerror or error}"
                ) from None
            return path
        raise WriteError(f"there are too many pages called {stem}")


def _fill(path: Path, content: bytes) -> None:
    """Write a file whose name is reserved; remove the file if that fails."""
    try:
        with replaced_file(path) as file:
            file.write(content)
    except BaseException:
        path.unlink(missing_ok=True)
        raise

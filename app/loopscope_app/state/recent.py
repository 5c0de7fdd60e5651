"""Recently opened files of this machine's user, newest first. A server for others does not store
any.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from loopscope.replaced_file import replaced_file

MOST = 8
_LONGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Recent:
    """A file that was opened."""

    path: str
    when: float
    """Seconds since the epoch."""

    @property
    def is_run(self) -> bool:
        """True for a saved run, False for a model."""
        return self.path.endswith(".loopscope")


def folder() -> Path:
    """Return the folder of a user's state between runs (XDG's state directory)."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (
        Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    ) / "loopscope"


def files() -> tuple[Recent, ...]:
    """Return the files that still exist, newest first; nothing if the list cannot be read."""
    try:
        with (folder() / "recent.json").open("rb") as stored:
            entries = json.loads(stored.read(_LONGEST))
        recent = [Recent(str(entry["path"]), float(entry["when"])) for entry in entries]
        return tuple(file for file in recent if Path(file.path).exists())[:MOST]
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, RecursionError):
        return ()


def remember(path: str) -> None:
    """Put a path first in the list. An error while writing the list is ignored."""
    others = (file for file in files() if file.path != path)
    _write([asdict(file) for file in (Recent(path, time.time()), *others)[:MOST]])


def forget() -> None:
    """Empty the list."""
    _write([])


def _write(entries: list[dict[str, object]]) -> None:
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        # If two servers write, the last one wins.
        with replaced_file(folder() / "recent.json") as file:
            file.write(json.dumps(entries).encode())
    except (OSError, RuntimeError):
        return

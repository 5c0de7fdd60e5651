"""The files that this machine's user opened last, newest first: a small file of their own, which
a server for others has no part in.
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
    """One file that was opened."""

    path: str
    when: float
    """Seconds since the epoch."""

    @property
    def is_run(self) -> bool:
        """Whether it is a saved run rather than a model."""
        return self.path.endswith(".loopscope")


def folder() -> Path:
    """Where what belongs to a user, and not to a project, is kept between runs (XDG's state
    directory).
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    return (
        Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    ) / "loopscope"


def files() -> tuple[Recent, ...]:
    """Those that are still there, newest first; none when nothing can be read."""
    try:
        with (folder() / "recent.json").open("rb") as stored:
            entries = json.loads(stored.read(_LONGEST))
        known = [Recent(str(one["path"]), float(one["when"])) for one in entries]
        return tuple(one for one in known if Path(one.path).exists())[:MOST]
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, RecursionError):
        return ()


def remember(path: str) -> None:
    """Puts a whole path first. That it cannot be written down is no reason to refuse a model:
    then it is forgotten.
    """
    kept = (Recent(path, time.time()), *(one for one in files() if one.path != path))[:MOST]
    _write([asdict(one) for one in kept])


def forget() -> None:
    """Empties the list."""
    _write([])


def _write(entries: list[dict[str, object]]) -> None:
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        with replaced_file(
            folder() / "recent.json"
        ) as file:  # of two servers that write, the last wins
            file.write(json.dumps(entries).encode())
    except (OSError, RuntimeError):
        return

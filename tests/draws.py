"""Number of examples that a property test draws: fewer in every run of the suite, more in a search.

``python -m tests.draws SECONDS`` (``make search``) repeats the tests of drawn models and inputs
with new seeds until the time is over or a test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")
_VARIABLE = "LOOPSCOPE_DRAWS"
_USUAL, _SEARCHING = 0.2, 2.0
"""Factors of the number of examples in the suite and in a search."""
_SEARCHED = ("tests/engine", "tests/app/page", "tests/test_fuzz.py")
"""Folders and files with drawn examples or shares of tables."""


def draws(count: int) -> int:
    """Return the number of examples to draw, at least 1.

    ``count`` is the number for factor 1; the environment variable ``LOOPSCOPE_DRAWS`` sets another
    factor.
    """
    return max(1, round(count * float(os.environ.get(_VARIABLE, _USUAL))))


def share(rows: Sequence[Row], first: int = 0, parts: int = 2) -> list[Row]:
    """Return one row in ``parts`` of a long table, from row ``first`` on; all rows in a search.

    For tables whose rows are also tested in another way in every run. Their tests are marked slow,
    so that a search runs them.
    """
    return list(rows[first::parts] if draws(2) < 2 else rows)


def search(seconds: float) -> int:
    """Repeat the tests until the time is over; return the exit code of the last run."""
    deadline = time.monotonic() + seconds
    code = 0
    while code == 0 and time.monotonic() < deadline:
        code = _pytest()
    return code


def _pytest() -> int:
    words = [
        "-m",
        "(chance or slow) and not (browser or measured)",
        "--hypothesis-profile",
        "searching",
    ]
    options = ["--numprocesses", "auto", "--dist", "worksteal", "--maxfail", "1"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, *options, *_SEARCHED],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, _VARIABLE: str(_SEARCHING), "FUZZ_SECONDS": "120"},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(search(float(sys.argv[1])))

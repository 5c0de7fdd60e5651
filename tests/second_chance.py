"""Run the browser tests, and those that failed once more: ``python -m tests.second_chance [options
of the first run]``.

A real browser can be late on a busy machine. More than ``MOST`` failures have another cause and
fail the run at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST = 3
_MARKS = "browser or measured"
_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"


def main(options: list[str]) -> int:
    """Return the exit code of the run that decides."""
    code = _pytest(*options, "--cache-clear", "-m", _MARKS, *files())
    if code != 1:  # 0: all passed; others: pytest itself failed
        return code
    failed = sorted(json.loads(_FAILED.read_text(encoding="utf-8")))
    print(
        f"{len(failed)} tests need a second run (at most {MOST} may):",
        *failed,
        sep="\n  ",
        flush=True,
    )
    return code if len(failed) > MOST else _pytest("--last-failed", "-m", _MARKS, *files())


def files() -> list[str]:
    """Return the files that have a browser test or a measured test.

    Collecting all 22,000 tests for these takes every process 15 seconds more.
    """
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("playwright", "mark.measured"))
    )


def _pytest(*words: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The net below all limits, in a process of its own because it cannot be taken away again."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKS_FOR_TOO_MUCH = """
import os
import numpy as np
from loopscope_app.state.process_memory import bound_memory
bound_memory()
bytes_there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
try:
    np.zeros(bytes_there, np.uint8)
except MemoryError:
    print("refused")
print(np.zeros(1000).sum())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the bound exists on Linux only")
def test_what_would_take_all_memory_fails_alone() -> None:
    found = subprocess.run(
        [sys.executable, "-c", ASKS_FOR_TOO_MUCH],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.stdout.split(), found.returncode) == (["refused", "0.0"], 0), found.stderr

"""Return of freed memory to the operating system, so that other processes can use it."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Return freed memory of the heap to the system, which takes some milliseconds.

    Only glibc retains much freed memory.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)

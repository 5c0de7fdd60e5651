"""Returns to the system the memory that this process has freed and still keeps, so that other
processes can use it.
"""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Takes some milliseconds; only glibc keeps much, so that elsewhere there is nothing to do."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)

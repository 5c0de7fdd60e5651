"""Reuse of freed memory by the next run: new pages cost more time than writing to them."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache

from loopscope.native import trim_heap

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameter numbers of glibc's ``mallopt``."""
_RETAINED_BYTES = 256 * 2**20
"""Bytes of freed memory that the process retains: the size of a recording by default."""
_LARGEST_FROM_HEAP = 32 * 2**20
"""Size in bytes of the largest array from the heap, as large as glibc allows. Larger arrays are
returned to the system at once.
"""


@cache
def keep_freed_memory() -> None:
    """Let the process retain freed memory, which glibc would return; other C libraries are not
    changed.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_TRIM_THRESHOLD, _RETAINED_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)


def leave_out_of_collections() -> None:
    """Exclude all current objects, mainly modules, from garbage collection.

    Scanning them would take two thirds of each collection, during which all users wait.
    """
    gc.collect()
    gc.freeze()


def return_freed_memory() -> None:
    """Return unused memory to the system; called after a session ended."""
    gc.collect()
    trim_heap()

"""Memory that a run gives back stays with the process for the next one: fresh pages cost more
than what is written into them.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache

from loopscope.native import give_back

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What glibc's ``mallopt`` calls them."""
_MOST_KEPT = 256 * 2**20
"""Bytes: what one run records by default."""
_LARGEST_FROM_HEAP = 32 * 2**20
"""Bytes of one array; the most that glibc allows. Larger ones go back to the system at once."""


@cache
def keep_freed_memory() -> None:
    """The process keeps that much of what it frees, where glibc would keep next to nothing;
    other C libraries have their own ways.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)


def leave_out_of_collections() -> None:
    """What is there now, modules above all, is looked through by no later collection: two thirds
    of the time for which everybody waits.
    """
    gc.collect()
    gc.freeze()


def give_back_freed_memory() -> None:
    """The process gives back what it keeps and does not use; called after a session has ended."""
    gc.collect()
    give_back()

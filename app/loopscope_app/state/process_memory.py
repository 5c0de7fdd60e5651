"""Memory of the process: its limit, and reuse of freed memory by the next run.

A request for nearly all memory of the machine then fails in this process and does not stop the
machine. New pages cost more time than writing to them.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from functools import cache

from loopscope.native import trim_heap

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENAS = -1, -3, -8
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

    All threads share one heap. ``trim_heap`` does not return the unused end of any other, and each
    thread with a run would retain one.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_TRIM_THRESHOLD, _RETAINED_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)
        mallopt(_ARENAS, 1)


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


_SHARE = 0.9


def bound_memory() -> None:
    """Limit the memory of this process, without mapped files, to nine tenths of the machine's
    (Linux).

    numpy then raises ``MemoryError``, and a run reports it as the failure of the operation.
    """
    if sys.platform != "linux":
        return
    import resource

    limit = int(machine_bytes() * _SHARE)
    # RLIMIT_DATA rather than RLIMIT_AS: weights are mapped from files of any size, and mapped files
    # use no memory.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def machine_bytes() -> int:
    """Return the memory of this machine in bytes; 8 GB if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30

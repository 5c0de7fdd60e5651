"""A net below all other limits: asking for nearly all memory of the machine fails in this
process and does not take the machine down.
"""

from __future__ import annotations

import os
import sys

_SHARE = 0.9


def bound_memory() -> None:
    """Bounds the memory of this process, mapped files apart, at nine tenths of the machine's;
    elsewhere than on Linux nothing happens.

    numpy then raises ``MemoryError``, which a run reports as the failure of the operation that
    asked for too much.
    """
    if sys.platform != "linux":
        return
    import resource

    most = int(machine_bytes() * _SHARE)
    # RLIMIT_DATA and not RLIMIT_AS: weights are mapped from files of any size, and mapping them
    # takes no memory.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def machine_bytes() -> int:
    """The memory of this machine in bytes; 8 GB where the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30

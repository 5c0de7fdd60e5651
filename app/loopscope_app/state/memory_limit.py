"""Memory limit of the process, below all other limits.

A request for nearly all memory of the machine then fails in this process and does not stop the
machine.
"""

from __future__ import annotations

import os
import sys

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

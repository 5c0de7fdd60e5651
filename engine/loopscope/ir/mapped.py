"""Release of the memory pages of a mapped file that are not needed again soon.

The operating system caches the file, so that this process need not hold its pages too.
"""

from __future__ import annotations

import mmap

import numpy as np


def release_pages(data: memoryview | bytes) -> None:
    """Release the memory pages that lie wholly inside ``data``, if that is a view of a mapped file.

    The next read of these bytes loads the pages again. Without this call, weights that were copied
    or written to another file would be in memory twice.
    """
    file = data.obj if isinstance(data, memoryview) else None
    if len(data) < mmap.PAGESIZE or not isinstance(file, mmap.mmap) or not hasattr(file, "madvise"):
        return
    begin = _address(data) - _address(file)
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (begin + len(data)) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < end:
        file.madvise(mmap.MADV_DONTNEED, first, end - first)


def _address(data: memoryview | bytes | mmap.mmap) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data)

"""Memory of large models: aligned arrays, pages of mapped files, pauses of garbage collection.

A product with a matrix that does not begin at a cache line takes a third longer. The operating
system caches a mapped file, so that this process need not hold its pages too.
"""

from __future__ import annotations

import gc
import math
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

CACHE_LINE = 64


def is_aligned(array: np.ndarray) -> bool:
    """Return True if the first element of the array begins a cache line."""
    return bool(array.ctypes.data % CACHE_LINE == 0)


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialised array that begins at a cache line.

    >>> is_aligned(empty((3, 5), np.dtype(np.float16)))
    True
    """
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    return room[begin : begin + size].view(dtype).reshape(shape)


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


_GROWTH = 1.25
"""Growth of memory that triggers a full collection: a quarter, as in Python's own rule."""
_FREE_GROWTH = 500_000
"""Number of additional blocks of memory (about 40 MB) without a full collection."""


@dataclass(slots=True)
class _Collections:
    """Store two facts about the garbage collector of this process."""

    blocks: int = 0
    """Blocks of memory that Python had allocated after the last full collection. The first value is
    taken when the first model is read.
    """
    found_frozen: bool = False
    """True if the process had frozen objects at some time. ``gc.get_freeze_count`` counts them one
    by one (15 ms in the app, 70 ms in a large process), so it is not asked again.
    """


_STATE = _Collections()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection for the duration of the context.

    A Model consists of many small objects without garbage. Collections while it grows cost a fifth
    of the time.

    Afterwards, all objects count as old. Otherwise the next new object would trigger a collection
    of all of them. If the process has frozen objects of its own, nothing is moved: ``gc.unfreeze``
    would release those too.
    """
    enabled = gc.isenabled()
    if enabled:
        _collect_old_objects()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _STATE.found_frozen = _STATE.found_frozen or gc.get_freeze_count() > 0
            if not _STATE.found_frozen:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _collect_old_objects() -> None:
    """Run a full collection if memory has grown too much since the last one.

    Objects that become old at once do not count towards Python's own trigger. Without this check, a
    process that reads model after model and drops each with its run (a reference cycle) would never
    free them.
    """
    blocks = sys.getallocatedblocks()
    if _STATE.blocks and blocks > _STATE.blocks * _GROWTH + _FREE_GROWTH:
        gc.collect()
        _STATE.blocks = sys.getallocatedblocks()
    elif not _STATE.blocks:
        _STATE.blocks = blocks

"""Suspension of Python's garbage collector while a model is read or planned."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_GROWTH = 1.25
"""Growth of memory that triggers a full collection: a quarter, as in Python's own rule."""
_FREE_GROWTH = 500_000
"""Number of additional blocks of memory (about 40 MB) without a full collection."""


@dataclass(slots=True)
class _LastCollection:
    """Blocks of memory that Python had allocated after the last full collection.

    The first value is taken when the first model is read.
    """

    blocks: int = 0


_LAST = _LastCollection()


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
            if not gc.get_freeze_count():
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
    if _LAST.blocks and blocks > _LAST.blocks * _GROWTH + _FREE_GROWTH:
        gc.collect()
        _LAST.blocks = sys.getallocatedblocks()
    elif not _LAST.blocks:
        _LAST.blocks = blocks

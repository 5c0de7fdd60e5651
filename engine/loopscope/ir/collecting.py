"""Python's garbage collector, which finds no garbage while a model is read or planned."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_GROWTH = 1.25
"""Python's own rule: nothing is looked through as a whole before it has grown by a quarter."""
_MOST_UNSEEN = 500_000
"""Blocks of memory, some 40 MB, that may come in between whatever was there."""


@dataclass(slots=True)
class _LastCollection:
    """How many blocks of memory Python held after all objects were looked through, or when the
    first model was read.
    """

    blocks: int = 0


_LAST = _LastCollection()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A Model is many small objects and no garbage: looking for some while it grows costs a fifth
    of the time.

    Afterwards all objects count as old ones, or the next that is made would have all of these
    looked through at once. Where the process keeps some out of all collections, they stay out:
    Python takes back all of these or none.
    """
    enabled = gc.isenabled()
    if enabled:
        _collect_what_reading_hid()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _collect_what_reading_hid() -> None:
    """Objects that count as old at once are none of those by which Python knows when to look
    through all: so this is known here.

    Else a process that reads one model after another and drops each with its run, in a circle of
    references, would keep them all.
    """
    blocks = sys.getallocatedblocks()
    if _LAST.blocks and blocks > _LAST.blocks * _GROWTH + _MOST_UNSEEN:
        gc.collect()
        _LAST.blocks = sys.getallocatedblocks()
    elif not _LAST.blocks:
        _LAST.blocks = blocks

"""Python's garbage collector, which has nothing to do while a model is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A Model is many small objects and no garbage: looking for some while it grows costs a fifth of the time.

    Afterwards all objects count as old ones, or the next that is made would have all of these looked through at once. Where the process
    keeps some out of all collections, they stay out: Python takes back all of these or none.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()

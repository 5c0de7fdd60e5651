"""Lost writes to a ``TensorArray``: a write returns a new array, so a write has no effect if its
result is unused.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from loopscope.errors import BuildError
from loopscope.ir.model import Edge, LayerId


@dataclass(frozen=True, slots=True)
class Written:
    """A write whose resulting array is unused so far."""

    layer: LayerId
    """Node of the array with the new element."""
    array: weakref.ref
    line: str

    @staticmethod
    def here(layer: LayerId, array: object) -> Written:
        """Return a record of a write at the line that called this package."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
            "loopscope.builder."
        ):
            frame = frame.f_back
        return Written(
            layer,
            weakref.ref(array),
            f"{PurePath(frame.f_code.co_filename).name}, line {frame.f_lineno}",
        )


def reject_lost_writes(writes: Iterable[Written], edges: Sequence[Edge], *, for_good: bool) -> None:
    """Raise ``BuildError`` if the result of a write is unused.

    Without ``for_good``, a result that the caller still references is accepted, because it may be
    used later.
    """
    used = {edge.from_layer for edge in edges}
    for write in writes:
        if write.layer not in used and (for_good or write.array() is None):
            raise BuildError(
                f"TensorArray.write() in {write.line} is lost, because the array that it returns "
                "is unused: "
                "write array = array.write(index, value), and return the array from a body"
            )

"""Proof that a loop never ends: its whole carried state repeats exactly, and nothing else feeds the
next iteration.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.executor.record.buffers import RecordedRows
from loopscope.ops.values import is_tensor


@dataclass(eq=False)
class CycleDetector:
    """Brent's cycle detection over one execution of one loop: states are compared with a marked
    state, whose distance doubles.
    """

    marked_row: int = -1
    marked: tuple[bytes, ...] = ()
    next_mark: int = 1
    seen: int = 0

    def look(self, rows: RecordedRows, first: int = 0) -> tuple[int, int] | None:
        """Examine the newest packed chunk. Return two iterations with equal state, or None.

        ``first`` is the iteration at which watching began.
        """
        chunks = [column.chunks[-1] for column in rows.columns.values() if column.chunks]
        if len(chunks) < len(rows.columns) or not chunks:
            return None
        length = len(chunks[0])
        begin = 0
        while begin < length:
            row = self.seen + begin
            if row >= self.next_mark:
                self.marked_row, self.marked = row, tuple(_bits(chunk[begin]) for chunk in chunks)
                self.next_mark = 2 * row + 1
                begin += 1
                continue
            end = min(length, self.next_mark - self.seen)
            if self.marked_row >= 0:
                match = self._first_equal(chunks, begin, end)
                if match is not None:
                    return first + self.marked_row, first + self.seen + match
            begin = end
        self.seen += length
        return None

    def _first_equal(self, chunks: list[Any], begin: int, end: int) -> int | None:
        candidates: Any = range(begin, end)
        for chunk, bits in zip(chunks, self.marked, strict=True):
            if (
                isinstance(chunk, np.ndarray)
                and chunk.ndim == 1
                and chunk.dtype.names is None
                and chunk.itemsize in (1, 2, 4, 8)
            ):
                codes = chunk[begin:end].view(f"u{chunk.itemsize}")
                equal = np.flatnonzero(codes == np.frombuffer(bits, codes.dtype)[0]) + begin
                candidates = (
                    [index for index in candidates if index in set(equal.tolist())]
                    if len(equal)
                    else ()
                )
            else:
                candidates = [index for index in candidates if _bits(chunk[index]) == bits]
            if not len(candidates):
                return None
        return int(candidates[0])


def first_return(
    rows: RecordedRows, begin: int, lower: int, earlier: int, later: int
) -> tuple[int, int]:
    """Return the first two iterations, from ``lower`` on, that repeat with the known period ``later
    - earlier``.

    Requires all rows. ``begin`` is the row of iteration 0. A state that repeats once repeats for
    ever, so bisection finds the start.
    """

    def comes_back(iteration: int) -> bool:
        return all(
            _bits(column[begin + iteration]) == _bits(column[begin + iteration + later - earlier])
            for column in rows.columns.values()
        )

    start = lower + bisect_left(range(lower, earlier), True, key=comes_back)
    return start, start + later - earlier


def _bits(value: Any) -> bytes:
    if not is_tensor(value):
        return b"".join(map(_bits, value)) if isinstance(value, tuple) else repr(value).encode()
    array = np.asarray(value)
    if array.dtype == object:
        return repr((array.shape, array.reshape(-1).tolist())).encode()
    return (
        repr((array.shape, array.dtype.str)).encode() + array.tobytes()
        if array.ndim
        else array.tobytes()
    )

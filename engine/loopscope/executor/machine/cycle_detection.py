"""Proves that a loop can never end: its whole carried state comes back exactly, and nothing else
feeds the next iteration.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.executor.record.columns import RecordedRows
from loopscope.ops.values import is_tensor


@dataclass(eq=False)
class CycleDetector:
    """Brent's comparison at doubling distances over one execution of one loop: a marked state,
    moved when twice as far.
    """

    marked_row: int = -1
    marked: tuple[bytes, ...] = ()
    next_mark: int = 1
    seen: int = 0

    def look(self, rows: RecordedRows, first: int = 0) -> tuple[int, int] | None:
        """Looks at the newest packed chunk; two iterations of equal state, or None. ``first``:
        the one where watching began.
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
                found = self._first_equal(chunks, begin, end)
                if found is not None:
                    return first + self.marked_row, first + self.seen + found
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
    rows: RecordedRows, begin: int, least: int, one: int, other: int
) -> tuple[int, int]:
    """The first two iterations, from ``least`` on, that are as far apart as two of equal state and
    equal too; all rows are kept.

    ``begin``: the row of iteration 0. What has come back once always does, so halving finds where
    that began.
    """

    def comes_back(iteration: int) -> bool:
        return all(
            _bits(column[begin + iteration]) == _bits(column[begin + iteration + other - one])
            for column in rows.columns.values()
        )

    found = least + bisect_left(range(least, one), True, key=comes_back)
    return found, found + other - one


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

"""Cache of recomputed values by row, bounded in bytes and rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from loopscope.executor.plan.numbers import ProgramIndex, Slot

RowKey = tuple[ProgramIndex, int]
"""Graph and number of a row."""

_MAX_BYTES = 64 * 2**20
_MAX_ROWS = 512
_NUMBER_BYTES = 64
"""Approximate bytes of a value that is not an array."""


class RowCache:
    """Values of slots by row; the row that was used longest ago is dropped first."""

    def __init__(self) -> None:
        self._rows: OrderedDict[RowKey, dict[Slot, Any]] = OrderedDict()
        self.total_bytes = 0

    def clear(self) -> None:
        self._rows.clear()
        self.total_bytes = 0

    def row(self, key: RowKey) -> Mapping[Slot, Any]:
        """Return the cached values of a row, possibly none."""
        return self._rows.get(key, {})

    def mark_used(self, key: RowKey) -> None:
        self._rows.move_to_end(key)

    def keep(self, key: RowKey, values: Mapping[Slot, Any]) -> None:
        """Add values of a row, then drop other rows until the cache is within its bounds."""
        cached = self._rows.setdefault(key, {})
        self.total_bytes += sum(
            _bytes_of(value) for slot, value in values.items() if slot not in cached
        )
        cached.update(values)
        self.mark_used(key)
        while len(self._rows) > 1 and (
            self.total_bytes > _MAX_BYTES or len(self._rows) > _MAX_ROWS
        ):
            _, dropped = self._rows.popitem(last=False)
            self.total_bytes -= sum(map(_bytes_of, dropped.values()))


def _bytes_of(value: Any) -> int:
    return getattr(value, "nbytes", _NUMBER_BYTES)

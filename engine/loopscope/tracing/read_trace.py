"""Reading of a trace file, which is untrusted: every event and every size is checked."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.recorded_rows import sample_indices
from loopscope.tracing import trace_format as form
from loopscope.tracing.recorded_loops import (
    Execution,
    LazyTensor,
    RecordedColumn,
    RecordedLoop,
)
from loopscope.tracing.trace_format import DIGEST, INFINITIES, MAXIMUM, MINIMUM, NANS, NORM

_MOST_EVENT_BYTES = 1 << 26
"""Maximum size of a block of events; the recorder writes 65,536 events at most."""
_MOST_VALUES = 20_000_000
"""Maximum number of values, decisions and iterations in a trace."""
_MOST_COLUMNS = 20_000
"""Maximum number of different values, decisions and loops."""
_MOST_NESTED_LOOPS = 32
_MOST_TEXT = 1000
_FACTS = frozenset({DIGEST, NORM, MINIMUM, MAXIMUM, NANS, INFINITIES})


def read_trace_file(path: str | os.PathLike[str]) -> RecordedLoop:
    """Return the outermost place of a trace file, with everything inside.

    ``ReadError`` for a file that cannot be read or is not a trace. A file that ends in the middle
    of a block is read up to that block.
    """
    place = Where(str(path))
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise ReadError(f"the file cannot be opened: {error.strerror or error}", place) from None
    return read_trace_bytes(data, str(path))


def read_trace_bytes(data: bytes | mmap.mmap, file: str = "") -> RecordedLoop:
    """Return the outermost place of the trace in ``data``; ``ReadError`` if it is not a trace."""
    reader = _Reader()
    try:
        for kind, block in _blocks(memoryview(data)):
            if kind == form.DATA:
                reader.add_data(block)
            else:
                reader.add_events(block)
    except ValueError as error:
        raise ReadError(f"the trace cannot be read: {error}", Where(file)) from None
    return reader.finished()


def _blocks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield kind and content of the complete blocks."""
    if bytes(data[: len(form.MAGIC)]) != form.MAGIC or len(data) < len(form.HEADER):
        raise ValueError("it does not begin like a trace of Loopscope")
    version = int.from_bytes(data[len(form.MAGIC) : len(form.HEADER)], "little")
    if version != form.VERSION_OF_TRACE:
        raise ValueError(
            f"it has version {version} of the format, and this Loopscope reads version "
            f"{form.VERSION_OF_TRACE}: open it with a newer Loopscope"
        )
    position = len(form.HEADER)
    while position + form.BLOCK.size <= len(data):
        kind, length = form.BLOCK.unpack_from(data, position)
        position += form.BLOCK.size
        if kind not in (form.EVENTS, form.DATA):
            raise ValueError(f"it has an unknown block {kind!r} at byte {position - 9:,}")
        if length > len(data) - position:
            return
        yield kind, data[position : position + length]
        position += length


def _refuse(event: object) -> NoReturn:
    raise ValueError(f"it has the invalid event {shorten(repr(event), 100)}")


class _Reader:
    """State of reading: the open loops and what was read so far."""

    def __init__(self) -> None:
        self.main = RecordedLoop("main", rows=1)
        self.open: list[RecordedLoop] = [self.main]
        self.remaining_values, self.remaining_columns = _MOST_VALUES, _MOST_COLUMNS
        self.awaited: tuple[str, LazyTensor] | None = None
        """Name, type and shape of the tensor whose data block follows."""
        self.last_decision: dict[RecordedLoop, tuple[int, str]] = {}
        """Row and words of the last decision in each loop."""
        self.ended: list[Execution] = []
        """Executions that ended since the last value, for a failure that follows."""
        self.handlers: Mapping[int, Callable[[list[Any]], None]] = {
            form.LOOP: self._begin_loop,
            form.ITERATION: self._begin_iteration,
            form.SCALARS: self._add_scalars,
            form.TENSOR: self._add_tensor,
            form.LARGE: self._await_tensor,
            form.FINGERPRINT: self._add_fingerprint,
            form.BRANCH: self._add_branch,
            form.CARRIED: self._add_carried,
            form.END: self._end_loop,
            form.FAILURE: self._fail,
            form.CLOSED: lambda event: None,
        }

    def finished(self) -> RecordedLoop:
        """Return the outermost place; loops that are still open are incomplete."""
        for loop in self.open[1:]:
            loop.executions[-1].complete = False
        return self.main

    def add_events(self, block: memoryview) -> None:
        if len(block) > _MOST_EVENT_BYTES:
            raise ValueError(
                f"it has a block of {len(block):,} bytes of events, at most {_MOST_EVENT_BYTES:,} "
                "are read"
            )
        try:
            events = msgspec.msgpack.decode(block, type=list[list[Any]])
        except (msgspec.DecodeError, RecursionError):
            raise ValueError("a block of events in it is damaged") from None
        self._spend(len(events))
        for event in events:
            handler = self.handlers.get(event[0]) if event and isinstance(event[0], int) else None
            if handler is None or self.awaited is not None:
                _refuse(event)
            try:
                handler(event)
            except (IndexError, TypeError, AttributeError):
                _refuse(event)

    def add_data(self, block: memoryview) -> None:
        if self.awaited is None:
            raise ValueError("it has data that belong to no tensor")
        name, tensor = self.awaited
        self.awaited = None
        self._add(name, _checked_tensor(tensor._replace(data=block)))

    def _spend(self, count: int) -> None:
        self.remaining_values -= count
        if self.remaining_values < 0:
            raise ValueError(f"it has more than {_MOST_VALUES:,} values")

    def _begin_loop(self, event: list[Any]) -> None:
        _, name, total = event
        outer = self.open[-1]
        if not outer.rows or len(self.open) > _MOST_NESTED_LOOPS:
            _refuse(event)
        if total is not None and (type(total) is not int or not 0 <= total < 2**63):
            _refuse(event)
        row, label = outer.rows - 1, _text(name)
        number = 1
        while (loop := outer.loops.get(label)) is not None and loop.last_outer_row == row:
            number += 1
            label = f"{name}#{number}"
        if loop is None:
            self._spend_column()
            loop = outer.loops[label] = RecordedLoop(label, outer)
            outer.order.append(loop)
        loop.executions.append(Execution(row, loop.rows, total=total))
        self.open.append(loop)
        self.ended.clear()

    def _begin_iteration(self, event: list[Any]) -> None:
        loop = self.open[-1]
        if loop is self.main:
            _refuse(event)
        loop.rows += 1
        loop.executions[-1].count += 1
        self.ended.clear()

    def _add_scalars(self, event: list[Any]) -> None:
        for name, value in event[1].items():
            if type(value) not in (bool, int, float):
                _refuse(event)
            self._add(name, value)
        self._spend(len(event[1]))

    def _add_tensor(self, event: list[Any]) -> None:
        _, name, type_name, shape, data = event
        self._add(name, _checked_tensor(_tensor(type_name, shape, data)))

    def _await_tensor(self, event: list[Any]) -> None:
        _, name, type_name, shape = event
        self.awaited = _text(name), _tensor(type_name, shape, b"")

    def _add_fingerprint(self, event: list[Any]) -> None:
        _, name, type_name, shape, facts, data = event
        whole = _tensor(type_name, shape, b"")
        size = math.prod(whole.shape)
        samples = _tensor(type_name, [len(sample_indices(min(size, 1 << 20)))], data)
        if facts.keys() != _FACTS or not all(
            type(fact) in (int, float) for name, fact in facts.items() if name != DIGEST
        ):
            _refuse(event)
        column = self._add(name, _checked_tensor(samples))
        column.fingerprints[column.last_row] = {
            **facts,
            DIGEST: _text(facts[DIGEST]),
            "shape": whole.shape,
        }

    def _add_branch(self, event: list[Any]) -> None:
        _, name, value = event
        if type(value) is not bool:
            _refuse(event)
        loop = self.open[-1]
        self.last_decision[loop] = (
            loop.rows - 1,
            f"`{_text(name)}` was {'true' if value else 'false'}",
        )
        self._add(name, value, is_branch=True)

    def _add_carried(self, event: list[Any]) -> None:
        for name in event[1]:
            self.open[-1].carried[_text(name)] = None

    def _end_loop(self, event: list[Any]) -> None:
        _, ending, reason = event
        if len(self.open) < 2 or ending not in (form.EXHAUSTED, form.LEFT, form.REASON):
            _refuse(event)
        loop = self.open.pop()
        execution = loop.executions[-1]
        execution.complete, execution.exhausted = True, ending == form.EXHAUSTED
        row, decision = self.last_decision.get(loop, (-1, ""))
        if ending == form.REASON:
            execution.reason = _text(reason)
        elif ending == form.LEFT and execution.count and row == loop.rows - 1:
            execution.reason = decision
        self.ended.append(execution)

    def _fail(self, event: list[Any]) -> None:
        """Attribute an exception to the loops that it left, which have just ended."""
        for execution in [*self.ended, *(loop.executions[-1] for loop in self.open[1:])]:
            if not execution.exhausted:
                execution.reason = f"the program raised {_text(event[1])}"

    def _add(self, name: Any, value: Any, *, is_branch: bool = False) -> RecordedColumn:
        """Add a value to the current row; a repeated name gets a number, such as ``state#2``."""
        loop = self.open[-1]
        row = loop.rows - 1
        if row < 0:
            raise ValueError(f"{shorten(repr(name))} in it was recorded before the first iteration")
        label, number = name, 1
        column = loop.columns.get(label)
        while column is not None and (column.last_row == row or column.is_branch != is_branch):
            number += 1
            label = f"{name}#{number}"
            column = loop.columns.get(label)
        if column is None:
            self._spend_column()
            _text(name)
            column = loop.columns[label] = RecordedColumn(label, is_branch)
            loop.order.append(column)
        column.rows.append(row)
        column.values.append(value)
        if self.ended:
            self.ended.clear()
        return column

    def _spend_column(self) -> None:
        self.remaining_columns -= 1
        if self.remaining_columns < 0:
            raise ValueError(f"it has more than {_MOST_COLUMNS:,} different values and loops")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > _MOST_TEXT:
        raise ValueError(
            f"it has the name {shorten(repr(value), 60)}, expected a text of at most "
            f"{_MOST_TEXT:,} characters"
        )
    return value


def _tensor(type_name: Any, shape: Any, data: Any) -> LazyTensor:
    """Return a tensor with a checked type and shape."""
    element_type = form.BY_NAME.get(type_name) if isinstance(type_name, str) else None
    if element_type is None:
        raise ValueError(f"it has a tensor of the unknown type {shorten(repr(type_name), 60)}")
    if (
        not isinstance(shape, list)
        or len(shape) > form.MOST_DIMENSIONS
        or not all(type(length) is int and 0 <= length < 2**48 for length in shape)
    ):
        raise ValueError(f"it has a tensor of the invalid shape {shorten(repr(shape), 100)}")
    return LazyTensor(element_type, tuple(shape), data)


def _checked_tensor(tensor: LazyTensor) -> LazyTensor:
    """Return the tensor if it has as many bytes as its type and shape require."""
    expected = math.prod(tensor.shape) * tensor.element_type.dtype.itemsize
    if not isinstance(tensor.data, (bytes, memoryview)) or len(tensor.data) != expected:
        raise ValueError(
            f"it has a tensor of {tensor.element_type}{list(tensor.shape)} with other than "
            f"{expected:,} bytes"
        )
    return tensor

"""Rings: a loop writes the arrays of its body into a few rows of memory that stay in the processor's cache, and reuses them.

Fresh memory for each array of each iteration costs more than many a computation; what is recorded is copied out of the ring in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.run.columns import Rows
from engine.run.fixed import expression
from engine.run.kinds import Kind, Kinds, into, moved
from engine.run.plan import ABSENT, Concatenated, Instruction, LoopRegion, Plan
from engine.run.written import writing

_LEAST_BYTES, _MOST_BYTES = 1 << 10, 1 << 16
"""numpy keeps the memory of smaller arrays itself; for larger ones computing takes longer than making room."""
_RING_BYTES = 1 << 19
"""Half of what a processor's second cache holds."""
_FEWEST_ROWS, _MOST_ROWS = 4, 64
_LINE = 64
"""Bytes of a line of the processor's cache."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where an array lies in each row of a ring."""

    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def over(self, buffer: np.ndarray, rows: int, row_bytes: int) -> np.ndarray:
        """The arrays of the first rows of a buffer as one, rows along the first axis."""
        return np.ndarray((rows, *self.shape), self.dtype, buffer, self.offset, (row_bytes, *self.strides))


@dataclass(frozen=True, slots=True)
class Written(Field):
    """An array that an operation writes."""

    write: Callable[..., Any] | str
    """What writes it: a function of its inputs and the array, or the expression of the operation."""


@dataclass(frozen=True, eq=False)
class Layout:
    """What a row of a ring holds. Fields whose slots are recorded come first."""

    rows: int
    row_bytes: int
    recorded_bytes: int
    written: Mapping[int, Written]
    """By slot: what operations write."""
    views: Mapping[int, Field]
    """By slot: other forms of what operations write."""
    carried: Mapping[int, Kind]
    """Of carried Parameters: each may be an array of the ring in the iteration after."""

    @property
    def fields(self) -> Mapping[int, Field]:
        return {**self.written, **self.views}


@dataclass(eq=False)
class Ring:
    """The memory of one call of generated code."""

    layout: Layout
    memory: np.ndarray = field(init=False)
    rows: list[tuple[np.ndarray, ...]] = field(init=False)
    """In each row an array for each field."""
    _room: np.ndarray = field(init=False)
    """What all of these are views of."""

    def __post_init__(self) -> None:
        layout = self.layout
        self._room = np.empty(layout.rows * layout.row_bytes + _LINE, np.uint8)
        begin = -self._room.ctypes.data % _LINE
        self.memory = self._room[begin : begin + layout.rows * layout.row_bytes]
        columns = [list(one.over(self.memory, layout.rows, layout.row_bytes)) for one in layout.fields.values()]
        self.rows = list(zip(*columns, strict=True))

    def copied(self, count: int) -> dict[int, np.ndarray]:
        """What is recorded of the first rows, by slot, in memory of its own."""
        layout = self.layout
        width = layout.recorded_bytes
        if not width:
            return {}
        copy = self.memory[: count * layout.row_bytes].reshape(count, layout.row_bytes)[:, :width].copy()
        recorded = {slot: one for slot, one in layout.fields.items() if one.offset < width}
        return {slot: one.over(copy, count, width) for slot, one in recorded.items()}

    def own(self, value: Any) -> Any:
        """A value in memory that the ring does not write again."""
        return value.copy() if getattr(value, "base", None) is self._room else value

    def stacked(self, slot: int, values: list[Any]) -> np.ndarray | None:
        """Values of a carried Parameter as one array in memory of its own; None for others."""
        kind = self.layout.carried.get(slot)
        if kind is None:
            return None
        try:
            return np.frombuffer(b"".join(values), kind.dtype).reshape(len(values), *kind.shape)
        except BufferError:  # Values that do not lie in one piece.
            return None


def opened(rows: Rows | None, layout: Layout) -> Ring:
    """A ring for one call of generated code; ``rows`` are those of the body, if any are written down."""
    ring = Ring(layout)
    if rows is not None:
        rows.pack(rows.begun)
        rows.ring = ring
    return ring


def laid_out(plan: Plan, region: LoopRegion, values: list[Any], recorded: Sequence[int]) -> Layout | None:
    """What a ring for a loop's body would hold, judged at the beginning of an iteration; None where a ring is of no use.

    ``recorded`` are the slots of the body that are written down.
    """
    program = region.program
    outputs = [values[slot] for one in program.instructions for slot in one.outputs]
    if program.regions or not any(_LEAST_BYTES <= getattr(value, "nbytes", 0) <= _MOST_BYTES for value in outputs):
        return None
    kinds = Kinds(plan, region, values).proved()
    return _LayingOut(region, values, kinds).layout(recorded) if kinds else None


@dataclass(frozen=True, eq=False)
class _LayingOut:
    region: LoopRegion
    values: list[Any]
    kinds: Mapping[int, Kind]

    def layout(self, recorded: Sequence[int]) -> Layout | None:
        views = self._views()
        # What a loop collects must outlast it.
        collected = {self._root(output.result, views) for output in self.region.outputs if isinstance(output, Concatenated)}
        seen = {self._root(slot, views) for slot in recorded}
        writers = {one.outputs[0]: writer(one, self.kinds, self.values) for one in self.region.program.instructions}
        written: dict[int, Written] = {}
        offset = recorded_bytes = 0
        for slot, write in sorted(writers.items(), key=lambda pair: pair[0] not in seen):
            if write is None or slot in collected:
                continue
            example = self.kinds[slot].zeros
            written[slot] = Written(offset, example.dtype, example.shape, example.strides, write)
            offset += -(-example.nbytes // _LINE) * _LINE
            if slot in seen:
                recorded_bytes = offset
        rows = min(_RING_BYTES // offset, _MOST_ROWS) if offset else 0
        if rows < _FEWEST_ROWS:
            return None
        other = {
            slot: Field(written[root].offset + begin, example.dtype, example.shape, example.strides)
            for slot, (root, begin, example) in views.items()
            if root in written
        }
        carried = {one.parameter: self.kinds[one.parameter] for one in self.region.carried if one.parameter in self.kinds}
        return Layout(rows, offset, recorded_bytes, written, other, carried)

    def _root(self, slot: int, views: Mapping[int, tuple[int, int, np.ndarray]]) -> int:
        return views[slot][0] if slot in views else slot

    def _views(self) -> dict[int, tuple[int, int, np.ndarray]]:
        """By slot of what is another form of an array that an operation writes: that one's slot, the bytes from its begin, an example."""
        roots: dict[int, np.ndarray] = {}
        views: dict[int, tuple[int, int, np.ndarray]] = {}
        for instruction in self.region.program.instructions:
            slot = instruction.inputs[0] if instruction.inputs else ABSENT
            if writer(instruction, self.kinds, self.values) is not None:
                roots[instruction.outputs[0]] = self.kinds[instruction.outputs[0]].zeros
            elif instruction.moves and (slot in roots or slot in views) and self.kinds.keys() >= set(instruction.outputs):
                root, example = (slot, roots[slot]) if slot in roots else (views[slot][0], views[slot][2])
                made = moved(instruction, example, self.values)
                if all(one.base is roots[root] for one in made):
                    begin = roots[root].ctypes.data
                    views |= {out: (root, one.ctypes.data - begin, one) for out, one in zip(instruction.outputs, made, strict=True)}
        return views


def writer(instruction: Instruction, kinds: Mapping[int, Kind], values: list[Any]) -> Callable[..., Any] | str | None:
    """What writes the result of an instruction, neither small nor large, into memory that it is given: a function or the expression of
    the operation. None where nothing does."""
    kind = kinds.get(instruction.outputs[0])
    if kind is None or not _LEAST_BYTES <= kind.bytes <= _MOST_BYTES:
        return None
    inputs = [kinds[slot] for slot in instruction.inputs if slot in kinds and kinds[slot].dtype == kind.dtype]
    if len(inputs) < len(instruction.inputs):
        return None
    symbol = expression(instruction, values)
    if not symbol:
        return into(instruction, inputs)
    return symbol if kind.dtype.isbuiltin and kind.dtype.kind in "fiu" and writing(symbol.format(*"abc"), "o") is not None else None

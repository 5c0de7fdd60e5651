"""Entries of a graph, by which two models are matched, and the state of their matching.

An entry is an operation or a Parameter. Partners are found by names, properties and correlation:
matching values of one shape vary together around one level.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopscope.comparison.deviation import is_comparable
from loopscope.debug.run import Run
from loopscope.executor.plan.analyses import unpacking
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
    Region,
)
from loopscope.executor.plan.slots import Slot
from loopscope.ir.recorded_rows import RECORDED, is_control
from loopscope.ops.quantization import ROUND_TO
from loopscope.ops.values import is_tensor


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An operation or Parameter of a graph."""

    label: str
    """Segment in addresses."""
    outputs: tuple[Slot, ...]
    instruction: Instruction | None = None
    """None for a Parameter."""
    position: int = -1
    """Number of the instruction; -1 for a Parameter."""

    @property
    def type(self) -> str:
        """Type of the layer."""
        return "Parameter" if self.instruction is None else self.instruction.node.type

    @property
    def tensor(self) -> str:
        """Name of the single output tensor.

        Empty for several outputs, for an unnamed tensor, and for a bare number.
        """
        ports = () if self.instruction is None else self.instruction.node.outputs
        names = ports[0].names if len(ports) == 1 and len(self.outputs) == 1 else ()
        return next((name for name in names if not name.isdecimal()), "")

    @property
    def region(self) -> Region | None:
        return None if self.instruction is None else self.instruction.region

    @property
    def region_class(self) -> str:
        """``loop``, ``If`` or ``function``; empty for other entries."""
        match self.region:
            case None:
                return ""
            case LoopRegion():
                return "loop"
            case IfRegion():
                return "If"
            case CallRegion():
                return "function"

    @property
    def rounds(self) -> bool:
        """True if the output is the rounded input."""
        return self.type == ROUND_TO.name


def entries_of(program: Program) -> tuple[Entry, ...]:
    """Return all operations and Parameters of a graph in execution order.

    Consts are excluded. Of a trace, only what the program recorded is included.
    """
    if any(instruction.node.type == RECORDED for instruction in program.instructions):
        return tuple(
            Entry(instruction.label, instruction.outputs, instruction, number)
            for number, instruction in enumerate(program.instructions)
            if not is_control(instruction.node)
        )
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    parameters = [Entry(labels[layer], (slot,)) for layer, slot in program.parameters.items()]
    return (
        *parameters,
        *(
            Entry(instruction.label, instruction.outputs, instruction, number)
            for number, instruction in enumerate(program.instructions)
        ),
    )


def named(entry: Entry, output: int) -> str:
    """Return the name of an output in addresses."""
    return f"{entry.label}:{output}" if output else entry.label


_MAX_NUMBERS, _MAX_ROWS = 1024, 256
"""Maximum numbers of a value to correlate: from its first rows, sampled evenly from each row."""


@dataclass(slots=True, eq=False)
class MatchState:
    """Matching state of a graph of one of the runs."""

    run: Run
    program: Program
    entries: tuple[Entry, ...]
    matched: set[Entry] = field(default_factory=set[Entry])
    same: dict[Slot, int] = field(default_factory=dict[Slot, int])
    """Number of each value that has a partner; the partner has the same number in its own graph."""
    unpacks: frozenset[int] = frozenset()
    """Instructions that only unpack weights and are not operations of the model; only names match
    them.
    """
    reserved: set[Entry] = field(default_factory=set[Entry])
    """Unmatched entries that only their names may match.

    A branch of the other model contains an operation of the same name.
    """
    alias: dict[Slot, Slot] = field(default_factory=dict[Slot, Slot])
    """Slots that stand for another slot: Parameters of opened branches, and outputs of their
    nodes.
    """
    _numbers: dict[Entry, np.ndarray] = field(default_factory=dict[Entry, np.ndarray])

    @staticmethod
    def of(run: Run, program: Program) -> MatchState:
        """Return the state of a graph without matches."""
        return MatchState(
            run, program, entries_of(program), unpacks=frozenset(unpacking(run.plan, program))
        )

    def opened(self, entry: Entry, branch: Branch) -> MatchState:
        """Return the state of a branch of this graph, as if its operations replaced the node."""
        self.alias.update(branch.bindings)
        always_runs = self.run.timeline.executions.rows[branch.program.index] == self.rows
        if always_runs:
            self.alias.update(zip(entry.outputs, branch.results, strict=False))
        operations = tuple(
            inner for inner in entries_of(branch.program) if inner.instruction is not None
        )
        unpacks = frozenset(unpacking(self.run.plan, branch.program))
        return MatchState(
            self.run, branch.program, operations, same=self.same, unpacks=unpacks, alias=self.alias
        )

    @property
    def unmatched(self) -> list[Entry]:
        """Entries without a partner."""
        excluded = self.matched | self.reserved
        return [
            entry
            for entry in self.entries
            if entry not in excluded and entry.position not in self.unpacks
        ]

    @property
    def unpacking(self) -> tuple[Entry, ...]:
        """Entries without a partner that only unpack weights."""
        return tuple(
            entry
            for entry in self.entries
            if entry not in self.matched and entry.position in self.unpacks
        )

    @property
    def rows(self) -> int:
        """Number of executions of the graph."""
        return self.run.timeline.executions.rows[self.program.index]

    def missing(self) -> tuple[Entry, ...]:
        """Return the unmatched entries that the other model does not have.

        A rounding, and the value that it rounds, are excluded: that value belongs to the rounded
        one.
        """
        rounded = {
            slot
            for entry in self.entries
            if entry.rounds and entry.instruction
            for slot in entry.instruction.inputs
        }
        return tuple(
            entry
            for entry in self.unmatched
            if entry.outputs and not entry.rounds and not rounded.issuperset(entry.outputs)
        )

    def binding(self, entry: Entry) -> Hashable | None:
        """Return the kind of a body Parameter's binding, or model input; None for operations."""
        if entry.instruction is not None:
            return None
        loop = self.program.loop
        bound = loop.binding.get(entry.outputs[0]) if loop is not None else None
        return "Parameter", type(bound).__name__

    def structure(self, entry: Entry) -> Hashable | None:
        """Return the operation and the numbers of the matched values that it reads; all Consts are
        alike.

        Return None if an input does not have a partner.
        """
        if entry.instruction is None:
            return None
        constants = self.run.plan.constant_numbers
        slots = [self._resolve_alias(slot) for slot in entry.instruction.inputs if slot]
        read = [-1 if slot in constants else self.same.get(slot) for slot in slots]
        if None in read or all(number == -1 for number in read):
            return None
        return entry.type, entry.region_class, tuple(read), len(entry.outputs)

    def result(self, entry: Entry) -> Hashable | None:
        """Return the operation and the index of the graph result that it computes; None if it
        computes none.
        """
        results = list(self.program.results.values())
        index = next((number for number, slot in enumerate(results) if slot in entry.outputs), None)
        return None if index is None else (entry.type, entry.region_class, index)

    def shape(self, entry: Entry) -> Hashable | None:
        """Return the operation with type and shape of its first value; all floats are one type.

        Return None if there is nothing to compare.
        """
        if isinstance(entry.region, CallRegion) or not entry.outputs or not self.rows:
            return None
        value = self._value(entry, 0)
        if not is_tensor(value) or not is_comparable(array := np.asarray(value)):
            return None
        kind = array.dtype.kind if array.dtype.kind in "biu" else "f"
        return entry.region_class or entry.type, len(entry.outputs), kind, array.shape

    def shape_if_uncorrelated(self, entry: Entry, rows: int) -> Hashable | None:
        """Return the shape of a value that correlation cannot identify: a single number or a
        constant tensor.

        Return None for other values.
        """
        key = self.shape(entry)
        return key if key is not None and not tells(self.numbers(entry, rows)) else None

    def numbers(self, entry: Entry, rows: int) -> np.ndarray:
        """Return a sample of an entry's values in at most ``rows`` rows, cached; ``rows`` must not
        vary between calls.
        """
        if entry not in self._numbers:
            first = np.asarray(self._value(entry, 0)).astype(np.float64)
            stride = max(1, -(-first.size // _MAX_NUMBERS))
            samples = [first.reshape(-1)[::stride]]
            for row in range(1, min(rows, _MAX_ROWS, _MAX_NUMBERS // max(samples[0].size, 1))):
                value = self._value(entry, row)
                if not is_tensor(value) or (array := np.asarray(value)).shape != first.shape:
                    break
                samples.append(array.astype(np.float64).reshape(-1)[::stride])
            self._numbers[entry] = np.concatenate(samples)
        return self._numbers[entry]

    def _resolve_alias(self, slot: Slot) -> Slot:
        while slot in self.alias:
            slot = self.alias[slot]
        return slot

    def _value(self, entry: Entry, row: int) -> object:
        return self.run.values.get(self.run.timeline, self.program, row, entry.outputs[0])


LEAST = 0.9
"""Minimum concordance that is not chance; values rounded to eight bits have more than 0.999."""
_MIN_NUMBERS = 3
"""Minimum number of elements for a meaningful correlation."""
_TIE_TOLERANCE = 1e-6
"""Difference of two concordances below which the candidates count as tied."""


def tells(vector: np.ndarray) -> bool:
    """Return True if a correlation with these numbers is meaningful: finite, at least three, not
    all equal.
    """
    return bool(vector.size >= _MIN_NUMBERS and np.isfinite(vector).all() and np.ptp(vector) > 0)


def correlated(lefts: Sequence[np.ndarray], rights: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Return index pairs of two sequences of equally long vectors in which each is the other's best
    match.

    All vectors must satisfy ``tells``. The measure is the concordance correlation coefficient (Lin
    1989), so that a value and its double do not match. Pairs below ``LEAST``, and pairs with an
    equally good second match, are omitted.

    >>> lefts = [np.array([1.0, 2, 3, 5]), np.array([4.0, 0, 3, 1])]
    >>> correlated(lefts, [np.array([4.1, 0, 3, 1]), np.array([1.1, 2, 3.1, 5])])
    [(0, 1), (1, 0)]
    """
    if not lefts or not rights:
        return []
    table = _concordance(np.stack(lefts).astype(np.float64), np.stack(rights).astype(np.float64))
    return [
        (row, column)
        for row, column in enumerate(np.argmax(table, axis=1).tolist())
        if table[row, column] >= LEAST
        and _stands_out(table[row], column)
        and _stands_out(table[:, column], row)
    ]


def _concordance(lefts: np.ndarray, rights: np.ndarray) -> np.ndarray:
    """Return the concordance of each row of one array with each row of the other: 1 if equal, 0 if
    unrelated.
    """
    means, variances = zip(
        *((side.mean(axis=1), side.var(axis=1)) for side in (lefts, rights)), strict=True
    )
    covariance = (lefts - means[0][:, None]) @ (rights - means[1][:, None]).T / lefts.shape[1]
    return np.asarray(
        2
        * covariance
        / (variances[0][:, None] + variances[1] + (means[0][:, None] - means[1]) ** 2)
    )


def _stands_out(row: np.ndarray, best: int) -> bool:
    return bool(np.delete(row, best).max(initial=-1.0) < row[best] - _TIE_TOLERANCE)

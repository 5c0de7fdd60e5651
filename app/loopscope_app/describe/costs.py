"""Costs of operations: parameters, MACs and bytes, in words for a node and as a table of all.

Shapes are those of the run where it ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

import loopscope
from loopscope.checks import ComputeCost, ModelCosts, costs, macs_of_node
from loopscope.errors import EngineError, counted
from loopscope.explain import how_often
from loopscope.ir import Model, readable, significant
from loopscope.object_cache import cache_by_object
from loopscope.ops import is_tensor
from loopscope_app.describe.node_index import IndexedNode, places, with_output

MEASURES = ("MACs", "Parameters", "Output bytes")
TITLES = ("operation", "type", "MACs in all", "runs", "MACs", "parameters", "output")
_MAX_SHAPES = 200
"""Largest number of operations whose MACs are computed from values of the run."""
_LONGEST_NAME = 24
"""Number of characters of a name in the table; its end is most specific."""
_ENDS = ("Parameter", "Result")


@dataclass(frozen=True, slots=True)
class CostRow:
    """Cost of an operation, without those inside it."""

    address: str
    name: str
    type: str
    cost: ComputeCost
    """Cost of one execution; of an operation in a loop, the cost in one iteration."""
    runs: int
    """Number of executions in the run so far."""

    @property
    def macs_in_run(self) -> int | None:
        """MACs of all executions so far."""
        return None if self.cost.macs is None else self.cost.macs * self.runs

    @property
    def cells(self) -> tuple[str, ...]:
        """Texts of the row, in the order of ``TITLES``."""
        return (
            self.name if len(self.name) <= _LONGEST_NAME else f"…{self.name[1 - _LONGEST_NAME :]}",
            self.type,
            _number(self.macs_in_run) if self.runs else "",
            f"{self.runs:,}" if self.runs else "",
            _number(self.cost.macs),
            f"{self.cost.parameters:,}" if self.cost.parameters else "",
            bytes_text(self.cost.output_bytes) if self.cost.output_bytes else "",
        )


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """Costs of the operations of a model in a run, the costliest first."""

    total: ComputeCost
    """Cost of the model from its shapes alone."""
    rows: tuple[CostRow, ...]

    @property
    def sentence(self) -> str:
        """Parameters and MACs in total, and the costliest operation."""
        parts = []
        if self.total.parameters:
            size = bytes_text(self.total.parameter_bytes)
            parts.append(f"{counted(self.total.parameters, 'parameter')} ({size})")
        in_run = sum(row.macs_in_run or 0 for row in self.rows)
        if in_run:
            first = self.rows[0]
            share = significant(100 * (first.macs_in_run or 0) / in_run, 2)
            parts.append(
                f"{counted(in_run, 'MAC')} so far, {share} % of them in `{readable(first.address)}`"
            )
        elif self.total.macs:
            parts.append(f"{counted(self.total.macs, 'MAC')} per run")
        words = ". ".join(parts) or "No parameters and no MACs (multiplications that are added up)"
        return f"{words}.{self._unknown}"

    @property
    def _unknown(self) -> str:
        unknown = [row for row in self.rows if row.cost.macs is None]
        if not unknown:
            return ""
        has_run = any(row.runs for row in self.rows)
        reason = (
            "they did not run"
            if has_run and not any(row.runs for row in unknown)
            else "their shapes depend on the run"
        )
        return f" MACs of {counted(len(unknown), 'operation')} are unknown, because {reason}."


@cache_by_object(key=lambda debugger, inputs: debugger.steps, newest_only=True)
def cost_table(debugger: loopscope.Debugger, inputs: Mapping[str, np.ndarray]) -> CostTable | None:
    """Return the costs of a run so far; None for a large model.

    ``inputs`` are the run's inputs by name. Lengths that they leave open are those of the latest
    execution of each operation.
    """
    if model_costs(debugger.model) is None:
        return None
    costs = run_costs(debugger, inputs)
    return CostTable(costs.total, _rows(debugger, costs.nodes))


@cache_by_object(key=lambda debugger, inputs: None)
def run_costs(debugger: loopscope.Debugger, inputs: Mapping[str, np.ndarray]) -> ModelCosts:
    """Return the costs of a model for the shapes of the run's inputs, computed once per run."""
    known = {name: array for name, array in inputs.items() if is_tensor(array)}
    names = debugger.model.inputs_called
    unique = {name: array for name, array in known.items() if len(names.get(name, ())) == 1}
    return costs(debugger.model, unique)


def _rows(debugger: loopscope.Debugger, known: Mapping[str, ComputeCost]) -> tuple[CostRow, ...]:
    runs = how_often(debugger)
    shapes_left = _MAX_SHAPES
    rows = []
    for address, place in places(debugger.model).items():
        if place.node.bodies or place.node.constant is not None or place.node.type in _ENDS:
            continue
        cost, executions = known[address], int(runs.get(address, 0))
        if cost.macs is None and executions and shapes_left:
            shapes_left -= 1
            concrete = debugger.resolve(address) or ""
            cost = replace(cost, macs=macs_now(place, debugger, concrete))
        rows.append(CostRow(address, place.node.name, place.node.type, cost, executions))
    rows.sort(key=_weight, reverse=True)
    return tuple(rows)


def _weight(row: CostRow) -> tuple[int, int, int, int]:
    return (
        row.macs_in_run or 0,
        row.cost.macs or 0,
        row.cost.parameters,
        row.cost.output_bytes or 0,
    )


def by_measure(
    debugger: loopscope.Debugger, inputs: Mapping[str, np.ndarray]
) -> dict[str, dict[str, int]]:
    """Return the cost of one execution by measure and address, to colour a picture.

    Loops have the cost of one iteration. Zeros and unknown costs are left out, and so are measures
    without any other cost.
    """
    table = cost_table(debugger, inputs)
    if table is None:
        return {}
    known = run_costs(debugger, inputs).nodes
    regions = {
        address: known[address]
        for address, place in places(debugger.model).items()
        if place.node.bodies
    }
    by_address = regions | {row.address: row.cost for row in table.rows}
    numbers: dict[str, dict[str, int]] = {measure: {} for measure in MEASURES}
    for address, cost in by_address.items():
        values = (cost.macs_per_iteration or cost.macs, cost.parameters, cost.output_bytes)
        for measure, value in zip(MEASURES, values, strict=True):
            if value:
                numbers[measure][address] = value
    return {measure: costs for measure, costs in numbers.items() if costs}


def _number(macs: int | None) -> str:
    return "?" if macs is None else f"{macs:,}" if macs else ""


MOST_NODES = 20_000
"""Number of nodes up to which costs are computed; more would slow the first click on a node down.
"""


@cache_by_object
def model_costs(model: Model) -> ModelCosts | None:
    """Return the costs of a model from its declared shapes; None for a large model.

    They are computed once.
    """
    return costs(model) if len(places(model)) <= MOST_NODES else None


def cost_rows(
    place: IndexedNode, debugger: loopscope.Debugger | None, concrete: str
) -> Iterator[tuple[str, str]]:
    """Yield name and text of each known cost of a node.

    ``concrete`` is the address of its execution at the cursor, empty before it.
    """
    result = model_costs(debugger.model) if debugger is not None else None
    cost = result.nodes.get(place.address) if result is not None else None
    if cost is None:
        return
    if cost.parameters:
        yield "parameters", f"{cost.parameters:,} ({bytes_text(cost.parameter_bytes)})"
    macs = cost.macs
    if macs is None and not place.node.bodies and debugger is not None and concrete:
        macs = macs_now(place, debugger, concrete)
    if cost.macs_per_iteration:
        yield "MACs per iteration", f"{cost.macs_per_iteration:,}"
    if macs:
        yield "MACs", _macs_text(cost, macs)
    if cost.output_bytes:
        yield "output", bytes_text(cost.output_bytes)


def _macs_text(cost: ComputeCost, macs: int) -> str:
    iterations = "" if cost.iterations is None else f" in {counted(cost.iterations, 'iteration')}"
    return f"{macs:,}{iterations}"


def macs_now(place: IndexedNode, debugger: loopscope.Debugger, concrete: str) -> int | None:
    """Return the MACs of one execution from the shapes of its values."""
    graph = concrete.rpartition("/")[0]
    shapes: list[tuple[int, ...] | None] = []
    try:
        for source in place.sources:
            label = None if source is None else place.labels[source.layer]
            shapes.append(
                None
                if source is None
                else np.shape(debugger.value(f"{graph}/{with_output(label or '', source.output)}"))
            )
        output = np.shape(debugger.value(concrete))
    except EngineError:
        return None
    return macs_of_node(place.node, shapes, output)


def bytes_text(size: int) -> str:
    """Return a number of bytes with a readable unit.

    >>> bytes_text(12), bytes_text(4096), bytes_text(3_500_000)
    ('12 bytes', '4 KB', '3.34 MB')
    """
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return counted(size, "byte")

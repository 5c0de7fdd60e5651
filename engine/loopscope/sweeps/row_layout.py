"""Layout of a sweep's rows: columns by name and type, and the values of user columns.

Columns are known before anything runs. A user column ``max(abs(main/loop/body/Add))`` reads that
value in all iterations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from loopscope.debug.expression import Expression, parse
from loopscope.debug.lookup import slot_at
from loopscope.debug.run import Run
from loopscope.errors import AddressError, ExpressionError, elided, shorten
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import Slot, TableIndex
from loopscope.ir.address import Address
from loopscope.ir.address_search import full_address
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ir.shape import PartialShape
from loopscope.sweeps.margins import Condition, condition_of

if TYPE_CHECKING:
    import pyarrow as pa


Kind = Literal["bool", "int64", "uint64", "float64", "string"]
"""Type of a column's values; a tensor that is not one number has its fingerprint as text."""

SAMPLE, FIRST_NAN, SECONDS, ERROR = "sample", "first NaN", "seconds", "error"


@dataclass(frozen=True, slots=True)
class LoopColumns:
    """Columns of a loop, whose executions are counted."""

    table: TableIndex
    address: str
    nested: bool
    """True if the loop is inside a loop, so that one run may execute it many times."""
    condition: Condition | None
    """Structure of the loop's condition, if its margin is recorded."""

    @property
    def margins(self) -> tuple[str, ...]:
        """Names of the margin columns; empty if the margin is not recorded."""
        return self._columns("margin") if self.condition is not None else ()

    @property
    def counts(self) -> tuple[str, ...]:
        """Names of the columns of iteration counts."""
        return self._columns("iterations")

    def _columns(self, kind: str) -> tuple[str, ...]:
        name = f"{kind} {self.address}"
        return (f"{name} sum", f"{name} min", f"{name} max") if self.nested else (name,)


@dataclass(frozen=True, slots=True)
class BranchColumns:
    """Columns of an If, whose branches are counted."""

    table: TableIndex
    address: str


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Column of an input or an output."""

    position: int
    """Position among the model's inputs or outputs."""
    name: str
    kind: Kind
    slot: Slot


@dataclass(frozen=True, slots=True, eq=False)
class RowLayout:
    """Columns of a sweep, in order."""

    inputs: tuple[NumberColumn, ...]
    loops: tuple[LoopColumns, ...]
    branches: tuple[BranchColumns, ...]
    outputs: tuple[NumberColumn, ...]
    expressions: tuple[tuple[str, Expression], ...]
    addresses: Mapping[str, str]
    """Address of each name in an expression. A name may be the end of an address, or in the form
    that screens show.
    """
    finds_nan: bool
    """True if rows have the first NaN; False if the model has no floats."""
    seconds: bool

    @property
    def tells_margins(self) -> bool:
        """True if any loop's margin is recorded."""
        return any(loop.condition is not None for loop in self.loops)

    def schema(self) -> pa.Schema:
        """Return the names and types of the columns."""
        import pyarrow as pa

        fields: list[tuple[str, str]] = [
            (SAMPLE, "int64"),
            *((column.name, column.kind) for column in self.inputs),
        ]
        for loop in self.loops:
            fields += [
                *((name, "int64") for name in loop.counts),
                (f"ended {loop.address}", "string"),
            ]
            fields += [(name, "float64") for name in loop.margins]
        for branch in self.branches:
            fields += [(f"then {branch.address}", "int64"), (f"else {branch.address}", "int64")]
        fields += [(column.name, column.kind) for column in self.outputs] + [
            (name, "float64") for name, _ in self.expressions
        ]
        fields += [
            (FIRST_NAN, "string"),
            *([(SECONDS, "float64")] if self.seconds else []),
            (ERROR, "string"),
        ]
        return pa.schema([pa.field(name, pa.type_for_alias(kind)) for name, kind in fields])


def layout_of(
    plan: Plan,
    expressions: Sequence[tuple[str, Expression]],
    *,
    first_nan: bool,
    seconds: bool,
    margins: bool,
) -> RowLayout:
    """Return the columns of a model's runs; ``AddressError`` if a name in an expression does not
    name exactly one value.
    """
    loops: list[LoopColumns] = []
    branches: list[BranchColumns] = []
    for program, instruction in plan.regions:
        address = f"{program.address}/{instruction.label}"
        match instruction.region:
            case LoopRegion() as region:
                nested = any(graph.loop is not None for graph in program.around())
                loops.append(
                    LoopColumns(
                        region.table,
                        address,
                        nested,
                        condition_of(plan, region) if margins else None,
                    )
                )
            case IfRegion() as region:
                branches.append(BranchColumns(region.table, address))
            case _:
                pass
    names = (expression for expression, _ in expressions)
    return RowLayout(
        tuple(_inputs(plan, {SAMPLE, FIRST_NAN, SECONDS, ERROR, *names})),
        tuple(loops),
        tuple(branches),
        tuple(_outputs(plan)),
        tuple(expressions),
        {name: _address(plan, name) for _, expression in expressions for name in expression.names},
        first_nan and _has_floats(plan),
        seconds,
    )


def _address(plan: Plan, name: str) -> str:
    """Return the address that a name in an expression refers to."""
    address = full_address(plan.model, name)
    parsed = Address.parse(address)
    program = plan.program_by_address.get(
        "/".join(segment.label for segment in parsed.segments[:-1])
    )
    if program is None:
        raise AddressError(
            f"there is no {elided(name)!r} in the model: "
            "a column is made of addresses such as main/loop/body/Add"
        )
    slot_at(program, parsed)
    return address


def _inputs(plan: Plan, column_names: set[str]) -> Iterable[NumberColumn]:
    """Yield the inputs of one number. An input with the name of another column is called ``input
    NAME``.
    """
    used = Counter(column_names)
    for position, signature in enumerate(plan.model.inputs):
        kind = kind_of(signature.element_type, signature.shape)
        if kind == "string" or signature.form != "tensor":
            continue
        name = f"input {signature.name}" if signature.name in column_names else signature.name
        used[name] += 1
        yield NumberColumn(
            position,
            name if used[name] == 1 else f"{name}:{position}",
            kind,
            plan.main.parameters[signature.layer],
        )


def _outputs(plan: Plan) -> Iterable[NumberColumn]:
    places = {slot: place for place, slot in plan.main.slots.items()}
    used = Counter[str]()
    for position, signature in enumerate(plan.model.outputs):
        slot = plan.main.results[signature.layer]
        layer, port = places.get(slot, (LayerId(-1), 0))
        known = plan.propagated.output(plan.main.address, layer, port) if layer >= 0 else None
        kind = kind_of(known.element_type, known.shape) if known is not None else "string"
        name = f"output {signature.name}"
        used[name] += 1
        yield NumberColumn(position, name if used[name] == 1 else f"{name}:{position}", kind, slot)


def kind_of(element_type: ElementType | None, shape: PartialShape) -> Kind:
    """Return the column type of a tensor: a number if it always has one element, else text."""
    if element_type is None or not shape.is_static or any(length != 1 for length in shape.lengths):
        return "string"
    if element_type is ElementType.STRING or element_type.dtype.names:
        return "string"
    kinds: dict[str, Kind] = {"b": "bool", "i": "int64", "u": "uint64"}
    return kinds.get(element_type.dtype.kind, "float64")


def _has_floats(plan: Plan) -> bool:
    return any(
        (known := plan.propagated.output(program.address, instruction.node.id, port).element_type)
        is None
        or known.is_float
        for program in plan.programs
        for instruction in program.instructions
        if instruction.region is None
        for port in range(len(instruction.outputs))
    )


_ADDRESS = re.compile(r"`[^`]*`|\bmain(?:/[\w.:\[\]]+)+")
_MAX_VALUES = 1 << 26


def column_of(text: str) -> Expression:
    """Parse an expression in which addresses do not require backticks, if they contain no signs but
    ``_``, ``.`` and ``:``.

    >>> sorted(column_of("max(abs(main/loop/body/Add)) + 1").names)
    ['main/loop/body/Add']
    """
    return parse(
        _ADDRESS.sub(lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", text)
    )


def value_of(run: Run, name: str) -> Any:
    """Return the value at an address, stacked over all executions of its graph if no iteration is
    given; ``ExpressionError`` for an unknown address.
    """
    address = Address.parse(name)
    program = run.plan.program_by_address.get(
        "/".join(segment.label for segment in address.segments[:-1])
    )
    if (
        program is None
        or program.parent is None
        or any("[" in str(part) for part in name.split("/"))
    ):
        return run.value(name)
    label, _, output = name.rpartition("/")[2].partition(":")
    layer = program.layer_of_label.get(label)
    slot = (
        None
        if layer is None
        else program.slots.get(
            (layer, int(output) if output.isdecimal() and len(output) < 10 else 0)
        )
    )
    if slot is None:
        raise ExpressionError(f"there is no {shorten(name, 80)!r} in the model")
    return _stack(
        [
            run.values.get(run.timeline, program, row, slot)
            for row in _rows(run, program)
            if run.has_run(program, row, slot)
        ]
    )


def _rows(run: Run, program: Program) -> range:
    return range(run.timeline.executions.rows[program.index])


def _stack(values: list[Any]) -> Any:
    """Stack values along a new first axis if all have one shape, else join their elements."""
    arrays = [np.asarray(array) for array in values]
    if sum(array.size for array in arrays) > _MAX_VALUES:
        raise ExpressionError(f"all iterations together have more than {_MAX_VALUES} elements")
    if not arrays:
        return np.zeros(0)
    return (
        np.stack(arrays)
        if len({array.shape for array in arrays}) == 1
        else np.concatenate([array.reshape(-1) for array in arrays])
    )

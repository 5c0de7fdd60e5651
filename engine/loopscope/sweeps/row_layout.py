"""Layout of a sweep's rows: columns by name and type, known before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loopscope.debug.expression import Expression
from loopscope.debug.lookup import slot_at
from loopscope.errors import AddressError, elided
from loopscope.executor.plan.numbers import Slot, TableIndex
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan
from loopscope.ir.address import Address
from loopscope.ir.address_suffix import full_address
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

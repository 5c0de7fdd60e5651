"""Proofs about slots in generated code: numbers of one type in every row, and sizes of results.

The column of a slot with proved type need not be checked. Every slot first gets the type that
follows if carried values do not change their entry type. Contradicted types and all types derived
from them are then removed. Results that may be large get a check where the proof fails.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.executor.machine.execute import (
    SMALL,
    all_returned,
    check_broadcast,
    check_tensors,
    computing,
    returned,
)
from loopscope.executor.machine.regions import iteration_bound
from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.plan import (
    ABSENT,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
    Region,
)
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Known, typed


def scalar_types(plan: Plan, region: LoopRegion, values: list[Any]) -> dict[Slot, np.dtype]:
    """Return the types of the slots of a loop body that are numbers in every run.

    ``values`` are the values of all slots when the body is entered.
    """
    proof = _Proof(plan, values)
    slots = [invariant.parameter for invariant in region.invariants]
    slots += [carried.parameter for carried in region.carried]
    slots += [counter.parameter for counter in region.counters]
    for slot in slots:
        if isinstance(values[slot], np.generic):
            proof.types[slot] = values[slot].dtype
    proof.body(region)
    return proof.certain()


def numbers_of_graph(
    plan: Plan, values: list[Any], enters: Callable[[Region], bool]
) -> dict[Slot, np.dtype]:
    """Return the types of the slots of a plan that are numbers in every run.

    ``values`` are the values of all slots, with the inputs of the run.
    The proof covers the outermost graph, and the regions that ``enters`` accepts.
    """
    proof = _Proof(plan, values, enters)
    for slot in plan.main.parameters.values():
        if isinstance(values[slot], np.generic):
            proof.types[slot] = values[slot].dtype
    proof.program(plan.main)
    return proof.certain()


def element_types_of_graph(
    plan: Plan, values: list[Any], enters: Callable[[Region], bool]
) -> dict[Slot, np.dtype]:
    """Return the element types of the slots of a plan that are tensors of one type in every run.

    ``values`` are the values of all slots, with the inputs of the run.
    A type follows from the types of an operation's inputs by its shape function or its schema.
    Types that only the file declares do not count. The walk covers what ``numbers_of_graph``
    covers.
    """
    types: dict[Slot, np.dtype] = {
        Slot(slot): value.dtype
        for slot, value in enumerate(values)
        if isinstance(value, (np.ndarray, np.generic))
    }
    _infer_element_types(plan, plan.main, enters, types)
    return types


def _infer_element_types(
    plan: Plan, program: Program, enters: Callable[[Region], bool], types: dict[Slot, np.dtype]
) -> None:
    """Add the element types of the slots of a graph and its inner graphs to ``types``."""
    for instruction in program.instructions:
        region = instruction.region
        if region is not None:
            if isinstance(region, (IfRegion, CallRegion)) and enters(region):
                _infer_region(plan, region, enters, types)
        elif not instruction.checked and all(
            slot == ABSENT or slot in types for slot in instruction.inputs
        ):
            inferred = _output_types(plan, program, instruction, types)
            for slot, element_type in zip(instruction.outputs, inferred, strict=False):
                if element_type is not None:
                    types[slot] = element_type.dtype


def _output_types(
    plan: Plan, program: Program, instruction: Instruction, types: Mapping[Slot, np.dtype]
) -> Sequence[ElementType | None]:
    """Return the element types of the outputs of an operation whose inputs have known types."""
    node, outputs = instruction.node, range(len(instruction.outputs))
    if instruction.infer is not None:
        propagated = [plan.propagated.output(program.address, node.id, index) for index in outputs]
        return [output.element_type for output in propagated]
    operation = plan.operations[program.index, node.id]
    if operation.output_types is None:
        return []
    try:
        inputs = [
            Known(ElementType.of_dtype(types[slot])) if slot != ABSENT else Known()
            for slot in instruction.inputs
        ]
    except KeyError:
        return []
    of_schema = operation.output_types(inputs, typed(operation, node.attributes))
    return [of_schema[min(index, len(of_schema) - 1)] for index in outputs]


def _infer_region(
    plan: Plan,
    region: IfRegion | CallRegion,
    enters: Callable[[Region], bool],
    types: dict[Slot, np.dtype],
) -> None:
    """Add the element types of an If or a function, whose outputs have the type of all results."""
    branches = (
        [region.branch] if isinstance(region, CallRegion) else [region.then, region.otherwise]
    )
    for branch in branches:
        for parameter, source in branch.bindings:
            if source in types:
                types[parameter] = types[source]
        _infer_element_types(plan, branch.program, enters, types)
    results = zip(*(branch.results for branch in branches), strict=True)
    for slot, slots in zip(region.outputs, results, strict=False):
        result_types = {types.get(result) for result in slots}
        dtype = result_types.pop()
        if dtype is not None and not result_types:
            types[slot] = dtype


class _Proof:
    """Types of slots under the assumption that carried values keep the type of their entry."""

    def __init__(
        self, plan: Plan, values: list[Any], enters: Callable[[Region], bool] = lambda _: True
    ) -> None:
        self.values = values
        self.enters = enters
        self.types: dict[Slot, np.dtype] = {
            slot: value.dtype for slot, value in plan.constants if isinstance(value, np.generic)
        }
        self.derived: defaultdict[Slot, list[Slot]] = defaultdict(list)
        """Slots whose type was derived from the type of the key."""
        self.contradicted: list[Slot] = []

    def certain(self) -> dict[Slot, np.dtype]:
        """Return the types that nothing contradicts."""
        while self.contradicted:
            slot = self.contradicted.pop()
            if self.types.pop(slot, None) is not None:
                self.contradicted += self.derived[slot]
        return self.types

    def body(self, region: LoopRegion) -> None:
        self.program(region.program)
        for carried in region.carried:
            self._same(carried.parameter, carried.result)

    def program(self, program: Program) -> None:
        for instruction in program.instructions:
            match instruction.region:
                case None:
                    self._compute(instruction)
                case region if not self.enters(region):
                    pass
                case LoopRegion() as region:
                    self._loop(region)
                case IfRegion() as region:
                    for branch in (region.then, region.otherwise):
                        for parameter, source in branch.bindings:
                            self._follow(parameter, source)
                        self.program(branch.program)
                    for slot, result, alternative in zip(
                        region.outputs, region.then.results, region.otherwise.results, strict=False
                    ):
                        self._follow(slot, result)
                        self._same(slot, alternative)
                case _:
                    pass

    def _loop(self, region: LoopRegion) -> None:
        if region.declared:
            return
        for invariant in region.invariants:
            self._follow(invariant.parameter, invariant.source)
        for carried in region.carried:
            if carried.initial is not None:
                self._follow(carried.parameter, carried.initial)
        for counter in region.counters:
            if not counter.shape:
                self.types[counter.parameter] = counter.element_type.dtype
        self.body(region)
        for output in region.outputs:
            # A loop without an iteration returns the initial value.
            if isinstance(output, LastValue) and output.initial is not None:
                self._follow(output.slot, output.result)
                self._same(output.slot, output.initial)

    def _compute(self, instruction: Instruction) -> None:
        types = [self.types.get(slot) for slot in instruction.inputs]
        if (
            instruction.kernel is None
            or None in types
            or not (expression(instruction, self.values) or _returns_number(instruction, types))
        ):
            return
        try:
            with computing():
                result = np.asarray(
                    instruction.kernel(*[dtype.type(1) for dtype in types if dtype is not None])
                )
        except (TypeError, ValueError, IndexError):
            return
        if result.ndim == 0:
            self.types[instruction.outputs[0]] = result.dtype
            for slot in instruction.inputs:
                self.derived[slot].append(instruction.outputs[0])

    def _follow(self, slot: Slot, source: Slot) -> None:
        """Give the slot the type of its source."""
        if source in self.types:
            self.types[slot] = self.types[source]
            self.derived[source].append(slot)

    def _same(self, slot: Slot, source: Slot) -> None:
        """Require equal types, because the slot sometimes holds the value of ``source``."""
        self.derived[source].append(slot)
        if self.types.get(slot) != self.types.get(source):
            self.contradicted.append(slot)


def _returns_number(instruction: Instruction, types: Sequence[np.dtype | None]) -> bool:
    """Return True if the kernel returns exactly one number, whose rank 0 the shape function
    proves.
    """
    if (
        instruction.infer is None
        or instruction.checked
        or instruction.several
        or instruction.state is not None
    ):
        return False
    try:
        (output,) = instruction.infer(
            [
                Known(ElementType.of_dtype(dtype), PartialShape.of(()))
                for dtype in types
                if dtype is not None
            ]
        )
    except (ValueError, KeyError):
        return False
    return output.shape.is_static and not output.shape.lengths


_MAX_DIMENSIONS = 64


def grows(region: LoopRegion, values: list[Any]) -> bool:
    """Return True if elementwise results of a loop nest may exceed ``SMALL`` elements.

    They cannot if the nest only computes elementwise expressions on small values.
    """
    waiting, slots = list(region.programs), set[Slot]()
    while waiting:
        for instruction in waiting.pop().instructions:
            if instruction.region is not None:
                waiting.extend(instruction.region.programs)
            elif not expression(instruction, values):
                return True
            slots.update(instruction.inputs)
    return _broadcasts_large(slots, values)


def begins_small(region: LoopRegion, plan: Plan, values: list[Any]) -> bool:
    """Return True if elementwise operations on the values that enter a loop, and on Consts, have at
    most ``SMALL`` elements.
    """
    slots = [*region.program.parameters.values(), *plan.constant_numbers]
    return not _broadcasts_large(slots, values)


def _broadcasts_large(slots: Iterable[Slot], values: list[Any]) -> bool:
    """Return True if values may broadcast to more than ``SMALL`` elements."""
    lengths = [1] * _MAX_DIMENSIONS
    for slot in slots:
        for axis, length in enumerate(reversed(getattr(values[slot], "shape", ()))):
            lengths[axis] = max(lengths[axis], length)
    return math.prod(lengths) > SMALL


def guarded(instruction: Instruction, values: list[Any], symbol: str) -> str:
    """Return the expression with a check that its result does not exceed the allowed size.

    The check is omitted if at most one input had a rank in the first iterations.
    """
    ranked = [
        number for number, slot in enumerate(instruction.inputs) if getattr(values[slot], "ndim", 0)
    ]
    if not instruction.broadcasts or len(ranked) < 2:
        return symbol
    names = [f"{{{number}}}" for number in ranked]
    sizes = "*".join(f"{name}.size" for name in names)
    return f"{symbol} if {sizes} <= {SMALL} or fits({', '.join(names)}) else None"


def constant_bound(overrides: Overrides, region: LoopRegion) -> int | None:
    """Return the constant trip count of a Loop without sliced inputs; None if it varies."""
    program = region.program
    if region.kind != LOOP or region.sliced or region.trip_count is None or program.parent is None:
        return None
    trips = overrides.constant_of(program.parent, region.trip_count)
    bound, ending = (0, "") if trips is None else iteration_bound(region, trips, ())
    return bound if ending == "trip_count" else None


def fits(*arguments: Any) -> bool:
    """Return True, or raise ``ValueError`` if the arguments broadcast to more elements than
    allowed.
    """
    check_broadcast(arguments)
    return True


def bounded(instruction: Instruction) -> Callable[..., Any] | None:
    """Return the kernel of an instruction with the checks that the instruction requires.

    The result size is checked if broadcasting may enlarge it; tensors are checked if the
    instruction is ``checked``.
    """
    call = instruction.call
    if call is None or not (instruction.broadcasts or instruction.checked):
        return call

    def call_within_limit(*arguments: Any) -> Any:
        check_broadcast(arguments)
        return call(*arguments)

    def call_with_checks(*arguments: Any, **state: Any) -> Any:
        check_tensors(instruction, arguments)
        if instruction.broadcasts:
            check_broadcast(arguments)
        result = call(*arguments, **state)
        check = all_returned if instruction.several else returned
        return (check(instruction, result[0]), result[1]) if state else check(instruction, result)

    return call_with_checks if instruction.checked else call_within_limit

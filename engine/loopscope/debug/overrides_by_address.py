"""Overrides by address: bound to the plan before the run, and reported as reached or not after
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.inputs import convert_to
from loopscope.debug.lookup import body_of, region_number
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.errors import AddressError, InputError, shorten
from loopscope.executor.plan.analyses import backward_slice
from loopscope.executor.plan.body_ports import Concatenated
from loopscope.executor.plan.plan import ABSENT, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import Slot, settle
from loopscope.executor.plan.uncomputed_values import Override, Overrides
from loopscope.ir.address import ANY_ITERATION, Address, Segment, decode
from loopscope.ir.element_type import ElementType
from loopscope.ir.readable import readable
from loopscope.ir.shape import PartialShape


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """A value that the user has set."""

    address: str
    value: np.ndarray
    reached: bool
    """True if the run has reached the place, so that everything after it uses the value."""


def bind(plan: Plan, changes: Mapping[str, Any]) -> Overrides:
    """Return a plan with the overrides of a run.

    Raises ``AddressError`` for an address that does not name one value of one iteration of each
    enclosing loop, and ``InputError`` for an unsuitable value.
    """
    items: list[Override] = []
    for text, value in changes.items():
        change = _bind_change(plan, Address.parse(text), value)
        duplicate = next(
            (
                override
                for override in items
                if (override.slot, override.iterations) == (change.slot, change.iterations)
            ),
            None,
        )
        if duplicate is not None:
            raise AddressError(
                f"{readable(change.address)} is the value at {readable(duplicate.address)}, "
                "which is set already: set it once"
            )
        items.append(change)
    return Overrides(plan, tuple(items))


def list_changes(run: Run) -> tuple[Changed, ...]:
    """Return each change, and whether the run has reached it."""
    return tuple(
        Changed(override.address, as_public(override.value), _is_reached(run, override))
        for override in run.overrides.items
    )


def is_changed(run: Run, program: Program, row: int, slot: Slot) -> bool:
    """Return True if the user has set the value of a slot in a row."""
    if slot not in run.overrides.slots:
        return False
    return run.overrides.at(program, run.timeline.iterations(program, row), slot) is not None


def _is_reached(run: Run, change: Override) -> bool:
    row = run.timeline.executions.row(change.program, change.iterations)
    return row is not None and run.has_run(change.program, row, change.slot)


def _bind_change(plan: Plan, address: Address, value: Any) -> Override:
    program, loops, iterations = _graph_of(plan, address)
    place, label = str(address), address.segments[-1].label
    layer = program.layer_of_label.get(label)
    if layer is None:
        raise AddressError(f"there is no {shorten(decode(label))!r} in {readable(program.address)}")
    slot = program.slots.get((layer, address.output))
    if slot is None:
        raise AddressError(
            f"{shorten(decode(label))!r} in {readable(program.address)} "
            f"has no output {address.output}"
        )
    if slot == ABSENT:
        raise AddressError(f"{place} cannot be set: nothing feeds {shorten(decode(label))!r}")
    if program.parent is None and slot in program.parameter_slots:
        raise AddressError(
            f"{place} is an input of the model: give the run another input instead of a change"
        )
    inferred = plan.propagated.output(program.address, layer, address.output)
    element_type, shape = inferred.element_type, inferred.shape
    if _may_be_shorter(plan, program, slot):
        shape = PartialShape.unknown(shape.rank) if shape.rank is not None else shape
    array = _convert_value(value, element_type, shape, place)
    number = program.producer.get(slot)
    if element_type is None and (number is None or program.instructions[number].region is not None):
        raise InputError(f"{place} cannot be set: its element type is not known before it runs")
    return Override(place, program, slot, loops, iterations, array, element_type is not None)


def _may_be_shorter(plan: Plan, program: Program, slot: Slot) -> bool:
    """Return True if a value depends on joined loop outputs, whose inferred length counts
    iterations that may not run.
    """
    joined = {
        output.slot
        for _, instruction in plan.regions
        if isinstance(region := instruction.region, LoopRegion)
        and region.condition_result is not None
        for output in region.outputs
        if isinstance(output, Concatenated)
    }
    return bool(joined) and not joined.isdisjoint(backward_slice(program, slot))


def _convert_value(
    value: Any, element_type: ElementType | None, shape: PartialShape, place: str
) -> Any:
    """Return the value in the machine's representation: a read-only copy."""
    array = np.array(convert_to(value, element_type, shape, place))
    if element_type is None and array.dtype.kind not in "biufV":
        raise InputError(f"{place}: expected numbers or truth values, got {array.dtype}")
    array.flags.writeable = False
    return settle(array)


def _graph_of(plan: Plan, address: Address) -> tuple[Program, tuple[Program, ...], tuple[int, ...]]:
    """Return the graph of an address, and the bodies and iterations of the enclosing loops."""
    if address.names_a_graph:
        raise AddressError(f"{address} names a graph, not a value: add the name of a node")
    program, loops, iterations = plan.main, list[Program](), list[int]()
    for owner, body in zip(address.segments[1:-1:2], address.segments[2::2], strict=True):
        number = region_number(program, owner.label)
        region = None if number is None else program.instructions[number].region
        if region is None:
            raise AddressError(
                f"there is no {shorten(decode(owner.label))!r} with a body "
                f"in {readable(program.address)}"
            )
        inner = body_of(region, body.label)
        if inner is None:
            raise AddressError(
                f"{shorten(decode(owner.label))!r} in {readable(program.address)} "
                f"has no body {shorten(decode(body.label))!r}"
            )
        if isinstance(region, LoopRegion):
            loops.append(inner)
            iterations.append(_iteration(address, owner))
        elif owner.iteration is not None:
            raise AddressError(
                f"{readable(str(address))}: {shorten(decode(owner.label))!r} is not a loop, "
                f"and so has no iteration {owner}"
            )
        program = inner
    if address.segments[-1].iteration is not None:
        raise AddressError(
            f"{address} names an iteration, not a value: add the body and the name of a node in it"
        )
    return program, tuple(loops), tuple(iterations)


def _iteration(address: Address, owner: Segment) -> int:
    if owner.iteration is None or owner.iteration == ANY_ITERATION:
        raise AddressError(
            f"{readable(str(address))} does not say in which iteration of "
            f"{shorten(decode(owner.label))!r} the value is to be set: "
            f"write {shorten(owner.label)}[0] for the first"
        )
    return owner.iteration

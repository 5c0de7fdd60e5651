"""Provenance of a value: back through operations, back edges, slices, branches and variables to
inputs and constants.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from loopscope.debug.lookup import value_names
from loopscope.debug.overrides_by_address import is_changed
from loopscope.debug.run import Run
from loopscope.errors import AddressError
from loopscope.executor.plan.body_ports import CarriedValue, Concatenated, Invariant, Sliced
from loopscope.executor.plan.plan import ABSENT, Branch, CallRegion, IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.index_provenance import Index, TensorPart, moves, part_of, source_elements
from loopscope.explain.indirect_sources import Pieces, Writers, pieces, read_part, writes
from loopscope.ir.address import Address

Role = Literal[
    "operand",
    "back edge",
    "initial value",
    "slice",
    "invariant",
    "branch",
    "call",
    "last value",
    "concatenated",
    "assigned",
    "condition",
    "trip count",
]
BY_HAND = "changed by you"
_MAX_PIECES = 64


@dataclass(frozen=True, slots=True)
class ProvenanceLink:
    """A value from which another was made, or that decided how often a loop ran."""

    address: str
    role: Role
    part: TensorPart | None = None
    """Part of the value that was used; None for the whole value, or if it is unknown."""


@dataclass(frozen=True, slots=True)
class ProvenanceStep:
    """A value of a provenance and the values it was made from."""

    address: str
    operation: str
    """Operation type; ``Parameter`` for inputs, ``Const`` for constants, ``BY_HAND`` for values set
    by hand.
    """
    links: tuple[ProvenanceLink, ...]
    distance: int
    """Number of steps from the requested value."""
    left_out: int = 0
    """Number of earlier pieces of a concatenated value that are not among the links."""
    part: TensorPart | None = None
    """Part of the value that the step describes; None for the whole value."""


@dataclass(frozen=True, slots=True)
class SlotPart:
    """A slot of one row, with a part of its value; None for the whole value."""

    program: Program
    row: int
    slot: Slot
    part: TensorPart | None = None


def provenance(
    run: Run, address: str, limit: int = 500, *, part: Index = ()
) -> tuple[ProvenanceStep, ...]:
    """Return the values that the value at an address depends on, nearest first, at most ``limit``.

    ``part`` selects elements: ``(2, slice(0, 4))`` as in ``value[2, 0:4]``. The values that decided
    how often a loop ran follow its outputs. A Const condition is omitted, because it decides
    nothing. Raise ``AddressError`` or ``ValueUnavailable`` if the value does not exist,
    ``EngineError`` if it does not have the part.
    """
    walk = ProvenanceWalk(run)
    start = walk.place(address)
    start = replace(start, part=part_of(walk.value(start), part))
    distance = {start: 0}
    waiting = deque([start])
    steps: list[ProvenanceStep] = []
    while waiting and len(steps) < limit:
        place = waiting.popleft()
        links = list(walk.links(place))
        step_links = tuple(
            ProvenanceLink(walk.address(source), role, source.part) for source, role in links
        )
        steps.append(
            ProvenanceStep(
                walk.address(place),
                walk.operation(place),
                step_links,
                distance[place],
                walk.left_out(place),
                place.part,
            )
        )
        for source, _ in links:
            if source not in distance:
                distance[source] = distance[place] + 1
                waiting.append(source)
    return tuple(steps)


class ProvenanceWalk:
    """Steps from any value of a run back to the values it was made from."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.timeline = run.timeline
        self._names: dict[int, Mapping[Slot, str]] = {}

    @cached_property
    def _writers(self) -> Writers:
        return Writers(self.run)

    def place(self, address: str) -> SlotPart:
        run = self.run
        run.value(address)
        parsed = Address.parse(address)
        program, row = run.rows_of(parsed)
        layer = program.layer_of_label.get(parsed.segments[-1].label)
        if layer is None:
            raise AddressError(f"there is no {parsed.segments[-1].label!r} in {program.address}")
        return SlotPart(program, row, program.slots[layer, parsed.output])

    def address(self, place: SlotPart) -> str:
        names = self._names.get(place.program.index)
        if names is None:
            names = self._names[place.program.index] = value_names(place.program)
        return f"{self.timeline.address(place.program, place.row)}/{names[place.slot]}"

    def operation(self, place: SlotPart) -> str:
        if is_changed(self.run, place.program, place.row, place.slot):
            return BY_HAND
        number = place.program.producer.get(place.slot)
        if number is not None:
            return place.program.instructions[number].node.type
        return "Parameter" if place.slot in set(place.program.parameters.values()) else "Const"

    def value(self, place: SlotPart) -> Any:
        """Return the whole value as the run stores it; None for an omitted input."""
        if place.slot == ABSENT:
            return None
        return self.run.values.get(self.timeline, place.program, place.row, place.slot)

    def part_value(self, place: SlotPart) -> Any:
        """Return the part of the value that a place refers to."""
        value = self.value(place)
        if place.part is None or value is None:
            return value
        return (
            value[slice(*place.part.ranges[0])]
            if isinstance(value, tuple)
            else np.asarray(value)[place.part.slices]
        )

    def links(self, place: SlotPart) -> Iterator[tuple[SlotPart, Role]]:
        """Yield the values from which a value was made, and those that decided how often a loop
        ran.

        Yield nothing if the value was set by hand.
        """
        if not self._is_changed(place):
            yield from self.sources_of(place)
            yield from self._deciding_values(place)

    def sources_of(self, place: SlotPart) -> Iterator[tuple[SlotPart, Role]]:
        """Yield the values from which a value was made, and the condition of the If that chose it.

        Yield nothing if the value was set by hand or omitted.
        """
        if not self._is_changed(place):
            yield from (
                (source, role)
                for source, role in self._direct_sources(place)
                if source.slot != ABSENT
            )

    def _direct_sources(self, place: SlotPart) -> Iterator[tuple[SlotPart, Role]]:
        number = place.program.producer.get(place.slot)
        if number is None:
            yield from self._parameter_links(place)
            return
        match place.program.instructions[number].region:
            case None:
                yield from self._operands(place, number)
            case LoopRegion() as region:
                yield from self._loop_links(place, region)
            case IfRegion() as region:
                program, row = self.timeline.executions.branch(region, place.row)
                branch = region.then if program is region.then.program else region.otherwise
                yield (
                    SlotPart(
                        program, row, branch.results[region.outputs.index(place.slot)], place.part
                    ),
                    "branch",
                )
                yield SlotPart(place.program, place.row, region.condition), "condition"
            case CallRegion() as region:
                result = region.branch.results[region.outputs.index(place.slot)]
                yield SlotPart(region.branch.program, place.row, result, place.part), "call"

    def left_out(self, place: SlotPart) -> int:
        """Return the number of pieces of a concatenated value that exceed the limit of links."""
        number = place.program.producer.get(place.slot)
        region = place.program.instructions[number].region if number is not None else None
        if not isinstance(region, LoopRegion) or self._is_changed(place):
            return 0
        all_pieces = self._pieces(place, region)
        return 0 if all_pieces is None else max(0, len(all_pieces.rows) - _MAX_PIECES)

    def _is_changed(self, place: SlotPart) -> bool:
        return is_changed(self.run, place.program, place.row, place.slot)

    # -- operations

    def _operands(self, place: SlotPart, number: int) -> Iterator[tuple[SlotPart, Role]]:
        program, row = place.program, place.row
        instruction = program.instructions[number]
        if instruction.variable is not None:
            yield from self._variable_source(place, number)
            return
        operands = [SlotPart(program, row, slot) for slot in instruction.inputs]
        if place.part is None and not moves(instruction):
            yield from (
                (operand, "operand")
                for operand in dict.fromkeys(operands)
                if operand.slot != ABSENT
            )
            return
        output = instruction.outputs.index(place.slot)
        sources = source_elements(
            instruction,
            [self.value(operand) for operand in operands],
            self.value(place),
            output,
            place.part,
        )
        yield from dict.fromkeys(
            (replace(operands[index], part=part), "operand") for index, part in sources
        )

    def _variable_source(self, place: SlotPart, number: int) -> Iterator[tuple[SlotPart, Role]]:
        """Yield the source of an Assign or ReadValue.

        An Assign passes its input on. For a ReadValue the source is the output of the last Assign
        before it, or the Assign's input if the output was set by hand: the variable stores the
        input.
        """
        program, row = place.program, place.row
        writer = None if writes(program, number) else self._writers.before(program, row, number)
        if writer is None:
            for slot in program.instructions[number].inputs[:1]:
                yield SlotPart(program, row, slot, place.part), "operand"
            return
        program, row, number = writer
        instruction = program.instructions[number]
        candidates = [
            SlotPart(program, row, slot, place.part)
            for slot in (*instruction.outputs[:1], instruction.inputs[0])
        ]
        yield (
            next(
                candidate
                for candidate in candidates
                if candidate is candidates[-1] or not self._is_changed(candidate)
            ),
            "assigned",
        )

    # -- loops

    def _loop_links(self, place: SlotPart, region: LoopRegion) -> Iterator[tuple[SlotPart, Role]]:
        output = next(port for port in region.outputs if port.slot == place.slot)
        first, end = self.timeline.executions.rows_of(region, place.row)
        all_pieces = self._pieces(place, region)
        if all_pieces is not None:
            for row in all_pieces.rows[-_MAX_PIECES:]:
                yield (
                    SlotPart(region.program, row, output.result, all_pieces.part_at(row)),
                    "concatenated",
                )
        elif first < end:
            yield SlotPart(region.program, end - 1, output.result, place.part), "last value"
        elif not isinstance(output, Concatenated) and output.initial is not None:
            yield SlotPart(place.program, place.row, output.initial, place.part), "initial value"

    def _pieces(self, place: SlotPart, region: LoopRegion) -> Pieces | None:
        """Return the pieces that a concatenated value was joined from; None for other values."""
        output = next(port for port in region.outputs if port.slot == place.slot)
        if not isinstance(output, Concatenated):
            return None
        rows = range(*self.timeline.executions.rows_of(region, place.row))
        return pieces(self.run, region, output, rows, place.part if rows else None)

    def _deciding_values(self, place: SlotPart) -> Iterator[tuple[SlotPart, Role]]:
        """Yield the values that decided how often a loop ran.

        For an output of a loop: trip count and conditions. For a condition: the condition before
        it.
        """
        number = place.program.producer.get(place.slot)
        region = place.program.instructions[number].region if number is not None else None
        if isinstance(region, LoopRegion):
            yield from self._loop_deciding_values(place, region)
        enclosing = place.program.loop
        if (
            enclosing is not None
            and place.slot == enclosing.condition_result
            and self._may_vary(place, enclosing)
        ):
            _, iteration = self.timeline.executions.parent_row(place.program, place.row)
            if iteration:
                yield SlotPart(place.program, place.row - 1, place.slot), "condition"

    def _loop_deciding_values(
        self, place: SlotPart, region: LoopRegion
    ) -> Iterator[tuple[SlotPart, Role]]:
        if region.trip_count is not None:
            yield SlotPart(place.program, place.row, region.trip_count), "trip count"
        if region.condition is not None:
            initial = SlotPart(place.program, place.row, region.condition)
            if not self.is_fixed(initial):
                yield initial, "condition"
        first, end = self.timeline.executions.rows_of(region, place.row)
        ended_by = self.run.control_flow.record_of(region, place.row, "").ended_by
        last = end - 1 if ended_by == "condition" else end - 2
        if region.condition_result is not None and last >= first:
            condition = SlotPart(region.program, last, region.condition_result)
            if not self.is_fixed(condition):
                yield condition, "condition"

    def _may_vary(self, place: SlotPart, region: LoopRegion) -> bool:
        """Return True if a value of a body may differ between iterations."""
        return not self.is_fixed(place) and not isinstance(
            region.binding.get(place.slot), Invariant
        )

    def is_fixed(self, place: SlotPart) -> bool:
        """Return True if a value is a Const that was not set by hand."""
        is_computed = (
            place.slot in place.program.producer or place.slot in place.program.parameter_slots
        )
        return not is_computed and not self._is_changed(place)

    # -- Parameters

    def _parameter_links(self, place: SlotPart) -> Iterator[tuple[SlotPart, Role]]:
        program = place.program
        if program.parent is None or place.slot not in program.parameter_slots:
            return
        outer_row, iteration = self.timeline.executions.parent_row(program, place.row)
        outer = SlotPart(program.parent, outer_row, ABSENT, place.part)
        if program.loop is not None:
            yield from self._loop_parameter(place, outer, program.loop, iteration or 0)
        elif program.branch is not None:
            yield from _bound_source(
                place,
                outer,
                program.branch,
                "branch" if isinstance(program.region, IfRegion) else "call",
            )

    def _loop_parameter(
        self, place: SlotPart, outer: SlotPart, region: LoopRegion, iteration: int
    ) -> Iterator[tuple[SlotPart, Role]]:
        match region.binding.get(place.slot):
            case CarriedValue() as carried:
                if iteration:
                    yield replace(place, row=place.row - 1, slot=carried.result), "back edge"
                elif carried.initial is not None and carried.initial in outer.program.owned:
                    yield replace(outer, slot=carried.initial), "initial value"
                # Otherwise no value made it: zeros, or the omitted condition of an ONNX Loop, which
                # is true.
            case Sliced() as sliced:
                source = replace(outer, slot=sliced.source)
                yield (
                    replace(
                        source,
                        part=read_part(region, sliced, self.value(source), iteration, place.part),
                    ),
                    "slice",
                )
            case Invariant() as invariant:
                yield replace(outer, slot=invariant.source), "invariant"
            case _:
                return


def _bound_source(
    place: SlotPart, outer: SlotPart, branch: Branch, role: Role
) -> Iterator[tuple[SlotPart, Role]]:
    """Yield the outer value that a Parameter of a branch or function received."""
    for parameter, slot in branch.bindings:
        if parameter == place.slot:
            yield replace(outer, slot=slot), role

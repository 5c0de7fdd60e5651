"""Where a value came from: back through operations, back edges, slices and branches to inputs and constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.debug.changes import is_changed
from engine.debug.debugger import Debugger
from engine.debug.names import value_names
from engine.errors import AddressError
from engine.ir.address import Address
from engine.run.plan import ABSENT, Concatenated, IfRegion, LoopRegion, Program

Role = Literal[
    "operand", "back edge", "initial value", "slice", "invariant", "branch", "last value", "concatenated", "condition", "trip count"
]
BY_HAND = "changed by you"
_MOST_PIECES = 64


@dataclass(frozen=True, slots=True)
class Link:
    """One value that another was made from."""

    address: str
    role: Role


@dataclass(frozen=True, slots=True)
class Step:
    """One value of a genealogy and what it was made from."""

    address: str
    operation: str
    """Operation type; ``Parameter`` for inputs, ``Const`` for constants, ``BY_HAND`` for what was set so."""
    links: tuple[Link, ...]
    distance: int
    """Steps from the value that was asked about."""
    left_out: int = 0
    """Of a concatenated value: earlier pieces that are not among the links."""


@dataclass(frozen=True, slots=True)
class Place:
    """A slot of one row."""

    program: Program
    row: int
    slot: int


def genealogy(debugger: Debugger, address: str, most: int = 500) -> tuple[Step, ...]:
    """The values that the value at an address depends on, nearest first, at most so many.

    ``AddressError`` or ``ValueUnavailable`` when the value does not exist.
    """
    walk = Walk(debugger)
    start = walk.place(address)
    distance = {start: 0}
    waiting = [start]
    steps: list[Step] = []
    while waiting and len(steps) < most:
        place = waiting.pop(0)
        links = list(walk.links(place))
        told = tuple(Link(walk.address(one), role) for one, role in links)
        steps.append(Step(walk.address(place), walk.operation(place), told, distance[place], walk.left_out(place)))
        for one, _ in links:
            if one not in distance:
                distance[one] = distance[place] + 1
                waiting.append(one)
    return tuple(steps)


class Walk:
    """One step back from any value of a run to what it was made from."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.timeline = debugger.timeline
        self._names: dict[int, Mapping[int, str]] = {}

    def place(self, address: str) -> Place:
        debugger = self.debugger
        debugger.value(address)
        parsed = Address.parse(address)
        program, row = debugger.rows_of(parsed)
        layer = program.layer_of_label.get(parsed.segments[-1].label)
        if layer is None:
            raise AddressError(f"there is no {parsed.segments[-1].label!r} in {program.address}")
        return Place(program, row, program.slots[layer, parsed.output])

    def address(self, place: Place) -> str:
        names = self._names.get(place.program.index)
        if names is None:
            names = self._names[place.program.index] = value_names(place.program)
        return f"{self.timeline.address(place.program, place.row)}/{names[place.slot]}"

    def operation(self, place: Place) -> str:
        if is_changed(self.debugger, place.program, place.row, place.slot):
            return BY_HAND
        number = place.program.producer.get(place.slot)
        if number is not None:
            return place.program.instructions[number].node.type
        return "Parameter" if place.slot in set(place.program.parameters.values()) else "Const"

    def links(self, place: Place) -> Iterator[tuple[Place, Role]]:
        """What a value was made from; nothing where it was set by hand."""
        if is_changed(self.debugger, place.program, place.row, place.slot):
            return
        number = place.program.producer.get(place.slot)
        if number is None:
            yield from self._parameter_links(place)
            return
        instruction = place.program.instructions[number]
        match instruction.region:
            case None:
                for slot in dict.fromkeys(instruction.inputs):
                    if slot != ABSENT:
                        yield Place(place.program, place.row, slot), "operand"
            case LoopRegion() as region:
                yield from self._loop_links(place, region)
            case IfRegion() as region:
                program, row = self.timeline.steps.branch(region, place.row)
                branch = region.then if program is region.then.program else region.otherwise
                yield Place(program, row, branch.results[region.outputs.index(place.slot)]), "branch"
                yield Place(place.program, place.row, region.condition), "condition"
            case _ as region:
                yield Place(region.branch.program, place.row, region.branch.results[region.outputs.index(place.slot)]), "branch"

    def left_out(self, place: Place) -> int:
        """How many pieces of a concatenated value are too many to be links."""
        number = place.program.producer.get(place.slot)
        region = place.program.instructions[number].region if number is not None else None
        if not isinstance(region, LoopRegion) or is_changed(self.debugger, place.program, place.row, place.slot):
            return 0
        first, end = self.timeline.executions.rows_of(region, place.row)
        is_joined = any(isinstance(output, Concatenated) and output.slot == place.slot for output in region.outputs)
        return max(0, end - first - _MOST_PIECES) if is_joined else 0

    def _loop_links(self, place: Place, region: LoopRegion) -> Iterator[tuple[Place, Role]]:
        output = next(one for one in region.outputs if one.slot == place.slot)
        first, end = self.timeline.executions.rows_of(region, place.row)
        if first == end:
            initial = None if isinstance(output, Concatenated) else output.initial
            if initial is not None:
                yield Place(place.program, place.row, initial), "initial value"
        elif isinstance(output, Concatenated):
            for row in range(max(first, end - _MOST_PIECES), end):
                yield Place(region.program, row, output.result), "concatenated"
        else:
            yield Place(region.program, end - 1, output.result), "last value"

    def _parameter_links(self, place: Place) -> Iterator[tuple[Place, Role]]:
        program = place.program
        if program.parent is None or place.slot not in set(program.parameters.values()):
            return
        outer_row, iteration = self.timeline.executions.parent_row(program, place.row)
        match program.parent.instructions[program.owner].region:
            case LoopRegion() as region:
                found = self._loop_parameter(place, region, iteration or 0)
            case IfRegion() as region:
                branch = region.then if program is region.then.program else region.otherwise
                found = next(((source, "branch") for parameter, source in branch.bindings if parameter == place.slot), None)
            case _:
                found = None
        if found is None:
            return
        slot, role = found
        if role == "initial value" and slot not in program.parent.owned:
            return  # the condition that an ONNX Loop leaves out: true, and made by nothing
        if role == "back edge":
            yield Place(program, place.row - 1, slot), role
        else:
            yield Place(program.parent, outer_row, slot), role

    @staticmethod
    def _loop_parameter(place: Place, region: LoopRegion, iteration: int) -> tuple[int, Role] | None:
        for carried in region.carried:
            if carried.parameter == place.slot:
                if iteration:
                    return carried.result, "back edge"
                return None if carried.initial is None else (carried.initial, "initial value")
        for sliced in region.sliced:
            if sliced.parameter == place.slot:
                return sliced.source, "slice"
        for parameter, source in region.invariants:
            if parameter == place.slot:
                return source, "invariant"
        return None

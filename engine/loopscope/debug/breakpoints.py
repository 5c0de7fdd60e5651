"""Where a run stops: at a place or a pattern of places, where a condition holds, at a NaN, an
infinity or a change of shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from loopscope.debug.expression import Expression, parse
from loopscope.debug.suggestions import body_of, label_of, near, slot_of
from loopscope.errors import AddressError, ExpressionError, elided, listed, shorten
from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.ir.address import ANY_ITERATION, Address, decode, must_be_text
from loopscope.ir.readable import readable

ITERATION = "iteration"
"""The name of the iteration of the innermost open loop in a condition."""
BreakpointKind = Literal["address", "nan", "infinity", "shape"]


@dataclass(frozen=True, slots=True)
class Pause:
    """A breakpoint as it was set, which a link and a saved run keep."""

    pattern: str
    condition: str
    kind: BreakpointKind
    on: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Breakpoint:
    """One breakpoint; it stops a run before the place runs (address), or after an operation whose
    value is unusual (the others).

    A condition that names the operation of the place itself is asked once that has run.
    """

    id: int
    pattern: str
    """An address, perhaps with ``[*]``; iterations left out match all. Empty: everywhere."""
    kind: BreakpointKind
    condition: Expression | None
    program: Program | None
    """The graph that the pattern is in; None: every graph."""
    position: int | None
    """The instruction there, or the one after it; None: every one."""
    iterations: tuple[int | None, ...] = ()
    """For each open loop, outermost first, the iteration that it must be in; None: any."""
    after: bool = False
    """Whether it stops when the place has run."""
    on: bool = True
    """One that is switched off stops nothing."""

    def __repr__(self) -> str:
        return f"<breakpoint {self.id}: {self.describe()}{'' if self.on else ' (off)'}>"

    @property
    def as_set(self) -> Pause:
        return Pause(
            self.pattern, self.condition.text if self.condition else "", self.kind, self.on
        )

    def describe(self) -> str:
        before = "after" if self.after else "before"
        what = {
            "address": before,
            "nan": "NaN made at",
            "infinity": "infinity made at",
            "shape": "change of shape at",
        }[self.kind]
        condition = f" when {self.condition.text}" if self.condition else ""
        return f"{what} {readable(self.pattern) if self.pattern else 'any operation'}{condition}"


@dataclass(eq=False, repr=False)
class Breakpoints:
    """The breakpoints of one debugger."""

    plan: Plan
    _items: dict[int, Breakpoint] = field(default_factory=dict[int, Breakpoint])
    _next: int = 1

    def add(
        self,
        pattern: str = "",
        condition: str = "",
        kind: BreakpointKind = "address",
        *,
        on: bool = True,
    ) -> Breakpoint:
        """A new breakpoint; ``AddressError`` or ``ExpressionError`` when it can never hold."""
        must_be_text(pattern)
        if not pattern and not condition and kind == "address":
            raise AddressError("a breakpoint needs a place or a condition")
        made = replace(make(self.plan, self._next, pattern, condition, kind), on=on)
        self._items[made.id] = made
        self._next += 1
        return made

    def restore(self, pause: Pause) -> Breakpoint:
        """Adds one as it was set; errors as of ``add``."""
        return self.add(pause.pattern, pause.condition, pause.kind, on=pause.on)

    def toggle(self, kind: BreakpointKind) -> None:
        """Remove the breakpoints of a kind that stop everywhere, or add one if there is none."""
        everywhere = [
            one.id
            for one in self.items()
            if one.kind == kind and not one.pattern and one.condition is None
        ]
        for id in everywhere:
            self.remove(id)
        if not everywhere:
            self.add(kind=kind)

    def has(self, kind: BreakpointKind) -> bool:
        """Return whether a breakpoint of a kind stops everywhere; one that is switched off
        counts.
        """
        return any(
            one.kind == kind and not one.pattern and one.condition is None for one in self.items()
        )

    def remove(self, id: int) -> None:
        """Takes a breakpoint away; nothing happens when it is gone already."""
        self._items.pop(id, None)

    def switch(self, id: int, on: bool) -> None:
        """Switches a breakpoint on or off; nothing happens when it is gone already."""
        if id in self._items:
            self._items[id] = replace(self._items[id], on=on)

    def clear(self) -> None:
        self._items.clear()

    def items(self) -> tuple[Breakpoint, ...]:
        return tuple(self._items.values())

    @property
    def on(self) -> tuple[Breakpoint, ...]:
        """Those that stop a run: the ones that are not switched off."""
        return tuple(one for one in self.items() if one.on)

    def __repr__(self) -> str:
        told = (f"{one.id} {one.describe()}{'' if one.on else ' (off)'}" for one in self)
        return f"<breakpoints: {'; '.join(told) or 'none'}>"

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(self.items())

    def __len__(self) -> int:
        return len(self._items)


def goal(plan: Plan, place: str) -> Breakpoint:
    """Where a run is to go: a breakpoint without a condition; ``AddressError`` for an address
    that names no place.
    """
    must_be_text(place)
    if not place.strip():
        raise AddressError(
            "no place is named: an address such as main/while_3[2]/body/Add_1 is expected"
        )
    return make(plan, 0, place, "", "address")


def make(plan: Plan, id: int, pattern: str, condition: str, kind: BreakpointKind) -> Breakpoint:
    """A breakpoint from its texts."""
    expression = parse(condition) if condition.strip() else None
    if not pattern.strip():
        _check_names(expression, plan.programs, "the model")
        return Breakpoint(id, "", kind, expression, None, None)
    address = Address.parse(pattern)
    program, position, iterations = find(plan, address)
    _check_names(
        expression, program.around(), f"{readable(program.address)} and the graphs around it"
    )
    after = (
        kind == "address"
        and expression is not None
        and _names_itself(expression, program, position, address)
    )
    return Breakpoint(
        id,
        pattern.strip(),
        kind,
        expression,
        program,
        position + after if position is not None else None,
        iterations,
        after,
    )


def _check_names(condition: Expression | None, programs: Iterable[Program], place: str) -> None:
    """``ExpressionError`` for a name that has a value in none of the graphs."""
    programs = tuple(programs)
    for name in () if condition is None else sorted(condition.names):
        if name == ITERATION:
            if not any(_is_of_loop(one) for one in programs):
                raise ExpressionError(f"there is no iteration in {place}: no loop is open there")
        elif all(slot_of(program, name) is None for program in programs):
            labels = [label for one in programs for label in one.layer_of_label]
            raise ExpressionError(
                f"there is no value {shorten(name, 60)!r} in {place}; there are {near(name, labels)}"
            )


def _is_of_loop(program: Program) -> bool:
    return program.parent is not None and isinstance(program.region, LoopRegion)


def _names_itself(
    condition: Expression, program: Program, position: int | None, address: Address
) -> bool:
    label = address.segments[-1].label
    at = program.instructions[position : position + 1] if position is not None else ()
    if not at or at[0].label != label:
        return False
    return any(
        (label_of(program, name) or "").partition(":")[0] == label for name in condition.names
    )


def find(plan: Plan, address: Address) -> tuple[Program, int | None, tuple[int | None, ...]]:
    """The graph, the instruction (None: a body as a whole), and the iteration asked for at each
    loop of the way.
    """
    program = plan.main
    iterations: list[int | None] = []
    segments = address.segments[1:]
    place = 0
    while place < len(segments):
        segment = segments[place]
        number = _instruction(plan, program, segment.label)
        region = program.instructions[number].region
        wanted = None if segment.iteration in (None, ANY_ITERATION) else segment.iteration
        if place + 1 == len(segments):
            if region is None or segment.iteration is None or len(region.programs) > 1:
                return program, number, tuple(iterations)
            return region.programs[0], 0, (*iterations, wanted)
        if region is None:
            raise AddressError(
                f"{decode(segment.label)!r} in {readable(program.address)} has no body"
            )
        name = segments[place + 1].label
        inner = body_of(region, name)
        if inner is None:
            raise AddressError(
                f"{decode(segment.label)!r} in {readable(program.address)} has no body {elided(name)!r}"
            )
        if region.kind not in ("If", "Function"):
            iterations.append(wanted)
        program = inner
        place += 2
    return (
        program,
        (None if program.parent is None else len(program.instructions)),
        tuple(iterations),
    )


def _instruction(plan: Plan, program: Program, label: str) -> int:
    for number, instruction in enumerate(program.instructions):
        if instruction.label == label:
            return number
    if label in program.layer_of_label:
        raise AddressError(
            f"{decode(label)!r} in {readable(program.address)} is not an operation that runs: {_when(program, label)}"
        )
    elsewhere = [
        readable(f"{one.address}/{label}")
        for one in plan.programs
        if any(inner.label == label for inner in one.instructions)
    ]
    if elsewhere:
        raise AddressError(
            f"there is no {elided(decode(label))!r} in {readable(program.address)}; there is {listed(elsewhere, 3)}"
        )
    there = near(label, [one.label for one in program.instructions])
    raise AddressError(
        f"there is no {elided(decode(label))!r} in {readable(program.address)}; it has {there}"
    )


def _when(program: Program, label: str) -> str:
    """When the value of a node that does not run is there."""
    slot = program.results.get(program.layer_of_label[label])
    number = None if slot is None else program.producer.get(slot)
    if number is None:
        return "its value is there when its graph begins"
    return f"it is the value of {program.instructions[number].label!r}, which does"

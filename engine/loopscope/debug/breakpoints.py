"""Breakpoints, which stop a run at a place or on a condition, and watched expressions."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from loopscope.debug.expression import Expression, parse
from loopscope.debug.lookup import body_of, label_of, near, slot_of
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.errors import AddressError, EngineError, ExpressionError, elided, listed, shorten
from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.ir.address import ANY_ITERATION, ROOT, Address, decode, must_be_text
from loopscope.ir.address_search import full_address
from loopscope.ir.readable import STEP, readable

ITERATION = "iteration"
"""Name of the iteration of the innermost open loop in a condition."""
BreakpointKind = Literal["address", "nan", "infinity", "shape"]


@dataclass(frozen=True, slots=True)
class Pause:
    """Settings of a breakpoint, as stored in links and saved runs."""

    pattern: str
    condition: str
    kind: BreakpointKind
    on: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Breakpoint:
    """One breakpoint. Kind ``address`` stops before the operation runs; the other kinds stop after
    an unusual value.

    A condition that names the operation itself is evaluated after the operation has run.
    """

    id: int
    pattern: str
    """An address, which may contain ``[*]``. Omitted iterations match all. Empty means
    everywhere.
    """
    kind: BreakpointKind
    condition: Expression | None
    program: Program | None
    """The graph of the pattern; None for every graph."""
    position: int | None
    """Position of the instruction, or of the next one if ``after``; None for every instruction."""
    iterations: tuple[int | None, ...] = ()
    """Required iteration of each open loop, outermost first; None for any."""
    after: bool = False
    """True if the run stops after the operation."""
    on: bool = True
    """False if the breakpoint is switched off and does not stop a run."""

    def __repr__(self) -> str:
        return f"<breakpoint {self.id}: {self.describe()}{'' if self.on else ' (off)'}>"

    @property
    def as_set(self) -> Pause:
        return Pause(
            self.pattern, self.condition.text if self.condition else "", self.kind, self.on
        )

    def describe(self) -> str:
        side = "after" if self.after else "before"
        event = {
            "address": side,
            "nan": "NaN made at",
            "infinity": "infinity made at",
            "shape": "change of shape at",
        }[self.kind]
        condition = f" when {self.condition.text}" if self.condition else ""
        return f"{event} {readable(self.pattern) if self.pattern else 'any operation'}{condition}"


@dataclass(eq=False, repr=False)
class Breakpoints:
    """Breakpoints of one debugger."""

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
        """Add and return a breakpoint; ``AddressError`` or ``ExpressionError`` if it can never
        hold.
        """
        must_be_text(pattern)
        if not pattern and not condition and kind == "address":
            raise AddressError("a breakpoint needs a place or a condition")
        breakpoint = replace(make(self.plan, self._next, pattern, condition, kind), on=on)
        self._items[breakpoint.id] = breakpoint
        self._next += 1
        return breakpoint

    def restore(self, pause: Pause) -> Breakpoint:
        """Add a breakpoint from its settings; raise the errors of ``add``."""
        return self.add(pause.pattern, pause.condition, pause.kind, on=pause.on)

    def toggle(self, kind: BreakpointKind) -> None:
        """Remove the breakpoints of a kind that stop everywhere, or add one if none exists."""
        everywhere = [
            breakpoint.id
            for breakpoint in self.items()
            if breakpoint.kind == kind and not breakpoint.pattern and breakpoint.condition is None
        ]
        for id in everywhere:
            self.remove(id)
        if not everywhere:
            self.add(kind=kind)

    def has(self, kind: BreakpointKind) -> bool:
        """Return True if a breakpoint of a kind stops everywhere, even if it is switched off."""
        return any(
            breakpoint.kind == kind and not breakpoint.pattern and breakpoint.condition is None
            for breakpoint in self.items()
        )

    def remove(self, id: int) -> None:
        """Remove a breakpoint, if it exists."""
        self._items.pop(id, None)

    def switch(self, id: int, on: bool) -> None:
        """Switch a breakpoint on or off, if it exists."""
        if id in self._items:
            self._items[id] = replace(self._items[id], on=on)

    def clear(self) -> None:
        self._items.clear()

    def items(self) -> tuple[Breakpoint, ...]:
        return tuple(self._items.values())

    @property
    def on(self) -> tuple[Breakpoint, ...]:
        """Breakpoints that are not switched off."""
        return tuple(breakpoint for breakpoint in self.items() if breakpoint.on)

    def __repr__(self) -> str:
        texts = (
            f"{breakpoint.id} {breakpoint.describe()}{'' if breakpoint.on else ' (off)'}"
            for breakpoint in self
        )
        return f"<breakpoints: {'; '.join(texts) or 'none'}>"

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(self.items())

    def __len__(self) -> int:
        return len(self._items)


def goal(plan: Plan, place: str) -> Breakpoint:
    """Return the target of a run as a breakpoint without a condition; ``AddressError`` for an
    unknown address.
    """
    must_be_text(place)
    if not place.strip():
        raise AddressError("expected an address such as main/while_3[2]/body/Add_1, got nothing")
    return make(plan, 0, place, "", "address")


def make(plan: Plan, id: int, pattern: str, condition: str, kind: BreakpointKind) -> Breakpoint:
    """Return a breakpoint from its texts."""
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
    """Raise ``ExpressionError`` for a name without a value in any of the graphs."""
    programs = tuple(programs)
    for name in () if condition is None else sorted(condition.names):
        if name == ITERATION:
            if not any(_is_of_loop(program) for program in programs):
                raise ExpressionError(f"there is no iteration in {place}: no loop is open there")
        elif all(slot_of(program, name) is None for program in programs):
            labels = [label for program in programs for label in program.layer_of_label]
            raise ExpressionError(
                f"there is no value {shorten(name, 60)!r} in {place}; "
                f"there are {near(name, labels)}"
            )


def _is_of_loop(program: Program) -> bool:
    return program.parent is not None and isinstance(program.region, LoopRegion)


def _names_itself(
    condition: Expression, program: Program, position: int | None, address: Address
) -> bool:
    label = address.segments[-1].label
    instructions = program.instructions[position : position + 1] if position is not None else ()
    if not instructions or instructions[0].label != label:
        return False
    return any(
        (label_of(program, name) or "").partition(":")[0] == label for name in condition.names
    )


def find(plan: Plan, address: Address) -> tuple[Program, int | None, tuple[int | None, ...]]:
    """Return the graph of an address, its instruction (None for a whole body), and the requested
    iteration of each loop.
    """
    program = plan.main
    iterations: list[int | None] = []
    segments = address.segments[1:]
    index = 0
    while index < len(segments):
        segment = segments[index]
        number = _instruction(plan, program, segment.label)
        region = program.instructions[number].region
        iteration = None if segment.iteration in (None, ANY_ITERATION) else segment.iteration
        if index + 1 == len(segments):
            if region is None or segment.iteration is None or len(region.programs) > 1:
                return program, number, tuple(iterations)
            return region.programs[0], 0, (*iterations, iteration)
        if region is None:
            raise AddressError(
                f"{decode(segment.label)!r} in {readable(program.address)} has no body"
            )
        name = segments[index + 1].label
        inner = body_of(region, name)
        if inner is None:
            raise AddressError(
                f"{decode(segment.label)!r} in {readable(program.address)} "
                f"has no body {elided(name)!r}"
            )
        if region.kind not in ("If", "Function"):
            iterations.append(iteration)
        program = inner
        index += 2
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
            f"{decode(label)!r} in {readable(program.address)} is not an operation that runs: "
            f"{_describe_availability(program, label)}"
        )
    elsewhere = [
        readable(f"{candidate.address}/{label}")
        for candidate in plan.programs
        if any(inner.label == label for inner in candidate.instructions)
    ]
    if elsewhere:
        raise AddressError(
            f"there is no {elided(decode(label))!r} in {readable(program.address)}; "
            f"there is {listed(elsewhere, 3)}"
        )
    names = near(label, [candidate.label for candidate in program.instructions])
    raise AddressError(
        f"there is no {elided(decode(label))!r} in {readable(program.address)}; it has {names}"
    )


def _describe_availability(program: Program, label: str) -> str:
    """Describe when the value of a node that does not run exists."""
    slot = program.results.get(program.layer_of_label[label])
    number = None if slot is None else program.producer.get(slot)
    if number is None:
        return "its value is there when its graph begins"
    return f"it is the value of {program.instructions[number].label!r}, which does"


class Watches:
    """Watched expressions of one run, by id."""

    def __init__(self, run: Run) -> None:
        # A weak reference avoids a cycle, so that the memory of a run is freed with its last
        # reference.
        self._run: Run = weakref.proxy(run)
        self._items: dict[int, Expression] = {}
        self._next = 1

    def __repr__(self) -> str:
        texts = (f"{id} {expression.text}" for id, expression in self._items.items())
        return f"<watches: {', '.join(texts) or 'none'}>"

    def add(self, expression: str) -> int:
        """Watch an expression and return its id; ``ExpressionError`` if it is outside the
        language.
        """
        self._items[self._next] = parse(expression)
        self._next += 1
        return self._next - 1

    def remove(self, id: int) -> None:
        """Stop watching an expression."""
        self._items.pop(id, None)

    def items(self) -> tuple[tuple[int, str], ...]:
        """Return the id and text of each watched expression."""
        return tuple((id, expression.text) for id, expression in self._items.items())

    def values(self) -> dict[int, np.ndarray | str]:
        """Return the value of each watched expression at the cursor, or a sentence that explains
        why it has none.
        """
        results: dict[int, np.ndarray | str] = {}
        for id, expression in self._items.items():
            try:
                results[id] = self.evaluate(expression)
            except EngineError as error:
                results[id] = str(error)
        return results

    def evaluate(self, expression: Expression | str) -> np.ndarray:
        """Return the value of an expression at the cursor. Names are nodes of the open graphs,
        innermost first, or whole addresses.
        """
        parsed = parse(expression) if isinstance(expression, str) else expression
        return as_public(parsed.value(self._lookup))

    def _lookup(self, name: str) -> Any:
        run = self._run
        open_graphs = run.frames()
        if name == ITERATION:
            iterations = [graph.iteration for graph in open_graphs if graph.iteration is not None]
            if not iterations:
                raise ExpressionError("there is no iteration outside a loop")
            return np.int64(iterations[-1])
        for graph in reversed(open_graphs):
            program = run.plan.program_by_address[graph.static]
            if (label := label_of(program, name)) is not None:
                return run.value(f"{graph.address}/{label}")
        if "/" in name or STEP in name:
            return run.value(full_address(run.model, name))
        hint = ": an address is written in backticks" if name == ROOT else ""
        raise AddressError(f"there is no {name!r} in the graphs that are open here{hint}")

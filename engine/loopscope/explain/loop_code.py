"""A loop in code: the lines before its body, and those after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from loopscope.errors import EngineError
from loopscope.executor.machine.regions import UNLIMITED, empty_join, is_true, trip_count
from loopscope.executor.plan.body_ports import Concatenated, LastValue
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, LoopRegion
from loopscope.explain.code_lines import CodeLine
from loopscope.explain.literals import array_text
from loopscope.explain.operands import Operands
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP, TENSOR_ITERATOR


@dataclass(eq=False)
class LoopCode:
    """The lines of one loop; its body's own come between ``opening`` and ``closing``."""

    operands: Operands
    region: LoopRegion
    address: str
    depth: int
    _go: str = ""
    """The identifier of the loop's condition; empty where the loop certainly starts."""
    _again: str = ""
    """The identifier of a condition that was set aside."""
    _collected: dict[int, str] = field(default_factory=dict[int, str])
    """By number of the output, the identifier of the list of its parts."""

    @property
    def pad(self) -> str:
        return "    " * self.depth

    @property
    def inside(self) -> str:
        return "    " * (self.depth + 1)

    def opening(self) -> Iterator[CodeLine]:
        """Initial values, the loop's own line, and what each iteration takes."""
        region, operands = self.region, self.operands
        for text in (*self._invariants(), *self._before()):
            yield self._line(self.pad, text)
        number = operands.identifiers.give("i")
        if region.condition is not None and not self._is_true(region.condition):
            self._go = operands.identifiers.give("go")
            yield self._line(self.pad, f"{self._go} = {operands.read(region.condition)}")
        counts = (
            region.counters or region.sliced or region.kind != LOOP or self._trips() != UNLIMITED
        )
        yield self._line(
            self.pad,
            f"for {number} in {self._count()}:" if counts else f"while {self._go or 'True'}:",
        )
        if self._go and counts:
            yield self._line(self.inside, f"if not {self._go}:")
            yield self._line(self.inside, "    break")
        yield from self._beginning(number)

    def closing(self) -> Iterator[CodeLine]:
        """What each iteration gives and hands to the next, whether there is one, and the
        outputs.
        """
        region = self.region
        for text in self._end():
            yield self._line(self.inside, text)
        if not region.program.instructions and not region.outputs:
            yield self._line(self.inside, "pass")
        again = region.condition_result
        decides = again is not None and not self._is_true(again)
        if again is not None and decides and self._go:
            yield self._line(self.inside, f"{self._go} = {self.operands.read(again)}")
        for text in self._back_edges():
            yield self._line(self.inside, text)
        if again is not None and decides and not self._go:
            yield self._line(self.inside, f"if not {self._again or self.operands.read(again)}:")
            yield self._line(self.inside, "    break")
        for text in self._after():
            yield self._line(self.pad, text)

    def _line(self, pad: str, text: str) -> CodeLine:
        return CodeLine(pad + text, self.address)

    def _invariants(self) -> Iterator[str]:
        """An invariant input gets no line: inside the loop it has the name that it has outside."""
        for invariant in self.region.invariants:
            outer = self.operands.read(invariant.source)
            text = self._entering(invariant.parameter, invariant.source, outer)
            if text == outer:
                self.operands.names[invariant.parameter] = text
            else:
                yield f"{self.operands.new(invariant.parameter)} = {text}"

    def _entering(self, parameter: Slot, source: int | None, text: str) -> str:
        """What a Parameter receives from a slot outside; converted where a TensorIterator's
        Parameter declares another type.
        """
        wanted = self.region.declared.get(parameter)
        same = wanted is None or source is None or self.operands.types.get(source) is wanted
        return text if same or wanted is None else f"converted({text}, {wanted.value!r})"

    def _before(self) -> Iterator[str]:
        """Initial values of what the loop carries, of its outputs, and empty lists for what it
        joins.
        """
        program = self.region.program
        for carried in self.region.carried:
            initial = (
                self.operands.zero(program, carried.layer)
                if carried.initial is None
                else self.operands.read(carried.initial)
            )
            yield f"{self.operands.new(carried.parameter)} = {self._entering(carried.parameter, carried.initial, initial)}"
        for unfed in self.region.unfed:
            yield f"{self.operands.new(unfed.parameter)} = {self.operands.zero(program, unfed.layer)}"
        for number, output in enumerate(self.region.outputs):
            name = self.operands.new(output.slot)
            if isinstance(output, LastValue):
                initial = (
                    self.operands.zero(program, output.layer)
                    if output.initial is None
                    else self.operands.read(output.initial)
                )
                yield f"{name} = {initial}"
            else:
                self._collected[number] = self.operands.identifiers.give(f"all_{name}")
                yield f"{self._collected[number]} = []"

    def _count(self) -> str:
        """What gives the numbers of the iterations."""
        least = [self._parts(number) for number in range(len(self.region.sliced))]
        most = f"min({', '.join(least)})" if len(least) > 1 else least[0] if least else ""
        if self.region.kind != LOOP:
            fixed = next(
                (
                    one
                    for one in self.region.outputs
                    if isinstance(one, Concatenated) and one.start >= 0 and one.end >= 0
                ),
                None,
            )
            return f"range({most or (1 if fixed is None else (abs(fixed.end - fixed.start) + 1) // fixed.part_size)})"
        trips = self._trips()
        if trips is not None and trips != UNLIMITED and not most:
            return f"range({trips})"
        text = (
            str(trips)
            if trips is not None
            else self.operands.read(self.region.trip_count or ABSENT)
        )
        text = (
            text
            if self.region.negative_is_no_limit or trips is not None
            else f"max(0, int({text}))"
        )
        return f"iterations({text}, {most})" if most else f"iterations({text})"

    def _trips(self) -> int | None:
        """The trip count where it is constant; the largest i64, which some frameworks write for
        no limit, is none.
        """
        if self.region.trip_count is None:
            return UNLIMITED
        value = self.operands.plan.constant.get(self.region.trip_count)
        count = (
            None
            if value is None
            else trip_count(value, negative_is_no_limit=self.region.negative_is_no_limit)
        )
        return UNLIMITED if count == 2**63 - 1 else count

    def _is_true(self, slot: Slot) -> bool:
        """Whether a condition is the constant true."""
        value = self.operands.plan.constant.get(slot)
        return value is not None and np.size(value) == 1 and is_true(value)

    def _slicing(self, number: int, *, count: bool) -> str:
        """How parts are cut, as keywords for their ``count``, or for one of them; what is usual
        is left out.
        """
        one = self.region.sliced[number]
        iterator = self.region.kind == TENSOR_ITERATOR
        asked: list[tuple[str, object, object]] = [
            ("axis", one.axis, None),
            ("size", one.part_size, 1),
        ]
        if count:
            asked += [("start", one.start, 0), ("end", one.end, -1)] if iterator else []
        else:
            start = one.start if iterator else -1 if one.stride < 0 else 0
            asked += [
                ("start", start, 0),
                ("backwards", one.stride < 0, False),
                ("drop_axis", not one.whole_parts, False),
            ]
        return ", ".join(f"{name}={value}" for name, value, usual in asked if value != usual)

    def _parts(self, number: int) -> str:
        return f"parts({self.operands.read(self.region.sliced[number].source)}, {self._slicing(number, count=True)})"

    def _beginning(self, number: str) -> Iterator[CodeLine]:
        """What an iteration takes: the parts of what is sliced, and its number."""
        for at, sliced in enumerate(self.region.sliced):
            cut = f"part({self.operands.read(sliced.source)}, {number}, {self._slicing(at, count=False)})"
            text = f"{self.operands.new(sliced.parameter)} = {self._entering(sliced.parameter, sliced.source, cut)}"
            yield CodeLine(self.inside + text, self.operands.addresses.get(sliced.parameter, ""))
        for counter in self.region.counters:
            kind = f"np.{counter.element_type.dtype.name}"
            made = (
                f"np.full({counter.shape!r}, {number}, {kind})"
                if counter.shape
                else f"{kind}({number})"
            )
            text = f"{self.operands.new(counter.parameter)} = {made}"
            yield CodeLine(self.inside + text, self.operands.addresses.get(counter.parameter, ""))

    def _end(self) -> Iterator[str]:
        """What an iteration gives: a part more of what is joined, or the last value so far."""
        for number, output in enumerate(self.region.outputs):
            result = self.operands.read(output.result)
            joined = self._collected.get(number)
            yield (
                f"{joined}.append({result})"
                if joined
                else f"{self.operands.new(output.slot)} = {result}"
            )

    def _back_edges(self) -> Iterator[str]:
        """What the next iteration begins with. A condition that is a carried value itself is set
        aside before.
        """
        again = self.region.condition_result
        if again is not None and any(carried.parameter == again for carried in self.region.carried):
            self._again = self.operands.identifiers.give("again")
            yield f"{self._again} = {self.operands.read(again)}"
        pairs = [
            (self.operands.new(carried.parameter), self.operands.read(carried.result))
            for carried in self.region.carried
        ]
        moved = [(to, value) for to, value in pairs if to != value]
        if moved:
            yield f"{', '.join(to for to, _ in moved)} = {', '.join(value for _, value in moved)}"

    def _after(self) -> Iterator[str]:
        """What was collected, joined."""
        for number, output in enumerate(self.region.outputs):
            if isinstance(output, Concatenated):
                element_type, shape = self.operands.defaults.known_result(
                    self.region.program.address, output.layer
                )
                try:
                    empty = array_text(
                        "", empty_join(output, shape, (element_type or ElementType.F32).dtype)
                    )
                except ValueError as error:
                    raise EngineError(f"{self.address}: {error}") from error
                more = "".join(
                    f", {name}=True" for name in ("reverse", "stacked") if getattr(output, name)
                )
                yield f"{self.operands.new(output.slot)} = join({self._collected[number]}, {empty}, axis={output.axis}{more})"

"""Code of a loop: the lines before and after its body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from loopscope.errors import EngineError
from loopscope.executor.machine.regions import UNLIMITED, empty_join, is_true, trip_count
from loopscope.executor.plan.body_ports import Concatenated, LastValue
from loopscope.executor.plan.plan import ABSENT, LoopRegion
from loopscope.executor.plan.slots import Slot
from loopscope.explain.code_parts import CodeLine, Operands, array_text
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP, TENSOR_ITERATOR


@dataclass(eq=False)
class LoopCode:
    """Lines of one loop; the lines of its body are placed between ``opening`` and ``closing``."""

    operands: Operands
    region: LoopRegion
    address: str
    depth: int
    _condition: str = ""
    """Identifier of the loop's condition; empty if the loop is certain to start."""
    _saved_condition: str = ""
    """Identifier of a condition that is saved before the back edges overwrite it."""
    _part_lists: dict[int, str] = field(default_factory=dict[int, str])
    """Identifier of the list of parts, by output index."""

    @property
    def pad(self) -> str:
        return "    " * self.depth

    @property
    def inside(self) -> str:
        return "    " * (self.depth + 1)

    def opening(self) -> Iterator[CodeLine]:
        """Yield the initial values, the loop line, and the assignments at the start of an
        iteration.
        """
        region, operands = self.region, self.operands
        for text in (*self._invariants(), *self._initial_values()):
            yield self._line(self.pad, text)
        number = operands.identifiers.unique("i")
        if region.condition is not None and not self._is_true(region.condition):
            self._condition = operands.identifiers.unique("go")
            yield self._line(self.pad, f"{self._condition} = {operands.read(region.condition)}")
        counts = (
            region.counters or region.sliced or region.kind != LOOP or self._trips() != UNLIMITED
        )
        yield self._line(
            self.pad,
            f"for {number} in {self._iteration_source()}:"
            if counts
            else f"while {self._condition or 'True'}:",
        )
        if self._condition and counts:
            yield self._line(self.inside, f"if not {self._condition}:")
            yield self._line(self.inside, "    break")
        yield from self._iteration_start(number)

    def closing(self) -> Iterator[CodeLine]:
        """Yield the assignments of outputs and back edges, the condition, and the lines after the
        loop.
        """
        region = self.region
        for text in self._iteration_end():
            yield self._line(self.inside, text)
        if not region.program.instructions and not region.outputs:
            yield self._line(self.inside, "pass")
        again = region.condition_result
        decides = again is not None and not self._is_true(again)
        if again is not None and decides and self._condition:
            yield self._line(self.inside, f"{self._condition} = {self.operands.read(again)}")
        for text in self._back_edges():
            yield self._line(self.inside, text)
        if again is not None and decides and not self._condition:
            yield self._line(
                self.inside, f"if not {self._saved_condition or self.operands.read(again)}:"
            )
            yield self._line(self.inside, "    break")
        for text in self._joined_outputs():
            yield self._line(self.pad, text)

    def _line(self, pad: str, text: str) -> CodeLine:
        return CodeLine(pad + text, self.address)

    def _invariants(self) -> Iterator[str]:
        """Yield conversions of invariant inputs; an unconverted input reuses its outer name."""
        for invariant in self.region.invariants:
            outer = self.operands.read(invariant.source)
            text = self._received_value(invariant.parameter, invariant.source, outer)
            if text == outer:
                self.operands.names[invariant.parameter] = text
            else:
                yield f"{self.operands.new(invariant.parameter)} = {text}"

    def _received_value(self, parameter: Slot, source: int | None, text: str) -> str:
        """Return the value that a Parameter receives from an outer slot.

        The value is converted if a TensorIterator's Parameter declares a different type.
        """
        declared = self.region.declared.get(parameter)
        same = declared is None or source is None or self.operands.types.get(source) is declared
        return text if same or declared is None else f"converted({text}, {declared.value!r})"

    def _initial_values(self) -> Iterator[str]:
        """Yield the initial values of carried values and outputs, and empty lists for joined
        outputs.
        """
        program = self.region.program
        for carried in self.region.carried:
            initial = (
                self.operands.zero(program, carried.layer)
                if carried.initial is None
                else self.operands.read(carried.initial)
            )
            entering = self._received_value(carried.parameter, carried.initial, initial)
            yield f"{self.operands.new(carried.parameter)} = {entering}"
        for unfed in self.region.unfed:
            zero = self.operands.zero(program, unfed.layer)
            yield f"{self.operands.new(unfed.parameter)} = {zero}"
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
                self._part_lists[number] = self.operands.identifiers.unique(f"all_{name}")
                yield f"{self._part_lists[number]} = []"

    def _iteration_source(self) -> str:
        """Return the expression that iterates over the iteration numbers."""
        counts = [self._parts(number) for number in range(len(self.region.sliced))]
        limit = f"min({', '.join(counts)})" if len(counts) > 1 else counts[0] if counts else ""
        if self.region.kind != LOOP:
            fixed = next(
                (
                    output
                    for output in self.region.outputs
                    if isinstance(output, Concatenated) and output.start >= 0 and output.end >= 0
                ),
                None,
            )
            declared = 1 if fixed is None else (abs(fixed.end - fixed.start) + 1) // fixed.part_size
            return f"range({limit or declared})"
        trips = self._trips()
        if trips is not None and trips != UNLIMITED and not limit:
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
        return f"iterations({text}, {limit})" if limit else f"iterations({text})"

    def _trips(self) -> int | None:
        """Return the trip count if it is constant.

        The largest i64, which some frameworks use for "no limit", is returned as UNLIMITED.
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
        """Return True if a condition is the constant true."""
        value = self.operands.plan.constant.get(slot)
        return value is not None and np.size(value) == 1 and is_true(value)

    def _slicing(self, number: int, *, count: bool) -> str:
        """Return the keywords that describe slicing, for counting the parts or for taking one.

        Default values are omitted.
        """
        sliced = self.region.sliced[number]
        iterator = self.region.kind == TENSOR_ITERATOR
        keywords: list[tuple[str, object, object]] = [
            ("axis", sliced.axis, None),
            ("size", sliced.part_size, 1),
        ]
        if count:
            keywords += [("start", sliced.start, 0), ("end", sliced.end, -1)] if iterator else []
        else:
            start = sliced.start if iterator else -1 if sliced.stride < 0 else 0
            keywords += [
                ("start", start, 0),
                ("backwards", sliced.stride < 0, False),
                ("drop_axis", not sliced.whole_parts, False),
            ]
        return ", ".join(f"{name}={value}" for name, value, usual in keywords if value != usual)

    def _parts(self, number: int) -> str:
        source = self.operands.read(self.region.sliced[number].source)
        return f"parts({source}, {self._slicing(number, count=True)})"

    def _iteration_start(self, number: str) -> Iterator[CodeLine]:
        """Yield the assignments of sliced parts and of the iteration number."""
        for index, sliced in enumerate(self.region.sliced):
            source = self.operands.read(sliced.source)
            cut = f"part({source}, {number}, {self._slicing(index, count=False)})"
            entering = self._received_value(sliced.parameter, sliced.source, cut)
            text = f"{self.operands.new(sliced.parameter)} = {entering}"
            yield CodeLine(self.inside + text, self.operands.addresses.get(sliced.parameter, ""))
        for counter in self.region.counters:
            kind = f"np.{counter.element_type.dtype.name}"
            value = (
                f"np.full({counter.shape!r}, {number}, {kind})"
                if counter.shape
                else f"{kind}({number})"
            )
            text = f"{self.operands.new(counter.parameter)} = {value}"
            yield CodeLine(self.inside + text, self.operands.addresses.get(counter.parameter, ""))

    def _iteration_end(self) -> Iterator[str]:
        """Yield the lines that append to each joined output or assign the last value."""
        for number, output in enumerate(self.region.outputs):
            result = self.operands.read(output.result)
            joined = self._part_lists.get(number)
            yield (
                f"{joined}.append({result})"
                if joined
                else f"{self.operands.new(output.slot)} = {result}"
            )

    def _back_edges(self) -> Iterator[str]:
        """Yield the assignments to the carried values of the next iteration.

        A condition that is itself a carried value is saved first.
        """
        again = self.region.condition_result
        if again is not None and any(carried.parameter == again for carried in self.region.carried):
            self._saved_condition = self.operands.identifiers.unique("again")
            yield f"{self._saved_condition} = {self.operands.read(again)}"
        pairs = [
            (self.operands.new(carried.parameter), self.operands.read(carried.result))
            for carried in self.region.carried
        ]
        assigned = [(to, value) for to, value in pairs if to != value]
        if assigned:
            targets = ", ".join(to for to, _ in assigned)
            yield f"{targets} = {', '.join(value for _, value in assigned)}"

    def _joined_outputs(self) -> Iterator[str]:
        """Yield the lines that join the collected parts."""
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
                keywords = "".join(
                    f", {name}=True" for name in ("reverse", "stacked") if getattr(output, name)
                )
                pieces = f"{self._part_lists[number]}, {empty}, axis={output.axis}{keywords}"
                yield f"{self.operands.new(output.slot)} = join({pieces})"

"""Lines of generated code: a function under construction, and the lines of one instruction.

An instruction is an expression if one exists, else a call of its kernel. The lines have their
places in the plan. Values that only one condition reads are inlined into the condition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.executor.codegen import source_map
from loopscope.executor.codegen.slot_proofs import bounded, guarded
from loopscope.executor.codegen.source_map import MADE, CodePlace, Loop, compiled
from loopscope.executor.machine.execute import SMALL
from loopscope.executor.plan.expressions import expression, of_integers
from loopscope.executor.plan.plan import ABSENT, IfRegion, Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import Slot, settle
from loopscope.executor.plan.uncomputed_values import Defaults, Overrides


@dataclass(eq=False)
class CodeLines:
    """Lines of a function under construction. The head reads values from outside; the tail writes
    results.
    """

    lines: list[str] = field(default_factory=list[str])
    places: list[CodePlace | None] = field(default_factory=list["CodePlace | None"])
    place: CodePlace | None = None
    """Place in the plan of the lines that are emitted next."""
    indent: int = 1
    names: dict[Slot, str] = field(default_factory=dict[Slot, str])
    """Local variable or expression of each slot. Two slots share a variable if they hold the same
    value.
    """
    head: list[str] = field(default_factory=list[str])
    tail: list[str] = field(default_factory=list[str])
    constants: dict[str, Any] = field(default_factory=lambda: {"np": np})
    moving: set[str] = field(default_factory=set[str])
    """Local variables that back edges overwrite."""
    inlined: set[Slot] = field(default_factory=set[Slot])
    """Slots without a local variable, because only one condition reads them."""
    read_slots: dict[Slot, None] = field(default_factory=dict[Slot, None])
    """Slots whose values come from outside, in order of first use."""

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)
        self.places.append(self.place)

    def imported(self, slot: Slot) -> str:
        """Return the local variable of a slot whose value comes from outside."""
        self.read_slots[slot] = None
        return self.names.setdefault(slot, source_map.of_slot(slot))

    def value(self, slot: Slot) -> str:
        """Return the local variable or expression of a slot."""
        if slot == ABSENT:
            return "None"
        return self.names[slot] if slot in self.names else self.imported(slot)

    def assigned(self, slot: Slot) -> str:
        """Return the local variable that receives the value of a slot."""
        return self.names.setdefault(slot, source_map.of_slot(slot))

    def put(self, slot: Slot, computed: str) -> None:
        """Assign an expression to a slot. An expression that only one condition reads is inlined
        into the condition.
        """
        if slot in self.inlined:
            self.names[slot] = f"({computed})"
        else:
            self.emit(f"{self.assigned(slot)} = {computed}")

    def constant(self, name: str, value: Any) -> str:
        """Store a value in the globals of the function, and return its name."""
        self.constants[name] = value
        return name

    def function(self, start: list[str], end: str) -> Loop:
        """Return the compiled function. ``start`` are the lines before the head, ``end`` is the
        last line.
        """
        imports = [
            f"{source_map.of_slot(slot)} = {source_map.VALUES}[{slot}]" for slot in self.read_slots
        ]
        first = [
            start[0],
            *("    " + line for line in (*start[1:], *imports, *dict.fromkeys(self.head))),
        ]
        last = ["    " + line for line in (*dict.fromkeys(self.tail), end)]
        text = "\n".join([*first, *self.lines, *last])
        places: list[CodePlace | None] = (
            [None] * (len(first) + 1) + self.places + [None] * (len(last) + 1)
        )
        return compiled(text, self.constants, places, self.names, self.inlined)


_NUMBER = re.compile(r"(?<![\w.{])\d+(?![\w.}])")
"""Pattern of a number in an expression; the ``0`` of ``{0}`` does not match."""


@dataclass(frozen=True, eq=False)
class Computing:
    """Writer of the lines of instructions, guided by the values of the first iterations.

    Element types of those values are proved to stay the same; ranks only guide which code is
    worthwhile.
    """

    overrides: Overrides
    values: list[Any]
    numbers: Mapping[Slot, np.dtype]
    """Slots that are proved to hold numpy numbers in every row, with their types."""
    defaults: Defaults
    grows: bool
    """True if results of elementwise operations may become large."""

    def compute(self, lines: CodeLines, instruction: Instruction, program: Program) -> None:
        if instruction.same_as and self._is_named_again(lines, instruction):
            return
        arguments = [lines.value(slot) for slot in instruction.inputs]
        if instruction.variable is not None:
            self._variable(lines, instruction, arguments)
            return
        if instruction.is_identity and arguments[0] not in lines.moving:
            # A second name for the same value, which nothing overwrites before the end of the
            # iteration.
            lines.names[instruction.outputs[0]] = arguments[0]
            return
        symbol = expression(instruction, self.values)
        if symbol:
            self._expression(lines, instruction, program, symbol, arguments)
        elif not instruction.checked and all(
            slot in self.numbers for slot in (*instruction.inputs, *instruction.outputs)
        ):
            self._number(lines, instruction, program, arguments)
        else:
            self._call(lines, instruction, arguments)

    def _number(
        self, lines: CodeLines, instruction: Instruction, program: Program, arguments: list[str]
    ) -> None:
        """Emit an operation from numbers to a number, without checks of sizes and ranks."""
        text = of_integers(
            instruction, self.numbers, lambda slot: self.overrides.constant_of(program, slot)
        )
        if text:
            lines.put(instruction.outputs[0], text.format(*arguments))
        else:
            kernel = lines.constant(source_map.kernel_of(instruction.outputs[0]), instruction.call)
            lines.put(instruction.outputs[0], f"{kernel}({', '.join(arguments)})[()]")

    def _is_named_again(self, lines: CodeLines, instruction: Instruction) -> bool:
        """Reuse the result of an instruction that computes the same value. Return False if this
        iteration overwrites it.
        """
        same = [lines.value(slot) for slot in instruction.same_as]
        if any(name in lines.moving for name in same):
            return False
        lines.names.update(zip(instruction.outputs, same, strict=True))
        return True

    def _expression(
        self,
        lines: CodeLines,
        instruction: Instruction,
        program: Program,
        symbol: str,
        arguments: list[str],
    ) -> None:
        if any(self._has_rank(slot) for slot in instruction.inputs):
            arguments = [
                self._operand(lines, program, slot, name)
                for slot, name in zip(instruction.inputs, arguments, strict=True)
            ]
            symbol = self._with_arrays(lines, instruction, symbol)
        if self.grows and (
            self.overrides.items
            or not self.defaults.is_small(program.address, instruction.node.id, SMALL)
        ):
            symbol = guarded(instruction, self.values, symbol)
        lines.put(instruction.outputs[0], symbol.format(*arguments))

    def _operand(self, lines: CodeLines, program: Program, slot: Slot, name: str) -> str:
        """Return the operand, with a constant number as an array of rank 0: numpy combines it with
        an array 200 ns faster, with the same result.
        """
        constant = self.overrides.constant_of(program, slot)
        if not isinstance(constant, np.generic):
            return name
        return lines.constant(source_map.constant_of(slot), np.asarray(constant))

    def _with_arrays(self, lines: CodeLines, instruction: Instruction, symbol: str) -> str:
        """Replace the numbers in an expression by arrays of rank 0. All floats of an expression
        have one type.
        """

        def named(match: re.Match[str]) -> str:
            dtype = self.values[instruction.inputs[0]].dtype
            return lines.constant(f"{dtype.name}_{match[0]}", np.array(int(match[0]), dtype))

        return _NUMBER.sub(named, symbol)

    def _call(self, lines: CodeLines, instruction: Instruction, arguments: list[str]) -> None:
        targets = [lines.assigned(slot) for slot in instruction.outputs]
        kernel = lines.constant(source_map.kernel_of(instruction.outputs[0]), bounded(instruction))
        if instruction.state is not None:
            state = lines.value(instruction.state)
            arguments.append(f"state={state}")
            assigned = f"{MADE}, {state}"
        elif all(self._has_rank(slot) for slot in instruction.outputs):
            # An output that loses its rank later stays an array of rank 0, which computes the same.
            assigned = ", ".join([*targets, "*_"]) if instruction.several else targets[0]
            lines.emit(f"{assigned} = {kernel}({', '.join(arguments)})")
            return
        else:
            assigned = MADE
        lines.emit(f"{assigned} = {kernel}({', '.join(arguments)})")
        if instruction.settled:
            lines.emit(f"{', '.join(targets)}, = {MADE}")
            return
        values = (
            [MADE]
            if not instruction.several
            else [f"{MADE}[{number}]" for number in range(len(targets))]
        )
        for target, value in zip(targets, values, strict=True):
            lines.emit(
                f"{target} = {value} if {value}.ndim or {value}.dtype.char in 'OV' else {value}[()]"
            )

    def _has_rank(self, slot: Slot) -> bool:
        """Return True if the slot held an array in the first iterations."""
        return bool(getattr(self.values[slot], "ndim", 0))

    def _variable(self, lines: CodeLines, instruction: Instruction, arguments: list[str]) -> None:
        assert instruction.variable is not None
        variable = lines.value(instruction.variable)
        if instruction.assigns:
            lines.emit(f"{variable} = {arguments[0]}")
            for slot in instruction.outputs:
                lines.emit(f"{lines.assigned(slot)} = {variable}")
        else:
            target = lines.assigned(instruction.outputs[0])
            if arguments:
                initial = arguments[0]
            else:
                zeros = source_map.kernel_of(instruction.outputs[0])
                initial = f"settle({lines.constant(zeros, instruction.call)}())"
                lines.constant("settle", settle)
            lines.emit(f"{target} = {initial} if {variable} is None else {variable}")


def used_once(program: Program, loop: LoopRegion | None) -> set[Slot]:
    """Return the slots of a graph that only one condition reads.

    The condition chooses the branch of an If, or continues ``loop``, whose body the graph is.
    """
    regions = [program.instructions[number].region for number in program.regions]
    conditions = [region.condition for region in regions if isinstance(region, IfRegion)]
    read_counts = Counter(
        slot for instruction in program.instructions for slot in instruction.reads
    )
    read_counts.update(program.results.values())
    if loop is not None and loop.condition_result is not None:
        conditions.append(loop.condition_result)
        read_counts.update(port.result for port in (*loop.carried, *loop.outputs))
    slots: set[Slot] = set()
    for slot in conditions:
        while (
            read_counts[slot] == 1
            and (number := program.producer.get(slot)) is not None
            and program.instructions[number].region is None
        ):
            slots.add(slot)
            if not program.instructions[number].is_identity:
                break
            (slot,) = program.instructions[number].inputs
    return slots

"""Lines of generated code that compute one instruction: an expression if one exists, else a call of
its kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.executor.codegen import generated_names
from loopscope.executor.codegen.emitter import CodeLines
from loopscope.executor.codegen.generated_names import MADE
from loopscope.executor.codegen.shape_proofs import bounded, guarded
from loopscope.executor.machine.execute import SMALL
from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.expressions import expression, of_integers
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Instruction, Program, settle

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
            kernel = lines.constant(
                generated_names.kernel_of(instruction.outputs[0]), instruction.call
            )
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
        return lines.constant(generated_names.constant_of(slot), np.asarray(constant))

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
        kernel = lines.constant(
            generated_names.kernel_of(instruction.outputs[0]), bounded(instruction)
        )
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
                zeros = generated_names.kernel_of(instruction.outputs[0])
                initial = f"settle({lines.constant(zeros, instruction.call)}())"
                lines.constant("settle", settle)
            lines.emit(f"{target} = {initial} if {variable} is None else {variable}")

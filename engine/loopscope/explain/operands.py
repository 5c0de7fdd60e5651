"""How code writes each value of a plan: as an identifier like its name, or as the constant
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Instruction, Plan, Program
from loopscope.explain.code_lines import CodeLine
from loopscope.explain.identifiers import Identifiers
from loopscope.explain.literals import (
    array_text,
    attribute_text,
    fits_in_code,
    inline_text,
    stored,
    zeros_text,
)
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ops.values import NOT_KEPT

_RESERVED = frozenset(
    {
        "np",
        "inf",
        "nan",
        "kernel",
        "onnx_kernel",
        "iterations",
        "join",
        "part",
        "parts",
        "converted",
        "ElementType",
        "WEIGHTS",
        "VARIABLES",
    }
)


@dataclass(eq=False)
class Operands:
    """The identifiers that are given so far, by slot, and the constants that they took."""

    plan: Plan
    names: dict[int, str] = field(default_factory=dict[int, str])
    addresses: dict[int, str] = field(default_factory=dict[int, str])
    labels: dict[int, str] = field(default_factory=dict[int, str])
    types: dict[int, ElementType | None] = field(default_factory=dict[int, "ElementType | None"])
    constants: list[CodeLine] = field(default_factory=list[CodeLine])
    weights: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    identifiers: Identifiers = field(default_factory=lambda: Identifiers(_RESERVED))

    @cached_property
    def defaults(self) -> Defaults:
        return Defaults(self.plan)

    def meet(self, program: Program) -> None:
        """Remembers label, address and type of every slot of a graph."""
        labels = {layer: label for label, layer in program.layer_of_label.items()}
        for (layer, output), slot in program.slots.items():
            if layer not in program.results and slot not in self.labels:
                self.labels[slot] = labels[layer] + (f"_{output}" if output else "")
                self.addresses[slot] = f"{program.address}/{labels[layer]}"
                self.types[slot] = self.plan.propagated.output(
                    program.address, layer, output
                ).element_type

    def new(self, slot: Slot) -> str:
        """The identifier that a slot is assigned to."""
        if slot not in self.names:
            self.names[slot] = self.identifiers.give(self.labels.get(slot, "value"))
        return self.names[slot]

    def read(self, slot: Slot) -> str:
        """How code writes the value of a slot."""
        if slot == ABSENT:
            return "None"
        if slot not in self.names and slot in self.plan.constant:
            value = self.plan.constant[slot]
            name = self.new(slot)
            if value is not NOT_KEPT and not fits_in_code(value):
                self.weights[name] = stored(value)
            self.constants.append(
                CodeLine(f"{name} = {array_text(name, value)}", self.addresses.get(slot, ""))
            )
        return self.new(slot)

    def of(self, instruction: Instruction) -> list[str]:
        """The operands of an expression: small constants as plain numbers where another operand
        fixes their type.
        """
        fixing = {
            self.types.get(slot) for slot in instruction.inputs if slot not in self.plan.constant
        }
        texts: list[str] = []
        for slot in instruction.inputs:
            literal = (
                inline_text(self.plan.constant[slot])
                if slot in self.plan.constant and self.types.get(slot) in fixing
                else ""
            )
            texts.append(literal or self.read(slot))
        return texts

    def attribute(self, value: Any) -> str:
        """How code writes an attribute; a large tensor is a weight."""
        if not isinstance(value, np.ndarray) or fits_in_code(value):
            return attribute_text(value)
        name = self.identifiers.give("value")
        self.weights[name] = stored(value)
        return array_text(name, value)

    def zero(self, program: Program, layer: LayerId) -> str:
        """How code writes what was never computed; the array itself, which may have any shape
        that a file claims, is not made.
        """
        element_type, shape = self.defaults.known_result(program.address, layer)
        return zeros_text(element_type or ElementType.F32, shape.lengths_or_zeros())

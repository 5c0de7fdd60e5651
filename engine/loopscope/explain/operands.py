"""Spelling of a plan's values in code: as identifiers like their names, or as constants."""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Instruction, Plan, Program
from loopscope.explain.code_lines import CodeLine
from loopscope.explain.literals import (
    array_text,
    attribute_text,
    fits_in_code,
    inline_text,
    stored,
    zeros_text,
)
from loopscope.ir.address import decode
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ops.values import NOT_KEPT

_NON_IDENTIFIER = re.compile(r"[^0-9a-zA-Z]+")
_MAX_LENGTH = 40
_LAST_WORDS = re.compile(rf"(?<![^_]).{{1,{_MAX_LENGTH}}}$")
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


class Identifiers:
    """Generator of unique identifiers from names."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self._taken = (
            set(reserved) | set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
        )

    def give(self, name: str) -> str:
        """Return a new identifier for a name in address spelling; long names are cut to their last
        words.

        >>> names = Identifiers()
        >>> names.give("while/Add_3"), names.give("while.Add_3")
        ('while_add_3', 'while_add_3_2')
        >>> names.give("3 × x\\n"), names.give("if")
        ('v_3_x', 'if_2')
        >>> names.give("If_0_then_branch__Inline_0__%2Fdecoder%2Frnn%2FGather_2")
        'branch_inline_0_decoder_rnn_gather_2'
        """
        words = _NON_IDENTIFIER.sub("_", decode(name)[: 4 * _MAX_LENGTH]).strip("_").lower()
        whole = _LAST_WORDS.search(words)
        plain = whole[0] if whole else words[-_MAX_LENGTH:] or "value"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        identifier, number = plain, 1
        while identifier in self._taken:
            number += 1
            identifier = f"{plain}_{number}"
        self._taken.add(identifier)
        return identifier


@dataclass(eq=False)
class Operands:
    """Identifiers assigned so far, by slot, and the constants that they refer to."""

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
        """Store label, address and type of every slot of a graph."""
        labels = {layer: label for label, layer in program.layer_of_label.items()}
        for (layer, output), slot in program.slots.items():
            if layer not in program.results and slot not in self.labels:
                self.labels[slot] = labels[layer] + (f"_{output}" if output else "")
                self.addresses[slot] = f"{program.address}/{labels[layer]}"
                self.types[slot] = self.plan.propagated.output(
                    program.address, layer, output
                ).element_type

    def new(self, slot: Slot) -> str:
        """Return the identifier that a slot is assigned to."""
        if slot not in self.names:
            self.names[slot] = self.identifiers.give(self.labels.get(slot, "value"))
        return self.names[slot]

    def read(self, slot: Slot) -> str:
        """Return the code that reads the value of a slot."""
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
        """Return the operands of an expression.

        Small constants become plain numbers if another operand determines their type.
        """
        operand_types = {
            self.types.get(slot) for slot in instruction.inputs if slot not in self.plan.constant
        }
        texts: list[str] = []
        for slot in instruction.inputs:
            literal = (
                inline_text(self.plan.constant[slot])
                if slot in self.plan.constant and self.types.get(slot) in operand_types
                else ""
            )
            texts.append(literal or self.read(slot))
        return texts

    def attribute(self, value: Any) -> str:
        """Return the code for an attribute; a large tensor becomes a weight."""
        if not isinstance(value, np.ndarray) or fits_in_code(value):
            return attribute_text(value)
        name = self.identifiers.give("value")
        self.weights[name] = stored(value)
        return array_text(name, value)

    def zero(self, program: Program, layer: LayerId) -> str:
        """Return the code for a value that was never computed.

        The array is not allocated, because a file may declare any shape.
        """
        element_type, shape = self.defaults.known_result(program.address, layer)
        return zeros_text(element_type or ElementType.F32, shape.lengths_or_zeros())

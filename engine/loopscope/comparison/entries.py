"""Entries of a graph: its operations and Parameters, by which two models are matched."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import (
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
    Region,
)
from loopscope.ir.recorded_rows import RECORDED, is_control
from loopscope.ops.narrowing import ROUND_TO


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An operation or Parameter of a graph."""

    label: str
    """Segment in addresses."""
    outputs: tuple[Slot, ...]
    instruction: Instruction | None = None
    """None for a Parameter."""
    position: int = -1
    """Number of the instruction; -1 for a Parameter."""

    @property
    def type(self) -> str:
        """Type of the layer."""
        return "Parameter" if self.instruction is None else self.instruction.node.type

    @property
    def tensor(self) -> str:
        """Name of the single output tensor.

        Empty for several outputs, for an unnamed tensor, and for a bare number.
        """
        ports = () if self.instruction is None else self.instruction.node.outputs
        names = ports[0].names if len(ports) == 1 and len(self.outputs) == 1 else ()
        return next((name for name in names if not name.isdecimal()), "")

    @property
    def region(self) -> Region | None:
        return None if self.instruction is None else self.instruction.region

    @property
    def region_class(self) -> str:
        """``loop``, ``If`` or ``function``; empty for other entries."""
        match self.region:
            case None:
                return ""
            case LoopRegion():
                return "loop"
            case IfRegion():
                return "If"
            case CallRegion():
                return "function"

    @property
    def rounds(self) -> bool:
        """True if the output is the rounded input."""
        return self.type == ROUND_TO.name


def entries_of(program: Program) -> tuple[Entry, ...]:
    """Return all operations and Parameters of a graph in execution order.

    Consts are excluded. Of a trace, only what the program recorded is included.
    """
    if any(instruction.node.type == RECORDED for instruction in program.instructions):
        return tuple(
            Entry(instruction.label, instruction.outputs, instruction, number)
            for number, instruction in enumerate(program.instructions)
            if not is_control(instruction.node)
        )
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    parameters = [Entry(labels[layer], (slot,)) for layer, slot in program.parameters.items()]
    return (
        *parameters,
        *(
            Entry(instruction.label, instruction.outputs, instruction, number)
            for number, instruction in enumerate(program.instructions)
        ),
    )


def named(entry: Entry, output: int) -> str:
    """Return the name of an output in addresses."""
    return f"{entry.label}:{output}" if output else entry.label

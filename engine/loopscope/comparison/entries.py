"""What gives values in a graph: its operations and Parameters, which two models are matched by."""

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
from loopscope.ops.narrowing import ROUND_TO


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An operation of a graph, or one of its Parameters."""

    label: str
    """Its segment in addresses."""
    outputs: tuple[Slot, ...]
    instruction: Instruction | None = None
    """None for a Parameter."""
    position: int = -1
    """Number of the instruction; -1 for a Parameter."""

    @property
    def type(self) -> str:
        """The type of the layer."""
        return "Parameter" if self.instruction is None else self.instruction.node.type

    @property
    def tensor(self) -> str:
        """The name of its one tensor; empty where it gives several, where the file names none,
        and for a bare number.
        """
        ports = () if self.instruction is None else self.instruction.node.outputs
        names = ports[0].names if len(ports) == 1 and len(self.outputs) == 1 else ()
        return next((name for name in names if not name.isdecimal()), "")

    @property
    def region(self) -> Region | None:
        return None if self.instruction is None else self.instruction.region

    @property
    def region_class(self) -> str:
        """Whether it is a loop, an If or a function; empty for any other."""
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
        """Whether its output is its input, rounded."""
        return self.type == ROUND_TO.name


def entries_of(program: Program) -> tuple[Entry, ...]:
    """All that gives values in a graph except Consts, in the order in which it runs."""
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    parameters = [Entry(labels[layer], (slot,)) for layer, slot in program.parameters.items()]
    return (
        *parameters,
        *(
            Entry(one.label, one.outputs, one, number)
            for number, one in enumerate(program.instructions)
        ),
    )


def named(entry: Entry, output: int) -> str:
    """What addresses call an output."""
    return f"{entry.label}:{output}" if output else entry.label

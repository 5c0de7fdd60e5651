"""Which values of a run are weights, or made of weights alone: what is handed into bodies,
sliced, turned or converted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from loopscope.executor.plan.body_ports import Invariant, Sliced
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
)
from loopscope.run_file.weightless import SMALL


def made_of_weights(plan: Plan) -> frozenset[Slot]:
    """The slots of what no input has a say in, and a Const of more than ``SMALL`` elements has;
    drawn numbers and variables are none.
    """
    walk = _Walk()
    for slot, node in plan.constant_slots:
        walk.fixed.add(slot)
        if node.constant is not None and node.constant.elements > SMALL:
            walk.heavy.add(slot)
    walk.through(plan.main)
    return frozenset(walk.heavy)


@dataclass(slots=True)
class _Walk:
    fixed: set[Slot] = field(default_factory=set[Slot])
    """What is the same in every run."""
    heavy: set[Slot] = field(default_factory=set[Slot])
    """What of it a large Const has a say in."""

    def through(self, program: Program) -> None:
        for instruction in program.instructions:
            match instruction.region:
                case LoopRegion() as region:
                    self._loop(region)
                case IfRegion() as region:
                    for branch in (region.then, region.otherwise):
                        self._branch(branch)
                    for output, *results in zip(
                        region.outputs, region.then.results, region.otherwise.results, strict=True
                    ):
                        self._made(output, results)
                case CallRegion() as region:
                    self._branch(region.branch)
                    for output, result in zip(region.outputs, region.branch.results, strict=True):
                        self._made(output, (result,))
                case None:
                    self._computed(instruction)

    def _computed(self, instruction: Instruction) -> None:
        changes = (
            instruction.state is not None or instruction.variable is not None or instruction.assigns
        )
        if instruction.inputs and not changes:
            for output in instruction.outputs:
                self._made(output, instruction.inputs)

    def _loop(self, region: LoopRegion) -> None:
        ports: tuple[Invariant | Sliced, ...] = (*region.invariants, *region.sliced)
        for port in ports:
            self._made(port.parameter, (port.source,))
        for carried in region.carried:
            if (
                carried.initial is not None and carried.result == carried.parameter
            ):  # handed on as it is
                self._made(carried.parameter, (carried.initial,))
        self.through(region.program)
        for output in region.outputs:
            self._made(output.slot, (output.result,))

    def _branch(self, branch: Branch) -> None:
        for parameter, source in branch.bindings:
            self._made(parameter, (source,))
        self.through(branch.program)

    def _made(self, slot: Slot, sources: Iterable[Slot]) -> None:
        given = set(sources)
        if given <= self.fixed:
            self.fixed.add(slot)
            if given & self.heavy:
                self.heavy.add(slot)

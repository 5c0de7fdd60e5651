"""Analysis of the values of a run that are weights or computed from weights alone.

Such values are weights that are passed into bodies, sliced, transposed or converted.
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


def weight_slots(plan: Plan) -> frozenset[Slot]:
    """Return the slots of values that depend on a Const of more than ``SMALL`` elements.

    Values that also depend on an input, random numbers and variables are excluded.
    """
    analysis = _Analysis()
    for slot, node in plan.constant_slots:
        analysis.fixed.add(slot)
        if node.constant is not None and node.constant.elements > SMALL:
            analysis.heavy.add(slot)
    analysis.visit(plan.main)
    return frozenset(analysis.heavy)


@dataclass(slots=True)
class _Analysis:
    fixed: set[Slot] = field(default_factory=set[Slot])
    """Values that are the same in every run."""
    heavy: set[Slot] = field(default_factory=set[Slot])
    """Fixed values that depend on a large Const."""

    def visit(self, program: Program) -> None:
        for instruction in program.instructions:
            match instruction.region:
                case LoopRegion() as region:
                    self._visit_loop(region)
                case IfRegion() as region:
                    for branch in (region.then, region.otherwise):
                        self._visit_branch(branch)
                    for output, *results in zip(
                        region.outputs, region.then.results, region.otherwise.results, strict=True
                    ):
                        self._propagate(output, results)
                case CallRegion() as region:
                    self._visit_branch(region.branch)
                    for output, result in zip(region.outputs, region.branch.results, strict=True):
                        self._propagate(output, (result,))
                case None:
                    self._visit_operation(instruction)

    def _visit_operation(self, instruction: Instruction) -> None:
        changes = (
            instruction.state is not None or instruction.variable is not None or instruction.assigns
        )
        if instruction.inputs and not changes:
            for output in instruction.outputs:
                self._propagate(output, instruction.inputs)

    def _visit_loop(self, region: LoopRegion) -> None:
        ports: tuple[Invariant | Sliced, ...] = (*region.invariants, *region.sliced)
        for port in ports:
            self._propagate(port.parameter, (port.source,))
        for carried in region.carried:
            # A value that is carried unchanged is as fixed as its initial value.
            if carried.initial is not None and carried.result == carried.parameter:
                self._propagate(carried.parameter, (carried.initial,))
        self.visit(region.program)
        for output in region.outputs:
            self._propagate(output.slot, (output.result,))

    def _visit_branch(self, branch: Branch) -> None:
        for parameter, source in branch.bindings:
            self._propagate(parameter, (source,))
        self.visit(branch.program)

    def _propagate(self, slot: Slot, sources: Iterable[Slot]) -> None:
        inputs = set(sources)
        if inputs <= self.fixed:
            self.fixed.add(slot)
            if inputs & self.heavy:
                self.heavy.add(slot)

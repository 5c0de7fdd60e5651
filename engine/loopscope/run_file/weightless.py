"""Weights of a model and of its run: removal from the structure, and values computed from them.

Consts of a few elements, which may decide the control flow, retain their data. All others lose it:
the file contains zeros, which compress well and any reader of models accepts. ``without_data`` then
marks these Consts as not kept. Values of a run that are passed into bodies, sliced, transposed or
converted from weights alone count as weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.executor.plan.body_ports import Invariant, Sliced
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
)
from loopscope.executor.plan.slots import Slot
from loopscope.ir.constant import Constant, encode, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.ir.replace import replace

SMALL = 64
"""Maximum number of elements of a Const that retains its data.

Shapes, axes, trip counts and scalars are that small.
"""


def without_data(model: Model) -> Model:
    """Return the model with its large Consts marked as not kept."""
    return replace(
        model,
        graph=_change_constants(
            model.graph, lambda constant: replace(constant, data=b"", is_kept=False)
        ),
    )


def with_zeros(model: Model) -> Model:
    """Return the model with zeros in its large Consts, which can be written to a file."""
    return replace(model, graph=_change_constants(model.graph, _zeros))


def _change_constants(graph: ModelGraph, change: Any) -> ModelGraph:
    nodes = tuple(_change_node(node, change) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _change_node(node: Node, change: Any) -> Node:
    constant = node.constant
    if constant is not None:
        return replace(node, constant=change(constant)) if constant.elements > SMALL else node
    if not node.bodies:
        return node
    return replace(
        node,
        bodies=tuple(
            replace(body, graph=_change_constants(body.graph, change)) for body in node.bodies
        ),
    )


def _zeros(constant: Constant) -> Constant:
    kind = constant.element_type
    texts = kind is ElementType.STRING
    data = (
        encode(np.full(constant.shape, "", object))
        if texts
        else bytes(packed_size(kind, constant.elements))
    )
    return replace(constant, data=data, is_kept=True)


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

"""Which operations would refuse inputs of given shapes, found out without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopscope.checks.known import declared
from loopscope.checks.propagate import propagate
from loopscope.ir.model import Model
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.dialect import catalogue_for


def misfits(model: Model, shapes: Sequence[tuple[int, ...]]) -> int:
    """How many operations contradict inputs of these shapes, one for each of the model's inputs.

    Branches that no run would take count too; operations of which no rule is known contradict
    nothing.
    """
    given = zip(model.graph.parameters, shapes, strict=True)
    inputs = {
        node.id: replace(declared(node), shape=PartialShape.of(shape)) for node, shape in given
    }
    return len(propagate(model, catalogue_for(model.dialect, CATALOGUE), inputs).contradictions)

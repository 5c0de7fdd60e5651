"""Which operations would refuse inputs of given shapes, found out without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.check.known import declared
from engine.check.propagate import propagate
from engine.ir.model import Model
from engine.ir.shape import PartialShape
from engine.ops.catalogue import CATALOGUE
from engine.ops.dialect import catalogue_for


def misfits(model: Model, shapes: Sequence[tuple[int, ...]]) -> int:
    """How many operations contradict inputs of these shapes, one for each of the model's inputs.

    Branches that no run would take count too; operations of which no rule is known contradict nothing.
    """
    given = zip(model.graph.parameters, shapes, strict=True)
    inputs = {node.id: replace(declared(node), shape=PartialShape.of(shape)) for node, shape in given}
    return len(propagate(model, catalogue_for(model.dialect, CATALOGUE), inputs).contradictions)

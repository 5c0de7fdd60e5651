"""Count of operations that would reject inputs of given shapes, without running the model."""

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
    """Return the number of operations that contradict input shapes, one shape per model input.

    Branches that no run would take are included. Operations without a shape rule contradict
    nothing.
    """
    shaped_nodes = zip(model.graph.parameters, shapes, strict=True)
    inputs = {
        node.id: replace(declared(node), shape=PartialShape.of(shape))
        for node, shape in shaped_nodes
    }
    return len(propagate(model, catalogue_for(model.dialect, CATALOGUE), inputs).contradictions)

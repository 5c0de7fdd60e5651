"""Facts for choosing inputs: constants that inputs are compared with, and shape contradictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loopscope.checks.known import declared
from loopscope.checks.propagate import propagate
from loopscope.checks.rule import Subject
from loopscope.ir.model import LayerId, Model
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.dialect import catalogue_for

_COMPARISONS = frozenset({"Equal", "NotEqual"})
_PASSING = frozenset({"Cast", "Convert", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operations whose output is still the input if that has one element."""


def compared_constants(model: Model) -> Mapping[LayerId, tuple[int, ...]]:
    """Map each model input to the integers it is compared with for equality, in ascending order.
    All graphs of the model are searched.
    """
    subject = Subject(model, catalogue_for(model.dialect))
    parameters = {id(node) for node in model.graph.parameters}
    values: dict[LayerId, set[int]] = {}
    for place, node in subject.nodes():
        if node.type not in _COMPARISONS:
            continue
        operands = [
            subject.origin(place, source, _PASSING) for source in place.graph.sources[node.id][:2]
        ]
        constants = [
            node.constant for node in operands if node is not None and node.constant is not None
        ]
        for operand in operands:
            if operand is None or id(operand) not in parameters:
                continue
            for constant in constants:
                if constant.is_kept and constant.elements == 1 and constant.element_type.is_integer:
                    values.setdefault(operand.id, set()).add(int(constant.array().reshape(-1)[0]))
    return {layer: tuple(sorted(numbers)) for layer, numbers in values.items()}


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

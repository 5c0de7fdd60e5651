"""Values of a body that a gradient flows through: they depend on a source, and the target depends
on them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from loopscope.builder.gradient.step import BodyTensors
from loopscope.checks.order import order
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.gradient_info import has_way_back
from loopscope.ir.model import LayerId, OutputRef


@dataclass(frozen=True, slots=True)
class Flow:
    """Gradient flow through one body, over all its iterations."""

    parameters: frozenset[LayerId]
    """Parameters whose adjoint is needed and can be nonzero."""
    results: frozenset[LayerId]
    """Results that depend on a source and that the target depends on."""

    @staticmethod
    def of(inside: BodyTensors, active: Collection[LayerId], targets: Collection[LayerId]) -> Flow:
        """Return the gradient flow through a body.

        ``active``: Parameters that depend on an outer source. ``targets``: Results that the outer
        target depends on.
        """
        body = inside.body
        starts, depending = set(active), set[OutputRef]()
        while True:
            depending = _depending(inside, starts)
            later = {
                edge.to_layer
                for edge in body.back_edges
                if inside.source(edge.from_layer) in depending
            }
            if later <= starts:
                break
            starts |= later
        ends, reached = set(targets), set[OutputRef]()
        while True:
            reached = _reached(inside, ends, depending)
            earlier = {
                edge.from_layer
                for edge in body.back_edges
                if OutputRef(edge.to_layer, 0) in reached
            }
            if earlier <= ends:
                break
            ends |= earlier
        parameters = frozenset(layer for layer in starts if OutputRef(layer, 0) in reached)
        return Flow(
            parameters, frozenset(layer for layer in ends if inside.source(layer) in depending)
        )


def is_real(inside: BodyTensors, source: OutputRef) -> bool:
    """Return True if a tensor of the body can have a derivative."""
    element_type = inside.known(source.layer, source.output).element_type
    return element_type is None or element_type in REAL_FLOATS


def _depending(inside: BodyTensors, parameters: Collection[LayerId]) -> set[OutputRef]:
    graph = inside.body.graph
    dependent = {source for layer in parameters if is_real(inside, source := OutputRef(layer, 0))}
    for layer in order(graph).layers:
        node = graph.by_id[layer]
        if has_way_back(node) and any(source in dependent for source in graph.sources[layer]):
            outputs = (OutputRef(layer, number) for number in range(len(node.outputs)))
            dependent |= {source for source in outputs if is_real(inside, source)}
    return dependent


def _reached(
    inside: BodyTensors, results: Collection[LayerId], depending: Collection[OutputRef]
) -> set[OutputRef]:
    graph = inside.body.graph
    reached = {
        source
        for layer in results
        if (source := inside.source(layer)) is not None and source in depending
    }
    for layer in reversed(order(graph).layers):
        if any(
            OutputRef(layer, number) in reached for number in range(len(graph.by_id[layer].outputs))
        ):
            reached |= {
                source
                for source in graph.sources[layer]
                if source is not None and source in depending
            }
    return reached

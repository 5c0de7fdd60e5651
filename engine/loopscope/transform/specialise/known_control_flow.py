"""Iteration counts and branches that are known before a run, or taken from runs.

An If is replaced by the branch that always runs.
"""

from __future__ import annotations

import numpy as np

from loopscope.checks import region, trips
from loopscope.checks.known import scalar_value
from loopscope.checks.propagate import Propagated
from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.model import LOOP, SEQUENCE_MAP, Body, LayerId, Node, OutputRef
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, Known
from loopscope.transform.specialise.editable_graph import EditableGraph, ModelNames


def known_count(
    graph: EditableGraph, address: str, layer: LayerId, body_address: str, known: Propagated
) -> int | None:
    """Return the iteration count that propagation proves, or None."""
    node = graph.nodes[layer]
    if node.type == SEQUENCE_MAP:
        return None
    sources = [graph.source(layer, index) for index in range(len(node.inputs))]
    outer = region.with_absent(node, sources, _facts(address, sources, known))
    body = node.bodies[0]
    results = {result.id: known.output(body_address, result.id) for result in body.graph.results}
    count = region.iterations(node, body, outer, results)
    is_sliced = any(entry.axis is not None for entry in body.inputs)
    if node.type == LOOP and is_sliced and trips.of_slices(body, outer).least < count.least:
        return None  # the slices may run out before
    return count.length if count.is_static else None


def _facts(address: str, sources: list[OutputRef | None], known: Propagated) -> list[Known]:
    return [
        NOTHING_KNOWN if source is None else known.output(address, source.layer, source.output)
        for source in sources
    ]


def fix_count(graph: EditableGraph, layer: LayerId, count: int) -> bool:
    """Make a Loop run exactly ``count`` times, without a condition.

    Return False for another operation: slices decide its count.
    """
    node = graph.nodes[layer]
    if node.type != LOOP or len(node.inputs) < 2:
        return False
    limit, condition = node.inputs[:2]
    element_type = limit.element_type if limit.element_type in INDEX_TYPES else ElementType.I64
    shape = (1,) if limit.shape == PartialShape.of([1]) else ()
    constants = [
        graph.insert_constant(
            layer, f"{node.name}_trip_count", np.full(shape, count, element_type.dtype)
        ),
        graph.insert_constant(layer, f"{node.name}_condition", np.array(True)),
    ]
    graph.sources[layer][:2] = constants
    ports = (
        replace(limit, element_type=element_type),
        replace(condition, element_type=ElementType.BOOLEAN),
    )
    body = _always_continuing(node.bodies[0], graph.names)
    graph.put(replace(node, inputs=(*ports, *node.inputs[2:]), bodies=(body,)))
    return True


def _always_continuing(body: Body, names: ModelNames) -> Body:
    """Return the body with true as its execution condition."""
    result = next(
        (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"), None
    )
    if result is None:
        return body
    graph = EditableGraph(body.graph, names)
    node = graph.nodes[result]
    if node.inputs:
        graph.sources[result] = [graph.insert_constant(result, "condition", np.array(True))]
    return replace(body, graph=graph.build())


def is_loop_of_one_body(node: Node) -> bool:
    """Return True for a loop whose body can be copied."""
    return node.is_loop and node.type != SEQUENCE_MAP and len(node.bodies) == 1


def known_condition(
    graph: EditableGraph, address: str, layer: LayerId, known: Propagated
) -> bool | None:
    """Return the condition of an If, or None if propagation does not know it."""
    source = graph.source(layer, 0)
    if source is None:
        return None
    value = scalar_value(known.output(address, source.layer, source.output))
    return None if value is None else bool(value)


def inline_branch(graph: EditableGraph, layer: LayerId, branch: Body) -> bool:
    """Replace an If by the nodes of a branch; return False if a Parameter of it is not fed."""
    node = graph.nodes[layer]
    entries = {entry.internal: entry.external for entry in branch.inputs}
    if any(
        not 0 <= entries.get(parameter.id, -1) < len(node.inputs)
        for parameter in branch.graph.parameters
    ) or len(branch.outer_outputs) < len(node.outputs):
        return False
    bound = {
        parameter.id: graph.source(layer, entries[parameter.id])
        for parameter in branch.graph.parameters
    }
    results = graph.inline(layer, branch.graph, bound)
    for index, entry in enumerate(branch.outer_outputs):
        if index < len(node.outputs):
            graph.keep_names(OutputRef(layer, index))
            graph.redirect(OutputRef(layer, index), results[entry.internal])
    graph.remove(layer)
    return True

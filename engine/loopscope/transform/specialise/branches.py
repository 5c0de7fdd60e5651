"""Replacement of an If by the branch that always runs."""

from __future__ import annotations

from loopscope.checks.known import scalar_value
from loopscope.checks.propagate import Propagated
from loopscope.ir.model import Body, LayerId, OutputRef
from loopscope.transform.specialise.editable_graph import EditableGraph


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

"""A model as a GraphDef, TensorFlow's file of a graph."""

from __future__ import annotations

from typing import Any

from loopscope.errors import WriteError
from loopscope.ir.graph_messages import MESSAGES
from loopscope.ir.model import Model
from loopscope.write.tensorflow.graph_nodes import declared, write_graph
from loopscope.write.tensorflow.nodes import GraphDefNodes
from loopscope.write.tensorflow.while_functions import write_region

_PRODUCER = 27
"""The version of TensorFlow's graphs from which on they mean what is written here."""


def graph_def(model: Model) -> Any:
    """The message: a Placeholder for each input and an Identity for each output, under their names;
    loops and branches with functions.

    ``WriteError`` for an operation that TensorFlow has nothing for, or whose element types are not
    known.
    """
    made = MESSAGES["GraphDef"]()
    made.versions.producer = _PRODUCER
    nodes = GraphDefNodes(made.node, made.library.function)
    given = {}
    for node in model.graph.parameters:
        known = declared(node, "")
        name = nodes.add(
            "Placeholder",
            [],
            [known.element_type],
            node.name,
            dtype=known.element_type,
            shape=known.shape,
        )[0].text
        given[node.id] = declared(node, name)
    # Before the other nodes take them.
    names = {node.id: nodes.free(node.name) for node in model.graph.results}
    results = write_graph(model.graph, given, nodes, "main", write_region)
    for node in model.graph.results:
        nodes.taken.discard(names[node.id].lower())
        tensor = results[node.id]
        nodes.add(
            "Identity", [tensor], [tensor.element_type], names[node.id], T=tensor.element_type
        )
    if not made.node:
        raise WriteError("the model has no node")
    return made

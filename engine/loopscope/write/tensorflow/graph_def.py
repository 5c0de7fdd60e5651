"""Conversion of a model to a GraphDef, TensorFlow's file format of a graph."""

from __future__ import annotations

from typing import Any

from loopscope.errors import WriteError
from loopscope.ir.graph_messages import MESSAGES
from loopscope.ir.model import Model
from loopscope.write.tensorflow.graph_nodes import declared, write_graph
from loopscope.write.tensorflow.nodes import GraphDefNodes
from loopscope.write.tensorflow.while_functions import write_region

_PRODUCER = 27
"""Version of TensorFlow's graph format from which on the written graph is valid."""


def graph_def(model: Model) -> Any:
    """Return the GraphDef message of a model.

    Each input becomes a Placeholder and each output an Identity of the same name; loops and
    branches become functions.

    ``WriteError`` for an operation without a translation or with unknown element types.
    """
    message = MESSAGES["GraphDef"]()
    message.versions.producer = _PRODUCER
    nodes = GraphDefNodes(message.node, message.library.function)
    parameters = {}
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
        parameters[node.id] = declared(node, name)
    # Reserve the names of outputs before other nodes take them.
    names = {node.id: nodes.unique_name(node.name) for node in model.graph.results}
    results = write_graph(model.graph, parameters, nodes, "main", write_region)
    for node in model.graph.results:
        nodes.used_names.discard(names[node.id].lower())
        tensor = results[node.id]
        nodes.add(
            "Identity", [tensor], [tensor.element_type], names[node.id], T=tensor.element_type
        )
    if not message.node:
        raise WriteError("the model has no node")
    return message

"""Types and shapes that an OpenVINO file does not declare: it writes a scalar like any rank."""

from __future__ import annotations

from loopscope.checks.propagate import Propagated, propagate
from loopscope.ir.model import Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ir.walk import graphs
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known


def with_known_ports(model: Model) -> Model:
    """Return the model with the types and shapes that propagation finds."""
    known = propagate(model, CATALOGUE)
    done: dict[int, ModelGraph] = {}
    for place in reversed(list(graphs(model))):
        nodes = [_node(node, place.address, known, done) for node in place.graph.nodes]
        done[id(place.graph)] = replace(place.graph, nodes=tuple(nodes))
    return replace(model, graph=done[id(model.graph)])


def _node(node: Node, address: str, known: Propagated, done: dict[int, ModelGraph]) -> Node:
    bodies = tuple([replace(body, graph=done[id(body.graph)]) for body in node.bodies])
    if node.type == "Result":
        inputs = tuple([_port(port, known.output(address, node.id)) for port in node.inputs])
        return replace(node, inputs=inputs)
    outputs = tuple(
        [
            _port(port, known.output(address, node.id, index))
            for index, port in enumerate(node.outputs)
        ]
    )
    return replace(node, outputs=outputs, bodies=bodies)


def _port(port: Port, known: Known) -> Port:
    both = port.shape.intersect(known.shape)
    return replace(
        port,
        element_type=known.element_type or port.element_type,
        shape=known.shape if both is None else both,
    )

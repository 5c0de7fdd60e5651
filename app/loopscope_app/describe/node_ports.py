"""Inputs and outputs of a node: their names in the specification, types and shapes."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.ir import Body, Model, OutputRef, Port, decode, labels
from loopscope.ops import PortNames, catalogue_for, port_names
from loopscope.view import input_roles, output_role
from loopscope_app.describe.node_index import IndexedNode

_OF_LOOP = ("trip count", "execution condition")
_OF_IF = ("condition",)


@dataclass(frozen=True, slots=True)
class NodePort:
    """An input or output of a node."""

    name: str
    role: str
    """Use in the body of a loop, such as ``carried``; empty elsewhere."""
    type: str
    """Declared element type and shape."""
    source: OutputRef | None = None
    """The output that feeds an input; None for an output or a missing input."""


def input_ports(model: Model, place: IndexedNode) -> tuple[NodePort, ...]:
    """Return the inputs of a node in order."""
    node, sources = place.node, place.sources
    names = list(_names(model, place, len(sources)).inputs)
    roles = [""] * len(sources)
    if node.bodies:
        fixed = _OF_LOOP if node.type == "Loop" else _OF_IF if node.type == "If" else ()
        names[: len(fixed)] = fixed[: len(names)]
        for body in node.bodies:
            for number, (name, role) in _bound(body).items():
                if len(fixed) <= number < len(names):
                    names[number], roles[number] = name, role
    return tuple(
        NodePort(name, role, _source_type(place, source), source)
        for name, role, source in zip(names, roles, sources, strict=True)
    )


def output_ports(model: Model, place: IndexedNode) -> tuple[NodePort, ...]:
    """Return the outputs of a node in order."""
    node = place.node
    names = list(_names(model, place, len(node.inputs)).outputs)
    roles = [""] * len(names)
    for body in node.bodies[:1]:
        label = labels(body.graph)
        mapped = sorted(
            (entry for entry in body.outputs if entry.external != -1),
            key=lambda entry: entry.external,
        )
        for number, entry in enumerate(mapped[: len(names)]):
            names[number] = decode(label.get(entry.internal, names[number]))
            roles[number] = output_role(body, entry)
    return tuple(
        NodePort(name, role, type_of(port))
        for name, role, port in zip(names, roles, node.outputs, strict=True)
    )


def type_of(port: Port) -> str:
    """Return the declared element type and shape of a port, such as ``f32 [1,?]``."""
    shape = "any rank" if port.shape.rank is None else str(port.shape)
    return f"{port.element_type or 'any type'} {shape}"


def _names(model: Model, place: IndexedNode, inputs: int) -> PortNames:
    operation = catalogue_for(model.dialect).find(place.node.type, place.node.opset)
    return port_names(operation, place.node.opset, inputs, len(place.node.outputs))


def _bound(body: Body) -> dict[int, tuple[str, str]]:
    """Return name and role of the Parameter that each input of a node with bodies feeds."""
    label, roles = labels(body.graph), input_roles(body)
    return {
        entry.external: (decode(label.get(entry.internal, "?")), roles[entry.internal][0])
        for entry in body.inputs
        if entry.external >= 0
    }


def _source_type(place: IndexedNode, source: OutputRef | None) -> str:
    if source is None:
        return "not connected"
    outputs = place.graph.by_id[source.layer].outputs
    return type_of(outputs[source.output]) if source.output < len(outputs) else "any type"

"""Models for finite differences: in f64 instead of narrower floats, and with a new input.

The new input replaces a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ir.walk import graphs

_TYPES = frozenset(str(element_type) for element_type in REAL_FLOATS)
"""Names of real float types.

IR attributes have such a value only where they name an element type.
"""
_ONNX_TYPES = frozenset({1, 10, 16})
"""TensorProto numbers of the floats that are narrower than double."""
_ONNX_DOUBLE = 11
_TYPE_ATTRIBUTES = frozenset(
    {"to", "dtype", "stash_type", "output_dtype", "output_datatype", "softmax_precision"}
)
"""ONNX attributes that name an element type by its TensorProto number."""


def in_double_precision(model: Model) -> Model:
    """Return the model with every real float as f64: constants, inputs, and types that attributes
    name.
    """
    converted: dict[int, ModelGraph] = {}
    for place in reversed(list(graphs(model))):
        nodes = tuple(_widen(node, converted) for node in place.graph.nodes)
        converted[id(place.graph)] = replace(place.graph, nodes=nodes)
    return replace(model, graph=converted[id(model.graph)], file="")


def _widen(node: Node, converted: Mapping[int, ModelGraph]) -> Node:
    constant = node.constant
    if constant is not None and constant.element_type in REAL_FLOATS:
        constant = Constant.of(constant.array().astype(np.float64))
    attributes = {name: _widen_attribute(name, value) for name, value in node.attributes.items()}
    return replace(
        node,
        attributes=MappingProxyType(attributes),
        inputs=tuple(map(_widen_port, node.inputs)),
        outputs=tuple(map(_widen_port, node.outputs)),
        constant=constant,
        bodies=tuple(replace(body, graph=converted[id(body.graph)]) for body in node.bodies),
    )


def _widen_attribute(name: str, value: object) -> object:
    if isinstance(value, str) and value.strip().lower() in _TYPES:
        return str(ElementType.F64)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return (
        _ONNX_DOUBLE
        if name in _TYPE_ATTRIBUTES and isinstance(value, int) and value in _ONNX_TYPES
        else value
    )


def _widen_port(port: Port) -> Port:
    return replace(port, element_type=ElementType.F64) if port.element_type in REAL_FLOATS else port


def with_new_input(model: Model, source: OutputRef, name: str) -> tuple[Model, OutputRef]:
    """Return the model with a new input in place of a tensor, and that input.

    The tensor is one of the outermost graph.
    """
    graph = model.graph
    port = graph.tensor(source)
    layer = LayerId(max(graph.by_id) + 1)
    attributes = {"shape": str(port.shape)[1:-1], "element_type": str(port.element_type)}
    parameter = Node(
        layer,
        name,
        "Parameter",
        "opset1",
        attributes,
        outputs=(Port(0, port.element_type, port.shape, form=port.form),),
    )
    edges = tuple(
        Edge(layer, 0, edge.to_layer, edge.to_port)
        if (edge.from_layer, edge.from_port) == (source.layer, port.id)
        else edge
        for edge in graph.edges
    )
    return replace(
        model, graph=replace(graph, nodes=(*graph.nodes, parameter), edges=edges)
    ), OutputRef(layer, 0)

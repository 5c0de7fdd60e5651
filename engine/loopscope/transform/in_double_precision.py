"""A model that computes in f64 what it computes in narrower floats."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.model import Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ir.walk import graphs

_TYPES = frozenset(str(one) for one in REAL_FLOATS)
"""As attributes of an IR spell them: only those that name an element type have such a value."""
_ONNX_TYPES, _ONNX_DOUBLE, _OF_TYPES = (
    frozenset({1, 10, 16}),
    11,
    frozenset({"to", "dtype", "stash_type"}),
)
"""TensorProto's numbers of float, float16, bfloat16 and double, and the attributes that have
one.
"""


def in_double_precision(model: Model) -> Model:
    """The same model with every real float as f64: constants, inputs, and the types that
    conversions go to.
    """
    made: dict[int, ModelGraph] = {}
    for place in reversed(list(graphs(model))):
        nodes = tuple(_wide(node, made) for node in place.graph.nodes)
        made[id(place.graph)] = replace(place.graph, nodes=nodes)
    return replace(model, graph=made[id(model.graph)], file="")


def _wide(node: Node, made: Mapping[int, ModelGraph]) -> Node:
    constant = node.constant
    if constant is not None and constant.element_type in REAL_FLOATS:
        constant = Constant.of(constant.array().astype(np.float64))
    attributes = {name: _attribute(name, value) for name, value in node.attributes.items()}
    return replace(
        node,
        attributes=MappingProxyType(attributes),
        inputs=tuple(map(_port, node.inputs)),
        outputs=tuple(map(_port, node.outputs)),
        constant=constant,
        bodies=tuple(replace(body, graph=made[id(body.graph)]) for body in node.bodies),
    )


def _attribute(name: str, value: object) -> object:
    if isinstance(value, str) and value.strip().lower() in _TYPES:
        return str(ElementType.F64)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return (
        _ONNX_DOUBLE
        if name in _OF_TYPES and isinstance(value, int) and value in _ONNX_TYPES
        else value
    )


def _port(port: Port) -> Port:
    return replace(port, element_type=ElementType.F64) if port.element_type in REAL_FLOATS else port

"""Inputs of a model that become constants, or whose shapes become known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import InputError, listed, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Model, Node, Signature
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.transform.specialise.editable_graph import constant_node


def with_values(model: Model, values: Mapping[str, Any]) -> Model:
    """Return the model with a constant in place of each input of ``values``.

    ``InputError`` for an unknown input, and for a value of another type or shape.
    """
    constants: dict[LayerId, np.ndarray] = {}
    for name, value in values.items():
        signature = input_named(model, name)
        constants[signature.layer] = _fitting(signature, name, value)
    return _with_nodes(
        model,
        {layer: _constant(model, layer, array) for layer, array in constants.items()},
    )


def with_shapes(model: Model, shapes: Mapping[str, Sequence[int]]) -> Model:
    """Return the model with static shapes of some inputs.

    ``InputError`` for an unknown input, and for a shape that its declaration excludes.
    """
    nodes: dict[LayerId, Node] = {}
    for name, lengths in shapes.items():
        signature = input_named(model, name)
        shape = PartialShape.of(lengths)
        if signature.shape.intersect(shape) is None:
            raise InputError(
                f"the input {shorten(name, 60)!r} has the shape {signature.shape}, which "
                f"{shape} does not fit"
            )
        node = nodes.get(signature.layer, model.graph.by_id[signature.layer])
        attributes = dict(node.attributes)
        if "shape" in attributes:
            attributes["shape"] = ",".join(map(str, lengths))
        nodes[signature.layer] = replace(
            node, attributes=attributes, outputs=(replace(node.outputs[0], shape=shape),)
        )
    return _with_nodes(model, nodes)


def input_named(model: Model, name: str) -> Signature:
    """Return the input with this name; ``InputError`` if there is none, or several."""
    signatures = model.inputs_called.get(name, ())
    if len(signatures) != 1:
        names = listed([repr(signature.name) for signature in model.inputs])
        raise InputError(
            f"{shorten(name, 60)!r} is not the name of one input, expected one of {names}"
        )
    return signatures[0]


def _fitting(signature: Signature, name: str, value: Any) -> np.ndarray:
    """Return the value in the type of the input; ``InputError`` if it does not fit."""
    array = np.asarray(value)
    element_type = signature.element_type
    if element_type is None or signature.form != "tensor":
        raise InputError(f"the input {shorten(name, 60)!r} has no tensor type, and cannot be set")
    if element_type is ElementType.STRING:
        fitting = array.astype(object)
    else:
        fitting = _converted(array, element_type, name)
    if not signature.shape.contains(fitting.shape):
        raise InputError(
            f"the input {shorten(name, 60)!r} has the shape {signature.shape}, got "
            f"{list(fitting.shape)}"
        )
    return fitting


def _converted(array: np.ndarray, element_type: ElementType, name: str) -> np.ndarray:
    """Return an array in a type; only a float may be rounded."""
    try:
        converted = array.astype(element_type.dtype)
        fits = element_type.is_float or np.array_equal(converted, array)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            f"the input {shorten(name, 60)!r} is {element_type}, which "
            f"{shorten(str(array.tolist()), 60)} does not fit"
        )
    return converted


def _constant(model: Model, layer: LayerId, array: np.ndarray) -> Node:
    parameter = model.graph.by_id[layer]
    node = constant_node(model.dialect, layer, parameter.name, array)
    port = replace(node.outputs[0], names=parameter.outputs[0].names)
    return replace(node, outputs=(replace(port, id=parameter.outputs[0].id),))


def _with_nodes(model: Model, nodes: Mapping[LayerId, Node]) -> Model:
    graph = model.graph
    return replace(
        model,
        graph=replace(graph, nodes=tuple([nodes.get(node.id, node) for node in graph.nodes])),
    )

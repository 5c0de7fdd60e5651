"""The structure of a model without its weights.

Consts of a few elements, which may decide the control flow, retain their data. All others lose it:
the file contains zeros, which compress well and any reader of models accepts. ``without_data`` then
marks these Consts as not kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.ir.constant import Constant, encode, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.ir.replace import replace

SMALL = 64
"""Maximum number of elements of a Const that retains its data.

Shapes, axes, trip counts and scalars are that small.
"""


def without_data(model: Model) -> Model:
    """Return the model with its large Consts marked as not kept."""
    return replace(
        model,
        graph=_change_constants(
            model.graph, lambda constant: replace(constant, data=b"", is_kept=False)
        ),
    )


def with_zeros(model: Model) -> Model:
    """Return the model with zeros in its large Consts, which can be written to a file."""
    return replace(model, graph=_change_constants(model.graph, _zeros))


def _change_constants(graph: ModelGraph, change: Any) -> ModelGraph:
    nodes = tuple(_change_node(node, change) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _change_node(node: Node, change: Any) -> Node:
    constant = node.constant
    if constant is not None:
        return replace(node, constant=change(constant)) if constant.elements > SMALL else node
    if not node.bodies:
        return node
    return replace(
        node,
        bodies=tuple(
            replace(body, graph=_change_constants(body.graph, change)) for body in node.bodies
        ),
    )


def _zeros(constant: Constant) -> Constant:
    kind = constant.element_type
    texts = kind is ElementType.STRING
    data = (
        encode(np.full(constant.shape, "", object))
        if texts
        else bytes(packed_size(kind, constant.elements))
    )
    return replace(constant, data=data, is_kept=True)

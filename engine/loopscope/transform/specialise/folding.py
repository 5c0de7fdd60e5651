"""Computation of nodes whose inputs are constant."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from loopscope.checks.propagate import Propagated
from loopscope.ir.model import LayerId, Node, OutputRef
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import AttributeProblem, Operation, Role, typed
from loopscope.transform.specialise.editable_graph import EditableGraph

_MOST_NEW_BYTES = 1 << 24
"""Size in bytes of a folded result that is larger than all inputs together."""
_KERNEL_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    RuntimeError,
    AttributeProblem,
)
_EXACT = frozenset(
    [
        "Add",
        "Subtract",
        "Sub",
        "Multiply",
        "Mul",
        "Divide",
        "Div",
        "Negative",
        "Neg",
        "Abs",
        "Sqrt",
        "Floor",
        "Ceil",
        "Ceiling",
        "Sign",
        "Maximum",
        "Max",
        "Minimum",
        "Min",
        "Clip",
        "Clamp",
        "Relu",
        "ReLU",
        "Identity",
        "Cast",
        "CastLike",
        "Convert",
        "ConvertLike",
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Concat",
        "Slice",
        "StridedSlice",
        "Split",
        "VariadicSplit",
        "Gather",
        "GatherElements",
        "GatherND",
        "Expand",
        "Broadcast",
        "Tile",
        "Pad",
        "Where",
        "Select",
        "ConstantOfShape",
        "Constant",
        "Reverse",
        "ReverseSequence",
        "SpaceToDepth",
        "DepthToSpace",
        "ScatterElements",
        "ScatterND",
        "ScatterElementsUpdate",
        "ScatterNDUpdate",
        "ScatterUpdate",
        "Trilu",
    ]
)
"""Operations on floats that every runtime rounds to the same bits.

Other float operations remain, so that the results of a runtime do not change by a rounding.
"""


def fold_known(graph: EditableGraph, address: str, known: Propagated) -> None:
    """Replace the tensors of a graph whose values propagation knows by constants."""
    for layer, node in list(graph.nodes.items()):
        if node.type == "Result" or node.constant is not None or _is_stateful(node):
            continue
        facts = [known.output(address, layer, index) for index in range(len(node.outputs))]
        values = [fact.value for fact in facts]
        if not values or any(port.form != "tensor" for port in node.outputs):
            continue
        becomes_constant = not node.bodies and node.type != "Parameter" and len(values) == 1
        if becomes_constant and values[0] is not None:
            graph.keep_names(OutputRef(layer, 0))
            graph.make_constant(layer, values[0])
            continue
        for index, value in enumerate(values):
            tensor = OutputRef(layer, index)
            if value is not None and _is_read(graph, tensor):
                graph.keep_names(tensor)
                name = node.name if len(values) == 1 else f"{node.name}_{index}"
                graph.redirect(tensor, graph.insert_constant(layer, name, value))


def fold_constants(graph: EditableGraph, order: list[LayerId], catalogue: Catalogue) -> None:
    """Compute nodes whose inputs are Const nodes, in execution order."""
    for layer in order:
        node = graph.nodes[layer]
        if node.bodies or node.constant is not None or len(node.outputs) != 1 or not node.inputs:
            continue
        operation = catalogue.find(node.type, node.opset)
        if operation is None or not _is_foldable(operation):
            continue
        array = _computed(graph, node, operation)
        if array is not None:
            graph.keep_names(OutputRef(layer, 0))
            graph.make_constant(layer, array)


def _is_foldable(operation: Operation) -> bool:
    return (
        operation.kernel is not None
        and operation.role is Role.COMPUTE
        and operation.pure
        and operation.only_tensors
        and not operation.stateful
    )


def _computed(graph: EditableGraph, node: Node, operation: Operation) -> np.ndarray | None:
    """Return the value of a node, or None if it is not constant, too large, or inexact."""
    values: list[np.ndarray | None] = []
    for index in range(len(node.inputs)):
        source = graph.source(node.id, index)
        constant = graph.nodes[source.layer].constant if source is not None else None
        if source is not None and (constant is None or not constant.is_kept):
            return None
        values.append(None if constant is None else constant.array())
    while values and values[-1] is None:
        values.pop()
    attributes = _attributes(node, operation)
    if attributes is None or operation.kernel is None:
        return None
    size = sum(value.nbytes for value in values if value is not None)
    port = node.outputs[0]
    if port.shape.is_static and math.prod(port.shape.lengths) > max(size, _MOST_NEW_BYTES):
        return None
    counted = {"outputs": 1} if operation.counts_outputs else {}
    scalars = [value[()] if value is not None and value.ndim == 0 else value for value in values]
    try:
        with np.errstate(all="ignore"):
            result = operation.kernel(*scalars, **attributes, **counted)
    except _KERNEL_ERRORS:
        return None
    result = result[0] if isinstance(result, tuple) else result
    if not isinstance(result, np.ndarray | np.generic):
        return None
    array = np.asarray(result)
    is_exact = node.type in _EXACT or array.dtype.kind in "biuO"
    return array if is_exact and array.nbytes <= max(size, _MOST_NEW_BYTES) else None


def _attributes(node: Node, operation: Operation) -> Mapping[str, object] | None:
    try:
        return typed(operation, node.attributes)
    except _KERNEL_ERRORS:
        return None


def _is_stateful(node: Node) -> bool:
    return node.type in ("Assign", "ReadValue")


def _is_read(graph: EditableGraph, tensor: OutputRef) -> bool:
    return any(tensor in sources for sources in graph.sources.values())

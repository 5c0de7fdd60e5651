"""Simplification of a graph: nodes with constant inputs computed, and unused nodes removed.

Captured values that no body reads are removed as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from loopscope.checks.propagate import Propagated
from loopscope.ir.model import (
    IF,
    LOOP,
    Body,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    OutputRef,
)
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import AttributeProblem, Operation, Role, typed
from loopscope.transform.specialise.editable_graph import EditableGraph

_MOST_NEW_BYTES = 1 << 24
"""Largest size in bytes of a folded result that is larger than its inputs together."""
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


_SINKS = frozenset({"Assign"})
"""Operations with an effect, which remain although nothing reads their outputs."""


_FIXED_INPUTS = {IF: 1, LOOP: 2}
"""Number of inputs with a meaning of their own: condition, or trip count and condition."""


def remove_dead(graph: EditableGraph, can_change: Callable[[Node], bool]) -> None:
    """Remove the dead nodes of a graph whose bodies were simplified before.

    ``can_change`` returns True for a node whose bodies may be replaced. Parameters remain: they are
    the inputs of a model or are bound by a port map.
    """
    for layer, node in list(graph.nodes.items()):
        if node.bodies and can_change(node):
            _drop_unread_captures(graph, layer)
            if node.type == IF:
                _drop_unread_outputs(graph, layer)
    needed = _needed(graph)
    for layer, node in list(graph.nodes.items()):
        if layer not in needed and node.type != "Parameter":
            graph.remove(layer)


def _needed(graph: EditableGraph) -> set[LayerId]:
    needed = {
        layer
        for layer, node in graph.nodes.items()
        if node.type == "Result" or not node.outputs or _has_effect(node)
    }
    waiting = list(needed)
    while waiting:
        layer = waiting.pop()
        for index in range(len(graph.sources[layer])):
            source = graph.source(layer, index)
            if source is not None and source.layer not in needed:
                needed.add(source.layer)
                waiting.append(source.layer)
    return needed


def _has_effect(node: Node) -> bool:
    """Return True for a sink, and for a node with a sink in its bodies."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if inner.type in _SINKS:
            return True
        waiting += [other for body in inner.bodies for other in body.graph.nodes]
    return False


def is_invariant(body: Body, entry: InputMap) -> bool:
    """Return True if a Parameter receives one outer tensor in every iteration."""
    carried = {edge.to_layer for edge in body.back_edges}
    return entry.axis is None and entry.external >= 0 and entry.internal not in carried


def _drop_unread_captures(graph: EditableGraph, layer: LayerId) -> None:
    """Remove invariant Parameters that no node of the body reads, and inputs without Parameter."""
    node = graph.nodes[layer]
    if node.is_function:
        return  # the inputs of a function are bound by position
    bodies = tuple([_without_unread(body) for body in node.bodies])
    used = {entry.external for body in bodies for entry in body.inputs}
    captured = {
        entry.external for body in node.bodies for entry in body.inputs if is_invariant(body, entry)
    }
    fixed = _FIXED_INPUTS.get(node.type, 0)
    remaining = [
        index
        for index in range(len(node.inputs))
        if index < fixed or index in used or index not in captured
    ]
    if len(remaining) == len(node.inputs) and all(
        new is old for new, old in zip(bodies, node.bodies, strict=True)
    ):
        return
    number = {old: new for new, old in enumerate(remaining)}
    bodies = tuple(
        [
            replace(
                body,
                inputs=tuple(
                    [
                        replace(entry, external=number.get(entry.external, -1))
                        for entry in body.inputs
                    ]
                ),
            )
            for body in bodies
        ]
    )
    graph.sources[layer] = [graph.sources[layer][index] for index in remaining]
    graph.put(
        replace(node, bodies=bodies, inputs=tuple([node.inputs[index] for index in remaining]))
    )


def _without_unread(body: Body) -> Body:
    unread = {
        entry.internal
        for entry in body.inputs
        if is_invariant(body, entry) and OutputRef(entry.internal, 0) not in body.graph.consumers
    }
    if not unread:
        return body
    nodes = tuple([node for node in body.graph.nodes if node.id not in unread])
    inputs = tuple([entry for entry in body.inputs if entry.internal not in unread])
    return replace(body, graph=replace(body.graph, nodes=nodes), inputs=inputs)


def _drop_unread_outputs(graph: EditableGraph, layer: LayerId) -> None:
    """Remove outputs of an If that nothing reads, with the Results of its branches."""
    node = graph.nodes[layer]
    read = {
        source.output
        for reader in graph.nodes
        for index in range(len(graph.sources[reader]))
        if (source := graph.source(reader, index)) is not None and source.layer == layer
    }
    remaining = [index for index in range(len(node.outputs)) if index in read]
    if len(remaining) == len(node.outputs) or not remaining:
        return
    number = {OutputRef(layer, old): OutputRef(layer, new) for new, old in enumerate(remaining)}
    bodies = tuple([_with_outputs(body, remaining) for body in node.bodies])
    graph.renumber_outputs(number)
    graph.put(replace(node, bodies=bodies, outputs=tuple([node.outputs[n] for n in remaining])))


def _with_outputs(body: Body, remaining: list[int]) -> Body:
    entries = [body.outer_outputs[index] for index in remaining]
    results = {entry.internal for entry in entries}
    graph: ModelGraph = body.graph
    dropped = {entry.internal for entry in body.outer_outputs if entry.internal not in results}
    return replace(
        body,
        graph=replace(
            graph,
            nodes=tuple([node for node in graph.nodes if node.id not in dropped]),
            edges=tuple([edge for edge in graph.edges if edge.to_layer not in dropped]),
        ),
        outputs=tuple([replace(entry, external=new) for new, entry in enumerate(entries)]),
    )

"""The types and shapes that ONNX's shape inference finds, asked of a copy of the model without the
data of its weights.

It crashes on many a file that is not as it should be, and so works in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import prod

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from loopscope.native.workers import WORKERS, Crashed

_MOST_INFERRED_BYTES = 32 * 2**20
"""Beyond this the types and shapes of a file are taken as it says them."""
_LARGE = 1024
"""Elements of a tensor that is no shape, axes or the like: of its data no shape is computed."""
_SMALL_FILE, _SMALL_GRAPH = 2**19, 2**12
"""Bytes of what is taken as it is: looking for large tensors in it would take longer."""
_CAPTURED = 64
"""Elements up to which a constant is a shape, axes or the like."""
_WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_TENSOR, _GRAPH = int(AttributeProto.TENSOR), int(AttributeProto.GRAPH)


class Inferred:
    """The model's graph with all types and shapes that are found, nodes and bodies as they stand
    in it; None when none are.
    """

    def __init__(self, nodes: int, answer: Callable[[], list[bytes]]) -> None:
        self.crashed = False
        """The inference has ended its process, or took too long; known when the graph was asked
        for.
        """
        self._nodes, self._answer = nodes, answer

    @cached_property
    def graph(self) -> GraphProto | None:
        """Waits for what the other process finds."""
        try:
            (made,) = self._answer()
            found = ModelProto.FromString(made).graph
        except Crashed:
            self.crashed = True
            return None
        except (
            Exception
        ):  # protobuf raises many kinds, and a model that contradicts itself can still be looked at
            return None
        return found if len(found.node) == self._nodes else None


@contextmanager
def inference(model: ModelProto, document: bytes) -> Iterator[Inferred]:
    """Asks for the types, which another process finds meanwhile. ``document``: what the model
    was parsed from.
    """
    nodes = len(model.graph.node)
    try:
        copied = len(document) > _SMALL_FILE or any(_bodies(node) for node in model.graph.node[:])
        made = _outline(model) if copied else None
        if made is not None:
            _add_captured(made.graph, {})
        outline = document if made is None else bytes(made.SerializeToString())
    except Exception:  # as above
        outline = b""
    if not outline or len(outline) > _MOST_INFERRED_BYTES:
        yield Inferred(nodes, nothing)
        return
    with WORKERS.asking("onnx types", outline) as answer:
        yield Inferred(nodes, answer)


def nothing() -> list[bytes]:
    """The answer where nothing was asked."""
    return []


def _add_captured(graph: GraphProto, outer: Mapping[str, TensorProto]) -> None:
    """Add the small constants that bodies capture to their initializers: ONNX's inference does
    not look for values around a body.
    """
    known = {**outer, **_constants(graph)}
    for node in graph.node[:]:
        for body in _bodies(node):
            own = {one.name for one in (*body.input, *body.initializer)} | {
                name for inner in body.node[:] for name in inner.output
            }
            names = {
                name: None
                for inner in body.node[:]
                for name in inner.input
                if name in known and name not in own
            }
            visible = {name: tensor for name, tensor in known.items() if name not in own}
            _add_captured(body, visible)
            body.initializer.extend(known[name] for name in names)


def _constants(graph: GraphProto) -> dict[str, TensorProto]:
    """Return the small tensors of a graph by name: its initializers that no input replaces, and
    its Constants.
    """
    inputs = {one.name for one in graph.input}
    found = {
        one.name: one for one in graph.initializer[:] if one.name not in inputs and _is_small(one)
    }
    for node in graph.node[:]:
        if node.op_type == "Constant" and not node.domain and node.output:
            for attribute in node.attribute:
                tensor = _tensor_of(attribute)
                if tensor is not None and _is_small(tensor):
                    found[node.output[0]] = TensorProto.FromString(tensor.SerializeToString())
                    found[node.output[0]].name = node.output[0]
    return found


def _tensor_of(attribute: AttributeProto) -> TensorProto | None:
    """Return the tensor that an attribute of a Constant spells."""
    match attribute.name:
        case "value":
            return attribute.t
        case "value_int":
            return TensorProto(data_type=TensorProto.INT64, int64_data=[attribute.i])
        case "value_ints":
            return TensorProto(
                data_type=TensorProto.INT64, dims=[len(attribute.ints)], int64_data=attribute.ints
            )
    return None


def _is_small(tensor: TensorProto) -> bool:
    return tensor.data_location != TensorProto.EXTERNAL and prod(tensor.dims[:]) <= _CAPTURED


def _bodies(node: NodeProto) -> list[GraphProto]:
    if node.op_type not in _WITH_BODIES or node.domain:
        return []
    return [one.g for one in node.attribute[:] if one.type == _GRAPH]


def _outline(model: ModelProto) -> ModelProto:
    """Only shapes and types of large tensors are copied: most of a file is weights."""
    outline = ModelProto(ir_version=model.ir_version)
    outline.opset_import.extend(model.opset_import)
    outline.functions.extend(model.functions)
    _fill(outline.graph, model.graph)
    return outline


def _fill(outline: GraphProto, graph: GraphProto) -> None:
    nodes = graph.node[:]
    waiting = 0
    for number, node in enumerate(nodes):
        if (
            node.op_type in _HOLDERS
            and not node.domain
            and any(_holds_much(one) for one in node.attribute[:])
        ):
            outline.node.extend(nodes[waiting:number])
            _fill_node(outline.node.add(), node)
            waiting = number + 1
    outline.node.extend(nodes[waiting:])
    outline.initializer.extend(_without_data(one) for one in graph.initializer[:])
    outline.sparse_initializer.extend(graph.sparse_initializer)
    outline.input.extend(graph.input)
    outline.output.extend(graph.output)
    outline.value_info.extend(graph.value_info)


_HOLDERS = frozenset({"Constant", "If", "Loop"})
"""Operations of ONNX itself that may hold large tensors."""


def _holds_much(attribute: AttributeProto) -> bool:
    if attribute.type == _GRAPH:
        return bool(attribute.g.ByteSize() > _SMALL_GRAPH)
    return attribute.type == _TENSOR and prod(attribute.t.dims[:]) > _LARGE


def _fill_node(outline: NodeProto, node: NodeProto) -> None:
    outline.op_type, outline.name = node.op_type, node.name
    outline.input.extend(node.input)
    outline.output.extend(node.output)
    for attribute in node.attribute:
        inside = outline.attribute.add()
        if attribute.type == _TENSOR:
            inside.name, inside.type = attribute.name, attribute.type
            inside.t.CopyFrom(_without_data(attribute.t))
        elif attribute.type == _GRAPH:
            inside.name, inside.type = attribute.name, attribute.type
            inside.g.SetInParent()
            _fill(inside.g, attribute.g)
        else:
            inside.CopyFrom(attribute)


def _without_data(tensor: TensorProto) -> TensorProto:
    if prod(tensor.dims[:]) <= _LARGE:
        return tensor
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)

"""Types and shapes by ONNX's shape inference, run on a copy of the model without weight data.

The inference runs in a worker process, because it crashes on many invalid files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import prod

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from loopscope.native.workers import WORKERS, Crashed

_MAX_INFERRED_BYTES = 32 * 2**20
"""Size of the copy in bytes above which inference is skipped."""
_LARGE = 1024
"""Number of elements above which a tensor is not a shape, axes or similar, so its data is omitted.
"""
_SMALL_FILE, _SMALL_GRAPH = 2**19, 2**12
"""Sizes in bytes up to which files and bodies are copied whole, which is faster than to search
them for large tensors.
"""
_CAPTURED = 64
"""Number of elements up to which a captured constant may be a shape, axes or similar."""
_WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_TENSOR, _GRAPH = int(AttributeProto.TENSOR), int(AttributeProto.GRAPH)


class Inferred:
    """The model's graph with inferred types and shapes; None if there are none.

    Nodes and bodies have the same order as in the model.
    """

    def __init__(self, nodes: int, answer: Callable[[], list[bytes]]) -> None:
        self.crashed = False
        """True if the inference crashed or took too long. Known after the first access to
        ``graph``.
        """
        self._nodes, self._answer = nodes, answer

    @cached_property
    def graph(self) -> GraphProto | None:
        """The graph with inferred types. The first access waits for the worker process."""
        try:
            (data,) = self._answer()
            graph = ModelProto.FromString(data).graph
        except Crashed:
            self.crashed = True
            return None
        # protobuf raises many kinds of errors, and an inconsistent model can still be shown.
        except Exception:
            return None
        return graph if len(graph.node) == self._nodes else None


@contextmanager
def inference(model: ModelProto, document: bytes) -> Iterator[Inferred]:
    """Request type inference from a worker process. ``document`` is ``model`` as bytes."""
    nodes = len(model.graph.node)
    try:
        copied = len(document) > _SMALL_FILE or any(_bodies(node) for node in model.graph.node[:])
        shortened = _outline(model) if copied else None
        if shortened is not None:
            _add_captured(shortened.graph, {})
        outline = document if shortened is None else bytes(shortened.SerializeToString())
    except Exception:  # as in Inferred.graph
        outline = b""
    if not outline or len(outline) > _MAX_INFERRED_BYTES:
        yield Inferred(nodes, nothing)
        return
    with WORKERS.asking("onnx types", outline) as answer:
        yield Inferred(nodes, answer)


def nothing() -> list[bytes]:
    """Return the answer for a request that was not made."""
    return []


def _add_captured(graph: GraphProto, outer: Mapping[str, TensorProto]) -> None:
    """Add the small constants that bodies capture to the bodies' initializers.

    ONNX's inference does not use values from outside of a body.
    """
    known = {**outer, **_constants(graph)}
    for node in graph.node[:]:
        for body in _bodies(node):
            own = {value.name for value in (*body.input, *body.initializer)} | {
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
    """Return the small tensors of a graph by name: non-input initializers, and Constants."""
    inputs = {value.name for value in graph.input}
    tensors = {
        value.name: value
        for value in graph.initializer[:]
        if value.name not in inputs and _is_small(value)
    }
    for node in graph.node[:]:
        if node.op_type == "Constant" and not node.domain and node.output:
            for attribute in node.attribute:
                tensor = _tensor_of(attribute)
                if tensor is not None and _is_small(tensor):
                    tensors[node.output[0]] = TensorProto.FromString(tensor.SerializeToString())
                    tensors[node.output[0]].name = node.output[0]
    return tensors


def _tensor_of(attribute: AttributeProto) -> TensorProto | None:
    """Return the tensor in an attribute of a Constant, or None."""
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
    return [attribute.g for attribute in node.attribute[:] if attribute.type == _GRAPH]


def _outline(model: ModelProto) -> ModelProto:
    """Copy the model without the data of large tensors, which is most of a file."""
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
            node.op_type in _OPERATIONS_WITH_DATA
            and not node.domain
            and any(_is_large(item) for item in node.attribute[:])
        ):
            outline.node.extend(nodes[waiting:number])
            _fill_node(outline.node.add(), node)
            waiting = number + 1
    outline.node.extend(nodes[waiting:])
    outline.initializer.extend(_without_data(item) for item in graph.initializer[:])
    outline.sparse_initializer.extend(graph.sparse_initializer)
    outline.input.extend(graph.input)
    outline.output.extend(graph.output)
    outline.value_info.extend(graph.value_info)


_OPERATIONS_WITH_DATA = frozenset({"Constant", "If", "Loop"})
"""ONNX operations that may contain large tensors."""


def _is_large(attribute: AttributeProto) -> bool:
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

"""Insertion of a finished graph or model into a graph under construction.

Tensors replace the Parameters of the inserted graph; ``graph.import_model`` inserts a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopscope.builder.frame import GraphFrame
from loopscope.builder.tensor import Tensor
from loopscope.checks.order import order
from loopscope.checks.propagate import propagate
from loopscope.errors import BuildError, listed, shorten
from loopscope.ir.address import ROOT
from loopscope.ir.model import LayerId, Model, Node, OutputRef, Signature, expect_model
from loopscope.ir.model import ModelGraph as FinishedGraph


def inline_graph(
    frame: GraphFrame, source: FinishedGraph, feeds: Mapping[LayerId, Tensor], what: str
) -> tuple[Tensor, ...]:
    """Add the nodes of ``source`` to a frame, and return the inputs of its Results, in order.

    ``feeds``: a tensor of the frame for each Parameter. Types and shapes are
    inferred again from the feeds. ``BuildError`` if they contradict an operation; its message
    starts with ``what``.
    """
    propagated = propagate(
        Model(source),
        frame.graph.catalogue,
        {layer: tensor.known for layer, tensor in feeds.items()},
    )
    for contradiction in propagated.contradictions:
        where = (
            shorten(source.by_id[contradiction.layer].name)
            if contradiction.graph == ROOT
            else contradiction.graph
        )
        raise BuildError(f"{what}: {where}: {contradiction.message}")
    tensors: dict[OutputRef, Tensor] = {
        OutputRef(layer, 0): tensor for layer, tensor in feeds.items()
    }
    results: dict[LayerId, Tensor] = {}
    for layer in order(source).layers:
        node = source.by_id[layer]
        if layer in feeds:
            continue
        inputs = _inputs(source, node, tensors, what)
        if node.type == "Result":
            results[layer] = inputs[0]
            continue
        known = [propagated.output(ROOT, layer, output) for output in range(len(node.outputs))]
        for output, tensor in enumerate(frame.adopt(node, inputs, known)):
            tensors[OutputRef(layer, output)] = tensor
    return tuple(results[node.id] for node in source.results)


def _inputs(
    source: FinishedGraph, node: Node, computed: Mapping[OutputRef, Tensor], what: str
) -> list[Tensor]:
    tensors = [
        computed.get(source_ref) if source_ref is not None else None
        for source_ref in source.sources[node.id]
    ]
    while tensors and tensors[-1] is None:
        tensors.pop()
    inputs = [source_ref for source_ref in tensors if source_ref is not None]
    if len(inputs) < len(tensors) or (node.type == "Result" and not inputs):
        raise BuildError(f"{what}: an input of {node.type} {shorten(node.name)!r} is not connected")
    return inputs


def values_for_import(
    model: Model, inputs: Mapping[str | int, Any] | Sequence[Any]
) -> Mapping[LayerId, Any]:
    """Return the value for each Parameter of a model that ``Graph.import_model`` inserts, by layer.

    ``BuildError`` for a model of another dialect, and for missing or unknown inputs.
    """
    expect_model(model, "import_model")
    if model.dialect != "openvino":
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} is an ONNX model, but this graph consists "
            "of OpenVINO operations"
        )
    values = dict(_values_by_layer(model, inputs))
    missing = [signature.name for signature in model.inputs if signature.layer not in values]
    if missing:
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} also needs a value for {listed(missing)}"
        )
    return values


def insert_model(
    frame: GraphFrame, model: Model, values: Mapping[LayerId, Any]
) -> tuple[Tensor, ...]:
    """Insert a model into a frame and return its outputs.

    ``BuildError`` if a value, or what is inferred from it, contradicts the model.
    """
    feeds = {}
    for signature in model.inputs:
        candidates = [signature.element_type] if signature.element_type is not None else []
        tensor = frame.graph.lift(
            values[signature.layer], candidates, f"import_model(): input {signature.name!r}"
        )
        differ = tensor.element_type is not signature.element_type and None not in (
            tensor.element_type,
            signature.element_type,
        )
        if differ or signature.shape.intersect(tensor.shape) is None:
            raise BuildError(
                f"import_model(): input {signature.name!r} is "
                f"{signature.element_type}{signature.shape}, got {tensor!r}"
            )
        feeds[signature.layer] = tensor
    return inline_graph(frame, model.graph, feeds, f"import_model() of {shorten(model.name)!r}")


def _values_by_layer(
    model: Model, inputs: Mapping[str | int, Any] | Sequence[Any]
) -> list[tuple[LayerId, Any]]:
    """Return the value for each Parameter's layer."""
    if isinstance(inputs, Mapping):
        return [(_find_input(model, key).layer, value) for key, value in inputs.items()]
    values = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if len(values) > len(model.inputs):
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} has {len(model.inputs)} inputs, got "
            f"{len(values)}"
        )
    return [
        (signature.layer, value) for signature, value in zip(model.inputs, values, strict=False)
    ]


def _find_input(model: Model, key: object) -> Signature:
    for position, signature in enumerate(model.inputs):
        if key in (signature.name, *signature.names) or (
            key == position and isinstance(key, int) and not isinstance(key, bool)
        ):
            return signature
    known = listed([signature.name for signature in model.inputs]) or "none"
    raise BuildError(
        f"import_model(): {shorten(model.name)!r} does not have an input "
        f"{shorten(repr(key), 60)}; its inputs are {known}"
    )

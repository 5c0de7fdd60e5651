"""ONNX files: a ModelProto becomes a Model with the file's own names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from onnx import ModelProto

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.memory import no_garbage_collection
from loopscope.ir.model import Body, Model, ModelGraph, OnnxSource
from loopscope.read.file_limits import ReadLimits, check_addresses
from loopscope.read.onnx.graphs import Builder, Built
from loopscope.read.onnx.inference import Inferred, inference, nothing
from loopscope.read.onnx.message_limit import check_message_count
from loopscope.read.onnx.scope import NO_COLUMNS
from loopscope.read.onnx.scope_reader import ScopeReader
from loopscope.read.onnx.split_weights import split_weights
from loopscope.read.onnx.tensors_and_types import ExternalData
from loopscope.read.weights import Weights

_MAX_INFERRED_DEPTH = 100
_CRASHED = (
    "ONNX's own shape inference crashes on this file: its types and shapes are those that it says"
    " itself, and those found here."
)


def read_onnx(document: bytes, weights: Weights, file: str, limits: ReadLimits) -> Model:
    """Read an ONNX file. ``file`` is its path, beside which external data is searched; "" for
    bytes.

    ``ReadError`` if no Model can be made. Unknown operations and undefined names are reported
    later, by the model checks.
    """
    parts = split_weights(document)
    proto = _parsed(parts.outline, file)
    notes = _notes(proto)
    with no_garbage_collection(), _types(proto, parts.outline, file, limits) as types:
        reader = ScopeReader(proto, file, limits, types, parts.views)
        graph, calls = _graph(reader, weights)
    try:
        check_addresses(graph, limits)
    except ValueError as error:
        raise ReadError(str(error), Where(file)) from None
    return Model(
        graph,
        graph.name,
        proto.ir_version,
        "onnx",
        file=file,
        meta_data=_meta_data(proto),
        notes=(*notes, *([_CRASHED] if types.crashed else [])),
        source=OnnxSource(parts.outline, tuple(reader.places), calls),
    )


def _graph(
    reader: ScopeReader, weights: Weights
) -> tuple[ModelGraph, Mapping[int, tuple[Body, ...]]]:
    """Return the outermost graph, and the bodies of calls and rewritten operations."""
    scopes, file = reader.read(), reader.file
    external = ExternalData(Path(file).parent if file else None, weights)
    builders = [Builder(scope, external, file) for scope in scopes]
    for builder in builders:
        builder.prepare()
    built: dict[int, Built] = {}
    for scope, builder in zip(reversed(scopes), reversed(builders), strict=True):
        built[id(scope)] = builder.build(built)
    for scope in scopes:
        # Scopes form reference cycles with their parents, which would keep the whole file in
        # memory.
        scope.columns = NO_COLUMNS
    calls = {number: bodies for builder in builders for number, bodies in builder.calls.items()}
    return built[id(scopes[0])].graph, calls


def _types(
    proto: ModelProto, outline: bytes, file: str, limits: ReadLimits
) -> AbstractContextManager[Inferred]:
    """Start type inference. Without a depth limit it expands functions, so their depth is checked
    first.
    """
    none = Inferred(0, nothing)
    deep = (
        proto.functions
        and max(scope.depth for scope in ScopeReader(proto, file, limits, none).read())
        > _MAX_INFERRED_DEPTH
    )
    return (
        nullcontext(none)
        if deep or len(proto.graph.node) > limits.nodes
        else inference(proto, outline)
    )


def _parsed(document: bytes, file: str) -> ModelProto:
    proto = ModelProto()
    try:
        check_message_count(document)
    except ValueError as error:
        raise ReadError(f"the ONNX model cannot be read: {error}", Where(file)) from None
    try:
        proto.ParseFromString(document)
    except Exception as error:  # protobuf's DecodeError, whose package does not have type hints
        deep = "MaxDepth" in str(error) or "recursion" in str(error).lower()
        reason = (
            "its graphs are nested deeper than protobuf files may be"
            if deep
            else "it is cut short or damaged"
        )
        raise ReadError(f"the ONNX model cannot be read: {reason}", Where(file)) from None
    if not proto.HasField("graph"):
        raise ReadError("the ONNX model does not contain a graph", Where(file))
    return proto


def _meta_data(proto: ModelProto) -> dict[str, object]:
    texts = {
        "producer_name": proto.producer_name,
        "producer_version": proto.producer_version,
        "domain": proto.domain,
        "doc_string": proto.doc_string,
        **{str(item.key): item.value for item in proto.metadata_props},
    }
    result: dict[str, object] = {
        key: shorten(text, 10_000) for key, text in texts.items() if text and isinstance(text, str)
    }
    if proto.model_version:
        result["model_version"] = str(proto.model_version)
    result["opset_import"] = ", ".join(
        f"{item.domain or 'ai.onnx'} {item.version}" for item in proto.opset_import
    )
    return result


def _notes(proto: ModelProto) -> list[str]:
    notes = []
    defaults = {value.name for value in proto.graph.initializer} & {
        value.name for value in proto.graph.input
    }
    if defaults and proto.ir_version >= 4:
        names = ", ".join(repr(shorten(name, 40)) for name in sorted(defaults)[:5])
        notes.append(f"{len(defaults)} inputs have default values and are constants here: {names}.")
    if proto.training_info:
        notes.append("The training information of the file is left out.")
    return notes

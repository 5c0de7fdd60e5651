"""ONNX models, as they are: a ModelProto becomes a Model with the file's own names."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from onnx import ModelProto

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.collecting import no_garbage_collection
from loopscope.ir.model import Model, ModelGraph
from loopscope.read.address_length import check_addresses
from loopscope.read.file_limits import ReadLimits
from loopscope.read.onnx.graphs import Builder, Built
from loopscope.read.onnx.inference import Inferred, inference, nothing
from loopscope.read.onnx.scope import NO_CALLS
from loopscope.read.onnx.scopes import Survey
from loopscope.read.onnx.split_weights import Held, parted
from loopscope.read.onnx.survey import survey
from loopscope.read.onnx.tensors import ExternalData
from loopscope.read.weights import Weights

_MOST_INFERRED_DEPTH = 100
_CRASHED = "ONNX's own shape inference crashes on this file: its types and shapes are those that it says itself, and those found here."


def read_onnx(document: bytes, weights: Weights, file: str, limits: ReadLimits) -> Model:
    """The Model of an ONNX file; ``file`` is where it lies, and where its external data is looked
    for (empty for bytes).

    ``ReadError`` when no Model can be made of it. Unknown operations and names that nothing makes
    are left to the checks.
    """
    parts = parted(document)
    proto = _parsed(parts.outline, file)
    notes = _notes(proto)
    with no_garbage_collection(), _types(proto, parts.outline, file, limits) as types:
        graph = _graph(proto, parts.held, types, weights, file, limits)
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
    )


def _graph(
    proto: ModelProto, held: Held, types: Inferred, weights: Weights, file: str, limits: ReadLimits
) -> ModelGraph:
    scopes = Survey(proto, file, limits, types, held).read()
    external = ExternalData(Path(file).parent if file else None, weights)
    builders = [Builder(scope, external, file) for scope in scopes]
    for builder in builders:
        builder.prepare()
    built: dict[int, Built] = {}
    for scope, builder in zip(reversed(scopes), reversed(builders), strict=True):
        built[id(scope)] = builder.build(built)
    for scope in scopes:
        # Scopes inside know those around them: in a circle they would keep the whole file.
        scope.calls = NO_CALLS
    return built[id(scopes[0])].graph


def _types(
    proto: ModelProto, outline: bytes, file: str, limits: ReadLimits
) -> AbstractContextManager[Inferred]:
    """The types of functions are found by writing them out, which knows no bounds: these are
    looked at before.
    """
    none = Inferred(0, nothing)
    deep = (
        proto.functions
        and max(scope.depth for scope in Survey(proto, file, limits, none).read())
        > _MOST_INFERRED_DEPTH
    )
    return (
        nullcontext(none)
        if deep or len(proto.graph.node) > limits.nodes
        else inference(proto, outline)
    )


def _parsed(document: bytes, file: str) -> ModelProto:
    proto = ModelProto()
    try:
        survey(document)
    except ValueError as error:
        raise ReadError(f"the ONNX model cannot be read: {error}", Where(file)) from None
    try:
        proto.ParseFromString(document)
    except Exception as error:  # protobuf's own DecodeError, whose package has no types
        deep = "MaxDepth" in str(error) or "recursion" in str(error).lower()
        reason = (
            "its graphs are nested deeper than protobuf files may be"
            if deep
            else "it is cut short or damaged"
        )
        raise ReadError(f"the ONNX model cannot be read: {reason}", Where(file)) from None
    if not proto.HasField("graph"):
        raise ReadError("the ONNX model holds no graph", Where(file))
    return proto


def _meta_data(proto: ModelProto) -> dict[str, object]:
    said = {
        "producer_name": proto.producer_name,
        "producer_version": proto.producer_version,
        "domain": proto.domain,
        "doc_string": proto.doc_string,
        **{str(one.key): one.value for one in proto.metadata_props},
    }
    found: dict[str, object] = {
        key: shorten(text, 10_000) for key, text in said.items() if text and isinstance(text, str)
    }
    if proto.model_version:
        found["model_version"] = str(proto.model_version)
    found["opset_import"] = ", ".join(
        f"{one.domain or 'ai.onnx'} {one.version}" for one in proto.opset_import
    )
    return found


def _notes(proto: ModelProto) -> list[str]:
    notes = []
    defaults = {one.name for one in proto.graph.initializer} & {
        one.name for one in proto.graph.input
    }
    if defaults and proto.ir_version >= 4:
        names = ", ".join(repr(shorten(name, 40)) for name in sorted(defaults)[:5])
        notes.append(f"{len(defaults)} inputs have default values and are constants here: {names}.")
    if proto.training_info:
        notes.append("The training information of the file is left out.")
    return notes

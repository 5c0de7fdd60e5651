"""A Model as an ONNX file: the ModelProto, and a data file beside it where weights need one.

The ModelProto has the opsets, functions and metadata of its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from onnx import ModelProto, StringStringEntryProto

from loopscope.errors import WriteError, shorten
from loopscope.ir.address import nodes
from loopscope.ir.model import Model
from loopscope.ir.replace import replace
from loopscope.read import ReadLimits
from loopscope.read.onnx import read_onnx
from loopscope.replaced_file import replaced_files
from loopscope.write.onnx.graph_writer import GraphWriter
from loopscope.write.onnx.openvino.translation import to_onnx
from loopscope.write.onnx.protos import ExternalTensors
from loopscope.write.onnx.source_file import OpsetImports, SourceFile
from loopscope.write.onnx.tensor_names import UnusedNames

_FIELDS = ("producer_name", "producer_version", "domain", "doc_string")
"""Entries of ``Model.meta_data`` that are fields of a ModelProto."""
_NOT_PROPERTIES = {*_FIELDS, "model_version", "opset_import"}
_READ_CHARACTERS = 10_000
"""Number of characters of a metadata text that a Model contains."""
_MAX_BYTES = 3 * 2**29
"""Size in bytes of constants above which they are written beside the model; a ModelProto has at
most 2 GiB.
"""


def model_proto(model: Model, external: ExternalTensors | None = None) -> ModelProto:
    """Return the message of a model. ``external`` receives the data of large initializers.

    ``WriteError`` for what ONNX cannot express.
    """
    source = SourceFile(model.source)
    proto = ModelProto()
    proto.CopyFrom(source.model)
    proto.ClearField("graph")
    proto.ClearField("opset_import")
    proto.ir_version = model.version
    opsets = OpsetImports(source.model.opset_import)
    writer = GraphWriter(source, UnusedNames(model), opsets, external=external)
    try:
        writer.write(model.graph, proto.graph)
    except RecursionError:
        raise WriteError(
            "the model's loops and branches lie too deep in each other to be written as ONNX"
        ) from None
    proto.opset_import.extend(opsets.protos)
    proto.functions.extend(writer.functions)
    _set_meta_data(proto, model.meta_data)
    return proto


def is_external(model: Model) -> bool:
    """Return True if large initializers must be in a file of their own.

    That is the case if the source has one, or if the constants are too large for one message.
    """
    constants = {id(node.constant): node.constant for _, node in nodes(model) if node.constant}
    if sum(len(constant.data) for constant in constants.values()) > _MAX_BYTES:
        return True
    return bool(external_locations(model))


def external_locations(model: Model) -> set[str]:
    """Return the data files that the initializers of the source's outermost graph name."""
    return {
        entry.value
        for tensor in SourceFile(model.source).model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }


def _set_meta_data(proto: ModelProto, meta_data: Mapping[str, object]) -> None:
    """Set the texts of the model; a text that the reader shortened remains as in the source."""
    for field in _FIELDS:
        text = str(meta_data.get(field, ""))
        if shorten(getattr(proto, field), _READ_CHARACTERS) != text:
            setattr(proto, field, text)
    originals = {item.key: item.value for item in proto.metadata_props}
    del proto.metadata_props[:]
    for key, value in meta_data.items():
        if key not in _NOT_PROPERTIES:
            original = originals.get(key, "")
            text = str(value)
            proto.metadata_props.append(
                StringStringEntryProto(
                    key=key,
                    value=original if shorten(original, _READ_CHARACTERS) == text else text,
                )
            )


def with_inferred_types(model: Model) -> Model:
    """Return the model as it is read from its own file.

    Its ports have the types that ONNX infers for the changed graph. ``WriteError`` if ONNX cannot
    express the model.
    """
    data: list[bytes | memoryview] = []
    external = ExternalTensors(data.append, "weights") if is_external(model) else None
    document = model_proto(model, external).SerializeToString()
    limits = ReadLimits(onnx_bytes=len(document) + 1)
    weights = b"".join(data) if external is not None else None
    return replace(read_onnx(document, weights, "", limits), file=model.file, notes=model.notes)


def write_onnx(model: Model, target: Path) -> None:
    """Write ``m.onnx``, and ``m.onnx.data`` if the source had such a file or is too large.

    ``WriteError`` for what ONNX cannot express, ``OSError`` if a file cannot be written.
    """
    if model.dialect != "onnx":
        model = to_onnx(model)
    beside = target.with_name(f"{target.name}.data")
    _refuse_opened(model, target, beside)
    with ExitStack() as stack:
        external = None
        if is_external(model):
            # The data file is replaced before the model, so that the model never lacks it.
            data, document = stack.enter_context(replaced_files(beside, target))
            external = ExternalTensors(data.write, beside.name)
        else:
            (document,) = stack.enter_context(replaced_files(target))
        try:
            document.write(model_proto(model, external).SerializeToString())
        except ValueError as error:  # protobuf raises it for a message above its limit
            raise WriteError(
                f"{str(target)!r} cannot be written: the model has more than 2 GB, the limit of "
                "an ONNX file"
            ) from error


def _refuse_opened(model: Model, *targets: Path) -> None:
    """Raise ``WriteError`` if a target is a file that the model was read from."""
    if not model.file:
        return
    file = Path(model.file)
    opened = [file, *(file.parent / location for location in external_locations(model))]
    for target in targets:
        if any(target.exists() and path.exists() and target.samefile(path) for path in opened):
            raise WriteError(
                f"{str(target)!r} was opened as the model: expected another path to write to"
            )

"""Writing of models: OpenVINO IR 11 (an XML document and a weights file) or a TensorFlow graph."""

from __future__ import annotations

import io
import os
from pathlib import Path

from loopscope.errors import WriteError
from loopscope.ir.model import Model, expect_model
from loopscope.ir.recorded_rows import is_trace
from loopscope.replaced_file import replaced_file, replaced_files
from loopscope.write.ir_document import WeightsWriter, write_document

__all__ = ["write_model"]

_GRAPH_DEFS = (".pb", ".pbtxt")
_ONNX = ".onnx"


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write ``m.xml`` and ``m.bin``, or ``m.pb`` (as text: ``m.pbtxt``).

    Existing files are replaced only after everything is written. ``.xml`` is OpenVINO IR 11.
    ``.pb`` is TensorFlow's GraphDef: loops become While and branches If, with functions as bodies.
    Inputs and outputs retain their names.

    ``WriteError`` when the format cannot express the model or the file cannot be written. IR
    excludes ONNX models, names that XML does not allow, and edges without an end. GraphDef excludes
    ONNX models, and operations and loops that TensorFlow lacks.
    """
    expect_model(model, "loopscope.write_model")
    target = Path(path)
    if is_trace(model):
        raise WriteError("a trace has values and no operations, so that no model can be written")
    if target.suffix not in (".xml", _ONNX, *_GRAPH_DEFS):
        expected = (
            "one that ends with .xml (the weights go beside it, to a .bin file), "
            "with .onnx, or with .pb or .pbtxt for TensorFlow"
        )
        raise WriteError(f"the path is {str(target)!r}, expected {expected}")
    if target.suffix == _ONNX:
        return _write_onnx(model, target)
    if model.dialect != "openvino":
        form = "a TensorFlow graph" if target.suffix in _GRAPH_DEFS else "OpenVINO IR"
        raise WriteError(
            f"an ONNX model cannot be written as {form}: its operations are other ones; "
            "convert it with OpenVINO first"
        )
    if target.suffix in _GRAPH_DEFS:
        return _write_graph_def(model, target)
    # The model may read its constants from the file that is replaced. The operating system keeps
    # that file, without a name, until its last reader closes it.
    try:
        with replaced_files(target.with_suffix(".bin"), target) as (weights, document):
            write_document(model, WeightsWriter(weights), document)
    except OSError as error:
        raise WriteError(f"{str(target)!r} cannot be written: {error.strerror}") from error


def ir_documents(model: Model) -> tuple[bytes, bytes]:
    """Return the contents of the .xml and the .bin file; ``WriteError`` as ``write_model``."""
    document, weights = io.BytesIO(), io.BytesIO()
    write_document(model, WeightsWriter(weights), document)
    return document.getvalue(), weights.getvalue()


def _write_onnx(model: Model, target: Path) -> None:
    # Imported here, because importing the onnx package takes long.
    from loopscope.write.onnx.onnx_file import write_onnx

    try:
        write_onnx(model, target)
    except OSError as error:
        raise WriteError(f"{str(target)!r} cannot be written: {error.strerror}") from error


def _write_graph_def(model: Model, target: Path) -> None:
    # Imported here, because protobuf creates its classes on import.
    from google.protobuf import text_format

    from loopscope.write.tensorflow.graph_def import graph_def

    try:
        message = graph_def(model)
    except RecursionError:
        raise WriteError(
            "the model's loops and branches lie too deep in each other "
            "to be written as a TensorFlow graph"
        ) from None
    try:
        document = (
            text_format.MessageToString(message).encode()
            if target.suffix == ".pbtxt"
            else message.SerializeToString()
        )
        with replaced_file(target) as file:
            file.write(document)
    except ValueError as error:
        raise WriteError(
            f"{str(target)!r} cannot be written: the graph has more than 2 GB, "
            "the limit of a GraphDef"
        ) from error
    except OSError as error:
        raise WriteError(f"{str(target)!r} cannot be written: {error.strerror}") from error

"""Read model files of every supported format into a Model."""

from __future__ import annotations

import os
from pathlib import Path

from loopscope.errors import ReadError, Where
from loopscope.ir.model import Model
from loopscope.native.workers import WORKERS
from loopscope.read.file_limits import ReadLimits, what_is_at
from loopscope.read.openvino import read_openvino
from loopscope.read.recognise import HEAD_BYTES, Format, open_archive, recognise
from loopscope.read.weights import Weights, WeightsFile
from loopscope.tracing import read_trace

__all__ = [
    "ReadLimits",
    "WeightsFile",
    "is_trace_content",
    "open_archive",
    "read_model",
    "what_is_at",
]

_SUPPORTED = (
    "OpenVINO IR (.xml with its .bin), ONNX, TensorFlow, TensorFlow Lite, PaddlePaddle and PyTorch"
    " exported programs are read"
)

_ALTERNATIVES = {
    Format.PADDLE_JSON: "it is not read: paddle2onnx makes an ONNX model of it and its .pdiparams,"
    " which is read",
    Format.EXECUTORCH: "ExecuTorch runs it and its Inspector shows it; here, open the exported"
    " program (.pt2) that it was made from",
    Format.GGUF: "it has weights and no graph: llama.cpp runs it; here, open an export of the"
    " original model (optimum-intel, ONNX)",
    Format.GIT_LFS: "the model is elsewhere: `git lfs pull` in its repository downloads it",
    Format.WEB_PAGE: "the model is elsewhere: download the file that the page shows (on GitHub,"
    " the address of *Raw*)",
    Format.STABLEHLO: "StableHLO's interpreter and XLA run it; here, open a SavedModel or ONNX"
    " export of the same program",
    Format.MLIR: "mlir-opt and IREE open it; here, open a SavedModel or ONNX export of the same"
    " program",
    Format.HLO: "XLA's tools (run_hlo_module) run it; here, open a SavedModel or ONNX export of"
    " the same program",
}
"""Advice for recognised formats that Loopscope does not read: other tools, and a format to export.
"""

_CONVERTED = (
    Format.ZIP,
    Format.SAVED_MODEL,
    Format.SAVED_MODEL_TEXT,
    Format.FROZEN,
    Format.GRAPH_TEXT,
    Format.META_GRAPH,
    Format.META_GRAPH_TEXT,
    Format.TFLITE,
    Format.PADDLE,
)
"""Formats that are converted to OpenVINO IR, or read by their own schema, in ``converted``."""


def read_model(
    source: str | os.PathLike[str] | bytes,
    weights: Weights = None,
    *,
    limits: ReadLimits = ReadLimits(),
) -> Model:
    """Read a model file, whose format is recognised by its content.

    ``source`` is a path or the bytes of the description. ``weights`` is the path or bytes of an
    IR's weights (by default ``m.bin`` beside ``m.xml``) or of an ONNX model's external data.
    ``ReadError`` if no Model can be read; its message names the format and the supported formats.
    """
    if isinstance(source, bytes):
        return _read_bytes(source, weights, "", limits)
    path = Path(source)
    if not os.fspath(source):
        raise ReadError("the path of the model is empty: expected that of a file")
    if what_is_at(path) == "folder":
        from loopscope.read.converted import read_folder

        return read_folder(path, limits)
    return _read_bytes(_content(path, limits), weights, str(path), limits)


def is_trace_content(source: str | os.PathLike[str] | bytes) -> bool:
    """Return True if the content, or the file at a path, begins like a trace."""
    if isinstance(source, bytes):
        return recognise(source) is Format.TRACE
    try:
        with Path(source).open("rb") as file:
            return recognise(file.read(HEAD_BYTES)) is Format.TRACE
    except (OSError, ValueError):
        return False


def _read_bytes(document: bytes, weights: Weights, file: str, limits: ReadLimits) -> Model:
    format = recognise(document)
    _check_size(len(document), format, file, limits)
    match format:
        case Format.OPENVINO:
            return read_openvino(document, _weights_file(weights, file), file, limits)
        case Format.ONNX:
            WORKERS.warm()  # beside the import that follows
            # Imported here because importing the onnx package takes longer than reading most IRs.
            from loopscope.read.onnx import read_onnx

            return read_onnx(document, weights, file, limits)
        case Format.TRACE:
            return read_trace(file or document)
        case _ if format in _CONVERTED:
            from loopscope.read import converted

            return (
                converted.read_file(Path(file), format, limits)
                if file
                else converted.read_bytes(document, format, weights, limits)
            )
        case _:
            raise ReadError(
                f"this is {format.value}; {_ALTERNATIVES.get(format, _SUPPORTED)}", Where(file)
            )


def _weights_file(weights: Weights, file: str) -> WeightsFile:
    """Return the weights of an IR: ``weights`` if set, else the .bin file beside ``file``."""
    if not file:
        return WeightsFile(weights, "give the bytes or the path of the .bin file as 'weights'")
    default = Path(file).with_suffix(".bin")
    return WeightsFile(
        default if weights is None else weights,
        f"put {default.name} beside the .xml file, or give it as 'weights'",
    )


def _content(path: Path, limits: ReadLimits) -> bytes:
    """Read an IR or ONNX file whole, and only the first bytes of any other format."""
    place = Where(str(path))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            format = recognise(head)
            if format not in (Format.OPENVINO, Format.ONNX):
                return head
            size = os.fstat(file.fileno()).st_size
            _check_size(size, format, str(path), limits)
            file.seek(0)
            # Read at most one byte more than the limit, in case the file has grown since fstat.
            # Python allocates the requested number of bytes in advance.
            return (
                file.read(size)
                if size < _size_limit(format, limits)[1]
                else file.read(_size_limit(format, limits)[1] + 1)
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ReadError(f"the file cannot be opened: {reason}", place) from None


def _check_size(size: int, format: Format, file: str, limits: ReadLimits) -> None:
    limit, maximum = _size_limit(format, limits)
    if size > maximum:
        raise ReadError(
            f"the file has {size} bytes, more than the limit '{limit}' of {maximum}", Where(file)
        )


def _size_limit(format: Format, limits: ReadLimits) -> tuple[str, int]:
    return (
        ("onnx_bytes", limits.onnx_bytes)
        if format is Format.ONNX
        else ("file_bytes", limits.file_bytes)
    )

"""File bytes to Model: model files of every kind are opened here."""

from __future__ import annotations

import os
from pathlib import Path

from loopscope.errors import ReadError, Where
from loopscope.ir.model import Model
from loopscope.native.workers import WORKERS
from loopscope.read.archive import open_archive
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino import read_openvino
from loopscope.read.paths import what_is_at
from loopscope.read.recognise import HEAD_BYTES, Format, recognise
from loopscope.read.weights import Weights, WeightsFile

__all__ = [
    "ReadLimits",
    "open_archive",
    "read_model",
    "what_is_at",
]

_READ = "OpenVINO IR (.xml with its .bin), ONNX, TensorFlow, TensorFlow Lite, PaddlePaddle and PyTorch exported programs are read"

_OPENED_BY = {
    Format.PADDLE_JSON: "it is not read: paddle2onnx makes an ONNX model of it and its .pdiparams, which is read",
    Format.EXECUTORCH: "ExecuTorch runs it and its Inspector shows it; here, open the exported program (.pt2) that it was made from",
    Format.GGUF: "it has weights and no graph: llama.cpp runs it; here, open an export of the original model (optimum-intel, ONNX)",
    Format.STABLEHLO: "StableHLO's interpreter and XLA run it; here, open a SavedModel or ONNX export of the same program",
    Format.MLIR: "mlir-opt and IREE open it; here, open a SavedModel or ONNX export of the same program",
    Format.HLO: "XLA's tools (run_hlo_module) run it; here, open a SavedModel or ONNX export of the same program",
}
"""What opens a file that is not read, and what can be opened here in its place."""

_BY_OTHERS = (
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
"""What is converted first."""


def read_model(
    source: str | os.PathLike[str] | bytes,
    weights: Weights = None,
    *,
    limits: ReadLimits = ReadLimits(),
) -> Model:
    """The Model of a file, recognised by its content.

    ``source`` is a path or the bytes of the description; ``weights`` the path or bytes of an IR's
    weights, ``m.bin`` beside ``m.xml`` when left out, or of an ONNX model's external data.
    ``ReadError`` says what was found and what is read when no Model can be made of it.
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


def _read_bytes(document: bytes, weights: Weights, file: str, limits: ReadLimits) -> Model:
    found = recognise(document)
    _bounded(len(document), found, file, limits)
    match found:
        case Format.OPENVINO:
            return read_openvino(document, _weights_file(weights, file), file, limits)
        case Format.ONNX:
            WORKERS.warm()  # beside the import that follows
            # Only here: importing the onnx package takes longer than reading most IRs.
            from loopscope.read.onnx import read_onnx

            return read_onnx(document, weights, file, limits)
        case _ if found in _BY_OTHERS:
            from loopscope.read import converted

            return (
                converted.read_file(Path(file), found, limits)
                if file
                else converted.read_bytes(document, found, weights, limits)
            )
        case _:
            raise ReadError(f"this is {found.value}; {_OPENED_BY.get(found, _READ)}", Where(file))


def _weights_file(weights: Weights, file: str) -> WeightsFile:
    """The weights of an IR: those given, else those beside its file."""
    if not file:
        return WeightsFile(weights, "give the bytes or the path of the .bin file as 'weights'")
    beside = Path(file).with_suffix(".bin")
    return WeightsFile(
        beside if weights is None else weights,
        f"put {beside.name} beside the .xml file, or give it as 'weights'",
    )


def _content(path: Path, limits: ReadLimits) -> bytes:
    """The bytes of a file; of one that is not read, only as many as tell what it is."""
    place = Where(str(path))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            found = recognise(head)
            if found not in (Format.OPENVINO, Format.ONNX):
                return head
            size = os.fstat(file.fileno()).st_size
            _bounded(size, found, str(path), limits)
            file.seek(0)
            # No more than the limit and one byte, should the file have grown; Python sets aside as
            # much memory as is asked for.
            return (
                file.read(size)
                if size < _most(found, limits)[1]
                else file.read(_most(found, limits)[1] + 1)
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ReadError(f"the file cannot be opened: {reason}", place) from None


def _bounded(size: int, found: Format, file: str, limits: ReadLimits) -> None:
    limit, most = _most(found, limits)
    if size > most:
        raise ReadError(
            f"the file has {size} bytes, more than the limit '{limit}' of {most}", Where(file)
        )


def _most(found: Format, limits: ReadLimits) -> tuple[str, int]:
    return (
        ("onnx_bytes", limits.onnx_bytes)
        if found is Format.ONNX
        else ("file_bytes", limits.file_bytes)
    )

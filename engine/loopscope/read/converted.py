"""Models of other frameworks, converted by the installed OpenVINO's frontends and then read as IR.

JAX has no file of its own: save its model as a TensorFlow SavedModel (jax2tf).
"""

from __future__ import annotations

import glob
import importlib.metadata
import importlib.util
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO

from loopscope.errors import ReadError, Where
from loopscope.ir.model import Model
from loopscope.read import archive
from loopscope.read.conversion import read_converted, run_openvino
from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format
from loopscope.read.weights import Weights

_NAMES = {
    Format.TFLITE: "model.tflite",
    Format.FROZEN: "model.pb",
    Format.GRAPH_TEXT: "model.pbtxt",
    Format.META_GRAPH: "model.meta",
    Format.META_GRAPH_TEXT: "model.meta",
    Format.PADDLE: "model.pdmodel",
}
_TENSORFLOW = (
    Format.FROZEN,
    Format.GRAPH_TEXT,
    Format.META_GRAPH,
    Format.META_GRAPH_TEXT,
    Format.SAVED_MODEL,
    Format.SAVED_MODEL_TEXT,
)
_CHECKPOINT = (".index", ".data-*")
_BESIDE = {
    Format.PADDLE: (".pdiparams",),
    Format.META_GRAPH: _CHECKPOINT,
    Format.META_GRAPH_TEXT: _CHECKPOINT,
}
"""Endings of the files that hold the values of a model's variables."""
_UNOPENED = {
    Format.RUN: "it opens with loopscope.load, in the app, and with loopscope FILE.loopscope",
    # Both hold pickles, which run code when they are read.
    Format.TORCHSCRIPT: "it is not opened as it is; openvino.convert_model(torch.jit.load(path)) makes IR of it where OpenVINO and torch "
    "are installed, torch.onnx.export and torch.export.save (.pt2) write files that are opened",
    Format.STATE_DICT: "it holds weights or a pickled module, no graph; torch.export.save (.pt2) or torch.onnx.export write one from "
    "the Python code of the model",
}
_BINARY = {Format.META_GRAPH_TEXT: Format.META_GRAPH, Format.SAVED_MODEL_TEXT: Format.SAVED_MODEL}
"""What texts have been made into before they are converted."""
_SAVED_MODEL = "saved_model.pb"
_SAVED_MODEL_TEXT = "saved_model.pbtxt"


def read_folder(folder: Path, limits: ReadLimits) -> Model:
    """The Model of a SavedModel folder; ``ReadError`` when it is none, or cannot be converted."""
    if (folder / _SAVED_MODEL).is_file():
        return _converted(folder, Format.SAVED_MODEL, str(folder), limits)
    if (folder / _SAVED_MODEL_TEXT).is_file():
        return _of_text(folder / _SAVED_MODEL_TEXT, str(folder), limits)
    if (folder / "Manifest.json").is_file() and (folder / "Data").is_dir():
        where = "coremltools and Xcode open it; here, open an ONNX export of the same model"
        raise ReadError(f"this is {Format.COREML.value}; {where}", Where(str(folder)))
    raise ReadError(
        f"this is a folder without {_SAVED_MODEL} or {_SAVED_MODEL_TEXT}: of folders, TensorFlow SavedModels are read",
        Where(str(folder)),
    )


def read_file(path: Path, found: Format, limits: ReadLimits) -> Model:
    """The Model of a file of another framework (or of a zip of one)."""
    if found is Format.ZIP:
        with path.open("rb") as file:
            found = _in_archive(file, str(path))
            if found is Format.SAVED_MODEL:
                return _unpacked(file, str(path), limits)
    if found is Format.SAVED_MODEL:
        return read_folder(path.parent, limits)
    if found is Format.SAVED_MODEL_TEXT:
        return _of_text(path, str(path), limits)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        # Under the name that the frontends look for, whatever it was called; what lies beside it
        # goes with it.
        named = Path(folder) / _NAMES.get(found, "model.pt2")
        if found is Format.META_GRAPH_TEXT:
            _write_binary(path, found, named, str(path), limits)
        else:
            named.symlink_to(path.resolve())
        for ending in _BESIDE.get(found, ()):
            for beside in path.parent.glob(glob.escape(path.stem) + ending):
                (named.parent / (named.stem + beside.name.removeprefix(path.stem))).symlink_to(
                    beside.resolve()
                )
        return _converted(named, found, str(path), limits)


def read_bytes(document: bytes, found: Format, weights: Weights, limits: ReadLimits) -> Model:
    """The same for bytes that came from nowhere, such as an upload; ``weights``: PaddlePaddle's
    parameters.
    """
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        path = Path(folder) / _NAMES.get(found, "model.zip")
        path.write_bytes(document)
        if found is Format.ZIP:
            with path.open("rb") as file:
                found = _in_archive(file, "")
                if found is Format.SAVED_MODEL:
                    return _unpacked(file, "", limits)
        if found is Format.EXPORTED_PROGRAM:
            raise ReadError(
                "this is a PyTorch exported program, which may carry code: it is read by its path only"
            )
        if found in (Format.SAVED_MODEL, Format.SAVED_MODEL_TEXT):
            raise ReadError(
                "this is one file of a TensorFlow SavedModel: give the folder, or a zip of all of it"
            )
        if found is Format.META_GRAPH_TEXT:
            _write_binary(path, found, path, "", limits)
        if found is Format.PADDLE and weights is not None:
            _write_weights(path.with_suffix(".pdiparams"), weights)
        return _converted(path, found, "", limits)


def _write_weights(path: Path, weights: Weights) -> None:
    if isinstance(weights, (bytes, bytearray, memoryview)):
        path.write_bytes(weights)
    elif weights is not None:
        shutil.copyfile(weights, path)


def _in_archive(file: IO[bytes], name: str) -> Format:
    try:
        found = archive.format_of(file)
    except ValueError as error:
        raise ReadError(f"this is a zip archive; {error}", Where(name)) from None
    if found in _UNOPENED:
        raise ReadError(f"this is {found.value}: {_UNOPENED[found]}", Where(name))
    if found is Format.ZIP:
        raise ReadError(
            "this is a zip archive with no model in it: of archives, zipped TensorFlow SavedModels are read",
            Where(name),
        )
    return found


def _unpacked(file: IO[bytes], name: str, limits: ReadLimits) -> Model:
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        try:
            inside = archive.unpack(file, Path(folder), limits.unpacked_bytes)
        except ValueError as error:
            raise ReadError(
                f"this is a zip archive that is not unpacked: {error}", Where(name)
            ) from None
        if not (inside / _SAVED_MODEL).is_file():
            return _of_text(inside / _SAVED_MODEL_TEXT, name, limits)
        return _converted(inside, Format.SAVED_MODEL, name, limits)


def _of_text(text: Path, name: str, limits: ReadLimits) -> Model:
    """The Model of a SavedModel whose graph is text; the folders beside it hold its variables
    and assets.
    """
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        for beside in text.parent.iterdir():
            if beside.is_dir():
                (Path(folder) / beside.name).symlink_to(beside.resolve())
        _write_binary(text, Format.SAVED_MODEL_TEXT, Path(folder) / _SAVED_MODEL, name, limits)
        return _converted(Path(folder), Format.SAVED_MODEL_TEXT, name, limits)


def _write_binary(text: Path, found: Format, target: Path, name: str, limits: ReadLimits) -> None:
    from loopscope.read.tensorflow.text_form import (
        write_binary,  # only here: protobuf's classes are made when it is imported
    )

    try:
        write_binary(text, found, target, limits)
    except ValueError as error:
        raise ReadError(f"this is {found.value}; {error}", Where(name)) from None


def _converted(source: Path, found: Format, name: str, limits: ReadLimits) -> Model:
    place = Where(name)
    if found is Format.TFLITE:
        return _of_tflite(source, name, limits)
    _must_be_installed("openvino", found, place)
    if found is Format.EXPORTED_PROGRAM:
        _must_be_installed("torch", found, place)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        target = Path(folder) / "model.xml"
        try:
            if found in _TENSORFLOW:
                # Only here: protobuf's classes are made when it is imported.
                from loopscope.read.tensorflow.graph_conversion import convert_graph

                model = convert_graph(source, _BINARY.get(found, found), target, limits)
            else:
                run_openvino(
                    source,
                    target,
                    "convert" if found is Format.EXPORTED_PROGRAM else "read",
                    limits,
                )
                model = read_converted(target, target.read_bytes(), limits)
        except ValueError as error:
            raise ReadError(f"this is {found.value}; {error}", place) from None
    return replace(model, file=name, converted_from=f"{found.value}, {_by_openvino()}")


def _of_tflite(source: Path, name: str, limits: ReadLimits) -> Model:
    """The Model of a TensorFlow Lite file, for which OpenVINO is needed only where it has what
    its schema reader lacks.
    """
    from loopscope.read.tflite import read_tflite  # only here: few models are of this kind

    is_installed = importlib.util.find_spec("openvino") is not None
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        try:
            model, is_converted = read_tflite(
                source, Path(folder) / "model.xml", limits, with_openvino=is_installed
            )
        except (OSError, ValueError) as error:
            raise ReadError(f"this is {Format.TFLITE.value}; {error}", Where(name)) from None
    if model.notes and not is_installed:
        model = replace(
            model, notes=(*model.notes, "OpenVINO translates more operators: pip install openvino")
        )
    return replace(
        model,
        file=name,
        converted_from=f"{Format.TFLITE.value}, {_by_openvino() if is_converted else 'read by its schema'}",
    )


def _by_openvino() -> str:
    return f"converted by OpenVINO {importlib.metadata.version('openvino')}"


def _must_be_installed(package: str, found: Format, place: Where) -> None:
    if importlib.util.find_spec(package) is None:
        raise ReadError(
            f"this is {found.value}; to read it, install {package}: pip install {package}", place
        )

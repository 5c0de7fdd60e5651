"""Models of other frameworks, converted by OpenVINO's frontends and then read as IR.

JAX does not have a file format: save its model as a TensorFlow SavedModel (jax2tf).
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
from loopscope.read.conversion import read_converted, run_openvino
from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format, format_of, unpack
from loopscope.read.weights import Weights

_FILE_NAMES = {
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
_VARIABLE_SUFFIXES = {
    Format.PADDLE: (".pdiparams",),
    Format.META_GRAPH: _CHECKPOINT,
    Format.META_GRAPH_TEXT: _CHECKPOINT,
}
"""Suffixes of the files that contain the values of a model's variables."""
_UNREADABLE = {
    Format.RUN: "it opens with loopscope.load, in the app, and with loopscope FILE.loopscope",
    # Both hold pickles, which run code when they are read.
    Format.TORCHSCRIPT: "it is not opened as it is; openvino.convert_model(torch.jit.load(path))"
    " makes IR of it where OpenVINO and torch are installed, torch.onnx.export and"
    " torch.export.save (.pt2) write files that are opened",
    Format.STATE_DICT: "it holds weights or a pickled module, no graph; torch.export.save (.pt2)"
    " or torch.onnx.export write one from the Python code of the model",
}
_BINARY_FORM = {
    Format.META_GRAPH_TEXT: Format.META_GRAPH,
    Format.SAVED_MODEL_TEXT: Format.SAVED_MODEL,
}
"""Binary format that each text format is rewritten to before conversion."""
_SAVED_MODEL = "saved_model.pb"
_SAVED_MODEL_TEXT = "saved_model.pbtxt"


def read_folder(folder: Path, limits: ReadLimits) -> Model:
    """Read a SavedModel folder. ``ReadError`` for any other folder, or if the conversion fails."""
    if (folder / _SAVED_MODEL).is_file():
        return _converted(folder, Format.SAVED_MODEL, str(folder), limits)
    if (folder / _SAVED_MODEL_TEXT).is_file():
        return _read_text_saved_model(folder / _SAVED_MODEL_TEXT, str(folder), limits)
    if (folder / "Manifest.json").is_file() and (folder / "Data").is_dir():
        advice = "coremltools and Xcode open it; here, open an ONNX export of the same model"
        raise ReadError(f"this is {Format.COREML.value}; {advice}", Where(str(folder)))
    raise ReadError(
        f"this is a folder without {_SAVED_MODEL} or {_SAVED_MODEL_TEXT}: of folders, TensorFlow"
        " SavedModels are read",
        Where(str(folder)),
    )


def read_file(path: Path, format: Format, limits: ReadLimits) -> Model:
    """Read a file of another framework, or a zip of one."""
    if format is Format.ZIP:
        with path.open("rb") as file:
            format = _archive_format(file, str(path))
            if format is Format.SAVED_MODEL:
                return _read_unpacked(file, str(path), limits)
    if format is Format.SAVED_MODEL:
        return _read_saved_model(path, limits)
    if format is Format.SAVED_MODEL_TEXT:
        return _read_text_saved_model(path, str(path), limits)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        # Link the file under the name that the frontends look for, and the files of its variables
        # with it.
        link = Path(folder) / _FILE_NAMES.get(format, "model.pt2")
        if format is Format.META_GRAPH_TEXT:
            _write_binary(path, format, link, str(path), limits)
        else:
            link.symlink_to(path.resolve())
        for ending in _VARIABLE_SUFFIXES.get(format, ()):
            for variable_file in path.parent.glob(glob.escape(path.stem) + ending):
                (link.parent / (link.stem + variable_file.name.removeprefix(path.stem))).symlink_to(
                    variable_file.resolve()
                )
        return _converted(link, format, str(path), limits)


def read_bytes(document: bytes, format: Format, weights: Weights, limits: ReadLimits) -> Model:
    """Read a model of another framework from bytes, such as an upload.

    ``weights`` are PaddlePaddle's parameters.
    """
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        path = Path(folder) / _FILE_NAMES.get(format, "model.zip")
        path.write_bytes(document)
        if format is Format.ZIP:
            with path.open("rb") as file:
                format = _archive_format(file, "")
                if format is Format.SAVED_MODEL:
                    return _read_unpacked(file, "", limits)
        if format is Format.EXPORTED_PROGRAM:
            raise ReadError(
                "this is a PyTorch exported program, which may carry code: it is read by its"
                " path only"
            )
        if format in (Format.SAVED_MODEL, Format.SAVED_MODEL_TEXT):
            raise ReadError(
                "this is one file of a TensorFlow SavedModel: give the folder, or a zip of all"
                " of it"
            )
        if format is Format.META_GRAPH_TEXT:
            _write_binary(path, format, path, "", limits)
        if format is Format.PADDLE and weights is not None:
            _write_weights(path.with_suffix(".pdiparams"), weights)
        return _converted(path, format, "", limits)


def _write_weights(path: Path, weights: Weights) -> None:
    if isinstance(weights, (bytes, bytearray, memoryview)):
        path.write_bytes(weights)
    elif weights is not None:
        shutil.copyfile(weights, path)


def _archive_format(file: IO[bytes], name: str) -> Format:
    try:
        format = format_of(file)
    except ValueError as error:
        raise ReadError(f"this is a zip archive; {error}", Where(name)) from None
    if format in _UNREADABLE:
        raise ReadError(f"this is {format.value}: {_UNREADABLE[format]}", Where(name))
    if format is Format.ZIP:
        raise ReadError(
            "this is a zip archive with no model in it: of archives, zipped TensorFlow"
            " SavedModels are read",
            Where(name),
        )
    return format


def _read_unpacked(file: IO[bytes], name: str, limits: ReadLimits) -> Model:
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        try:
            inside = unpack(file, Path(folder), limits.unpacked_bytes)
        except ValueError as error:
            raise ReadError(
                f"this is a zip archive that is not unpacked: {error}", Where(name)
            ) from None
        if not (inside / _SAVED_MODEL).is_file():
            return _read_text_saved_model(inside / _SAVED_MODEL_TEXT, name, limits)
        return _converted(inside, Format.SAVED_MODEL, name, limits)


def _read_saved_model(path: Path, limits: ReadLimits) -> Model:
    """Read the graph of a SavedModel; its file may have another name than TensorFlow gives it."""
    if path.name == _SAVED_MODEL:
        return read_folder(path.parent, limits)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        _link_folders(path.parent, Path(folder))
        (Path(folder) / _SAVED_MODEL).symlink_to(path.resolve())
        return _converted(Path(folder), Format.SAVED_MODEL, str(path), limits)


def _link_folders(source: Path, target: Path) -> None:
    for entry in source.iterdir():
        if entry.is_dir():
            (target / entry.name).symlink_to(entry.resolve())


def _read_text_saved_model(text: Path, name: str, limits: ReadLimits) -> Model:
    """Read a SavedModel whose graph is text; the folders beside it contain its variables and
    assets.
    """
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        _link_folders(text.parent, Path(folder))
        _write_binary(text, Format.SAVED_MODEL_TEXT, Path(folder) / _SAVED_MODEL, name, limits)
        return _converted(Path(folder), Format.SAVED_MODEL_TEXT, name, limits)


def _write_binary(text: Path, format: Format, target: Path, name: str, limits: ReadLimits) -> None:
    # Imported here because importing protobuf's classes is slow.
    from loopscope.read.tensorflow.graph_file import write_binary

    try:
        write_binary(text, format, target, limits)
    except ValueError as error:
        raise ReadError(f"this is {format.value}; {error}", Where(name)) from None


def _converted(source: Path, format: Format, name: str, limits: ReadLimits) -> Model:
    place = Where(name)
    if format is Format.TFLITE:
        return _read_tflite(source, name, limits)
    _require_package("openvino", format, place)
    if format is Format.EXPORTED_PROGRAM:
        _require_package("torch", format, place)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        target = Path(folder) / "model.xml"
        try:
            if format in _TENSORFLOW:
                # Imported here because importing protobuf's classes is slow.
                from loopscope.read.tensorflow.graph_conversion import convert_graph

                model = convert_graph(source, _BINARY_FORM.get(format, format), target, limits)
            else:
                run_openvino(
                    source,
                    target,
                    "convert" if format is Format.EXPORTED_PROGRAM else "read",
                    limits,
                )
                model = read_converted(target, target.read_bytes(), limits)
        except ValueError as error:
            raise ReadError(f"this is {format.value}; {error}", place) from None
    return replace(model, file=name, converted_from=f"{format.value}, {_converter()}")


def _read_tflite(source: Path, name: str, limits: ReadLimits) -> Model:
    """Read a TensorFlow Lite file, with the help of OpenVINO if it is installed."""
    # Imported here because few models are of this kind.
    from loopscope.read.tflite import read_tflite

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
        converted_from=f"{Format.TFLITE.value}, "
        + (_converter() if is_converted else "read by its schema"),
    )


def _converter() -> str:
    return f"converted by OpenVINO {importlib.metadata.version('openvino')}"


def _require_package(package: str, format: Format, place: Where) -> None:
    if importlib.util.find_spec(package) is None:
        raise ReadError(
            f"this is {format.value}; to read it, install {package}: pip install {package}", place
        )

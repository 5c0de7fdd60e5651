"""TensorFlow Lite files, read by their schema where OpenVINO's frontend does not convert them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from loopscope.errors import shorten
from loopscope.ir.model import Model
from loopscope.read.conversion import read_converted, run_openvino
from loopscope.read.file_limits import ReadLimits, check_addresses
from loopscope.read.tflite.graphs import CONTROL_FLOW, GraphReader
from loopscope.read.tflite.remainder import MAX_SUBGRAPHS, Fragment, convert_operators
from loopscope.read.tflite.schema import SchemaFile
from loopscope.read.weights import WeightsFile

__all__ = ["read_tflite"]


def read_tflite(
    path: Path, target: Path, limits: ReadLimits, *, with_openvino: bool = True
) -> tuple[Model, bool]:
    """Return the Model of a file, and whether OpenVINO converted any part of it.

    OpenVINO converts files without control flow and variables. In other files it converts only the
    operators that this reader does not translate. Intermediate files are written to ``target``.
    ``ValueError`` if the file cannot be read.
    """
    file = _open_file(path, limits)
    failure = None
    if with_openvino and not _has_control_flow(file):
        try:
            return _converted(path, target, limits), True
        except ValueError as error:
            failure = error
    model, untranslated = _by_schema(file, limits, {})
    if not untranslated:
        return model, False
    if failure is not None:
        raise failure
    if not with_openvino:
        return model, False
    fragments = {
        index: fragment
        for index, operators in list(untranslated.items())[:MAX_SUBGRAPHS]
        if (fragment := convert_operators(file, index, list(operators), target, limits)) is not None
    }
    if fragments:
        model, untranslated = _by_schema(file, limits, fragments)
    if untranslated:
        with contextlib.suppress(ValueError):
            return _converted(path, target, limits), True
    return model, bool(fragments)


def _has_control_flow(file: SchemaFile) -> bool:
    """Return True if an operator of the file calls a subgraph or uses a variable."""
    return any(
        info.name in CONTROL_FLOW for subgraph in file.subgraphs for info in subgraph.operators
    )


def _by_schema(
    file: SchemaFile, limits: ReadLimits, fragments: Mapping[int, Fragment]
) -> tuple[Model, Mapping[int, Mapping[int, str]]]:
    """Return the Model, and the names of its untranslated operators by subgraph and index."""
    reader = GraphReader(file, limits, fragments)
    graph = reader.outermost()
    check_addresses(graph, limits)
    names = sorted({name for places in reader.untranslated.values() for name in places.values()})
    unknown = (
        "operators without a translation are drawn and cannot be run:"
        f" {shorten(', '.join(names), 200)}"
    )
    return Model(
        graph, file.subgraph(0).name, notes=(unknown,) if names else ()
    ), reader.untranslated


def _converted(path: Path, target: Path, limits: ReadLimits) -> Model:
    run_openvino(path, target, "read", limits)
    return read_converted(target, target.read_bytes(), limits)


def _open_file(path: Path, limits: ReadLimits) -> SchemaFile:
    size = path.stat().st_size
    if size > limits.onnx_bytes:
        raise ValueError(
            f"the file has {size} bytes, more than the limit 'onnx_bytes' of {limits.onnx_bytes}"
        )
    return SchemaFile(WeightsFile(path).take(0, size), limits)

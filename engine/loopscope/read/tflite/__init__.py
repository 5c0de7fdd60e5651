"""TensorFlow Lite by its schema: files with control flow or variables, which OpenVINO's frontend
does not convert.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from loopscope.errors import shorten
from loopscope.ir.model import Model
from loopscope.read.address_length import check_addresses
from loopscope.read.conversion import read_converted, run_openvino
from loopscope.read.file_limits import ReadLimits
from loopscope.read.tflite.graphs import CONTROL_FLOW, GraphReader
from loopscope.read.tflite.remainder import MOST_SUBGRAPHS, Fragment, convert_operators
from loopscope.read.tflite.schema import SchemaFile
from loopscope.read.weights import WeightsFile

__all__ = ["read_tflite"]


def read_tflite(
    path: Path, target: Path, limits: ReadLimits, *, with_openvino: bool = True
) -> tuple[Model, bool]:
    """Return the Model of a file, and whether OpenVINO took part; ``ValueError`` says why there is
    none.

    A file without control flow and variables is OpenVINO's. Of any other, OpenVINO gets the
    operators that have no translation here. ``target``: where it may write.
    """
    file = _opened(path, limits)
    refused = None
    if with_openvino and not _has_control_flow(file):
        try:
            return _converted(path, target, limits), True
        except ValueError as error:
            refused = error
    model, untranslated = _by_schema(file, limits, {})
    if not untranslated:
        return model, False
    if refused is not None:
        raise refused
    if not with_openvino:
        return model, False
    fragments = {
        index: fragment
        for index, places in list(untranslated.items())[:MOST_SUBGRAPHS]
        if (fragment := convert_operators(file, index, list(places), target, limits)) is not None
    }
    if fragments:
        model, untranslated = _by_schema(file, limits, fragments)
    if untranslated:
        with contextlib.suppress(ValueError):
            return _converted(path, target, limits), True
    return model, bool(fragments)


def _has_control_flow(file: SchemaFile) -> bool:
    """True if an operator of the file calls a subgraph or uses a variable."""
    return any(
        info.name in CONTROL_FLOW for subgraph in file.subgraphs for info in subgraph.operators
    )


def _by_schema(
    file: SchemaFile, limits: ReadLimits, fragments: Mapping[int, Fragment]
) -> tuple[Model, Mapping[int, Mapping[int, str]]]:
    """The Model, and the operators in it that cannot be run, by subgraph and place."""
    reader = GraphReader(file, limits, fragments)
    graph = reader.outermost()
    check_addresses(graph, limits)
    names = sorted({name for places in reader.untranslated.values() for name in places.values()})
    unknown = f"operators without a translation are drawn and cannot be run: {shorten(', '.join(names), 200)}"
    return Model(
        graph, file.subgraph(0).name, notes=(unknown,) if names else ()
    ), reader.untranslated


def _converted(path: Path, target: Path, limits: ReadLimits) -> Model:
    run_openvino(path, target, "read", limits)
    return read_converted(target, target.read_bytes(), limits)


def _opened(path: Path, limits: ReadLimits) -> SchemaFile:
    size = path.stat().st_size
    if size > limits.onnx_bytes:
        raise ValueError(
            f"the file has {size} bytes, more than the limit 'onnx_bytes' of {limits.onnx_bytes}"
        )
    return SchemaFile(WeightsFile(path).take(0, size), limits)

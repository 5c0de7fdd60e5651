"""Conversion of a TensorFlow graph: OpenVINO's IR, and unconverted operations under their own
names.
"""

from __future__ import annotations

import contextlib
import glob
from pathlib import Path
from typing import Any

from loopscope.ir.model import Model
from loopscope.ir.replace import replace
from loopscope.read.conversion import read_converted, run_openvino
from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format
from loopscope.read.tensorflow import conversion_notes
from loopscope.read.tensorflow.conversion_notes import add_tensorflow_attributes
from loopscope.read.tensorflow.graph_file import (
    SAVED_MODEL,
    GraphDefFile,
    parse_message,
    read_source,
)
from loopscope.read.tensorflow.graph_rewrites import with_ifs, with_read_prints
from loopscope.read.tensorflow.node_scopes import (
    with_call_scopes,
    with_declared_calls,
    with_origins,
)
from loopscope.read.tensorflow.v1_control_flow import with_functions
from loopscope.read.tensorflow.variable_states import restore_states, with_states


def convert_graph(path: Path, format: Format, target: Path, limits: ReadLimits) -> Model:
    """Return the Model, with notes on what the conversion preserved.

    The IR is written to ``target``. ``ValueError`` if the graph cannot be converted.
    """
    source, missing_note = _read_graph(
        path / SAVED_MODEL if format is Format.SAVED_MODEL else path, format, limits
    )
    graph = (with_ifs(source.graph) or source.graph) if source is not None else None
    calls = with_call_scopes(graph) if graph is not None else None
    if source is not None:
        graph = calls.graph if calls is not None else graph
        graph = with_read_prints(graph) or graph
        if graph is not source.graph:
            path = _write_with_graph(path, format, graph, target.with_name("rewritten"))
            source = replace(source, graph=graph)
            format = Format.FROZEN if format is Format.GRAPH_TEXT else format
    model = _convert_source(path, format, source, missing_note, target, limits)
    return model if calls is None else with_declared_calls(model, calls.functions)


def _convert_source(
    path: Path,
    format: Format,
    source: GraphDefFile | None,
    missing_note: str,
    target: Path,
    limits: ReadLimits,
) -> Model:
    model = _with_states(path, format, source, target, limits)
    if model is not None:
        return model
    failure = None
    try:
        run_openvino(path, target, "read", limits)
    except ValueError as error:
        failure = error
    if failure is not None and not _convert_with_functions(path, format, source, target, limits):
        _convert_partly(path, target, limits, failure)
    document = target.read_bytes()
    model = by_node_names(
        read_converted(
            target,
            document if failure is None else add_tensorflow_attributes(document, source),
            limits,
        )
    )
    if source is not None:
        model = with_origins(model, source)
    return replace(
        model, notes=conversion_notes.notes(source, model) if source else (missing_note,)
    )


def _with_states(
    path: Path, format: Format, source: GraphDefFile | None, target: Path, limits: ReadLimits
) -> Model | None:
    """Convert with variables as states; None if no variable is assigned or OpenVINO fails on the
    rest.
    """
    has_values = _has_values(path, format)
    if source is None or not (has_values or format in (Format.FROZEN, Format.GRAPH_TEXT)):
        # A meta graph's variables have their values in a checkpoint, not in initializers.
        return None
    states = with_states(source, has_values)
    if states is None:
        return None
    with contextlib.suppress(ValueError):
        run_openvino(
            _write_with_graph(path, format, states.graph, target.with_name("states")),
            target,
            "read",
            limits,
        )
        model = by_node_names(
            restore_states(read_converted(target, target.read_bytes(), limits), states.variables)
        )
        return replace(
            with_origins(model, source),
            notes=conversion_notes.notes(source, model, states.variables),
        )
    return None


def _has_values(path: Path, format: Format) -> bool:
    """Return True if a checkpoint beside the graph contains the values of its variables."""
    if format is Format.SAVED_MODEL:
        return (path / "variables").is_dir()
    return format is Format.META_GRAPH and path.with_suffix(".index").exists()


def by_node_names(model: Model) -> Model:
    """Rename inputs and outputs to their nodes' names, as TensorFlow looks up operations.

    OpenVINO names them as tensors (``x:0``), and these remain as tensor names. A name that another
    node has is not used.
    """
    used_names = {node.name for node in model.graph.nodes}
    nodes = []
    for node in model.graph.nodes:
        plain = node.name.removesuffix(":0")
        if node.type in ("Parameter", "Result") and plain and plain not in used_names:
            used_names.add(plain)
            node = replace(node, name=plain)
        nodes.append(node)
    return replace(model, graph=replace(model.graph, nodes=tuple(nodes)))


def _convert_with_functions(
    path: Path, format: Format, source: GraphDefFile | None, target: Path, limits: ReadLimits
) -> bool:
    """Convert the graph with its frames as loops with functions, because OpenVINO fails on nested
    frames.

    Return True if OpenVINO converts the graph or a part of it.
    """
    graph = with_functions(source.graph) if source else None
    if graph is None:
        return False
    with contextlib.suppress(ValueError):
        run_openvino(
            _write_with_graph(path, format, graph, target.with_name("functions")),
            target,
            "partly",
            limits,
        )
        return True
    return False


def _write_with_graph(path: Path, format: Format, graph: Any, target: Path) -> Path:
    """Write a copy of a file or a SavedModel folder with another graph, linked to the same
    variables.
    """
    match format:
        case Format.SAVED_MODEL:
            target.mkdir()
            for part in path.iterdir():
                if part.name != SAVED_MODEL:
                    (target / part.name).symlink_to(part.resolve())
            message = parse_message(path / SAVED_MODEL, format)
            message.meta_graphs[0].graph_def.CopyFrom(graph)
            (target / SAVED_MODEL).write_bytes(message.SerializeToString())
            return target
        case Format.META_GRAPH:
            for part in path.parent.glob(f"{glob.escape(path.stem)}.*"):
                if part != path:
                    (target.parent / part.name.replace(path.stem, target.name, 1)).symlink_to(
                        part.resolve()
                    )
            message, copy = parse_message(path, format), target.with_suffix(".meta")
            message.graph_def.CopyFrom(graph)
        case _:
            message, copy = graph, target.with_suffix(".pb")
    copy.write_bytes(message.SerializeToString())
    return copy


def _convert_partly(path: Path, target: Path, limits: ReadLimits, failure: ValueError) -> None:
    try:
        run_openvino(path, target, "partly", limits)
    except ValueError:
        raise failure from None


def _read_graph(path: Path, format: Format, limits: ReadLimits) -> tuple[GraphDefFile | None, str]:
    """Return the graph in the file, or None and a note on why it was not read."""
    maximum = limits.graph_text_bytes if format is Format.GRAPH_TEXT else limits.file_bytes
    if (size := path.stat().st_size) > maximum:
        return (
            None,
            (
                "what the conversion kept is not counted:"
                f" the graph has {size:,} bytes, more than {maximum:,}"
            ),
        )
    try:
        return read_source(path, format), ""
    except ValueError as error:
        return None, f"what the conversion kept is not counted: {error}"

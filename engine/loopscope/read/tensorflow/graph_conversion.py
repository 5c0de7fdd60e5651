"""A TensorFlow graph as a Model: what OpenVINO converts, and the rest under its own name."""

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
from loopscope.read.tensorflow.control_prints import with_read_prints
from loopscope.read.tensorflow.graph_file import SAVED_MODEL, GraphDefFile, parsed, read_source
from loopscope.read.tensorflow.node_origins import with_origins
from loopscope.read.tensorflow.unconverted import completed
from loopscope.read.tensorflow.v1_control_flow import with_functions
from loopscope.read.tensorflow.variable_states import restored, with_states


def convert_graph(path: Path, found: Format, target: Path, limits: ReadLimits) -> Model:
    """The Model, with notes on what the conversion kept; ``ValueError`` says why there is none.
    ``target``: where the IR may be written.
    """
    source, uncounted = _source(
        path / SAVED_MODEL if found is Format.SAVED_MODEL else path, found, limits
    )
    graph = with_read_prints(source.graph) if source is not None else None
    if source is not None and graph is not None:
        path, source = (
            _rewritten(path, found, graph, target.with_name("prints")),
            replace(source, graph=graph),
        )
        found = Format.FROZEN if found is Format.GRAPH_TEXT else found
    model = _with_states(path, found, source, target, limits)
    if model is not None:
        return model
    refused = None
    try:
        run_openvino(path, target, "read", limits)
    except ValueError as error:
        refused = error
    if refused is not None and not _convert_with_functions(path, found, source, target, limits):
        _convert_partly(path, target, limits, refused)
    document = target.read_bytes()
    model = by_node_names(
        read_converted(target, document if refused is None else completed(document, source), limits)
    )
    if source is not None:
        model = with_origins(model, source)
    return replace(model, notes=conversion_notes.notes(source, model) if source else (uncounted,))


def _with_states(
    path: Path, found: Format, source: GraphDefFile | None, target: Path, limits: ReadLimits
) -> Model | None:
    """The Model with its variables as states; None where the graph assigns none, or OpenVINO
    does not convert the rest.
    """
    has_values = _has_values(path, found)
    if source is None or not (has_values or found in (Format.FROZEN, Format.GRAPH_TEXT)):
        return None  # the values of a meta graph's variables lie beside it, not in its initializers
    states = with_states(source, has_values)
    if states is None:
        return None
    with contextlib.suppress(ValueError):
        run_openvino(
            _rewritten(path, found, states.graph, target.with_name("states")),
            target,
            "read",
            limits,
        )
        model = by_node_names(
            restored(read_converted(target, target.read_bytes(), limits), states.variables)
        )
        return replace(
            with_origins(model, source),
            notes=conversion_notes.notes(source, model, states.variables),
        )
    return None


def _has_values(path: Path, found: Format) -> bool:
    """True if the values of variables lie beside the graph."""
    if found is Format.SAVED_MODEL:
        return (path / "variables").is_dir()
    return found is Format.META_GRAPH and path.with_suffix(".index").exists()


def by_node_names(model: Model) -> Model:
    """Inputs and outputs under the names of their nodes, as TensorFlow looks operations up;
    OpenVINO calls them ``x:0``, as tensors.

    Those stay names of the tensors. A name that another node has stays away.
    """
    taken = {node.name for node in model.graph.nodes}
    nodes = []
    for node in model.graph.nodes:
        plain = node.name.removesuffix(":0")
        if node.type in ("Parameter", "Result") and plain and plain not in taken:
            taken.add(plain)
            node = replace(node, name=plain)
        nodes.append(node)
    return replace(model, graph=replace(model.graph, nodes=tuple(nodes)))


def _convert_with_functions(
    path: Path, found: Format, source: GraphDefFile | None, target: Path, limits: ReadLimits
) -> bool:
    """Whether OpenVINO converts all or a part of the graph once its frames are loops with
    functions: it fails on nested ones.
    """
    graph = with_functions(source.graph) if source else None
    if graph is None:
        return False
    with contextlib.suppress(ValueError):
        run_openvino(
            _rewritten(path, found, graph, target.with_name("functions")), target, "partly", limits
        )
        return True
    return False


def _rewritten(path: Path, found: Format, graph: Any, beside: Path) -> Path:
    """A file, or a SavedModel's folder, with another graph; the values of its variables stay
    where they are.
    """
    match found:
        case Format.SAVED_MODEL:
            beside.mkdir()
            for part in path.iterdir():
                if part.name != SAVED_MODEL:
                    (beside / part.name).symlink_to(part.resolve())
            message = parsed(path / SAVED_MODEL, found)
            message.meta_graphs[0].graph_def.CopyFrom(graph)
            (beside / SAVED_MODEL).write_bytes(message.SerializeToString())
            return beside
        case Format.META_GRAPH:
            for part in path.parent.glob(f"{glob.escape(path.stem)}.*"):
                if part != path:
                    (beside.parent / part.name.replace(path.stem, beside.name, 1)).symlink_to(
                        part.resolve()
                    )
            message, made = parsed(path, found), beside.with_suffix(".meta")
            message.graph_def.CopyFrom(graph)
        case _:
            message, made = graph, beside.with_suffix(".pb")
    made.write_bytes(message.SerializeToString())
    return made


def _convert_partly(path: Path, target: Path, limits: ReadLimits, refused: ValueError) -> None:
    try:
        run_openvino(path, target, "partly", limits)
    except ValueError:
        raise refused from None


def _source(path: Path, found: Format, limits: ReadLimits) -> tuple[GraphDefFile | None, str]:
    """What the file itself says, or why that is not known."""
    most = limits.graph_text_bytes if found is Format.GRAPH_TEXT else limits.file_bytes
    if (size := path.stat().st_size) > most:
        return (
            None,
            f"what the conversion kept is not counted: the graph has {size:,} bytes, more than {most:,}",
        )
    try:
        return read_source(path, found), ""
    except ValueError as error:
        return None, f"what the conversion kept is not counted: {error}"

"""OpenVINO IR, versions 10 and 11: an XML document and a weights file become a Model."""

from __future__ import annotations

from loopscope.errors import ReadError, Where
from loopscope.ir.memory import no_garbage_collection
from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.ir.replace import replace
from loopscope.read.file_limits import ReadLimits, check_addresses
from loopscope.read.openvino.bare_layers import MalformedLayers, are_bare_layers, whole_document
from loopscope.read.openvino.document import Document
from loopscope.read.weights import WeightsFile


def read_openvino(document: bytes, weights: WeightsFile, file: str, limits: ReadLimits) -> Model:
    """Read an IR document. ``file`` names it in messages; "" for bytes without a path.

    ``ReadError`` if no Model can be made. Unknown operations, edges and port maps to missing
    layers, repeated ids and cycles are reported later, by the model checks.
    """
    notes: tuple[str, ...] = ()
    if are_bare_layers(document):
        document, notes = _complete_bare_layers(document, file, limits)
    reading = Document(document, file, weights, limits)
    with no_garbage_collection():
        reading.read()
    try:
        check_addresses(reading.graph, limits)
    except ValueError as error:
        raise ReadError(str(error), Where(file)) from None
    version, meta_data = reading.version, reading.meta_data
    graph = reading.graph if version > 10 else _with_layer_names(reading.graph)
    # The parser and its tables refer back to the document in a cycle, which would keep the model
    # and the mapped weights in memory until the next garbage collection.
    vars(reading).clear()
    return Model(
        graph,
        graph.name,
        version,
        file=file,
        rt_info=graph.rt_info,
        meta_data=meta_data,
        notes=notes,
    )


def _complete_bare_layers(
    document: bytes, file: str, limits: ReadLimits
) -> tuple[bytes, tuple[str, ...]]:
    """Return bare layers as a whole document, and notes on what was added."""
    if len(document) > limits.layer_bytes:
        limit = f"the limit 'layer_bytes' of {limits.layer_bytes:,}"
        raise ReadError(
            f"these are bare layers of {len(document):,} bytes, more than {limit}:"
            " give a whole <net>",
            Where(file),
        )
    try:
        return whole_document(document)
    except MalformedLayers as error:
        raise ReadError(str(error), Where(file, error.line)) from None


def _with_layer_names(graph: ModelGraph) -> ModelGraph:
    """Return the graph with OpenVINO's implicit names.

    A Parameter's tensor is also named after the Parameter, a Result's after its source
    (``Loop_21.1``).
    """
    return replace(graph, nodes=tuple(_with_implicit_name(graph, node) for node in graph.nodes))


def _with_implicit_name(graph: ModelGraph, node: Node) -> Node:
    if node.type == "Parameter" and len(node.outputs) == 1:
        (port,) = node.outputs
        return replace(node, outputs=(replace(port, names=_append(port.names, node.name)),))
    if node.type == "Result" and graph.sources[node.id] and (source := graph.sources[node.id][0]):
        feeder = graph.by_id[source.layer]
        name = feeder.name if len(feeder.outputs) == 1 else f"{feeder.name}.{source.output}"
        return replace(node, output_names=_append(node.output_names, name))
    return node


def _append(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)

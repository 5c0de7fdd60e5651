"""The XML of an IR document, written element by element.

Nested bodies are a stack of partly written graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from loopscope.errors import WriteError, listed, shorten
from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.write.numbered_ports import joined_names, port_blocks, port_maps
from loopscope.write.rt_info import information
from loopscope.write.weights_file import WeightsWriter
from loopscope.write.xml_elements import DocumentWriter, child, element

_BODY_TAGS = {"body": "body", "then": "then_body", "else": "else_body"}


def write_document(model: Model, weights: WeightsWriter, file: BinaryIO) -> None:
    """Write the whole document in UTF-8, and its constants to ``weights``."""
    with etree.xmlfile(file, encoding="utf-8") as xml:
        xml.write_declaration()
        writer = DocumentWriter(xml)
        writer.begin(element("net", {"name": model.name, "version": 11}))
        waiting = [_write_graph(writer, model.graph, weights)]
        while waiting:
            body = next(waiting[-1], None)
            if body is None:
                waiting.pop()
            else:
                waiting.append(_write_graph(writer, body, weights))
        writer.write(information("rt_info", model.rt_info))
        if model.meta_data:
            writer.write(information("meta_data", model.meta_data))
        writer.end()


def _write_graph(
    writer: DocumentWriter, graph: ModelGraph, weights: WeightsWriter
) -> Iterator[ModelGraph]:
    """Write a graph; yield each body at the position where its elements must be written."""
    repeated = [
        str(layer) for layer, count in Counter(node.id for node in graph.nodes).items() if count > 1
    ]
    if repeated:
        raise WriteError(
            f"several layers of one graph have the ids {listed(repeated)}, "
            "and edges could mean either: give each its own"
        )
    writer.begin(element("layers"))
    for node in graph.nodes:
        layer = _layer(node, weights)
        if not node.bodies:
            writer.write(layer)
            continue
        writer.begin(layer)
        for part in layer:
            writer.write(part)
        for body in node.bodies:
            writer.begin(element(_BODY_TAGS[body.name]))
            yield body.graph
            writer.write(information("rt_info", body.graph.rt_info))
            writer.end()
        writer.end()
    writer.end()
    writer.write(_edges(graph))


def _layer(node: Node, weights: WeightsWriter) -> etree._Element:
    """Return the element of a layer without its bodies."""
    head: dict[str, object] = {
        "id": node.id,
        "name": node.name,
        "type": node.type,
        "version": node.opset,
    }
    if node.output_names:
        head["output_names"] = joined_names(node.output_names)
    layer = element("layer", head)
    data = _data(node, weights)
    if data:
        child(layer, "data", data)
    if node.rt_info:
        layer.append(information("rt_info", node.rt_info, of_layer=True))
    port_maps(layer, node)
    port_blocks(layer, node)
    return layer


def _data(node: Node, weights: WeightsWriter) -> dict[str, object]:
    """Return the ``<data>`` attributes of a layer.

    The contents of a Const or Parameter take precedence over its attributes.
    """
    data = dict(node.attributes)
    if node.constant is not None:
        constant = node.constant
        if not constant.is_kept:
            raise WriteError(
                f"{shorten(node.name, 60)} has no data: "
                "the model is that of a run which was saved without weights"
            )
        shape = ", ".join(str(length) for length in constant.shape)
        # OpenVINO does not find a tensor of zero bytes, not even an empty one, and writes one byte
        # for it.
        stored = constant.data if len(constant.data) else b"\0"
        location = {"offset": weights.offset(stored), "size": len(stored)}
        return {**data, "element_type": constant.element_type, "shape": shape, **location}
    if node.type == "Parameter" and node.outputs:
        port = node.outputs[0]
        data.setdefault("shape", str(port.shape).removeprefix("[").removesuffix("]"))
        data.setdefault("element_type", str(port.element_type or "dynamic"))
    return data


def _edges(graph: ModelGraph) -> etree._Element:
    """Return the edges by port position; output ports follow all input ports."""
    edges = element("edges")
    for node in graph.nodes:
        for index, source in enumerate(graph.sources[node.id]):
            if source is not None:
                output = len(graph.by_id[source.layer].inputs) + source.output
                ends = {
                    "from-layer": source.layer,
                    "from-port": output,
                    "to-layer": node.id,
                    "to-port": index,
                }
                child(edges, "edge", ends)
    if len(edges) != len(graph.edges):
        raise WriteError(
            f"{len(graph.edges) - len(edges)} edges lead nowhere or to an input "
            "that another edge feeds: see what the checks say"
        )
    return edges

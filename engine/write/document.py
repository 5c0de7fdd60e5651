"""The XML of an IR document, line by line; bodies inside bodies are a stack of half-written graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.errors import WriteError, listed
from engine.ir.model import Graph, Model, Node
from engine.write.information import information
from engine.write.ports import joined_names, port_blocks, port_maps
from engine.write.weights import WeightsWriter
from engine.write.xml import attributes, escape, line

_BODY_TAGS = {"body": "body", "then": "then_body", "else": "else_body"}


class _Nested:
    """Stands in the lines of a graph for all lines of a graph inside it."""

    def __init__(self, graph: Graph, level: int) -> None:
        self.graph = graph
        self.level = level


def document(model: Model, weights: WeightsWriter) -> Iterator[str]:
    """The lines of the whole document; constants go to ``weights`` on the way."""
    yield '<?xml version="1.0"?>\n'
    yield line(0, f'<net name="{escape(model.name)}" version="11">')
    waiting = [_graph(model.graph, 1, weights)]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, _Nested):
                waiting.append(_graph(item.graph, item.level, weights))
                break
            yield item
        else:
            waiting.pop()
    yield from information(1, "rt_info", model.rt_info)
    if model.meta_data:
        yield from information(1, "meta_data", model.meta_data)
    yield line(0, "</net>")


def _graph(graph: Graph, level: int, weights: WeightsWriter) -> Iterator[str | _Nested]:
    repeated = [str(layer) for layer, count in Counter(node.id for node in graph.nodes).items() if count > 1]
    if repeated:
        raise WriteError(f"several layers of one graph have the ids {listed(repeated)}, and edges could mean either: give each its own")
    yield line(level, "<layers>")
    for node in graph.nodes:
        yield from _layer(node, level + 1, weights)
    yield line(level, "</layers>")
    yield line(level, "<edges>")
    yield from _edges(graph, level + 1)
    yield line(level, "</edges>")
    # That of the outermost graph is the model's.
    if level > 1:
        yield from information(level, "rt_info", graph.rt_info)


def _layer(node: Node, level: int, weights: WeightsWriter) -> Iterator[str | _Nested]:
    head: dict[str, object] = {"id": node.id, "name": node.name, "type": node.type, "version": node.opset}
    if node.output_names:
        head["output_names"] = joined_names(node.output_names)
    yield line(level, f"<layer{attributes(head)}>")
    data = _data(node, weights)
    if data:
        yield line(level + 1, f"<data{attributes(data)} />")
    if node.rt_info:
        yield from information(level + 1, "rt_info", node.rt_info, of_layer=True)
    yield from port_maps(level + 1, node)
    yield from port_blocks(level + 1, node)
    for body in node.bodies:
        tag = _BODY_TAGS[body.name]
        yield line(level + 1, f"<{tag}>")
        yield _Nested(body.graph, level + 2)
        yield line(level + 1, f"</{tag}>")
    yield line(level, "</layer>")


def _data(node: Node, weights: WeightsWriter) -> dict[str, object]:
    """The ``<data>`` of a layer; what a Const or Parameter holds counts more than what its attributes say."""
    data = dict(node.attributes)
    if node.constant is not None:
        constant = node.constant
        shape = ", ".join(str(length) for length in constant.shape)
        # OpenVINO finds no tensor where there are no bytes, not even an empty tensor, and writes one byte for it.
        stored = constant.data if len(constant.data) else b"\0"
        place = {"offset": weights.offset(stored), "size": len(stored)}
        return {**data, "element_type": constant.element_type, "shape": shape, **place}
    if node.type == "Parameter" and node.outputs:
        port = node.outputs[0]
        data.setdefault("shape", str(port.shape).removeprefix("[").removesuffix("]"))
        data.setdefault("element_type", str(port.element_type or "dynamic"))
    return data


def _edges(graph: Graph, level: int) -> Iterator[str]:
    """By the position of ports: an input is numbered by it, an output after all inputs."""
    written = 0
    for node in graph.nodes:
        for index, source in enumerate(graph.sources[node.id]):
            if source is not None:
                output = len(graph.by_id[source.layer].inputs) + source.output
                yield line(level, f'<edge from-layer="{source.layer}" from-port="{output}" to-layer="{node.id}" to-port="{index}" />')
                written += 1
    if written != len(graph.edges):
        raise WriteError(f"{len(graph.edges) - written} edges lead nowhere or to an input that another edge feeds: see what the checks say")

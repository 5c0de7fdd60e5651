"""Bare ``<layer>`` elements, as in OpenVINO's operation pages, completed to a whole document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from copy import deepcopy
from dataclasses import dataclass, field

from lxml import etree

from loopscope.errors import listed, shorten
from loopscope.ir.model import IF, LOOP
from loopscope.read.openvino import fields

_BEGIN = re.compile(rb"<layers?[\s/>]")
_TAG = re.compile(rb"<[A-Za-z][^<>]*>")
# A quoted text, or three dots in place of an attribute.
_QUOTED_OR_DOTS = re.compile(rb"(\"[^\"]*\"|'[^']*')|\s(?:\.\.\.|\xe2\x80\xa6)(?=[\s/>])")
_POSITION_SUFFIX = re.compile(r", line \d+, column \d+$")
_OPSET = "opset16"
"""Version for layers without one: the last opset that contains nearly all operations."""
_SCALARS = {(LOOP, 0): "i64", (LOOP, 1): "boolean", (IF, 0): "boolean"}
"""Element types of control inputs, which are scalars by default."""
_MIN_INPUTS = {LOOP: 2, IF: 1}
_MAX_PORTS = 1000
_BODIES = {"port_map": "body", "then_port_map": "then_body", "else_port_map": "else_body"}
Element = etree._Element


class MalformedLayers(ValueError):
    """Layers that are not well-formed XML; ``line`` is the line of the error."""

    def __init__(self, error: etree.XMLSyntaxError, lines_before: int) -> None:
        self.line = (error.lineno or 0) + lines_before
        super().__init__(
            "this is not well-formed XML:"
            f" {shorten(_POSITION_SUFFIX.sub('', error.msg or 'it ends too early'), 200)}"
        )


def are_bare_layers(document: bytes) -> bool:
    """Return True if a document begins with a layer instead of a ``<net>``."""
    return _BEGIN.match(document, _beginning(document)) is not None


def whole_document(document: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return the layers inside a complete ``<net>`` with unchanged line numbers, and notes on
    additions.

    ``MalformedLayers`` if the layers are not well-formed XML.
    """
    begin = _beginning(document)
    layers = _TAG.sub(
        lambda tag: _QUOTED_OR_DOTS.sub(lambda match: match[1] or b"", tag[0]), document[begin:]
    )
    text = b'<net name="" version="11">' + layers + b"</net>"
    before = document.count(b"\n", 0, begin)
    # The text is inside an element, so it cannot declare entities. libxml2 limits nesting to 256
    # elements.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        net = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedLayers(error, before) from None
    completion = _Completion()
    completion.complete(net)
    net.set("name", next((layer.get("name", "") for layer in net.findall("layers/layer")), ""))
    return b"\n" * before + etree.tostring(net, encoding="utf-8"), completion.notes()


def _beginning(document: bytes) -> int:
    """Return the offset of the first element, after byte order mark, declaration and comments."""
    offset = 3 if document.startswith(b"\xef\xbb\xbf") else 0
    while True:
        offset += len(document[offset : offset + 4096]) - len(
            document[offset : offset + 4096].lstrip()
        )
        closing = (
            b"?>"
            if document.startswith(b"<?", offset)
            else b"-->"
            if document.startswith(b"<!--", offset)
            else b""
        )
        end = document.find(closing, offset) if closing else -1
        if end < 0:
            return offset
        offset = end + len(closing)


@dataclass(slots=True)
class _Completion:
    """Completion of a document: adds missing parts and stores the names of the added ones."""

    around: list[str] = field(default_factory=list[str])
    untyped: list[str] = field(default_factory=list[str])
    inside: list[str] = field(default_factory=list[str])
    free: int = 0
    """Id of the next added layer."""

    def notes(self) -> tuple[str, ...]:
        """Return notes on what was added and where."""
        notes = ["this is a bare <layer>, not a model"]
        if self.around:
            notes = [f"{notes[0]}: {listed(self.around)} were put around it"]
        if self.untyped:
            notes.append(
                f"the layer does not say the element type of {listed(self.untyped)}: f32 is taken"
            )
        if self.inside:
            notes.append(
                "bodies lack layers that port maps and back edges name; these were put there:"
                f" {listed(self.inside)}"
            )
        return tuple(notes)

    def complete(self, net: Element) -> None:
        layers = _graph_elements(net)
        for layer in net.xpath("layer"):
            layers.append(layer)
        for graph in (net, *net.iter("body", "then_body", "else_body")):
            _complete_layers(_graph_elements(graph))
        for layer in list(layers.iter("layer")):
            for name in _BODIES:
                _complete_ports(layer, layer.findall(name))
        for layer in list(layers.iter("layer")):
            for name, body in _BODIES.items():
                for port_map in layer.findall(name):
                    self._complete_body(layer, port_map, layer.find(body))
        edges = net.find("edges")
        assert edges is not None
        connected = {
            (edge.get(f"{side}-layer"), edge.get(f"{side}-port"))
            for edge in edges
            for side in ("from", "to")
        }
        self.free = _free_id(layers)
        for layer in layers.findall("layer"):
            self._surround(layers, edges, layer, connected)

    def _complete_body(self, layer: Element, port_map: Element, body: Element | None) -> None:
        """Add the Parameters and Results that the port map and the back edges name."""
        if body is None:
            return
        layers = _graph_elements(body)
        ids = {element.get("id") for element in layers.findall("layer")}
        edges = layer.findall("back_edges/edge") if body.tag == "body" else []
        parameters = [
            *(element.get("internal_layer_id") for element in port_map.findall("input")),
            *(element.get("to-layer") for element in edges),
        ]
        results = [
            *(element.get("internal_layer_id") for element in port_map.findall("output")),
            *(element.get("from-layer") for element in edges),
        ]
        for kind, ids_needed in (("Parameter", parameters), ("Result", results)):
            for number in dict.fromkeys(ids_needed):
                if number and number not in ids:
                    ids.add(number)
                    added = _add_layer(layers, number, f"{kind}_{number}", kind)
                    if kind == "Parameter":
                        self._type_parameter(added, layer, port_map, number)
                    self.inside.append(f"{layer.get('name')}/{body.tag!s}/{added.get('name')}")

    def _type_parameter(
        self, parameter: Element, layer: Element, port_map: Element, number: str
    ) -> None:
        entry = next(
            (
                input_entry
                for input_entry in port_map.findall("input")
                if input_entry.get("internal_layer_id") == number
            ),
            None,
        )
        if entry is not None and entry.get("purpose") == "current_iteration":
            _declare(parameter, "i64", "")
            return
        ports = layer.findall("input/port")
        index = _number(entry.get("external_port_id")) if entry is not None else None
        if entry is None or index is None or not 0 <= index < len(ports):
            _declare(parameter, None, "...")
            return
        kind, shape = _input_type(layer, index, ports[index])
        _declare(parameter, kind, "..." if entry.get("axis") is not None else shape)

    def _surround(
        self,
        layers: Element,
        edges: Element,
        layer: Element,
        connected: Set[tuple[str | None, str | None]],
    ) -> None:
        """Add a Parameter for each input without a source, and a Result for each output without a
        consumer.
        """
        own = layer.get("id", "")
        for index, port in enumerate(layer.findall("input/port")):
            if (own, port.get("id")) not in connected:
                parameter = self._add_parameter(layers, layer, index, port)
                _add_edge(edges, parameter.get("id", ""), "0", own, port.get("id", ""))
        for index, port in enumerate(layer.findall("output/port")):
            if layer.get("type") != "Result" and (own, port.get("id")) not in connected:
                result = self._add_layer(layers, f"{layer.get('name')}_output_{index}", "Result")
                _copy_type(port, result)
                _add_edge(edges, own, port.get("id", ""), result.get("id", ""), "0")

    def _add_layer(self, layers: Element, name: str, kind: str) -> Element:
        layer = _add_layer(layers, str(self.free), name, kind)
        self.free += 1
        self.around.append(name)
        return layer

    def _add_parameter(self, layers: Element, layer: Element, index: int, port: Element) -> Element:
        name = f"{layer.get('name')}_input_{index}"
        parameter = self._add_layer(layers, name, "Parameter")
        kind, shape = _input_type(layer, index, port)
        if kind is None:
            self.untyped.append(name)
        _declare(parameter, kind or "f32", shape)
        return parameter


def _graph_elements(graph: Element) -> Element:
    """Return the ``<layers>`` of a graph, after adding missing ``<layers>`` and ``<edges>``."""
    for tag in ("layers", "edges"):
        if graph.find(tag) is None:
            etree.SubElement(graph, tag)
    layers = graph.find("layers")
    assert layers is not None
    return layers


def _complete_layers(layers: Element) -> None:
    """Add missing ids, names, versions, and port precisions."""
    free = _free_id(layers)
    for layer in layers.findall("layer"):
        if layer.get("id") is None:
            layer.set("id", str(free))
            free += 1
        if layer.get("name") is None:
            layer.set("name", layer.get("type", "layer"))
        if layer.get("version") is None:
            layer.set("version", _OPSET)
        for index, port in enumerate(layer.xpath("input/port|output/port")):
            if port.get("id") is None:
                port.set("id", str(index))
        for port in layer.findall("output/port"):
            if port.get("precision") is None:
                port.set("precision", "dynamic")


def _complete_ports(layer: Element, port_maps: Iterable[Element]) -> None:
    """Add the ports that the port maps name to a layer that lists none."""
    maps = list(port_maps)
    if not maps:
        return
    if not layer.findall("input/port"):
        port_ids = [
            _number(map_entry.get("external_port_id"))
            for port_map in maps
            for map_entry in port_map.findall("input")
        ]
        count = max((number for number in port_ids if number is not None), default=-1) + 1
        _add_ports(
            layer,
            "input",
            range(min(max(count, _MIN_INPUTS.get(layer.get("type", ""), 0)), _MAX_PORTS)),
        )
    if not layer.findall("output/port"):
        port_numbers = {
            _number(map_entry.get("external_port_id")) for map_entry in maps[0].findall("output")
        } - {
            None,
            -1,
        }
        first = len(layer.findall("input/port"))
        _add_ports(layer, "output", range(first, first + len(port_numbers)))


def _add_ports(layer: Element, side: str, numbers: Iterable[int]) -> None:
    element = layer.find(side)
    if element is None:
        element = etree.SubElement(layer, side)
    for number in numbers:
        etree.SubElement(element, "port", {"id": str(number), "precision": "dynamic"})


def _copy_type(port: Element, result: Element) -> None:
    """Copy type and shape of an output to its Result."""
    for result_port in result.findall("input/port"):
        result_port.set("precision", port.get("precision", "dynamic"))
        result_port.extend(deepcopy(port.findall("dim")))


def _input_type(layer: Element, index: int, port: Element) -> tuple[str | None, str]:
    """Return element type and shape of an input.

    They come from its port, else from the body's Parameter that it feeds, else from the layer's
    output.
    """
    kind, shape = _type_of_port(port)
    inside, inner_shape = _type_from_bodies(layer, index)
    if kind is None:
        kind = inside or _SCALARS.get((layer.get("type", ""), index))
    if shape is None:
        shape = (
            inner_shape
            if inner_shape is not None
            else ""
            if (layer.get("type", ""), index) in _SCALARS
            else None
        )
    if kind is None and layer.find("body") is None and layer.find("then_body") is None:
        kind = next(
            (
                precision
                for port_element in layer.findall("output/port")
                if (precision := _type_of_port(port_element)[0])
            ),
            None,
        )
    return kind, "..." if shape is None else shape


def _type_of_port(port: Element) -> tuple[str | None, str | None]:
    kind = fields.precision({"precision": port.get("precision", "")}, "input")
    lengths = [(dimension.text or "").strip() for dimension in port.findall("dim")]
    return None if kind is None else kind.value, ",".join(lengths) or None


def _type_from_bodies(layer: Element, index: int) -> tuple[str | None, str | None]:
    """Return type and shape of the body's Parameter that the input feeds; no shape for a sliced
    input.
    """
    for entry, parameter in _parameters_of_input(layer, index):
        data = parameter.find("data")
        if data is not None:
            return data.get("element_type"), None if entry.get("axis") is not None else data.get(
                "shape"
            )
    return None, None


def _parameters_of_input(layer: Element, index: int) -> Iterator[tuple[Element, Element]]:
    for name, body in _BODIES.items():
        for entry in layer.findall(f"{name}/input"):
            if _number(entry.get("external_port_id")) == index:
                for inner_layer in layer.findall(f"{body}/layers/layer"):
                    if (
                        inner_layer.get("id") == entry.get("internal_layer_id")
                        and inner_layer.get("type") == "Parameter"
                    ):
                        yield entry, inner_layer


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _free_id(layers: Element) -> int:
    """Return the first id after those of all layers."""
    return (
        max(
            (number for layer in layers if (number := _number(layer.get("id"))) is not None),
            default=-1,
        )
        + 1
    )


def _add_layer(layers: Element, number: str, name: str, kind: str) -> Element:
    layer = etree.SubElement(
        layers, "layer", {"id": number, "name": name, "type": kind, "version": "opset1"}
    )
    side = etree.SubElement(layer, "output" if kind == "Parameter" else "input")
    etree.SubElement(side, "port", {"id": "0", "precision": "dynamic"})
    return layer


def _declare(parameter: Element, kind: str | None, shape: str) -> None:
    parameter.insert(0, etree.Element("data", {"element_type": kind or "dynamic", "shape": shape}))


def _add_edge(edges: Element, source: str, source_port: str, target: str, target_port: str) -> None:
    etree.SubElement(
        edges,
        "edge",
        {
            "from-layer": source,
            "from-port": source_port,
            "to-layer": target,
            "to-port": target_port,
        },
    )

"""Bare ``<layer>`` elements, as the pages of the operations show them, made a whole document:
what is missing around them is put there.
"""

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
# A text in quotes, or three dots where an attribute would stand.
_QUOTED_OR_DOTS = re.compile(rb"(\"[^\"]*\"|'[^']*')|\s(?:\.\.\.|\xe2\x80\xa6)(?=[\s/>])")
_PLACE = re.compile(r", line \d+, column \d+$")
_OPSET = "opset16"
"""The last that contains nearly all operations, for a layer that does not say."""
_SCALARS = {(LOOP, 0): "i64", (LOOP, 1): "boolean", (IF, 0): "boolean"}
"""Element types of the inputs that steer, which are scalars where nothing else is said."""
_LEAST_INPUTS = {LOOP: 2, IF: 1}
_MOST_PORTS = 1000
_BODIES = {"port_map": "body", "then_port_map": "then_body", "else_port_map": "else_body"}
Element = etree._Element


class MalformedLayers(ValueError):
    """The layers are not well-formed XML; ``line`` is where."""

    def __init__(self, error: etree.XMLSyntaxError, lines_before: int) -> None:
        self.line = (error.lineno or 0) + lines_before
        super().__init__(
            f"this is not well-formed XML: {shorten(_PLACE.sub('', error.msg or 'it ends too early'), 200)}"
        )


def are_bare_layers(document: bytes) -> bool:
    """Whether a document begins with a layer where a ``<net>`` would stand."""
    return _BEGIN.match(document, _beginning(document)) is not None


def whole_document(document: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The layers inside a ``<net>`` with what they lack, lines unchanged, and notes on what was
    put there; ``MalformedLayers``.
    """
    at = _beginning(document)
    layers = _TAG.sub(
        lambda tag: _QUOTED_OR_DOTS.sub(lambda found: found[1] or b"", tag[0]), document[at:]
    )
    text = b'<net name="" version="11">' + layers + b"</net>"
    before = document.count(b"\n", 0, at)
    # Nothing can be declared inside an element, so that there are no entities; and libxml2 ends at
    # 256 elements inside each other.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        net = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedLayers(error, before) from None
    completion = _Completion()
    completion.complete(net)
    net.set("name", next((one.get("name", "") for one in net.findall("layers/layer")), ""))
    return b"\n" * before + etree.tostring(net, encoding="utf-8"), completion.notes()


def _beginning(document: bytes) -> int:
    """Where the first element begins: after byte order mark, declaration and comments."""
    at = 3 if document.startswith(b"\xef\xbb\xbf") else 0
    while True:
        at += len(document[at : at + 4096]) - len(document[at : at + 4096].lstrip())
        closing = (
            b"?>"
            if document.startswith(b"<?", at)
            else b"-->"
            if document.startswith(b"<!--", at)
            else b""
        )
        end = document.find(closing, at) if closing else -1
        if end < 0:
            return at
        at = end + len(closing)


@dataclass(slots=True)
class _Completion:
    """Puts what is missing, and keeps the names of what it put."""

    around: list[str] = field(default_factory=list[str])
    untyped: list[str] = field(default_factory=list[str])
    inside: list[str] = field(default_factory=list[str])
    free: int = 0
    """The id of the next layer that is put around."""

    def notes(self) -> tuple[str, ...]:
        """What was put where."""
        found = ["this is a bare <layer>, not a model"]
        if self.around:
            found = [f"{found[0]}: {listed(self.around)} were put around it"]
        if self.untyped:
            found.append(
                f"the layer does not say the element type of {listed(self.untyped)}: f32 is taken"
            )
        if self.inside:
            found.append(
                f"bodies lack layers that port maps and back edges name; these were put there: {listed(self.inside)}"
            )
        return tuple(found)

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
        taken = {
            (one.get(f"{side}-layer"), one.get(f"{side}-port"))
            for one in edges
            for side in ("from", "to")
        }
        self.free = _free_id(layers)
        for layer in layers.findall("layer"):
            self._surround(layers, edges, layer, taken)

    def _complete_body(self, layer: Element, port_map: Element, body: Element | None) -> None:
        """Parameters and Results that port map and back edges name."""
        if body is None:
            return
        layers = _graph_elements(body)
        there = {one.get("id") for one in layers.findall("layer")}
        edges = layer.findall("back_edges/edge") if body.tag == "body" else []
        parameters = [
            *(one.get("internal_layer_id") for one in port_map.findall("input")),
            *(one.get("to-layer") for one in edges),
        ]
        results = [
            *(one.get("internal_layer_id") for one in port_map.findall("output")),
            *(one.get("from-layer") for one in edges),
        ]
        for kind, wanted in (("Parameter", parameters), ("Result", results)):
            for number in dict.fromkeys(wanted):
                if number and number not in there:
                    there.add(number)
                    made = _add_layer(layers, number, f"{kind}_{number}", kind)
                    if kind == "Parameter":
                        self._type_parameter(made, layer, port_map, number)
                    self.inside.append(f"{layer.get('name')}/{body.tag!s}/{made.get('name')}")

    def _type_parameter(
        self, made: Element, layer: Element, port_map: Element, number: str
    ) -> None:
        entry = next(
            (one for one in port_map.findall("input") if one.get("internal_layer_id") == number),
            None,
        )
        if entry is not None and entry.get("purpose") == "current_iteration":
            _declare(made, "i64", "")
            return
        ports = layer.findall("input/port")
        at = _number(entry.get("external_port_id")) if entry is not None else None
        if entry is None or at is None or not 0 <= at < len(ports):
            _declare(made, None, "...")
            return
        kind, shape = _said(layer, at, ports[at])
        _declare(made, kind, "..." if entry.get("axis") is not None else shape)

    def _surround(
        self,
        layers: Element,
        edges: Element,
        layer: Element,
        taken: Set[tuple[str | None, str | None]],
    ) -> None:
        """A Parameter for each input that nothing feeds and a Result for each output that nobody
        takes.
        """
        own = layer.get("id", "")
        for at, port in enumerate(layer.findall("input/port")):
            if (own, port.get("id")) not in taken:
                parameter = self._add_parameter(layers, layer, at, port)
                _add_edge(edges, parameter.get("id", ""), "0", own, port.get("id", ""))
        for at, port in enumerate(layer.findall("output/port")):
            if layer.get("type") != "Result" and (own, port.get("id")) not in taken:
                result = self._add_layer(layers, f"{layer.get('name')}_output_{at}", "Result")
                _take_over(port, result)
                _add_edge(edges, own, port.get("id", ""), result.get("id", ""), "0")

    def _add_layer(self, layers: Element, name: str, kind: str) -> Element:
        made = _add_layer(layers, str(self.free), name, kind)
        self.free += 1
        self.around.append(name)
        return made

    def _add_parameter(self, layers: Element, layer: Element, at: int, port: Element) -> Element:
        name = f"{layer.get('name')}_input_{at}"
        made = self._add_layer(layers, name, "Parameter")
        kind, shape = _said(layer, at, port)
        if kind is None:
            self.untyped.append(name)
        _declare(made, kind or "f32", shape)
        return made


def _graph_elements(graph: Element) -> Element:
    """``<layers>`` of a graph; made, as ``<edges>`` is, where there is none."""
    for tag in ("layers", "edges"):
        if graph.find(tag) is None:
            etree.SubElement(graph, tag)
    found = graph.find("layers")
    assert found is not None
    return found


def _complete_layers(layers: Element) -> None:
    """Ids, names, versions, and precisions of ports."""
    free = _free_id(layers)
    for layer in layers.findall("layer"):
        if layer.get("id") is None:
            layer.set("id", str(free))
            free += 1
        if layer.get("name") is None:
            layer.set("name", layer.get("type", "layer"))
        if layer.get("version") is None:
            layer.set("version", _OPSET)
        for at, port in enumerate(layer.xpath("input/port|output/port")):
            if port.get("id") is None:
                port.set("id", str(at))
        for port in layer.findall("output/port"):
            if port.get("precision") is None:
                port.set("precision", "dynamic")


def _complete_ports(layer: Element, port_maps: Iterable[Element]) -> None:
    """As many ports as the port maps name, where the layer lists none."""
    maps = list(port_maps)
    if not maps:
        return
    if not layer.findall("input/port"):
        named = [
            _number(one.get("external_port_id"))
            for port_map in maps
            for one in port_map.findall("input")
        ]
        most = max((number for number in named if number is not None), default=-1) + 1
        _add_ports(
            layer,
            "input",
            range(min(max(most, _LEAST_INPUTS.get(layer.get("type", ""), 0)), _MOST_PORTS)),
        )
    if not layer.findall("output/port"):
        given = {_number(one.get("external_port_id")) for one in maps[0].findall("output")} - {
            None,
            -1,
        }
        first = len(layer.findall("input/port"))
        _add_ports(layer, "output", range(first, first + len(given)))


def _add_ports(layer: Element, side: str, numbers: Iterable[int]) -> None:
    element = layer.find(side)
    if element is None:
        element = etree.SubElement(layer, side)
    for number in numbers:
        etree.SubElement(element, "port", {"id": str(number), "precision": "dynamic"})


def _take_over(port: Element, result: Element) -> None:
    """What an output says of its type and shape, the Result of it says too."""
    for taken in result.findall("input/port"):
        taken.set("precision", port.get("precision", "dynamic"))
        taken.extend(deepcopy(port.findall("dim")))


def _said(layer: Element, at: int, port: Element) -> tuple[str | None, str]:
    """Element type and shape of an input: what its port says, else the body's Parameter that it
    feeds, else the layer's output.
    """
    kind, shape = _of_port(port)
    inside, inner_shape = _of_bodies(layer, at)
    if kind is None:
        kind = inside or _SCALARS.get((layer.get("type", ""), at))
    if shape is None:
        shape = (
            inner_shape
            if inner_shape is not None
            else ""
            if (layer.get("type", ""), at) in _SCALARS
            else None
        )
    if kind is None and layer.find("body") is None and layer.find("then_body") is None:
        kind = next(
            (found for one in layer.findall("output/port") if (found := _of_port(one)[0])), None
        )
    return kind, "..." if shape is None else shape


def _of_port(port: Element) -> tuple[str | None, str | None]:
    kind = fields.precision({"precision": port.get("precision", "")}, "input")
    lengths = [(one.text or "").strip() for one in port.findall("dim")]
    return None if kind is None else kind.value, ",".join(lengths) or None


def _of_bodies(layer: Element, at: int) -> tuple[str | None, str | None]:
    """What the body's Parameter declares that an input feeds; no shape where it gets slices."""
    for entry, parameter in _fed(layer, at):
        data = parameter.find("data")
        if data is not None:
            return data.get("element_type"), None if entry.get("axis") is not None else data.get(
                "shape"
            )
    return None, None


def _fed(layer: Element, at: int) -> Iterator[tuple[Element, Element]]:
    for name, body in _BODIES.items():
        for entry in layer.findall(f"{name}/input"):
            if _number(entry.get("external_port_id")) == at:
                for one in layer.findall(f"{body}/layers/layer"):
                    if (
                        one.get("id") == entry.get("internal_layer_id")
                        and one.get("type") == "Parameter"
                    ):
                        yield entry, one


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _free_id(layers: Element) -> int:
    """The first number after those of all layers."""
    return (
        max(
            (number for one in layers if (number := _number(one.get("id"))) is not None), default=-1
        )
        + 1
    )


def _add_layer(layers: Element, number: str, name: str, kind: str) -> Element:
    made = etree.SubElement(
        layers, "layer", {"id": number, "name": name, "type": kind, "version": "opset1"}
    )
    side = etree.SubElement(made, "output" if kind == "Parameter" else "input")
    etree.SubElement(side, "port", {"id": "0", "precision": "dynamic"})
    return made


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

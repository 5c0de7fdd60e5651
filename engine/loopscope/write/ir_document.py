"""The XML of an IR document, written element by element with lxml, and its weights file.

Nested bodies are a stack of partly written graphs. Ports and port maps have OpenVINO's numbering:
inputs from 0, outputs after the inputs. The weights file contains every constant once at an aligned
offset. Texts that XML cannot represent are refused with an error that names them. ``rt_info`` and
``meta_data`` are made from the nested mappings of the reader.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO

from lxml import etree

from loopscope.errors import WriteError, listed, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.memory import release_pages
from loopscope.ir.model import Body, InputMap, Model, ModelGraph, Node, OutputMap, Port

if TYPE_CHECKING:
    # The stubs define this class, but lxml itself does not export it.
    from lxml.etree._serializer import _IncrementalFileWriter


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


_PRECISIONS = {
    None: "UNSPECIFIED",
    ElementType.F64: "FP64",
    ElementType.F32: "FP32",
    ElementType.F16: "FP16",
    ElementType.BOOLEAN: "BOOL",
    ElementType.U1: "BIN",
}
_PREFIXES = {"body": "", "then": "then_", "else": "else_"}


def port_blocks(layer: etree._Element, node: Node) -> None:
    """Add the ``<input>`` and ``<output>`` elements of a layer."""
    for tag, first, ports in (
        ("input", 0, node.inputs),
        ("output", len(node.inputs), node.outputs),
    ):
        if ports:
            block = child(layer, tag)
            for index, port in enumerate(ports, first):
                _port(block, index, port)


def _port(block: etree._Element, index: int, port: Port) -> None:
    precision = _PRECISIONS.get(port.element_type) or str(port.element_type).upper()
    names = {"names": joined_names(port.names)} if port.names else {}
    element = child(block, "port", {"id": index, "precision": precision, **names})
    for dimension in port.shape.dimensions or ():
        child(element, "dim").text = str(dimension.length if dimension.is_static else -1)
    if port.rt_info:
        element.append(information("rt_info", port.rt_info, of_layer=True))


def joined_names(names: tuple[str, ...]) -> str:
    r"""Join tensor names with commas, and escape their own commas.

    >>> joined_names(("a,1", "b"))
    'a\\,1,b'
    """
    for name in names[:-1]:
        if name.endswith("\\"):
            raise WriteError(
                f"the tensor name {shorten(name, 60)!r} ends with a backslash, "
                "which an IR cannot store: rename it"
            )
    return ",".join(name.replace(",", "\\,") for name in names)


def port_maps(layer: etree._Element, node: Node) -> None:
    """Add the port map of each body, in OpenVINO's order (else before then), and the back edges."""
    for body in reversed(node.bodies):
        _entries(child(layer, f"{_PREFIXES[body.name]}port_map"), node, body)
        if body.back_edges:
            edges = child(layer, "back_edges")
            for edge in body.back_edges:
                child(edges, "edge", {"from-layer": edge.from_layer, "to-layer": edge.to_layer})


def _entries(port_map: etree._Element, node: Node, body: Body) -> None:
    for entry in body.inputs:
        child(port_map, "input", _entry(entry, entry.external))
    outer = body.outer_outputs
    for index, output in enumerate(outer, len(node.inputs)):
        child(port_map, "output", _entry(output, index))
    for output in body.outputs:
        # An entry with a purpose is written even if an earlier entry feeds the same output.
        if output.external == -1 or (output.purpose and output not in outer):
            child(port_map, "output", _entry(output, -1))


def _entry(entry: InputMap | OutputMap, external: int) -> dict[str, object]:
    if isinstance(entry, OutputMap) and entry.stacked:
        raise WriteError(
            "an output that stacks its parts along a new axis cannot be written as an IR, "
            "which only concatenates"
        )
    fields: dict[str, object] = {} if entry.axis is None else {"axis": entry.axis}
    fields |= {"external_port_id": external, "internal_layer_id": entry.internal}
    for name, default in (("start", 0), ("end", -1), ("stride", 1), ("part_size", 1)):
        if entry.axis is not None or getattr(entry, name) != default:
            fields[name] = getattr(entry, name)
    if entry.purpose:
        fields["purpose"] = entry.purpose
    return fields


# Sufficient for every element type and for the vector units that read them.
_ALIGNMENT = 64


class WeightsWriter:
    """A writer that appends constants to a file and writes equal bytes once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0
        self._offsets: dict[bytes, int] = {}

    def offset(self, data: memoryview | bytes) -> int:
        """Return the offset of these bytes in the file; append them if they are new."""
        digest = hashlib.blake2b(data, digest_size=32).digest()
        offset = self._offsets.get(digest)
        if offset is None:
            padding = -self._size % _ALIGNMENT
            self._file.write(bytes(padding))
            offset = self._offsets[digest] = self._size + padding
            self._file.write(data)
            release_pages(data)
            self._size = offset + len(data)
        return offset


_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# Deeper levels are not indented further, because the tabs of nested bodies would dominate the file.
_MAX_INDENT = 40


def is_name(text: str) -> bool:
    """Return True if a text is a valid name of an element or attribute."""
    return _NAME.fullmatch(text) is not None


def element(tag: str, attributes: Mapping[str, object] | None = None) -> etree._Element:
    """Create an element; ``WriteError`` for an attribute name or text that XML cannot represent."""
    node = etree.Element(tag)
    _set_attributes(node, attributes or {})
    return node


def child(
    parent: etree._Element, tag: str, attributes: Mapping[str, object] | None = None
) -> etree._Element:
    """Create a new last child of ``parent``; ``WriteError`` as for ``element``."""
    node = etree.SubElement(parent, tag)
    _set_attributes(node, attributes or {})
    return node


def _set_attributes(node: etree._Element, attributes: Mapping[str, object]) -> None:
    for name, value in attributes.items():
        if not is_name(name):
            raise WriteError(
                f"attribute {shorten(name, 60)!r} cannot be written: its name is not a name in XML"
            )
        text = str(value)
        try:
            node.set(name, text)
        except ValueError as error:
            impossible = _IMPOSSIBLE.search(text)
            character = impossible[0] if impossible else text
            raise WriteError(
                f"{shorten(text, 60)!r} contains the character {character!r}, "
                "which XML cannot hold: rename it"
            ) from error


class DocumentWriter:
    """A writer of a document, element by element, each on its own line.

    A large document is never in memory as a whole.
    """

    def __init__(self, xml: _IncrementalFileWriter) -> None:
        self._xml = xml
        self._open: list[AbstractContextManager[object]] = []

    def begin(self, start: etree._Element) -> None:
        """Write the start tag of ``start``; further elements lie inside it until ``end``."""
        self._new_line()
        context = self._xml.element(start.tag, dict(start.attrib))
        context.__enter__()
        self._open.append(context)

    def end(self) -> None:
        """Close the element that was begun last."""
        context = self._open.pop()
        self._new_line()
        context.__exit__(None, None, None)

    def write(self, node: etree._Element) -> None:
        """Write an element with its content."""
        self._new_line()
        etree.indent(node, space="\t", level=min(len(self._open), _MAX_INDENT))
        self._xml.write(node)

    def _new_line(self) -> None:
        if self._open:
            self._xml.write("\n" + "\t" * min(len(self._open), _MAX_INDENT))


# The limit of the reader.
_MAX_DEPTH = 64


def information(
    tag: str, content: Mapping[str, object], *, of_layer: bool = False
) -> etree._Element:
    """Return an ``rt_info`` element.

    In a layer or port, mappings become ``<attribute name="..." .../>``; elsewhere they become
    sections.
    """
    root = element(tag)
    for key, value in content.items():
        _rt_info_entry(root, key, value, of_layer=of_layer, depth=1)
    return root


def _rt_info_entry(
    parent: etree._Element, key: str, value: object, *, of_layer: bool, depth: int
) -> None:
    if depth > _MAX_DEPTH:
        raise WriteError(f"rt_info is nested deeper than {_MAX_DEPTH}, the limit of readers")
    plain = is_name(key) and key not in ("info", "attribute")
    tag, name = (key, {}) if plain else ("info", {"name": key})
    if not isinstance(value, Mapping):
        child(parent, tag, {**name, "value": value})
        return
    if not of_layer:
        target, content = child(parent, tag, name), value
    else:
        texts = {
            inner: text
            for inner, text in value.items()
            if not isinstance(text, Mapping) and is_name(inner) and inner != "name"
        }
        target = child(parent, "attribute", {"name": key, **texts})
        content = {inner: text for inner, text in value.items() if inner not in texts}
    for inner, text in content.items():
        _rt_info_entry(target, inner, text, of_layer=False, depth=depth + 1)

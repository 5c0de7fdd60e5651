"""Ports and port maps with OpenVINO's numbering: inputs from 0, outputs after the inputs."""

from __future__ import annotations

from lxml import etree

from loopscope.errors import WriteError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Body, InputMap, Node, OutputMap, Port
from loopscope.write.rt_info import information
from loopscope.write.xml_elements import child

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

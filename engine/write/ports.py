"""Ports and port maps, numbered as OpenVINO numbers them: inputs from 0, outputs after the inputs."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import WriteError, shorten
from engine.ir.element_type import ElementType
from engine.ir.model import Body, InputMap, Node, OutputMap, Port
from engine.write.information import information
from engine.write.xml import attributes, escape, line

_PRECISIONS = {
    None: "UNSPECIFIED",
    ElementType.F64: "FP64",
    ElementType.F32: "FP32",
    ElementType.F16: "FP16",
    ElementType.BOOLEAN: "BOOL",
    ElementType.U1: "BIN",
}
_PREFIXES = {"body": "", "then": "then_", "else": "else_"}


def port_blocks(level: int, node: Node) -> Iterator[str]:
    """The ``<input>`` and ``<output>`` of a layer."""
    for tag, first, ports in (("input", 0, node.inputs), ("output", len(node.inputs), node.outputs)):
        if ports:
            yield line(level, f"<{tag}>")
            for index, port in enumerate(ports, first):
                yield from _port(level + 1, index, port)
            yield line(level, f"</{tag}>")


def _port(level: int, index: int, port: Port) -> Iterator[str]:
    precision = _PRECISIONS.get(port.element_type) or str(port.element_type).upper()
    opening = f'port id="{index}" precision="{precision}"'
    if port.names:
        opening += f' names="{escape(joined_names(port.names))}"'
    dimensions = port.shape.dimensions or ()
    if not dimensions and not port.rt_info:
        yield line(level, f"<{opening} />")
        return
    yield line(level, f"<{opening}>")
    for dimension in dimensions:
        yield line(level + 1, f"<dim>{dimension.length if dimension.is_static else -1}</dim>")
    if port.rt_info:
        yield from information(level + 1, "rt_info", port.rt_info, of_layer=True)
    yield line(level, "</port>")


def joined_names(names: tuple[str, ...]) -> str:
    r"""Tensor names in one text, their own commas escaped.

    >>> joined_names(("a,1", "b"))
    'a\\,1,b'
    """
    for name in names[:-1]:
        if name.endswith("\\"):
            raise WriteError(f"the tensor name {shorten(name, 60)!r} ends with a backslash, which an IR cannot hold: rename it")
    return ",".join(name.replace(",", "\\,") for name in names)


def port_maps(level: int, node: Node) -> Iterator[str]:
    """The port map of each body, in OpenVINO's order (else before then), and the back edges."""
    for body in reversed(node.bodies):
        tag = f"{_PREFIXES[body.name]}port_map"
        yield line(level, f"<{tag}>")
        yield from _entries(level + 1, node, body)
        yield line(level, f"</{tag}>")
        if body.back_edges:
            yield line(level, "<back_edges>")
            for edge in body.back_edges:
                yield line(level + 1, f'<edge from-layer="{edge.from_layer}" to-layer="{edge.to_layer}" />')
            yield line(level, "</back_edges>")


def _entries(level: int, node: Node, body: Body) -> Iterator[str]:
    for entry in body.inputs:
        yield line(level, f"<input{_entry(entry, entry.external)} />")
    for index, output in enumerate(body.outer_outputs, len(node.inputs)):
        yield line(level, f"<output{_entry(output, index)} />")
    for output in body.outputs:
        if output.external == -1:
            yield line(level, f"<output{_entry(output, -1)} />")


def _entry(entry: InputMap | OutputMap, external: int) -> str:
    if isinstance(entry, OutputMap) and entry.stacked:
        raise WriteError("an output that stacks its parts along a new axis cannot be written as an IR, which only concatenates")
    fields: dict[str, object] = {} if entry.axis is None else {"axis": entry.axis}
    fields |= {"external_port_id": external, "internal_layer_id": entry.internal}
    for name, usual in (("start", 0), ("end", -1), ("stride", 1), ("part_size", 1)):
        if entry.axis is not None or getattr(entry, name) != usual:
            fields[name] = getattr(entry, name)
    if entry.purpose:
        fields["purpose"] = entry.purpose
    return attributes(fields)

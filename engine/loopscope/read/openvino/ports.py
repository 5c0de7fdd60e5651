"""The ``<input>`` and ``<output>`` of a layer: ports, many of which repeat in a file."""

from __future__ import annotations

from loopscope.ir.model import NO_ATTRIBUTES, Port
from loopscope.ir.shape import PartialShape
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino.expat_walk import NO_ELEMENTS, Attributes, Elements, ExpatWalk
from loopscope.read.openvino.fields import names, natural, port_shape, precision
from loopscope.read.openvino.repeated_blocks import Blocks


class PortElements:
    """Reader of ``<input>`` or ``<output>`` elements. Equal ports are one object; equal blocks are
    parsed once.
    """

    def __init__(self, walk: ExpatWalk, limits: ReadLimits, tag: str) -> None:
        self.elements: Elements = {
            "port": (
                self._enter_port,
                {
                    "dim": (None, NO_ELEMENTS, self._leave_dim),
                    "rt_info": (walk.collect, NO_ELEMENTS, self._leave_information),
                },
                self._leave_port,
            )
        }
        self._walk = walk
        self._limits = limits
        self._tag = tag
        self._blocks: Blocks[tuple[Port, ...]] = Blocks(walk, tag)
        self._read: list[Port] = []
        self._port: Attributes = {}
        self._dims: list[str] = []
        self._information = NO_ATTRIBUTES
        self._known: dict[tuple[str | None, str | None, str | None, str], Port] = {}
        self._shapes: dict[str, PartialShape] = {}

    def enter(self) -> tuple[Port, ...] | None:
        """Begin a block. Return its ports if the block is known; ``leave`` is not called then."""
        self._read = []
        return self._blocks.enter()

    def leave(self) -> tuple[Port, ...]:
        """End a block and return its ports."""
        ports = tuple(self._read)
        self._blocks.leave(ports)
        return ports

    def _enter_port(self, attributes: Attributes) -> None:
        self._port = attributes
        self._dims = []
        self._information = NO_ATTRIBUTES
        self._walk.parser.CharacterDataHandler = self._dims.append

    def _leave_dim(self) -> None:
        self._dims.append(",")

    def _leave_information(self) -> None:
        self._information = self._walk.information

    def _leave_port(self) -> None:
        self._walk.parser.CharacterDataHandler = None
        attributes, dims = self._port, "".join(self._dims)
        key = (attributes.get("id"), attributes.get("precision"), attributes.get("names"), dims)
        port = self._known.get(key)
        if port is None:
            port = self._known[key] = self._new(attributes, dims)
        if self._information:
            port = Port(port.id, port.element_type, port.shape, port.names, self._information)
        self._read.append(port)

    def _new(self, attributes: Attributes, dims: str) -> Port:
        self._limits.short_texts(attributes)
        shape = self._shapes.get(dims)
        if shape is None:
            shape = self._shapes[dims] = port_shape(dims)
        return Port(
            natural(attributes, "id", "port"),
            precision(attributes, self._tag),
            shape,
            names(attributes.get("names", "")),
        )

"""Cache of parsed blocks of a document that repeat byte for byte, such as the ports of layers.

The ``<input>`` and ``<output>`` of a layer have ports, many of which repeat in a file.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from loopscope.ir.model import NO_ATTRIBUTES, Port
from loopscope.ir.shape import PartialShape
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino.expat_walk import NO_ELEMENTS, Attributes, Elements, ExpatWalk
from loopscope.read.openvino.fields import names, natural, port_shape, precision

# Longest block in bytes that is cached, so that the search for its end stays short.
_MAX_BLOCK_BYTES = 4096
Meaning = TypeVar("Meaning")


class Blocks(Generic[Meaning]):
    """Cache of parsed element contents by their bytes.

    A block is stored after expat parsed it and reached its closing tag exactly at the expected end.
    The same bytes after the same opening tag are skipped later. The parsed value of a block must
    depend on its bytes only.
    """

    def __init__(self, walk: ExpatWalk, tag: str) -> None:
        self._walk = walk
        self._closing = f"</{tag}>".encode()
        self._known: dict[bytes, tuple[Meaning, int, int]] = {}
        self._block: bytes | None = None
        self._end = -1

    def enter(self) -> Meaning | None:
        """Return the parsed block after the current tag and skip it, or None if the block is
        new.
        """
        walk = self._walk
        document, begin = walk.document, walk.at
        # The first ">" may be inside an attribute. In that case the piece ended inside the tag, and
        # another piece has begun since.
        whole = document.find(b">", walk.index, begin) == begin - 1
        end = document.find(self._closing, begin, begin + _MAX_BLOCK_BYTES) if whole else -1
        if end < 0:
            self.forget()
            return None
        block = document[begin:end]
        known = self._known.get(block)
        if known is None:
            self._block, self._end = block, end
            return None
        meaning, lines, tail = known
        walk.leave_out(end - tail, lines)
        return meaning

    def leave(self, meaning: Meaning) -> None:
        """End the block that was entered last, and store its parsed value.

        It is stored only if this closing tag is the first in the block; an inner element may have
        the same tag.
        """
        block = self._block
        self._block = None
        if block is None or self._walk.index != self._end or b"\r" in block:
            return
        # The last line of a block is always passed to expat, so that expat's columns stay correct.
        tail = len(block) - block.rfind(b"\n")
        if tail <= len(block) and block[-tail:].isspace():
            self._known[block] = meaning, block.count(b"\n") - 1, tail

    def forget(self) -> None:
        """Do not store the block that was entered last."""
        self._block = None


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

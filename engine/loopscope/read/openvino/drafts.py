"""Layers and graphs while their elements are being read, and the data of Const layers.

The data is located in the weights and checked against type and shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from loopscope.errors import shorten
from loopscope.ir.constant import Constant, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    NO_ATTRIBUTES,
    BackEdge,
    Body,
    BodyName,
    Edge,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    OutputMap,
    Port,
)
from loopscope.ir.shape import MOST_DIMENSIONS, PartialShape, is_of_an_array
from loopscope.read.openvino import fields
from loopscope.read.openvino.fields import Attributes, natural, required
from loopscope.read.weights import WeightsFile

# Order of a node's bodies in the Model.
_BODY_ORDER: tuple[BodyName, ...] = ("body", "then", "else")


@dataclass(slots=True)
class GraphDraft:
    """A graph while its layers and edges are being read."""

    name: str = ""
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    rt_info: Mapping[str, object] = field(default_factory=lambda: NO_ATTRIBUTES)
    has_layers: bool = False

    def finish(self) -> ModelGraph:
        if not self.has_layers:
            raise ValueError("<layers> is missing, expected <layers> and <edges>")
        return ModelGraph(tuple(self.nodes), tuple(self.edges), self.name, self.rt_info)


@dataclass(slots=True)
class PortMapDraft:
    """The port map and back edges of a body, and its graph once it was read."""

    inputs: list[InputMap] = field(default_factory=list)
    outputs: list[OutputMap] = field(default_factory=list)
    back_edges: list[BackEdge] = field(default_factory=list)
    graph: ModelGraph | None = None


LayerContent = tuple[Mapping[str, object], Mapping[str, object], tuple[Port, ...], tuple[Port, ...]]
"""Attributes, rt_info, inputs and outputs of a layer."""


@dataclass(slots=True)
class LayerDraft:
    """A layer while its elements are being read."""

    id: LayerId
    name: str
    type: str
    opset: str
    line: int
    attributes: Mapping[str, object]
    rt_info: Mapping[str, object]
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    constant: Constant | None = None
    port_maps: dict[BodyName, PortMapDraft] | None = None
    output_names: tuple[str, ...] = ()

    def port_map(self, name: BodyName) -> PortMapDraft:
        """Return the draft for a body; port map, back edges and body may come in any order."""
        if self.port_maps is None:
            self.port_maps = {}
        return self.port_maps.setdefault(name, PortMapDraft())

    def declare_output(self, element_type: ElementType | None, shape: PartialShape | None) -> None:
        """Set the first output's type, and its shape unless ``shape`` is None, overriding the
        port's own.
        """
        if self.outputs:
            port, *others = self.outputs
            self.outputs = (
                Port(
                    port.id,
                    element_type,
                    port.shape if shape is None else shape,
                    port.names,
                    port.rt_info,
                ),
                *others,
            )

    def finish(self) -> Node:
        return Node(
            self.id,
            self.name,
            self.type,
            self.opset,
            self.attributes,
            self.inputs,
            self.outputs,
            self._bodies() if self.port_maps else (),
            self.constant,
            self.rt_info,
            self.line,
            self.output_names,
        )

    def _bodies(self) -> tuple[Body, ...]:
        """Return the bodies. Port maps without a body are dropped; the model checks report them."""
        drafts = self.port_maps or {}
        return tuple(
            Body(
                name,
                draft.graph,
                tuple(draft.inputs),
                tuple(draft.outputs),
                tuple(draft.back_edges),
            )
            for name in _BODY_ORDER
            if (draft := drafts.get(name)) is not None and draft.graph is not None
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """Type and shape that several constants share."""

    element_type: ElementType
    shape: PartialShape
    lengths: tuple[int, ...]
    bytes: int
    """Size of a constant in the weights. Strings have the size that they declare."""


class ConstantReader:
    """Reader of constants. A type and shape that repeats is parsed once."""

    def __init__(self, weights: WeightsFile) -> None:
        self._weights = weights
        self._kinds: dict[tuple[str | None, str | None], Kind] = {}

    def read(self, attributes: Attributes) -> tuple[Constant, Kind]:
        """Return the constant that the ``<data>`` of a Const describes.

        ``ValueError`` if the attributes are invalid. A ``size`` larger than the tensor is accepted
        as in OpenVINO, if the weights contain the bytes; the extra bytes are ignored.
        """
        key = attributes.get("element_type"), attributes.get("shape")
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _kind(attributes)
        offset, size = natural(attributes, "offset", "data"), natural(attributes, "size", "data")
        needed = size if kind.element_type is ElementType.STRING else kind.bytes
        if size < needed:
            raise ValueError(
                f"size is {size} bytes, but {math.prod(kind.lengths)} elements of"
                f" {kind.element_type} take {needed}"
            )
        return Constant(
            kind.element_type,
            kind.lengths,
            self._weights.take(offset, size)[:needed] if needed else b"",
        ), kind


def _kind(attributes: Attributes) -> Kind:
    element_type = fields.element_type(required(attributes, "element_type", "data"))
    if element_type is None:
        raise ValueError(
            f"element_type is {shorten(attributes['element_type'], 40)!r},"
            " expected one such as 'f32', 'i64', 'boolean'"
        )
    shape, lengths, elements = _static_shape(required(attributes, "shape", "data"))
    return Kind(element_type, shape, lengths, packed_size(element_type, elements))


def _static_shape(text: str) -> tuple[PartialShape, tuple[int, ...], int]:
    try:
        shape = PartialShape.parse(text)
        lengths = shape.lengths
    except ValueError:
        raise ValueError(
            f"shape is {shorten(text, 60)!r}, expected lengths such as '4, 3'"
        ) from None
    if not is_of_an_array(lengths):
        raise ValueError(
            f"shape is {shorten(text, 60)!r}, larger than any array:"
            f" at most {MOST_DIMENSIONS} dimensions and 2^58 elements"
        )
    return shape, lengths, math.prod(lengths)

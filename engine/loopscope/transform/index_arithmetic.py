"""Analysis of values that only compute shapes, indices, trip counts and bounds of slices.

Rounding is not meant for such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from loopscope.checks.propagate import Propagated
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.element_type import FLOATS, ElementType
from loopscope.ir.model import (
    IF,
    LOOP,
    SCAN,
    SEQUENCE_MAP,
    TENSOR_ITERATOR,
    Body,
    LayerId,
    Model,
    Node,
    OutputRef,
)

Value = tuple[str, LayerId, int]
"""Address of a graph, a layer in it, and an output number."""

_INPUT_LIMIT = 10
_REDUCTIONS = (
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
)
_INDEX_AT_1: tuple[str, ...] = (
    *(
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Tile",
        "Gather",
        "GatherND",
        "GatherElements",
        "TopK",
        "Split",
    ),
    *(
        "Expand",
        "Broadcast",
        "CumSum",
        "Trilu",
        "SequenceAt",
        "SplitToSequence",
        "CenterCropPad",
        "OneHot",
        "Upsample",
    ),
    *(
        "AffineGrid",
        "NormalizeL2",
        "MVN",
        "Reverse",
        "AdaptiveAvgPool",
        "AdaptiveMaxPool",
        "GatherTree",
        "SequenceErase",
    ),
    *("ScatterNDUpdate", "ScatterND", "ScatterElements", "ScatterUpdate", "ScatterElementsUpdate"),
    *(*_REDUCTIONS, "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogicalAnd", "ReduceLogicalOr"),
)
_INDICES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(_INDEX_AT_1, (1,)),
    **dict.fromkeys(
        ("Slice", "StridedSlice", "Interpolate", "Resize", "DFT", "Col2Im"),
        tuple(range(1, _INPUT_LIMIT)),
    ),
    **dict.fromkeys(
        ("SpaceToBatch", "BatchToSpace", "VariadicSplit", "Roll"), tuple(range(1, _INPUT_LIMIT))
    ),
    **dict.fromkeys(
        ("ConstantOfShape", "RandomUniform", "BlackmanWindow", "HannWindow", "HammingWindow"), (0,)
    ),
    **dict.fromkeys(("ScatterUpdate", "ScatterElementsUpdate"), (1, 3)),
    "SliceScatter": (2, 3, 4, 5),
    "Pad": (1, 2),
    "SequenceInsert": (2,),
    "ConvolutionBackpropData": (2,),
    "GroupConvolutionBackpropData": (2,),
    "MaxUnpool": (2,),
    "NonMaxSuppression": (2,),
}
"""Input numbers that are shapes, axes, indices, lengths or bounds, by operation type."""
_ONNX_INDICES: Mapping[str, tuple[int, ...]] = {"Pad": (1, 3), "OneHot": (0, 1), "Resize": (2, 3)}
"""Input numbers of operations whose inputs in ONNX differ from OpenVINO."""
_RANGE = "Range"
_SHAPE_READERS = frozenset(("Shape", "ShapeOf", "Size"))
"""Operations that read the shape but not the values of their input."""
_COMPARISONS = frozenset({
    *("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"),
    *("LessEqual", "GreaterEqual", "NotEqual"),
})  # fmt: skip
_CASTS = frozenset(("Cast", "Convert", "CastLike", "ConvertLike"))
_ARITHMETIC = frozenset({
    *("Add", "Sub", "Subtract", "Mul", "Multiply", "Div", "Divide", "Mod", "FloorMod"),
    *("Pow", "Power", "Sqrt", "Sum", "Max", "Maximum", "Min", "Minimum", "Floor", "Ceil"),
    *("Ceiling", "Round", "Abs", "Neg", "Negative", "Sign", "Clip", "Clamp"),
    *("And", "Or", "Not", "Xor", "LogicalAnd", "LogicalOr", "LogicalNot", "LogicalXor"),
    *("Where", "Select", "Concat", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Gather"),
    *("Slice", "StridedSlice", "Split", "VariadicSplit", "Identity", "Expand", "Broadcast"),
    *("Tile", "Transpose", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceSum", "CumSum"),
    *("RoundTo", _RANGE, "Pad"),
})  # fmt: skip
"""Operations that compute shapes and indices from shapes and indices."""
_BODY_OPERATIONS = frozenset((LOOP, TENSOR_ITERATOR, SCAN, SEQUENCE_MAP, IF))


def index_arithmetic(model: Model, known: Propagated) -> frozenset[Value]:
    """Return the floats that reach only shapes, indices, trip counts or bounds of slices.

    Only conversions, arithmetic and data movement lie between such a value and its use, also across
    bodies of loops and branches. A comparison of floats counts as a decision about data, which
    rounding may change.
    """
    reached = _Reached(model, known)
    places = {place.address: place for place in graphs(model)}
    for place in places.values():
        for node in place.graph.nodes:
            for source, number in zip(place.graph.sources[node.id], count(), strict=False):
                if source is not None:
                    reached.read(place, source, node, number)
    reached.settle()
    return frozenset(value for value in reached.indices - reached.data if reached.is_float(value))


@dataclass(slots=True, eq=False)
class _Reached:
    """Values by the kind of use that they reach: directly at first, after ``settle`` also
    indirectly.
    """

    model: Model
    known: Propagated
    indices: set[Value] = field(default_factory=set[Value])
    data: set[Value] = field(default_factory=set[Value])
    readers: dict[Value, list[Value]] = field(default_factory=dict[Value, list[Value]])
    """Values from which each value follows."""

    def is_float(self, value: Value) -> bool:
        return self.known.output(*value).element_type in FLOATS

    def read(self, place: PlacedGraph, source: OutputRef, node: Node, number: int) -> None:
        """Record that an input of a node reads a value."""
        value = (place.address, source.layer, source.output)
        if node.type == "Result":
            self._leave(place, value, node)
        elif node.bodies:
            self._enter(place, value, node, number)
        elif self._is_index(place, node, number):
            self.indices.add(value)
        elif node.type in _SHAPE_READERS:
            return
        elif self._is_arithmetic(place, value, node):
            for output in range(len(node.outputs)):
                self._follow(value, (place.address, node.id, output))
        else:
            self.data.add(value)

    def settle(self) -> None:
        """Add to each kind the values from which its values follow."""
        for values in (self.indices, self.data):
            pending = list(values)
            while pending:
                for value in self.readers.get(pending.pop(), ()):
                    if value not in values:
                        values.add(value)
                        pending.append(value)

    def _follow(self, value: Value, reader: Value) -> None:
        self.readers.setdefault(reader, []).append(value)

    def _is_index(self, place: PlacedGraph, node: Node, number: int) -> bool:
        if node.type == _RANGE:
            return not self.is_float((place.address, node.id, 0))
        own = _ONNX_INDICES.get(node.type) if self.model.dialect == "onnx" else None
        return number in (own or _INDICES.get(node.type, ()))

    def _is_arithmetic(self, place: PlacedGraph, value: Value, node: Node) -> bool:
        if node.type in _COMPARISONS:
            return not self.is_float(value)
        if node.type in _CASTS:
            target = self.known.output(place.address, node.id).element_type
            return target is not ElementType.BOOLEAN or not self.is_float(value)
        return node.type in _ARITHMETIC

    def _enter(self, place: PlacedGraph, value: Value, node: Node, number: int) -> None:
        if node.type == LOOP and number < 2:
            self.indices.add(value)
        if node.is_foreign or (node.type == IF and number == 0):
            self.data.add(value)
        for body in node.bodies:
            inside = f"{place.address}/{place.labels[node.id]}/{body.name}"
            for entry in body.inputs:
                if entry.external == number:
                    self._follow(value, (inside, entry.internal, 0))

    def _leave(self, place: PlacedGraph, value: Value, result: Node) -> None:
        if place.body is None or place.owner is None:
            self.data.add(value)
            return
        for reader in _destinations(place, place.body, place.owner, result.id):
            self._follow(value, reader)
        if any(entry.internal == result.id and entry.purpose for entry in place.body.outputs):
            self.indices.add(value)


def _destinations(place: PlacedGraph, body: Body, owner: Node, result: LayerId) -> Iterator[Value]:
    """Yield the values that a Result of a body feeds outside or in the next iteration."""
    outer_address = place.address.rsplit("/", 2)[0]
    for output, entry in enumerate(body.outer_outputs):
        if entry.internal == result:
            yield outer_address, owner.id, output
    for edge in body.back_edges:
        if edge.from_layer == result:
            yield place.address, edge.to_layer, 0

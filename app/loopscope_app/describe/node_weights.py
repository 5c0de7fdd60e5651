"""Weights of a node: the stored tensors behind its inputs, with statistics and a histogram."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from loopscope.errors import EngineError
from loopscope.ir import INDEX_TYPES, Constant, ElementType, Model, OutputRef
from loopscope.view import COLOURS, input_roles
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.describe.node_ports import input_ports

_NO_WEIGHTS = INDEX_TYPES | {ElementType.STRING, ElementType.BOOLEAN}
"""Element types of shapes, indices and flags."""
_BARS = 'viewBox="0 0 {} 100" preserveAspectRatio="none"'
_BAR = f'<rect x="{{}}" y="{{:.1f}}" width="9" height="{{:.1f}}" fill="{COLOURS["curve"].light}"/>'


@dataclass(frozen=True, slots=True)
class NodeWeight:
    """A stored tensor that an input of a node receives."""

    port: str
    """Name of the input."""
    constant: Constant


def node_weights(model: Model, place: IndexedNode) -> tuple[NodeWeight, ...]:
    """Return the weights of a node in the order of its inputs.

    A body's Parameter that receives an outer tensor unchanged stands for this tensor.
    """
    index = places(model)
    return tuple(
        NodeWeight(port.name, constant)
        for port in input_ports(model, place)
        if port.source is not None
        and (constant := _stored(index, place, port.source)) is not None
        and constant.element_type not in _NO_WEIGHTS
        and constant.elements > 1
    )


def _stored(
    index: Mapping[str, IndexedNode], place: IndexedNode, source: OutputRef | None
) -> Constant | None:
    """Return the constant that feeds an input, through the bodies around it."""
    while source is not None:
        node = place.graph.by_id[source.layer]
        if node.type != "Parameter" or place.body is None:
            return node.constant
        entries = [entry for entry in place.body.inputs if entry.internal == node.id]
        role = input_roles(place.body).get(node.id, ("?", ""))[0]
        if role not in ("", "invariant") or not entries:
            return None
        place = index[place.graph_address.rpartition("/")[0]]
        external = entries[0].external
        source = place.sources[external] if 0 <= external < len(place.sources) else None
    return None


_summaries: WeakKeyDictionary[Constant, tuple[str, str]] = WeakKeyDictionary()


def weight_summary(constant: Constant) -> tuple[str, str]:
    """Return statistics as a sentence, and a histogram as an image element; both may be empty."""
    if constant not in _summaries:
        try:
            array = constant.array()
        except (EngineError, ValueError):
            return "", ""
        statistics = tensor_summary.statistics(array)
        cells = statistics.cells() if statistics is not None else []
        words = ", ".join(f"{name} {text}" for name, text in cells)
        counts = [int(bar["count"]) for bar in tensor_summary.histogram(array)]
        _summaries[constant] = words, _image(counts)
    return _summaries[constant]


def _image(counts: list[int]) -> str:
    if not counts:
        return ""
    size = _BARS.format(10 * len(counts))
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(_rectangles(counts))}</svg>'
    data = base64.b64encode(drawing.encode()).decode()
    return f'<img alt="histogram" src="data:image/svg+xml;base64,{data}">'


def _rectangles(counts: list[int]) -> Iterator[str]:
    highest = max(counts)
    for number, count in enumerate(counts):
        height = 100 * count / highest
        yield _BAR.format(10 * number, 100 - height, height)

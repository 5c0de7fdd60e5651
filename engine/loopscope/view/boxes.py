"""Boxes of nodes: words, colour family, size; and the boxes of a graph during drawing.

The size follows from estimated text widths, so that a box fits its text before a browser draws it.
Operators that open as loops, such as LSTM, have a handle with their number of steps.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from loopscope.errors import counted, neutral
from loopscope.ir.address import decode
from loopscope.ir.model import Body, Dialect, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.rt_info import opened_operator
from loopscope.transform.recurrences import Recurrence, recurrence_of
from loopscope.view.colours import family_of
from loopscope.view.graph import LoopHandle, NodeKind, ViewNode, without_iterations

NAME = 26
_TITLE = 34
_SMALL = frozenset({"control", "condition", "output", "more"})
_MIN_WIDTH = 92.0
_KINDS: Mapping[str, NodeKind] = {"Parameter": "parameter", "Result": "result", "Const": "constant"}
_STATE_WIDTH = 190.0
_PREFIX_WIDTH = 60.0
"""Width for a prefix such as ``18 loops: ``."""
_BUTTON = 22.0


def tensor_text(port: Port) -> str:
    """Return declared element type and shape, as far as they are known.

    >>> from loopscope.ir.element_type import ElementType
    >>> from loopscope.ir.shape import PartialShape
    >>> tensor_text(Port(0)), tensor_text(Port(0, ElementType.F32, PartialShape.of([2, None])))
    ('?', 'f32 [2,?]')
    """
    name = str(port.element_type or "?")
    return name if port.shape.rank is None else f"{name} {port.shape}"


def operation_box(node: Node, id: str, address: str, cluster: str, role: str) -> ViewNode:
    """Return the box of a single node."""
    kind: NodeKind = _KINDS.get(node.type, "operation")
    ports = node.outputs or node.inputs
    detail = neutral(tensor_text(ports[0]), _TITLE) if ports else ""
    if len(node.outputs) > 1:
        detail = f"{len(node.outputs)} outputs"
    values = tuple(f"{address}:{k}" if k else address for k in range(max(1, len(node.outputs))))
    return ViewNode(
        id=id,
        kind=kind,
        address=address,
        title=neutral(node.type, _TITLE),
        name=short_name(node.name),
        detail=detail,
        family=family_of(node.type),
        cluster=cluster,
        badge=role,
        values=values[:4],
        tooltip=tooltip(node),
    )


def loop_title(node: Node) -> str:
    """Return the operator that a Loop stands for, such as ``LSTM``; the type of other nodes."""
    return neutral(opened_operator(node).partition(" ")[0] or node.type, _TITLE)


def short_name(name: str) -> str:
    """Return the end of a name, which is its most specific part.

    >>> short_name("module/encoder/layer.3/attention/MatMul_1")
    '…ayer.3/attention/MatMul_1'
    """
    text = neutral(name, 400)
    return text if len(text) <= NAME else f"…{text[1 - NAME :]}"


def tooltip(node: Node) -> str:
    """Return full name, opset and ports of a node as tooltip text."""
    lines = [neutral(node.name, 200), f"{neutral(node.type, 60)} {neutral(node.opset, 30)}".strip()]
    lines += [f"in {index}: {tensor_text(port)}" for index, port in enumerate(node.inputs[:6])]
    lines += [f"out {index}: {tensor_text(port)}" for index, port in enumerate(node.outputs[:6])]
    return "\n".join(neutral(line, 200) for line in lines)


def region_name(address: str) -> str:
    """Return the name of the node at a region's address."""
    return short_name(decode(address.rpartition("/")[2]))


def sized(node: ViewNode) -> ViewNode:
    """Return the box with the width and height that its words require."""
    if node.kind == "cut_end":
        return replace(node, width=26.0, height=20.0)
    if node.kind in _SMALL:
        details = "  ".join(part for part in (node.detail, *node.constants) if part)
        width = (
            text_width(node.title, 12) + (monospace_width(details, 10.5) + 6 if details else 0) + 30
        )
        return replace(node, width=float(round(max(width, 64.0))), height=26.0)
    title = (
        text_width(node.title, 13)
        + (text_width(node.name, 12) + 7 if node.name else 0)
        + (_BUTTON if node.kind == "folded" or node.handle is not None else 0)
    )
    second = monospace_width(node.detail, 10.5) + sum(
        monospace_width(text, 10.5) + 16 for text in node.constants
    )
    third = text_width(node.badge, 11)
    if node.kind == "folded" and (node.family == "region" or node.loops):
        # Room for the current iteration of a folded loop, or the reason why it ended.
        third = max(third, _STATE_WIDTH + (_PREFIX_WIDTH if node.loops else 0.0))
    height = 26.0 + (18.0 if node.detail or node.constants else 0.0) + (17.0 if node.badge else 0.0)
    height += 24.0 if node.spark else 0.0
    return replace(
        node, width=float(round(max(title, second, third, _MIN_WIDTH) + 28)), height=height + 4
    )


_NARROW = frozenset("iljtfI.,:;'|![]()/ ·-")
_WIDE = frozenset("mwMW@%…_—→")


def text_width(text: str, size: float) -> float:
    """Return the estimated width in points of a line in a proportional sans-serif; rather too
    large.

    >>> text_width("", 12), text_width("MatMul", 10) > text_width("little", 10)
    (0, True)
    """
    return sum(map(_em, text)) * size


def monospace_width(text: str, size: float) -> float:
    """Return the width in points of a line in a monospaced font."""
    return sum(1.2 if _is_wide(character) else 0.6 for character in text) * size


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.31
    if character in _WIDE:
        return 0.86
    if character.isascii():
        return 0.68 if character.isupper() else 0.56
    return 1.05 if _is_wide(character) else 0.66


def _is_wide(character: str) -> bool:
    return not character.isascii() and unicodedata.east_asian_width(character) in "WF"


UNKNOWN_STEPS = "loop over steps"


def with_handle(box: ViewNode, node: Node, place: DrawnGraph, dialect: Dialect) -> ViewNode:
    """Return the box of a node, with a handle if the node is an operator that opens as a loop.

    The badge has the number of steps that the declared shape determines.
    """
    recurrence = recurrence_of(node, dialect)
    if recurrence is None:
        return box
    data = _input(place, node, recurrence, recurrence.data)
    axis = _axis(place, node, recurrence)
    if data is None or axis is None:
        return replace(box, handle=LoopHandle(), badge=UNKNOWN_STEPS)
    shape = place.graph.tensor(data).shape
    length = shape.at(axis) if shape.rank is not None and -shape.rank <= axis < shape.rank else None
    badge = (
        counted(length.length, "step") if length is not None and length.is_static else UNKNOWN_STEPS
    )
    return replace(box, handle=LoopHandle(place.at(data.layer, data.output), axis), badge=badge)


def _input(place: DrawnGraph, node: Node, recurrence: Recurrence, role: str) -> OutputRef | None:
    sources = place.graph.sources[node.id]
    if role not in recurrence.inputs:
        return None
    position = recurrence.inputs.index(role)
    return sources[position] if position < len(sources) else None


def _axis(place: DrawnGraph, node: Node, recurrence: Recurrence) -> int | None:
    """Return the axis of time; None if it is only known at run time."""
    if not recurrence.axis_role:
        return 1 if str(node.attributes.get("layout", 0)) != "0" else recurrence.time_axis
    source = _input(place, node, recurrence, recurrence.axis_role)
    constant = None if source is None else place.graph.by_id[source.layer].constant
    if constant is None or not constant.is_kept or constant.elements != 1:
        return None
    return int(constant.array().reshape(-1)[0])


@dataclass(slots=True)
class DrawnRegion:
    """A control-flow node that is drawn open, with the boxes of its inputs and outputs."""

    address: str
    cluster: str
    header: str
    """Id of the box for trip count and conditions; empty if there is none."""
    outputs: tuple[str, ...]
    copies: list[str] = field(default_factory=list[str])
    """Addresses of the iterations of an unrolled loop that are drawn side by side."""
    same: dict[LayerId, str] = field(default_factory=dict[LayerId, str])
    """Ids of the boxes for Parameters with the same value in all iterations, drawn once beside the
    copies.
    """
    outer: str = ""
    """Id of the common box for these Parameters, if they are drawn as one box."""
    earlier: str = ""
    later: str = ""
    """Ids of the boxes for iterations before and after the copies; empty if there are none."""
    folded_bodies: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of the boxes of folded branches by body name."""


@dataclass(slots=True)
class DrawnGraph:
    """A graph that is drawn."""

    graph: ModelGraph
    address: str
    cluster: str
    label: Mapping[LayerId, str]
    body: Body | None = None
    owner: DrawnRegion | None = None
    box: dict[LayerId, str] = field(default_factory=dict[LayerId, str])
    """Ids of the boxes of nodes; the nodes of a folded group share one."""
    region: dict[LayerId, DrawnRegion] = field(default_factory=dict[LayerId, DrawnRegion])
    """Control-flow nodes of the graph that are drawn open."""
    outer: str = ""
    """Id of the common box for Parameters that only pass outer values in, if they are drawn as one
    box.
    """

    @property
    def static(self) -> str:
        """Address without the iterations of unrolled loops."""
        return without_iterations(self.address)

    def at(self, layer: LayerId, output: int = 0) -> str:
        """Return the address of a node's output: static, except for the iterations of unrolled
        loops.
        """
        address = f"{self.address}/{self.label[layer]}"
        return f"{address}:{output}" if output else address

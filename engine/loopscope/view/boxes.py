"""Boxes of nodes: words, colour family, and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopscope.errors import neutral
from loopscope.ir.address import decode
from loopscope.ir.model import Node, Port
from loopscope.ir.opened_operator import opened_operator
from loopscope.view.graph import NodeKind, ViewNode
from loopscope.view.measure import monospace_width, text_width
from loopscope.view.operation_families import family_of

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

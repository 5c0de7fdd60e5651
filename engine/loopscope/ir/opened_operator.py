"""The note in ``rt_info`` of a Loop that stands for an operator, such as LSTM."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.ir.model import Model, Node
from loopscope.ir.walk import nodes

_KEY = "opened_operator"
"""Key in the rt_info of the Loop."""


def opened_from(type: str, opset: str) -> Mapping[str, object]:
    """Return the rt_info of a Loop that stands for an operator.

    >>> opened_from("LSTM", "ai.onnx 14")
    {'opened_operator': {'version': '0', 'value': 'LSTM ai.onnx 14'}}
    """
    return {_KEY: {"version": "0", "value": f"{type} {opset}".strip()}}


def opened_operator(node: Node) -> str:
    """Return the type and opset of the operator that a Loop stands for; empty for other nodes."""
    content = node.rt_info.get(_KEY)
    text = content.get("value") if isinstance(content, Mapping) else content
    return text if isinstance(text, str) and node.is_loop else ""


def opened_operators(model: Model) -> list[str]:
    """Return the addresses of the Loops that stand for operators, in document order."""
    return [address for address, node in nodes(model) if opened_operator(node)]

"""Prints that only control inputs reach, which OpenVINO drops unless a later node reads their
value.
"""

from __future__ import annotations

from typing import Any

from loopscope.ir.graph_messages import MESSAGES
from loopscope.read.tensorflow.graph_file import node_name


def with_read_prints(graph: Any) -> Any | None:
    """Return the graph with readers of a printed tensor rewired to the Print's output, an equal
    value.

    Only nodes after the Print are rewired. None if no Print is reached by control inputs alone, or
    no node after such a Print reads the tensor that it prints.
    """
    rewired = MESSAGES["GraphDef"]()
    rewired.CopyFrom(graph)
    read_names = {
        node_name(text) for node in rewired.node for text in node.input if not text.startswith("^")
    }
    prints = {
        node.name: node
        for node in rewired.node
        if node.op == "Print" and node.name not in read_names and node.input
    }
    is_changed = False
    for name, node in prints.items():
        dependents = _dependents(rewired, name)
        for other in rewired.node:
            places = [
                place
                for place, text in enumerate(other.input)
                if _without_port_zero(text) == _without_port_zero(node.input[0])
            ]
            if other.name in dependents and other.op != "Print":
                for place in places:
                    other.input[place] = name
                    is_changed = True
    return rewired if is_changed else None


def _dependents(graph: Any, name: str) -> set[str]:
    """Return the nodes that depend on a node, by data or control."""
    consumers: dict[str, list[str]] = {}
    for node in graph.node:
        for text in node.input:
            consumers.setdefault(node_name(text), []).append(node.name)
    dependents: set[str] = set()
    waiting = list(consumers.get(name, ()))
    while waiting:
        dependent = waiting.pop()
        if dependent not in dependents:
            dependents.add(dependent)
            waiting += consumers.get(dependent, ())
    return dependents


def _without_port_zero(text: str) -> str:
    return text.removesuffix(":0")

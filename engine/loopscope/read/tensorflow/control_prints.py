"""A Print that is reached by a control input alone: OpenVINO drops it, unless what waits for it
also reads its value.
"""

from __future__ import annotations

from typing import Any

from loopscope.ir.graph_messages import MESSAGES
from loopscope.read.tensorflow.graph_file import node_name


def with_read_prints(graph: Any) -> Any | None:
    """Return the graph in which what waits for a Print reads its output instead of its input, which
    is the same value.

    None where no Print is reached by control inputs alone, or nothing behind such a Print reads the
    tensor that it prints.
    """
    made = MESSAGES["GraphDef"]()
    made.CopyFrom(graph)
    read = {
        node_name(text) for node in made.node for text in node.input if not text.startswith("^")
    }
    prints = {
        node.name: node
        for node in made.node
        if node.op == "Print" and node.name not in read and node.input
    }
    is_changed = False
    for name, node in prints.items():
        behind = _behind(made, name)
        for other in made.node:
            places = [
                place
                for place, text in enumerate(other.input)
                if _tensor(text) == _tensor(node.input[0])
            ]
            if other.name in behind and other.op != "Print":
                for place in places:
                    other.input[place] = name
                    is_changed = True
    return made if is_changed else None


def _behind(graph: Any, name: str) -> set[str]:
    """The nodes that wait for a node, by data or control."""
    after: dict[str, list[str]] = {}
    for node in graph.node:
        for text in node.input:
            after.setdefault(node_name(text), []).append(node.name)
    found: set[str] = set()
    waiting = list(after.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += after.get(one, ())
    return found


def _tensor(text: str) -> str:
    return text.removesuffix(":0")

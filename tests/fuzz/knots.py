"""Knots in a graph: cycles, and chains in which every value is read twice, so that there are 2^n
ways through n nodes.
"""

from __future__ import annotations

import random

from lxml import etree
from onnx import GraphProto, NodeProto

_STEPS = (0, 1, 3, 20)
_LENGTHS = (2, 30, 300)


def tie_edges(dice: random.Random, edge: etree._Element) -> None:
    """An edge of an IR begins at a layer that is behind its end."""
    behind = edge
    for _ in range(dice.choice(_STEPS)):
        onward = [
            one
            for one in edge.itersiblings(preceding=dice.random() < 0.5)
            if one.get("from-layer") == behind.get("to-layer")
        ]
        behind = dice.choice(onward) if onward else behind
    edge.set("from-layer", behind.get("to-layer", ""))
    edge.set("from-port", dice.choice(("0", "1", "2", edge.get("from-port", ""))))


def double_edges(dice: random.Random, edge: etree._Element) -> None:
    """Between both ends of an edge of an IR, a chain of sums of a value and itself."""
    edges = edge.getparent()
    net = None if edges is None else edges.getparent()
    layers = None if net is None else net.find("layers")
    if edges is None or layers is None:
        return
    layer, port = edge.get("from-layer", ""), edge.get("from-port", "")
    for number in range(dice.choice(_LENGTHS)):
        made = f"{90_000 + len(layers)}"
        layers.append(etree.fromstring(_SUM.format(made, number)))
        for to in ("0", "1"):
            edges.append(
                edges.makeelement(
                    "edge",
                    {"from-layer": layer, "from-port": port, "to-layer": made, "to-port": to},
                )
            )
        layer, port = made, "2"
    edge.set("from-layer", layer)
    edge.set("from-port", port)


_SUM = """<layer id="{}" name="sum {}" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0"/><port id="1"/></input><output><port id="2" precision="FP32"/></output></layer>"""


def tie_names(dice: random.Random, graph: GraphProto) -> None:
    """A node of an ONNX graph reads what is computed of what it gives."""
    node = behind = dice.choice(graph.node)
    for _ in range(dice.choice(_STEPS)):
        onward = [one for one in graph.node if set(one.input) & set(behind.output)]
        behind = dice.choice(onward) if onward else behind
    node.input[dice.randrange(len(node.input))] = dice.choice(behind.output)


def double_names(dice: random.Random, graph: GraphProto) -> None:
    """In front of an input of a node of an ONNX graph, a chain of sums of a value and itself."""
    place = dice.randrange(len(graph.node))
    node = graph.node[place]
    number = dice.randrange(len(node.input))
    name = node.input[number]
    chain = []
    for step in range(dice.choice(_LENGTHS)):
        made = f"sum {len(graph.node)} {step}"
        chain.append(
            NodeProto(
                op_type=dice.choice(("Add", "Add", "Max", "Concat")),
                input=[name, name],
                output=[made],
            )
        )
        name = made
    node.input[number] = name
    rest = list(graph.node)[place:]
    del graph.node[place:]
    graph.node.extend([*chain, *rest])

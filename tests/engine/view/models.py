"""Small models made by hand, one for each thing that a canvas can draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    BackEdge,
    Body,
    Edge,
    InputMap,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    Port,
)
from loopscope.ir.shape import PartialShape


def port(
    id: int = 0, shape: Sequence[int | None] = (), type: ElementType = ElementType.F32
) -> Port:
    return Port(id, type, PartialShape.of(shape))


def node(
    id: int,
    name: str,
    type: str,
    inputs: int = 0,
    outputs: int = 1,
    bodies: tuple[Body, ...] = (),
    shape: Sequence[int | None] = (2, 3),
) -> Node:
    ins = tuple(port(index, shape) for index in range(inputs))
    outs = tuple(port(inputs + index, shape) for index in range(outputs))
    return Node(LayerId(id), name, type, "opset1", inputs=ins, outputs=outs, bodies=bodies)


def constant(id: int, name: str, value: object) -> Node:
    made = Constant.of(np.asarray(value))
    return Node(
        LayerId(id),
        name,
        "Const",
        "opset1",
        outputs=(Port(0, made.element_type, PartialShape.of(made.shape)),),
        constant=made,
    )


def graph(nodes: Sequence[Node], wires: Sequence[tuple[int, int, int]]) -> ModelGraph:
    """``wires``: (from layer, to layer, number of the input)."""
    by_id = {one.id: one for one in nodes}
    edges = [
        Edge(
            LayerId(a),
            by_id[LayerId(a)].outputs[0].id,
            LayerId(b),
            by_id[LayerId(b)].inputs[index].id,
        )
        for a, b, index in wires
    ]
    return ModelGraph(tuple(nodes), tuple(edges))


def summing_loop(*, starts: bool = True) -> Model:
    """A Loop that adds slices of x to a carried sum until the sum is large."""
    inside = graph(
        [
            node(0, "sum", "Parameter"),
            node(1, "part", "Parameter"),
            node(2, "i", "Parameter", shape=()),
            node(3, "add", "Add", 2),
            constant(4, "large", np.float32(10)),
            node(5, "less", "Less", 2, shape=()),
            node(6, "next", "Result", 1, 0),
            node(7, "again", "Result", 1, 0, shape=()),
        ],
        [(0, 3, 0), (1, 3, 1), (3, 5, 0), (4, 5, 1), (3, 6, 0), (5, 7, 0)],
    )
    body = Body(
        "body",
        inside,
        inputs=(
            InputMap(2, LayerId(0)),
            InputMap(3, LayerId(1), axis=0),
            InputMap(-1, LayerId(2), purpose="current_iteration"),
        ),
        outputs=(
            OutputMap(4, LayerId(6)),
            OutputMap(5, LayerId(6), axis=1),
            OutputMap(-1, LayerId(7), purpose="execution_condition"),
        ),
        back_edges=(BackEdge(LayerId(6), LayerId(0)),),
    )
    outer = graph(
        [
            constant(0, "trips", np.int64(12)),
            constant(1, "start", np.bool_(starts)),
            node(2, "zero", "Parameter"),
            node(3, "x", "Parameter", shape=(6, 3)),
            node(4, "loop", "Loop", 4, 2, (body,)),
            node(5, "total", "Result", 1, 0),
        ],
        [(0, 4, 0), (1, 4, 1), (2, 4, 2), (3, 4, 3), (4, 5, 0)],
    )
    return Model(outer, "summing")


def branches() -> Model:
    """An If: the then branch doubles, the else branch hands through."""
    doubling = [
        node(0, "a", "Parameter"),
        constant(1, "two", np.float32(2)),
        node(2, "double", "Multiply", 2),
        node(3, "r", "Result", 1, 0),
    ]
    handing = [node(0, "b", "Parameter"), node(1, "r", "Result", 1, 0)]
    into = (InputMap(1, LayerId(0)),)
    then = Body(
        "then",
        graph(doubling, [(0, 2, 0), (1, 2, 1), (2, 3, 0)]),
        into,
        (OutputMap(0, LayerId(3)),),
    )
    other = Body("else", graph(handing, [(0, 1, 0)]), into, (OutputMap(0, LayerId(1)),))
    choose = node(2, "choose", "If", 2, 1, (then, other))
    outer = [
        node(0, "c", "Parameter", shape=()),
        node(1, "x", "Parameter"),
        choose,
        node(3, "y", "Result", 1, 0),
    ]
    return Model(graph(outer, [(0, 2, 0), (1, 2, 1), (2, 3, 0)]), "branches")


def chain(length: int, name: Callable[[int], str] = "relu_{}".format, reach: int = 0) -> Model:
    """A row of operations; with ``reach``, the last also uses the output of the one so many
    places before.
    """
    nodes = [node(0, "x", "Parameter")]
    wires = []
    for id in range(1, length):
        far = reach and id == length - 1
        nodes.append(node(id, name(id), "Add" if far else "Relu", 2 if far else 1))
        wires.append((id - 1, id, 0))
        if far:
            wires.append((id - reach, id, 1))
    return Model(graph(nodes, wires), "chain")


def nested(depth: int) -> Model:
    """Ifs in one another, as deep as asked for."""
    inner = graph([node(0, "p", "Parameter"), node(1, "r", "Result", 1, 0)], [(0, 1, 0)])
    for _ in range(depth):
        bodies = tuple(
            Body(name, inner, (InputMap(1, LayerId(0)),), (OutputMap(0, LayerId(1)),))
            for name in ("then",)
        )
        inner = graph(
            [
                node(0, "p", "Parameter"),
                node(2, "if", "If", 2, 1, bodies),
                node(1, "r", "Result", 1, 0),
            ],
            [(0, 2, 0), (0, 2, 1), (2, 1, 0)],
        )
    return Model(inner, "nested")

"""Whole random models, and inputs for them."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope.checks.propagate import Propagated, propagate
from loopscope.ir.address import labels
from loopscope.ir.model import ModelGraph, Node
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.drawn.graph import BOOLEAN, F32, INTEGERS, Choices, Growing, Options
from tests.engine.drawn.regions import fill, region


def drawn_model(
    seed: int, *, numbers: bool = False
) -> tuple[loopscope.Model, list[list[np.ndarray]]]:
    """The model of a seed, the same each time but another object, and two sets of inputs for it;
    on wish one of numbers.
    """
    c = Choices(seed)
    options = Options(large=c.chance(75), exotic=c.chance(60), depth=c.pick([1, 2, 3, 4]))
    if c.chance(40):
        options.floats = (F32,)
    if c.chance(15) or numbers:
        options.numbers, options.depth = True, c.pick([2, 3])
    graph = Growing(c=c, options=options)
    feeds = [_input(graph, f"p{number}") for number in range(1 + c.integer(3))]
    fill(graph, 6)
    region(graph)
    fill(graph, 2)
    for value in (*graph.pool[-3:], c.pick(graph.pool)):
        graph.result(value.ref)
    model = graph.model()
    others = [
        _other(c, node, feed) for node, feed in zip(model.graph.parameters, feeds, strict=True)
    ]
    share = c.pick([100, 100, 50, 0])
    return replace(
        model, graph=_declared(model.graph, "main", propagate(model, CATALOGUE), c, share)
    ), [feeds, others]


def _input(graph: Growing, name: str) -> np.ndarray:
    c = graph.c
    type, shape = (graph.any_type(), graph.any_shape()) if c.chance(70) else (F32, ())
    graph.put(
        graph.parameter(name, type, [-1] * len(shape) if c.chance(25) else shape), type, shape
    )
    count = np.arange(int(np.prod(shape)))
    if type is BOOLEAN:
        data = count % 3 == c.integer(3)
    elif type in INTEGERS:
        data = (count * 7 + c.integer(5)) % 6
    else:
        data = (count * 0.37 + c.integer(7) * 0.6) % 3.1 - 1.4
    return np.asarray(data, type.dtype).reshape(shape)


def _other(c: Choices, node: Node, feed: np.ndarray) -> np.ndarray:
    """Other values for an input, of other lengths where the model allows them."""
    if not node.outputs[0].shape.is_static and c.chance(60):
        feed = np.resize(feed, tuple(c.pick([length, 1, 5, 7, 2]) for length in feed.shape))
    if feed.dtype == bool:
        return np.asarray(~feed)
    return np.asarray((feed[::-1] if feed.ndim else feed + feed.dtype.type(1)).copy())


def _declared(
    graph: ModelGraph, address: str, known: Propagated, c: Choices, share: int
) -> ModelGraph:
    """The graph with what inference knows written down at a share of its output ports, as a file
    has it.
    """
    label, nodes = labels(graph), []
    for node in graph.nodes:
        bodies = [
            replace(
                body,
                graph=_declared(
                    body.graph, f"{address}/{label[node.id]}/{body.name}", known, c, share
                ),
            )
            for body in node.bodies
        ]
        outputs = list(node.outputs)
        for number, port in enumerate(outputs):
            if node.type not in ("Parameter", "Const") and c.chance(share):
                found = known.output(address, node.id, number)
                shape = found.shape if c.chance(max(share, 60)) else port.shape
                outputs[number] = replace(port, element_type=found.element_type, shape=shape)
        nodes.append(replace(node, outputs=tuple(outputs), bodies=tuple(bodies)))
    return ModelGraph(tuple(nodes), graph.edges)


def same_bits(one: object, other: object) -> bool:
    """Whether two values have one type, one shape and the same bits; every NaN equals every
    other.
    """
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and _bits(one) == _bits(other)


def _bits(array: np.ndarray) -> bytes:
    if array.dtype.kind == "f" and np.isnan(array).any():
        array = np.where(np.isnan(array), array.dtype.type("nan"), array)
    return array.tobytes()

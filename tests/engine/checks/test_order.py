"""The order of a graph's nodes: stable, states read before they are written, cycles named."""

from __future__ import annotations

import pytest

from loopscope.checks.order import LayerOrder, backwards, circles, order
from loopscope.ir.model import Edge, LayerId, ModelGraph, Node, OutputRef, Port


def _graph(
    layers: list[int], edges: list[tuple[int, int]], kinds: dict[int, tuple[str, str]] | None = None
) -> ModelGraph:
    """One output (port 9) for each layer, as many inputs as edges arrive."""
    arriving = {layer: [a for a, b in edges if b == layer] for layer in layers}
    nodes = []
    for layer in layers:
        kind, variable = (kinds or {}).get(layer, ("Any", ""))
        ports = tuple(Port(index) for index in range(len(arriving[layer])))
        nodes.append(
            Node(
                LayerId(layer),
                str(layer),
                kind,
                attributes={"variable_id": variable},
                inputs=ports,
                outputs=(Port(9),),
            )
        )
    ends = tuple(
        Edge(LayerId(a), 9, LayerId(b), arriving[b].index(a) + list(edges[:number]).count((a, b)))
        for number, (a, b) in enumerate(edges)
    )
    return ModelGraph(tuple(nodes), ends)


def _layers(*numbers: int) -> tuple[LayerId, ...]:
    return tuple(LayerId(number) for number in numbers)


def test_a_sorted_document_stays_as_it_is() -> None:
    assert order(_graph([5, 3, 8, 1], [(5, 8), (3, 1)])) == LayerOrder(_layers(5, 3, 8, 1))


def test_document_order_where_edges_leave_it_free() -> None:
    assert order(_graph([4, 3, 2, 1, 0], [(0, 4), (1, 3)])).layers == (2, 1, 3, 0, 4)


def test_assign_comes_after_read_value_of_its_variable() -> None:
    kinds = {0: ("Assign", "v"), 1: ("ReadValue", "v"), 2: ("ReadValue", "w")}
    assert order(_graph([0, 1, 2], [], kinds)).layers == (1, 0, 2)


def test_assign_that_feeds_its_own_read_value_follows_the_edges() -> None:
    kinds = {0: ("Assign", "v"), 1: ("ReadValue", "v")}
    assert order(_graph([1, 0], [(0, 1)], kinds)) == LayerOrder(_layers(0, 1))


def test_cycles_are_named_and_what_follows_them_is_left_out() -> None:
    found = order(_graph([0, 1, 2, 3, 4, 5, 6], [(0, 1), (1, 2), (2, 1), (2, 3), (4, 4), (5, 6)]))
    assert found.layers == (0, 5, 6)
    assert [set(cycle) for cycle in found.cycles] == [{1, 2}, {4}]


def test_a_long_chain_in_reverse_is_fast() -> None:
    count = 20_000
    layers = list(reversed(range(count)))
    nodes = tuple(
        Node(
            LayerId(layer),
            str(layer),
            "Any",
            inputs=(Port(0),) if layer else (),
            outputs=(Port(1),),
        )
        for layer in layers
    )
    graph = ModelGraph(
        nodes, tuple(Edge(LayerId(layer), 1, LayerId(layer + 1), 0) for layer in range(count - 1))
    )
    assert order(graph).layers == tuple(range(count))


def test_what_a_tensor_comes_from_by_way_of_first_operands() -> None:
    graph = _graph([0, 1, 2, 3], [(0, 1), (3, 2), (1, 2)])
    assert [
        (tensor.layer, node.id) for tensor, node in backwards(graph, OutputRef(LayerId(2), 9))
    ] == [(2, 2), (3, 3)]


def test_the_way_back_ends_where_a_cycle_closes() -> None:
    graph = _graph([0, 1, 2], [(1, 0), (2, 1), (1, 2)])
    assert [node.id for _, node in backwards(graph, OutputRef(LayerId(0), 9))] == [0, 1, 2]


def test_layers_are_in_one_circle_where_each_comes_from_the_other() -> None:
    graph = _graph([0, 1, 2, 3, 4, 5], [(0, 1), (1, 2), (2, 3), (5, 5)])
    assert len(set(circles(graph, []).values())) == 6
    found = circles(
        graph, [(LayerId(2), LayerId(1)), (LayerId(3), LayerId(4)), (LayerId(3), LayerId(77))]
    )
    assert found[LayerId(1)] == found[LayerId(2)]
    assert len(set(found.values())) == 5


@pytest.mark.timeout(20)
def test_a_long_circle_is_fast() -> None:
    count = 20_000
    nodes = tuple(
        Node(LayerId(layer), str(layer), "Any", inputs=(Port(0),), outputs=(Port(1),))
        for layer in range(count)
    )
    graph = ModelGraph(
        nodes, tuple(Edge(LayerId(layer), 1, LayerId(layer + 1), 0) for layer in range(count - 1))
    )
    assert set(circles(graph, [(LayerId(count - 1), LayerId(0))]).values()) == {0}
    assert len(set(circles(graph, []).values())) == count

"""Weights of a node: stored tensors behind its inputs, also through the bodies around it."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_app.describe.node_index import places
from loopscope_app.describe.node_ports import node_weights, weight_summary

WEIGHTS = np.arange(64, dtype=np.float32).reshape(8, 8)


def model() -> loopscope.Model:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [2, 8])
    outer = graph.constant(WEIGHTS, name="outer")
    return graph.model(
        builder.for_loop(
            2, lambda _, y: [ops.add(ops.matmul(y, outer, name="product"), 1.0)], [x], name="loop"
        )[0]
    )


def test_a_tensor_outside_the_loop_is_a_weight_of_an_operation_in_it() -> None:
    loaded = model()
    place = next(p for address, p in places(loaded).items() if address.endswith("/product"))
    (weight,) = node_weights(loaded, place)
    assert weight.port == "second"
    assert np.array_equal(weight.constant.array(), WEIGHTS)
    words, picture = weight_summary(weight.constant)
    assert words == "min 0, max 63, mean 31.5, std 18.473"
    assert picture.startswith("<img alt")


def test_single_numbers_indices_and_carried_values_are_not_weights() -> None:
    loaded = model()
    rest = [p for address, p in places(loaded).items() if not address.endswith("/product")]
    assert [p.address for p in rest if node_weights(loaded, p)] == ["main/loop"]


def test_a_tensor_without_a_range_has_no_histogram() -> None:
    constant = loopscope.ir.Constant.of(np.full(40, np.nan, np.float32))
    assert weight_summary(constant) == ("NaN 40, infinite 0", "")

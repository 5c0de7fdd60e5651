"""Costs of models: parameters, bytes and MACs beside values that were counted by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.checks import ComputeCost, costs
from loopscope.checks.mac_formulas import COUNTED, UNCOUNTED, Shapes, macs
from loopscope.errors import InputError
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.onnx_catalogue import domain_of


@dataclass(frozen=True)
class Row:
    """An operation with its shapes, and its MACs as counted by hand."""

    type: str
    inputs: list[tuple[int, ...] | None]
    output: tuple[int, ...] | None
    macs: int | None
    attributes: dict[str, Any] = field(default_factory=dict)


ROWS = [
    # 6 x 6 places, 16 kernels of 3 x 3 x 3
    Row("Conv", [(1, 3, 8, 8), (16, 3, 3, 3), (16,)], (1, 16, 6, 6), 6 * 6 * 16 * 27),
    # depthwise: each of the 8 kernels reads one channel
    Row("Conv", [(2, 8, 5), (8, 1, 3)], (2, 8, 3), 2 * 8 * 3 * 3, {"group": 8}),
    Row("Convolution", [(1, 3, 8, 8), (16, 3, 3, 3)], (1, 16, 6, 6), 6 * 6 * 16 * 27),
    Row("GroupConvolution", [(2, 8, 5), (8, 1, 1, 3)], (2, 8, 3), 2 * 8 * 3 * 3),
    # every element of the input is multiplied by 4 kernels of 2 x 2
    Row("ConvTranspose", [(1, 3, 5, 5), (3, 4, 2, 2)], (1, 4, 6, 6), 75 * 4 * 4),
    Row("ConvolutionBackpropData", [(1, 3, 5, 5), (3, 4, 2, 2)], (1, 4, 6, 6), 75 * 4 * 4),
    Row("GroupConvolutionBackpropData", [(1, 4, 5), (2, 2, 3, 2)], (1, 6, 6), 20 * 3 * 2),
    Row("QLinearConv", [(1, 3, 4, 4), (), (), (5, 3, 1, 1)], (1, 5, 4, 4), 16 * 5 * 3),
    Row("MatMul", [(2, 3, 4), (4, 5)], (2, 3, 5), 2 * 3 * 5 * 4),
    Row("MatMul", [(4, 3), (4, 5)], (3, 5), 60, {"transpose_a": "true"}),
    Row("MatMul", [(4, 3), (3, 5)], (4, 5), 60, {"transpose_a": "false"}),
    Row("MatMul", [(7,), (7, 2)], (2,), 14),
    Row("MatMul", [(7,), (7,)], (), 7),
    Row("Gemm", [(4, 3), (4, 5), (5,)], (3, 5), 60, {"transA": 1}),
    Row("Einsum", [(2, 3, 4), (2, 4, 5)], (2, 3, 5), 120, {"equation": "bij,bjk->bik"}),
    Row("Einsum", [(3, 4)], (4, 3), 0, {"equation": "ij->ji"}),
    # 6 steps of a batch of 2, 4 gates of 7, from 5 inputs and 7 states
    Row("LSTM", [(6, 2, 5), (1, 28, 5), (1, 28, 7)], (6, 1, 2, 7), 12 * (28 * 5 + 28 * 7)),
    Row("GRU", [(6, 2, 5), (2, 21, 5), (2, 21, 7)], (6, 2, 2, 7), 12 * 2 * (21 * 5 + 21 * 7)),
    Row(
        "LSTMSequence",
        [(2, 6, 5), (2, 1, 7), (2, 1, 7), (2,), (1, 28, 5), (1, 28, 7), (1, 28)],
        (2, 1, 6, 7),
        12 * (28 * 5 + 28 * 7),
    ),
    Row("GRUCell", [(2, 5), (2, 7), (21, 5), (21, 7), (21,)], (2, 7), 2 * (21 * 5 + 21 * 7)),
    # 3 queries x 6 keys x 4 for the weights, and 3 x 6 x 8 for the values
    Row(
        "ScaledDotProductAttention",
        [(2, 3, 4), (2, 6, 4), (2, 6, 8)],
        (2, 3, 8),
        2 * (3 * 6 * 4 + 3 * 6 * 8),
    ),
    Row("Add", [(2, 3), (2, 3)], (2, 3), 0),
    Row("MatMul", [None, (4, 5)], None, None),
    Row("Einsum", [(2, 3), (3, 4)], (2, 4), None, {"equation": "ab"}),
    Row("QAttention", [(1, 2, 3)], (1, 2, 3), None),
    Row("LSTM", [], None, None),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.type}-{row.macs}")
def test_macs_as_counted_by_hand(row: Row) -> None:
    assert macs(row.type, Shapes(row.inputs, row.output, row.attributes)) == row.macs


def test_every_formula_is_of_an_operation_that_exists() -> None:
    unknown = [
        type
        for type in (*COUNTED, *UNCOUNTED)
        if not CATALOGUE.versions(type) and not domain_of(type)
    ]
    assert unknown == []


def test_a_loop_with_a_fixed_trip_count_multiplies_its_iteration() -> None:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [2, 3])
    weights = np.ones((3, 3), np.float32)
    out = builder.while_loop(
        lambda i, v: i < 5,
        lambda i, v: (i + 1, ops.matmul(v, weights)),
        [np.int64(0), x],
        maximum_iterations=5,
        name="loop",
    )
    result = costs(graph.model(out[1]))
    loop = result.nodes["main/loop"]
    assert loop.macs_per_iteration == 2 * 3 * 3
    assert loop.parameters == 9
    assert loop.parameter_bytes == 36
    assert (loop.iterations, loop.macs) in ((5, 90), (None, None))
    assert result.total.parameters == 9


LOOP = """
<ir_version: 8, opset_import: ["": 16]>
g (int64 n, float[2, 3] x) => (float[2, 3] y)
  <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, bool go = {1}> {
  y = Loop (n, go, x) <body = b (int64 i, bool c, float[2, 3] s) => (bool c2, float[2, 3] t) {
      c2 = Constant <value = bool {1}> ()
      half = Add (w, w)
      t = MatMul (s, half)
  }>
}
"""


def test_the_trip_count_of_the_inputs_counts() -> None:
    model = loopscope.read_model(parser.parse_model(LOOP).SerializeToString())
    unknown = costs(model).nodes["main/Loop_0"]
    assert (unknown.iterations, unknown.macs, unknown.macs_per_iteration) == (None, None, 18)
    known = loopscope.costs(model, {"n": np.int64(4)}).nodes["main/Loop_0"]
    assert (known.iterations, known.macs) == (4, 72)


def test_what_is_computed_from_constants_counts_as_them_once() -> None:
    result = costs(loopscope.read_model(parser.parse_model(LOOP).SerializeToString()))
    (product,) = (cost for address, cost in result.nodes.items() if "MatMul" in address)
    assert (product.parameters, product.macs) == (9, 18)
    assert result.total.parameters == 9


def test_an_if_has_the_macs_of_its_costlier_branch() -> None:
    graph = builder.Graph()
    x, flag = graph.parameter("x", "f32", [1, 4]), graph.parameter("flag", "boolean", [])
    small, large = np.ones((4, 2), np.float32), np.ones((4, 8), np.float32)
    result = builder.cond(
        flag,
        lambda: ops.reduce_sum(ops.matmul(x, small), [0, 1]),
        lambda: ops.reduce_sum(ops.matmul(x, large), [0, 1]),
        name="choice",
    )
    choice = costs(graph.model(result)).nodes["main/choice"]
    assert choice == ComputeCost(parameters=40, parameter_bytes=160, macs=32, output_bytes=4)


def test_an_unknown_operation_has_unknown_macs() -> None:
    text = '<ir_version: 8, opset_import: ["": 16, "my.own": 1]> g (float[2] x) => (float[2] y) { y = my.own.Thing (x) }'
    model = loopscope.read_model(parser.parse_model(text).SerializeToString())
    assert costs(model).total.macs is None


def test_a_name_that_no_input_has_is_refused() -> None:
    model = loopscope.read_model(parser.parse_model(LOOP).SerializeToString())
    with pytest.raises(InputError, match="there is no input 'm': the inputs are 'n', 'x'"):
        costs(model, {"m": np.int64(1)})

"""Files that ONNX Runtime has optimized, at the level that its page advises: they open, are
checked, drawn, run and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE
from loopscope.view.build import graph_view

_DICE = np.random.default_rng(21)

TRANSFORMER = """
<ir_version: 8, opset_import: ["" : 14]>
block (float[n, s, 16] x) => (float[n, s, 16] y)
{
  q0 = MatMul (x, wq)
  k0 = MatMul (x, wk)
  kt = Transpose <perm = [0, 2, 1]> (k0)
  scores0 = MatMul (q0, kt)
  quarter = Constant <value_float = 0.25> ()
  scores = Mul (scores0, quarter)
  shares = Softmax <axis = -1> (scores)
  a = MatMul (shares, x)
  sum = Add (x, a)
  mean = ReduceMean <axes = [-1]> (sum)
  apart = Sub (sum, mean)
  two = Constant <value_float = 2.0> ()
  square = Pow (apart, two)
  variance = ReduceMean <axes = [-1]> (square)
  epsilon = Constant <value_float = 0.00001> ()
  above = Add (variance, epsilon)
  deviation = Sqrt (above)
  unit = Div (apart, deviation)
  scaled = Mul (unit, gamma)
  normal = Add (scaled, beta)
  up0 = MatMul (normal, wu)
  up = Add (up0, bu)
  root = Constant <value_float = 1.4142135623730951> ()
  one = Constant <value_float = 1.0> ()
  half = Constant <value_float = 0.5> ()
  g0 = Div (up, root)
  g1 = Erf (g0)
  g2 = Add (g1, one)
  g3 = Mul (up, g2)
  g4 = Mul (g3, half)
  y = MatMul (g4, wd)
}
"""
PICTURES = """
<ir_version: 8, opset_import: ["" : 14]>
pictures (float[n, 3, 9, 9] x) => (float[n, 4] y)
{
  a = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
  b = LeakyRelu <alpha = 0.1> (a)
  c = Conv <pads = [1, 1, 1, 1]> (b, w2, b2)
  d = Add (c, b)
  e = Relu (d)
  f = GlobalAveragePool (e)
  g = Flatten (f)
  h = Gemm <transB = 1> (g, w3, b3)
  y = Tanh (h)
}
"""


def reals(*shape: int) -> np.ndarray:
    return (_DICE.normal(size=shape) / 2).astype(np.float32)


MODELS: Mapping[str, tuple[str, Mapping[str, np.ndarray], np.ndarray, set[str]]] = {
    "a transformer": (
        TRANSFORMER,
        {
            **{
                name: reals(*shape)
                for name, shape in {
                    "wq": (16, 16),
                    "wk": (16, 16),
                    "wu": (16, 32),
                    "wd": (32, 16),
                }.items()
            },
            **{name: reals(length) for name, length in {"gamma": 16, "beta": 16, "bu": 32}.items()},
        },
        reals(2, 5, 16),
        {"FusedMatMul", "BiasGelu", "SkipLayerNormalization"},
    ),
    "pictures": (
        PICTURES,
        {
            "w1": reals(8, 3, 3, 3),
            "b1": reals(8),
            "w2": reals(8, 8, 3, 3),
            "b2": reals(8),
            "w3": reals(4, 8),
            "b3": reals(4),
        },
        reals(2, 3, 9, 9),
        {"FusedConv", "FusedGemm"},
    ),
}


def optimized(text: str, weights: Mapping[str, np.ndarray], path: Path) -> None:
    model = parser.parse_model(text)
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize(("text", "weights", "x", "fused"), MODELS.values(), ids=MODELS.keys())
def test_an_optimized_file(
    text: str, weights: Mapping[str, np.ndarray], x: np.ndarray, fused: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "optimized.onnx"
    optimized(text, weights, path)
    assert fused <= {node.op_type for node in onnx.load(path).graph.node}
    model = loopscope.read_model(path)
    assert not check(model, CATALOGUE).errors
    drawn = {box.title: box.family for box in graph_view(model).nodes}
    assert drawn.keys() >= fused
    assert {drawn[name] for name in fused} <= {"activation", "matrix"}
    (mine,) = loopscope.run(model, {"x": x}).outputs
    (theirs,) = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(
        None, {"x": x}
    )
    np.testing.assert_allclose(
        mine, theirs, rtol=1e-5, atol=1e-6
    )  # single precision, summed in another order

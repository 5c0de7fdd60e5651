"""Means of nothing: NaN, as the runtimes have it, and no warning on the user's terminal."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import parser

import loopscope

NODES = {
    "MeanVarianceNormalization": ("float[1,2,0,3] x", "MeanVarianceNormalization (x)"),
    "SkipLayerNormalization": (
        "float[1,2,0] x, float[0] g",
        "com.microsoft.SkipLayerNormalization (x, x, g)",
    ),
    "SkipSimplifiedLayerNormalization": (
        "float[1,2,0] x, float[0] g",
        "com.microsoft.SkipSimplifiedLayerNormalization (x, x, g)",
    ),
}


@pytest.mark.parametrize(("inputs", "node"), NODES.values(), ids=NODES.keys())
def test_nothing_is_said_of_the_mean_of_nothing(inputs: str, node: str) -> None:
    opsets = '"" : 13, "com.microsoft" : 1'
    model = parser.parse_model(
        f"<ir_version: 8, opset_import: [{opsets}]> main ({inputs}) => (float[n] y) {{ y = {node} }}"
    )
    read = loopscope.read_model(model.SerializeToString())
    given = [np.zeros(one.shape.lengths_or_zeros(), np.float32) for one in read.inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (made,) = loopscope.run(read, given).outputs
    assert made.shape == given[0].shape

"""Derivatives of single operations are those of torch's autograd, to the last digits of f64."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from tests.engine.ops.torch_gradients import CASES, TABLE, Case, weights


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_autograd_gives_the_same(case: Case) -> None:
    graph, arrays = builder.Graph(case.type), case.arrays()
    floats = [
        graph.parameter(f"x{number}", "f64", list(one.shape)) for number, one in enumerate(arrays)
    ]
    whole = [np.array(one, np.int64) for one in case.whole]
    output = graph.apply(case.type, [*floats, *whole], case.attributes)[0]
    seed = graph.constant(weights(tuple(output.shape.lengths)))
    found = loopscope.run(
        graph.model(builder.gradients([output], floats, grad_ys=[seed])), arrays
    ).outputs
    with np.load(TABLE) as table:
        for number, mine in enumerate(found):
            # Sums of some hundred terms of about 1, each rounded to 1e-16.
            np.testing.assert_allclose(mine, table[f"{case.name}:{number}"], rtol=1e-11, atol=1e-12)

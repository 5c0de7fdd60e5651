"""Gradients through loops and branches are those of torch's autograd, to the last digits of f64."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder.structure import leaves
from loopscope.ir.element_type import REAL_FLOATS
from tests.engine.builder.torch_gradients import TABLE
from tests.engine.builder.walked_back import CASES, Case, arguments


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_autograd_gives_the_same(case: Case) -> None:
    graph = builder.Graph(case.name)
    parameters = [
        graph.parameter(f"x{number}", "f64", shape) for number, shape in enumerate(case.shapes)
    ]
    outputs = [
        leaf.value
        for leaf in leaves(case.function(*parameters))
        if leaf.value.element_type in REAL_FLOATS
    ]
    given = arguments(case)
    found = loopscope.run(graph.model(builder.gradients(outputs, parameters)), given).outputs
    with np.load(TABLE) as table:
        for number, mine in enumerate(found):
            np.testing.assert_allclose(mine, table[f"{case.name}:{number}"], rtol=1e-12, atol=1e-13)

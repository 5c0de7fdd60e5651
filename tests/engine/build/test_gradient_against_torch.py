"""Gradients through loops and branches are those of torch's autograd, to the last digits of f64."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine import build
from engine.build.structure import leaves
from engine.ir.element_type import REAL_FLOATS
from tests.engine.build.torch_gradients import TABLE
from tests.engine.build.walked_back import CASES, Case, arguments


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_autograd_gives_the_same(case: Case) -> None:
    graph = build.Graph(case.name)
    parameters = [graph.parameter(f"x{number}", "f64", shape) for number, shape in enumerate(case.shapes)]
    outputs = [leaf.value for leaf in leaves(case.function(*parameters)) if leaf.value.element_type in REAL_FLOATS]
    given = arguments(case)
    found = engine.run(graph.model(build.gradients(outputs, parameters)), given).outputs
    with np.load(TABLE) as table:
        for number, mine in enumerate(found):
            np.testing.assert_allclose(mine, table[f"{case.name}:{number}"], rtol=1e-12, atol=1e-13)

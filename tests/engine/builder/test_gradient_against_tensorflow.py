"""Gradients of TensorFlow's loops, read from its graphs, are those of tf.gradients."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from tests.engine.builder.tf_gradients import CASES, FOLDER, TABLE, arguments


@pytest.mark.parametrize("name", CASES)
def test_tf_gradients_gives_the_same(name: str) -> None:
    """To a few rounding errors of f32, in which both compute."""
    model = loopscope.read_model(FOLDER / f"{name}.pb")
    made = loopscope.gradients(model, "loss:0", ["x:0", "w:0"])
    result = loopscope.run(made, {f"{name}:0": array for name, array in arguments().items()})
    with np.load(TABLE) as table:
        for number, mine in enumerate(result.outputs[-2:]):
            np.testing.assert_allclose(mine, table[f"{name}:{number}"], rtol=2e-5, atol=1e-6)

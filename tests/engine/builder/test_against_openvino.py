"""Random nested control flow, drawn with the builder: OpenVINO gives the same outputs and the
same numbers of iterations.
"""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.draws import draws
from tests.engine.builder.both import run_both
from tests.engine.drawn.programs import EIGHTHS, Drawn, models


@settings(
    max_examples=draws(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=models(), scalar=EIGHTHS, vector=st.lists(EIGHTHS, min_size=3, max_size=3))
def test_random_models_give_the_same_in_openvino(
    drawn: Drawn, scalar: float, vector: list[float]
) -> None:
    result = run_both(drawn.model, [np.float32(scalar), np.array(vector, np.float32)], tolerance=0)
    iterations = sum(
        record.iterations or 0 for record in result.control_flow if record.kind == "Loop"
    )
    assert result.named["ran"] == iterations

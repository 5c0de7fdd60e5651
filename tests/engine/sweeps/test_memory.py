"""A sweep's memory: runs and the search in them stay near the limit of a run, however fast a
tensor grows.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import loopscope
from loopscope import builder

LIMIT = 128 << 20
MOST_TIMES = 2
"""Values and records take at most the limit; searching for a NaN computes some values again."""


def doubling(*lengths: int) -> loopscope.Model:
    """Return a model whose loop doubles tensors without end."""
    graph = builder.Graph()
    inputs = [graph.parameter(f"x{number}", "f32", [-1]) for number, _ in enumerate(lengths)]

    def body(i: builder.Tensor, *tensors: builder.Tensor) -> list[builder.Tensor]:
        return [i + 1, *(builder.ops.concat(one, one, axis=0) for one in tensors)]

    last = builder.while_loop(lambda i, *_: i < 60, body, [np.int64(0), *inputs])
    return graph.model(
        {f"y{number}": builder.ops.reduce_sum(one, [0]) for number, one in enumerate(last[1:])}
    )


@pytest.mark.parametrize("lengths", [(1000,), (1000, 1300)])
@pytest.mark.parametrize("looks", [True, False])
def test_a_tensor_that_doubles_stays_near_the_limit(lengths: tuple[int, ...], looks: bool) -> None:
    """The second sample's loop runs through generated code."""
    model = doubling(*lengths)
    samples = [
        {f"x{number}": np.ones(length + more, np.float32) for number, length in enumerate(lengths)}
        for more in (0, 1, 2)
    ]
    limits = loopscope.Limits(memory_bytes=LIMIT)
    tracemalloc.start()
    try:
        rows = list(
            loopscope.sweep(
                model, samples, workers=1, limits=limits, first_nan=looks, margins=looks
            )
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all("all values of the run together would take" in row["error"] for row in rows)
    assert peak < MOST_TIMES * LIMIT

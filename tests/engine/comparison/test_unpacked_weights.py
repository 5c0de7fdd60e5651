"""What only unpacks compressed weights is told as that: it belongs to no value of a model that
keeps them as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops


def _dense(*, packed: bool) -> loopscope.Model:
    """Two products, one in a loop, with weights as they are or as bytes that are unpacked."""
    random = np.random.default_rng(0)
    graph = builder.Graph("dense")
    x = graph.parameter("x", "f32", [1, 8])

    def weights(name: str) -> Any:
        whole = random.integers(-127, 127, (8, 8)).astype(np.int8)
        scale = random.uniform(0.5, 1.5, (8, 1)).astype(np.float32) / 100
        if not packed:
            return graph.constant(whole * scale, name=name)
        floats = ops.convert(graph.constant(whole, name=name), destination_type="f32")
        zero = ops.convert(graph.constant(np.zeros((8, 1), np.int8)), destination_type="f32")
        return ops.multiply(ops.subtract(floats, zero), graph.constant(scale))

    first, second = weights("first"), weights("second")
    begun = ops.multiply(ops.tanh(ops.matmul(x, first, transpose_b=True)), np.float32(2))
    last = builder.for_loop(
        3, lambda _, h: ops.tanh(ops.matmul(h, second, transpose_b=True)), [begun]
    )[0]
    return graph.model({"y": last})


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_what_unpacks_weights_is_told_as_what_it_is(order: tuple[bool, bool]) -> None:
    """Neither as values that the other model lacks, nor taken for other values of their kind."""
    runs = []
    for packed in order:
        run = loopscope.Debugger(_dense(packed=packed), {"x": np.ones((1, 8), np.float32)})
        run.run()
        runs.append(run)
    found = loopscope.drift(*runs)
    assert found.unmatched == ((), ())
    assert [len(places) for places in found.unpacking] == [8 * packed for packed in order]
    assert found.outputs < 1e-6
    assert not any(pair.one.startswith("main/Convert") for pair in found.pairs)

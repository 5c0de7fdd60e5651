"""Tracks to slide along: however deep loops are nested, few enough to leave the picture its
room.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.ir.model import Model
from loopscope.view.tracks import MOST_LOOPS, tracks


def nest(depth: int) -> Model:
    graph = builder.Graph("nest")

    def body(left: int, value: builder.Tensor) -> tuple[builder.Tensor]:
        if not left:
            return (value + 1.0,)
        (last,) = builder.for_loop(
            2 if left < 3 else 1, lambda i, v: body(left - 1, v), [value], name=f"loop_{left}"
        )
        return (last,)

    return graph.model(body(depth, graph.parameter("x", "f32", []))[0])


@pytest.mark.parametrize(("depth", "inner"), [(1, 0), (2, 1), (4, 3), (40, MOST_LOOPS)])
def test_the_innermost_loops_have_tracks(depth: int, inner: int) -> None:
    debugger = loopscope.Debugger(nest(depth), [np.float32(0)])
    debugger.run()
    step = next(
        step
        for step in range(debugger.steps)
        if len(debugger.seek(step).address.split("/body/")) == depth + 1
    )
    debugger.seek(step)
    whole, *others = tracks(debugger)
    assert (whole.first, whole.last) == (0, debugger.steps)
    assert [one.title for one in others] == [f"loop_{left}" for left in range(inner, 0, -1)]
    assert all(one.first <= step <= one.last for one in others)

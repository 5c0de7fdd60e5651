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


def two_loops() -> Model:
    graph = builder.Graph("two loops")
    x = graph.parameter("x", "f32", [])
    for name in ("first_loop", "second_loop"):
        (x,) = builder.for_loop(
            3,
            lambda i, v: builder.for_loop(2, lambda j, w: [w + 1.0], [v], name="inner"),
            [x],
            name=name,
        )
    return graph.model({"last": x})


def test_the_track_of_the_run_shows_one_loop_and_where_the_others_are() -> None:
    debugger = loopscope.Debugger(two_loops(), [np.float32(0)])
    debugger.run()
    (whole,) = tracks(debugger)
    assert (whole.title, whole.count, len(whole.cells)) == ("second_loop", 3, 3)
    (other,) = whole.others
    assert other[1] <= whole.cells[0].first
    (whole,) = tracks(debugger, "main/first_loop")
    assert (whole.title, whole.first, whole.last) == ("first_loop", 0, debugger.steps)
    assert other[0] < whole.cells[0].first < whole.cells[-1].end <= other[1]
    debugger.seek(other[1])  # after the first loop, before the second
    assert tracks(debugger)[0].title == "first_loop"


def test_the_last_track_shows_the_loop_in_focus() -> None:
    debugger = loopscope.Debugger(two_loops(), [np.float32(0)])
    debugger.run()
    whole, inner = tracks(debugger, "main/first_loop[1]/body/inner")
    assert (whole.title, inner.title, inner.count) == ("first_loop", "inner", 2)
    assert whole.cells[1].first <= inner.first < inner.last <= whole.cells[1].end
    assert inner.iteration is None


def test_a_loop_that_has_not_ended_is_open() -> None:
    debugger = loopscope.Debugger(two_loops(), [np.float32(0)])
    debugger.seek("main/first_loop[1]/body")
    assert [track.is_open for track in tracks(debugger)] == [True]
    debugger.run()
    assert [track.is_open for track in tracks(debugger)] == [False]

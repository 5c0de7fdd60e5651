"""How narrowly loops ended: the distance that the verdict of a run of its own tells, in lanes
and one by one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.explain import verdict

SAMPLES = Path("sample_models")
HALVES = "main/halves"


def halving(*, both: bool = False, nested: bool = False) -> loopscope.Model:
    """Halves x until it is at most 1; with ``both``, also until it was halved 4 times;
    ``nested`` in a loop over three starts.
    """
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [])

    def halved(start: object) -> object:
        def goes_on(v: builder.Tensor, i: builder.Tensor) -> builder.Tensor:
            return builder.ops.LogicalAnd(v > 1.0, i < 4) if both else v > 1.0

        return builder.while_loop(
            goes_on, lambda v, i: (v * np.float32(0.5), i + 1), [start, np.int64(0)], name="halves"
        )[0]

    if nested:
        last = builder.for_loop(3, lambda i, v: [halved(v * np.float32(3.7))], [x], name="three")[0]
    else:
        last = halved(x)
    return graph.model({"last": last})


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("both", [True, False])
def test_a_margin_is_the_one_that_the_verdict_tells(lanes: bool, both: bool) -> None:
    model, numbers = halving(both=both), np.linspace(-1, 40, 120).astype(np.float32)
    rows = list(loopscope.sweep(model, {"x": numbers}, workers=1, lanes=lanes))
    for number, row in zip(numbers[::7], rows[::7], strict=True):
        debugger = loopscope.Debugger(model, {"x": number})
        debugger.run()
        told = verdict(debugger, HALVES)
        margin = (
            told.margin.distance
            if told.margin is not None and row[f"ended {HALVES}"] == "condition"
            else None
        )
        assert row[f"margin {HALVES}"] == margin
    assert any(row[f"margin {HALVES}"] is not None for row in rows)
    if both:
        assert any(
            row[f"margin {HALVES}"] is None and row[f"ended {HALVES}"] == "condition"
            for row in rows
        ), "the count alone ended it"


def test_of_a_nested_loop_it_is_the_sum_the_narrowest_and_the_widest() -> None:
    model, numbers = halving(nested=True), np.linspace(0.3, 9, 40).astype(np.float32)
    columns = [f"margin main/three/body/halves {word}" for word in ("sum", "min", "max")]
    one_by_one, in_lanes = (
        [
            [row[name] for name in columns]
            for row in loopscope.sweep(model, {"x": numbers}, workers=1, lanes=lanes)
        ]
        for lanes in (False, True)
    )
    assert one_by_one == in_lanes
    debugger = loopscope.Debugger(model, {"x": numbers[0]})
    debugger.run()
    found = [verdict(debugger, f"main/three[{number}]/body/halves") for number in range(3)]
    margins = [one.margin.distance for one in found if one.margin is not None]
    assert len(margins) > 1
    assert one_by_one[0] == [sum(margins), min(margins), max(margins)]


def test_whole_numbers_have_no_margin_and_it_can_be_left_out() -> None:
    collatz = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    assert not any(
        name.startswith("margin ") for name in loopscope.sweep(collatz, "number=1..3").columns
    )
    assert f"margin {HALVES}" in loopscope.sweep(halving(), "x=1,2").columns
    assert f"margin {HALVES}" not in loopscope.sweep(halving(), "x=1,2", margins=False).columns

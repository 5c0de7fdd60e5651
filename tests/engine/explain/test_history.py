"""One value over all iterations: columns computed at once equal what each iteration gave; and
what stands out in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.errors import AddressError
from loopscope.explain.history import History, history, of_values, summarise
from tests.engine.debug.walks import model as walk
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, loop
from tests.engine.read.onnx_models import read


def looping(
    build: Callable[..., Any],
    *,
    start: object,
    trips: int,
    shape: tuple[int, ...] = (),
    everything: bool = False,
) -> loopscope.Debugger:
    """A loop whose body computes its one state from itself; ``build`` gets the body and the
    state.
    """
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, shape), body.parameter("state", F32, shape)
    out, again = body.result(build(body, state)), body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        main.const(trips, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(made)
    debugger = loopscope.Debugger(
        main.model(),
        [np.asarray(start, np.float32)],
        record=loopscope.Record(everything=everything),
    )
    debugger.run()
    return debugger


@pytest.mark.parametrize("everything", [False, True])
def test_scalars_are_what_each_iteration_gave(everything: bool) -> None:
    def build(body: Draft, state: Ref) -> Ref:
        half = body.op("Divide", state, body.const(2.0), name="half")
        return body.op("Tanh", body.op("Add", half, body.const(0.75)), name="next")

    debugger = looping(build, start=0.1, trips=300, everything=everything)
    for label in ("state", "half", "next"):
        found = history(debugger, f"main/loop/body/{label}")
        assert found.address == f"main/loop[*]/body/{label}"
        assert len(found) == 300
        each = [debugger.value(f"main/loop[{n}]/body/{label}") for n in range(300)]
        np.testing.assert_array_equal(found.scalars, each)
        assert found.shapes == ((0, 299, ()),)
        assert found.first_not_finite is None
    settled = history(debugger, "main/loop/body/next")
    assert settled.first_change == 1
    assert settled.fixed_from is not None
    assert settled.scalars is not None
    assert 5 < settled.fixed_from < 100
    np.testing.assert_array_equal(settled.scalars[settled.fixed_from :], settled.scalars[-1])
    assert settled.scalars[settled.fixed_from - 1] != settled.scalars[-1]


def test_slices_that_are_numbers_are_others_in_each_iteration() -> None:
    text = """
    main (float s, float[4] xs) => (float last, float[4] all) {
      last, all = Scan <num_scan_inputs = 1, body = step (float v, float x) => (float w, float out) {
          w = Add (v, x)
          out = Mul (x, x)
        }
      > (s, xs)
    }
    """
    debugger = loopscope.Debugger(read(text), [np.float32(1), np.arange(1, 5, dtype=np.float32)])
    debugger.run()
    loop_place = debugger.control_flow[0].address
    labels = [
        one.label for one in debugger.plan.program_by_address[f"{loop_place}/body"].instructions
    ]
    found = [history(debugger, f"{loop_place}/body/{label}").scalars for label in labels]
    assert [one.tolist() for one in found if one is not None] == [[2, 4, 7, 11], [1, 4, 9, 16]]


@pytest.mark.parametrize("everything", [False, True])
def test_the_first_infinity_and_nan(everything: bool) -> None:
    debugger = looping(
        lambda body, state: body.op("Multiply", state, body.const(10.0), name="more"),
        start=1,
        trips=60,
        everything=everything,
    )
    found = history(debugger, "main/loop/body/more")
    assert found.first_not_finite == 38
    assert np.isinf(debugger.value("main/loop[38]/body/more"))
    assert np.isfinite(debugger.value("main/loop[37]/body/more"))
    assert found.fixed_from == 38


def test_tensors_are_summarised() -> None:
    debugger = looping(
        lambda body, state: body.op(
            "Multiply", state, body.const([2.0, -1.0, np.inf]), name="more"
        ),
        start=[1, 1, 0],
        trips=5,
        shape=(3,),
    )
    found = history(debugger, "main/loop/body/more")
    assert found.scalars is None
    summaries = [one for one in found.summaries if one is not None]
    assert [one.shape for one in summaries] == [(3,)] * 5
    assert [(one.minimum, one.maximum, one.not_finite) for one in summaries[:2]] == [
        (-1, 2, 1),
        (1, 4, 1),
    ]
    assert found.first_not_finite == 0
    assert found.first_change == 1
    assert found.fixed_from is None


def test_shapes_over_time() -> None:
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (-1,)), body.parameter("state", F32, (-1,))
    out = body.result(body.op("Concat", state, body.const([0.0]), axis="0", name="longer"))
    again = body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        main.const(3, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(made)
    debugger = loopscope.Debugger(main.model(), [np.zeros(2, np.float32)])
    debugger.run()
    assert history(debugger, "main/loop/body/longer").shapes == (
        (0, 0, (3,)),
        (1, 1, (4,)),
        (2, 2, (5,)),
    )


CHANGES = [
    ([np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((3, 2))], 1, 1),
    ([np.float32(1), np.float64(1), np.float64(1)], 1, 1),
    ([np.array([0.0, 1.0]), np.array([-0.0, 1.0]), np.array([0.0, 1.0])], None, 0),
    ([np.array([np.nan]), np.array([np.nan]), np.array([1.0])], 2, None),
    ([np.zeros(0), np.zeros(0)], None, 0),
    ([np.float32(1)], None, None),
    ([np.zeros((0, 2))], None, None),
    ([np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2))], 1, 1),
    (
        [
            np.array(["a"], object),
            np.array(["a"], object),
            np.array(["b"], object),
            np.array(["b"], object),
        ],
        2,
        2,
    ),
    ([(np.zeros(2),), (np.zeros(2),), (np.zeros(2), np.ones(2))], 2, None),
]
"""Values, the first that differs from the one before, and that from which they stay the same."""


@pytest.mark.parametrize(("values", "first", "fixed"), CHANGES)
def test_when_values_change(values: list[Any], first: int | None, fixed: int | None) -> None:
    found = of_values("", tuple(values))
    assert (found.first_change, found.fixed_from) == (first, fixed)
    if len({np.shape(value) for value in values}) == 1 and isinstance(values[0], np.ndarray):
        whole = History("", np.stack(values))
        assert (whole.first_change, whole.fixed_from) == (first, fixed)


def test_shapes_of_single_elements_are_theirs() -> None:
    debugger = looping(
        lambda body, state: body.op("Add", state, body.const([1.0]), name="next"),
        start=[0],
        trips=5,
        shape=(1,),
    )
    assert history(debugger, "main/loop/body/next").shapes == ((0, 4, (1,)),)
    np.testing.assert_array_equal(history(debugger, "main/loop/body/next").scalars, [1, 2, 3, 4, 5])
    widened = of_values("", (np.float32(1), np.array([1], np.float32), np.array([[1]], np.float32)))
    assert widened.shapes == ((0, 0, ()), (1, 1, (1,)), (2, 2, (1, 1)))
    assert widened.first_change == 1


def test_tensors_of_many_iterations_are_had_at_once() -> None:
    debugger = looping(
        lambda body, state: body.op("Divide", state, body.const([2.0, 4.0]), name="less"),
        start=[1, 1],
        trips=50_000,
        shape=(2,),
    )
    found = history(debugger, "main/loop/body/less")
    assert found.column is not None
    assert found.column.shape == (50_000, 2)
    assert found.fixed_from == 149
    assert found.first_change == 1


def test_histories_lie_in_the_innermost_loop() -> None:
    debugger = loopscope.Debugger(walk(), [np.float32(1)])
    debugger.run()
    np.testing.assert_array_equal(
        history(debugger, "main/outer[1]/body/inner/body/grow").scalars, [5, 6]
    )
    assert (
        history(debugger, "main/outer[1]/body/inner/body/grow").address
        == "main/outer[1]/body/inner[*]/body/grow"
    )
    np.testing.assert_array_equal(history(debugger, "main/outer/body/inner").scalars, [4, 6, 8])
    with pytest.raises(AddressError, match="is not directly in a loop body"):
        history(debugger, "main/double")


def test_histories_end_where_the_run_stands() -> None:
    debugger = loopscope.Debugger(walk(), [np.float32(1)])
    debugger.seek("main/outer[2]/body/above")
    np.testing.assert_array_equal(history(debugger, "main/outer/body/inner").scalars, [4, 6, 8])
    np.testing.assert_array_equal(
        history(debugger, "main/outer/body/above").scalars, [False, False]
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1, -2, np.nan], np.float32), ((3,), -2.0, 1.0, -0.5, 1)),
        (np.array([np.nan], np.float32), ((1,), None, None, None, 1)),
        (np.zeros((0, 2), np.float32), ((0, 2), None, None, None, 0)),
        (np.array([True, False]), ((2,), 0.0, 1.0, 0.5, 0)),
        (np.array(["a"], object), ((1,), None, None, None, 0)),
        (np.int64(7), ((), 7.0, 7.0, 7.0, 0)),
    ],
)
def test_summaries(value: np.generic | np.ndarray, expected: tuple[Any, ...]) -> None:
    found = summarise(value)
    assert (found.shape, found.minimum, found.maximum, found.mean, found.not_finite) == expected
    assert found.digest == summarise(np.array(value)).digest

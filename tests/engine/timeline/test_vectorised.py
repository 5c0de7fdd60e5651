"""Values of many rows at once are, bit for bit, what each row has; what cannot be had so is left
to be computed row by row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.explain.iteration_matrix import iteration_matrix
from loopscope.timeline.vectorised import Columns, Recorded
from tests.draws import draws
from tests.engine.drafts import F32, I64, Draft, Slice, tensor_iterator
from tests.engine.drawn.two_numbers import Drawn, bodies, whole
from tests.engine.explain.runs import finished


def compared(debugger: loopscope.Debugger, rows: slice = slice(None)) -> tuple[int, int]:
    """How many columns of bodies there are, and how many could be had at once; all of these are
    what each row has.
    """
    total = had = 0
    for program in debugger.plan.programs[1:]:
        numbers = np.arange(debugger.timeline.executions.rows[program.index])[rows]
        if not len(numbers):
            continue
        columns = Columns(Recorded(debugger.timeline), program, numbers)
        for slot in (
            *program.parameters.values(),
            *(one for instruction in program.instructions for one in instruction.outputs),
        ):
            column = columns.column(slot)
            total += 1
            if column is None:
                continue
            had += 1
            values = column.of(len(numbers))
            for at, row in enumerate(numbers.tolist()):
                value = np.asarray(debugger.values.get(debugger.timeline, program, row, slot))
                assert (values[at].shape, values.dtype) == (value.shape, value.dtype)
                assert values[at].tobytes() == value.tobytes(), (program.address, row, slot)
    return total, had


@settings(
    max_examples=draws(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    draft=bodies(),
    inputs=st.tuples(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32)),
    everything=st.booleans(),
    rows=st.builds(slice, st.integers(0, 3), st.none(), st.integers(1, 3)),
)
def test_random_models(
    draft: Drawn, inputs: Sequence[float], everything: bool, rows: slice
) -> None:
    debugger = loopscope.Debugger(
        whole(draft),
        [np.float32(one) for one in inputs],
        record=loopscope.Record(everything=everything),
    )
    debugger.run()
    compared(debugger, rows)


@pytest.mark.parametrize(
    "sample",
    [
        "collatz",
        "count_primes",
        "growing_sequence",
        "decoder",
        "walking_backwards",
        "swap",
        "while_loop",
    ],
)
def test_samples(sample: str) -> None:
    total, had = compared(finished(sample))
    assert 2 <= had <= total


SLICES: list[Slice] = [
    {"axis": 0},
    {"axis": 0, "stride": -1, "start": -1, "end": 0},
    {"axis": 1, "part_size": 2, "stride": 2},
    {"axis": 1, "part_size": 2, "stride": -2, "start": -1, "end": 0},
    {"axis": -1, "start": 1},
    {"axis": 0, "start": 1, "end": -2},
]


@pytest.mark.parametrize("slicing", SLICES, ids=str)
def test_slices_of_a_tensor_iterator_convert(slicing: Slice) -> None:
    """The part is declared f32 where the tensor is i64, as OpenVINO converts what enters."""
    main, body = Draft(), Draft()
    x, part = main.parameter("x", I64, (3, 4)), body.parameter("part", F32, (-1, -1))
    main.result(
        tensor_iterator(
            main,
            body,
            sliced=[(x, part, slicing)],
            joined=[(body.result(body.op("Negative", part)), {})],
        )
    )
    debugger = loopscope.Debugger(main.model(), [np.arange(12).reshape(3, 4)])
    debugger.run()
    assert compared(debugger) == (2, 2)


def _halved(value: builder.Tensor) -> tuple[builder.Tensor]:
    return (value * 0.5,)


def _raised(value: builder.Tensor) -> tuple[builder.Tensor]:
    return (value + 1.0,)


def chained(ifs: int, iterations: int) -> loopscope.Debugger:
    """A loop whose body is a chain of Ifs: each takes what the one before gave."""
    graph = builder.Graph("chained")
    x = graph.parameter("x", "f32", [])

    def body(iteration: builder.Tensor, value: builder.Tensor) -> tuple[builder.Tensor]:
        for number in range(ifs):
            (value,) = builder.cond(
                value > float(number), partial(_halved, value), partial(_raised, value)
            )
        return (value,)

    (last,) = builder.for_loop(iterations, body, [x])
    debugger = loopscope.Debugger(graph.model(last), [np.float32(0.25)])
    debugger.run()
    return debugger


@pytest.mark.measured
def test_branches_that_feed_branches_are_each_computed_once() -> None:
    total, had = compared(chained(5, 4))
    assert had > total / 2
    began = time.process_time()
    assert iteration_matrix(chained(48, 6), "main/for").total == 6
    assert (
        time.process_time() - began < 5
    )  # twice as long with each If, if each took all before it anew

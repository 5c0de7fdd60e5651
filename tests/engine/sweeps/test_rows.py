"""The rows of a sweep: the same whatever way, in whatever chunks and processes they were made,
each what a run of its own gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.errors import AddressError
from loopscope.explain import first_not_finite
from loopscope.sweeps import runner
from loopscope.sweeps.job import Stop, SweepJob
from loopscope.sweeps.samples import samples_of
from loopscope.sweeps.serial import rows_one_by_one
from tests.draws import draws
from tests.engine.drawn.models import drawn_model
from tests.engine.drawn.two_numbers import Drawn, bodies, whole

SAMPLES = Path("sample_models")


def sample(name: str) -> loopscope.Model:
    return loopscope.read_model(SAMPLES / name / "model.xml")


def bits(batch: pa.RecordBatch) -> bytes:
    """All of it, so that NaN equals NaN and 0 is not -0."""
    return repr(batch.to_pylist()).encode()


def assert_lanes_give_the_same(
    model: loopscope.Model, inputs: Mapping[Any, Any], **order: Any
) -> int:
    """How many samples ran side by side, at least; their rows are those of runs one by one."""
    work = SweepJob(model, seconds=False, limits=loopscope.Limits(iterations=20_000), **order)
    samples = samples_of(model, inputs)
    batch = samples.batch(0, samples.count)
    assert bits(runner.rows_of(work, batch, Stop())) == bits(rows_one_by_one(work, batch, Stop()))
    return runner.lanes_of(work)


@settings(
    max_examples=draws(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    draft=bodies(),
    numbers=st.lists(
        st.tuples(st.floats(-2, 2, width=32), st.floats(width=32)), min_size=33, max_size=40
    ),
)
def test_drawn_models_have_the_same_rows_in_lanes(
    draft: Drawn, numbers: list[tuple[float, float]]
) -> None:
    assert_lanes_give_the_same(whole(draft), dict(enumerate(np.array(numbers, np.float32).T)))


@pytest.mark.chance
@pytest.mark.parametrize("seed", range(draws(60)))
def test_drawn_nests_of_numbers_have_the_same_rows_in_lanes(seed: int) -> None:
    model, (one, other) = drawn_model(seed, numbers=True)
    if any(first.shape != second.shape for first, second in zip(one, other, strict=True)):
        other = one
    inputs = {
        place: np.stack([first, second] * 17)
        for place, (first, second) in enumerate(zip(one, other, strict=True))
    }
    assert_lanes_give_the_same(model, inputs)


@pytest.mark.chance
def test_enough_drawn_nests_run_in_lanes() -> None:
    found = [drawn_model(seed, numbers=True)[0] for seed in range(60)]
    assert sum(runner.lanes_of(SweepJob(model)) > 0 for model in found) >= 3


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("collatz", {"number": np.arange(-3, 200)}),
        ("gcd", None),
        ("newton_square_root", None),
    ],
)
def test_samples_run_in_lanes(name: str, inputs: Mapping[str, np.ndarray] | None) -> None:
    model = sample(name)
    if inputs is None:
        inputs = {
            one.name: np.arange(1, 71, dtype=one.element_type.dtype if one.element_type else None)
            for one in model.inputs
        }
    assert assert_lanes_give_the_same(model, inputs) > 0


def test_a_row_says_what_a_run_does() -> None:
    rows = list(loopscope.sweep(sample("collatz"), "number=1..40"))
    one = rows[26]
    result = loopscope.run(sample("collatz"), [27])
    taken = [record.branch for record in result.control_flow if record.kind == "If"]
    assert one["number"] == 27
    assert one["iterations main/while_not_one"] == result.control_flow[0].iterations == 111
    assert one["ended main/while_not_one"] == "condition"
    assert one["then main/while_not_one/body/if_even"] == taken.count("then")
    assert one["else main/while_not_one/body/if_even"] == taken.count("else")
    assert (one["output steps"], one["output highest"]) == (
        result.named["steps"],
        result.named["highest"],
    )
    assert one["error"] is None
    assert one["seconds"] > 0


def test_nested_loops_have_sum_min_and_max() -> None:
    model = sample("count_primes")
    (row,) = loopscope.sweep(model, [{0: 20}])
    flow = loopscope.run(model, [20], optimise=loopscope.Optimise(prune=False)).control_flow
    inner = [one.iterations or 0 for one in flow if one.kind == "Loop" and "[" in one.address]
    name = next(key for key in row if key.endswith(" sum")).removesuffix(" sum")
    assert (row[f"{name} sum"], row[f"{name} min"], row[f"{name} max"]) == (
        sum(inner),
        min(inner),
        max(inner),
    )


@pytest.mark.parametrize(
    "name",
    [
        "next_highest",
        "`while_not_one/next_highest`",
        "`while_not_one › next_highest`",
        "`while_not_one · every iteration › next_highest`",
    ],
)
def test_columns_name_values_as_people_read_them(name: str) -> None:
    exactly, said = "max(main/while_not_one/body/next_highest)", f"max({name})"
    for row in loopscope.sweep(sample("collatz"), "number=3,27", columns=[exactly, said]):
        assert row["error"] is None
        assert row[exactly] == row[said] > 3


def test_an_end_of_several_addresses_is_no_column() -> None:
    with pytest.raises(AddressError, match="is the end of 2 addresses"):
        loopscope.sweep(sample("collatz"), "number=3", columns=["max(number_2)"])


def test_columns_of_expressions() -> None:
    rows = list(
        loopscope.sweep(
            sample("collatz"),
            "number=3,27",
            columns=[
                "max(main/while_not_one/body/next_highest)",
                "main/while_not_one[0]/body/equal",
            ],
        )
    )
    assert [row["max(main/while_not_one/body/next_highest)"] for row in rows] == [16, 9232]
    assert [row["main/while_not_one[0]/body/equal"] for row in rows] == [0, 0]


def test_an_expression_that_is_no_number_is_an_error_of_the_row() -> None:
    (row,) = loopscope.sweep(
        sample("collatz"), "number=3", columns=["main/while_not_one/body/next_highest"]
    )
    assert "has 7 elements, one is expected" in row["error"]
    assert row["output steps"] == 7


def test_a_failing_input_ends_its_own_row_only() -> None:
    """An input that the model does not take, and one that divides by zero; around them all is as
    without them.
    """
    rows = list(loopscope.sweep(sample("collatz"), {"number": np.array([3.0, 0.5, 27.0])}))
    assert [row["output steps"] for row in rows] == [7, None, 111]
    assert "would lose values" in rows[1]["error"]


def test_endless_runs_reach_their_limit_and_the_others_do_not_notice() -> None:
    sweep = loopscope.sweep(
        sample("collatz"), {"number": np.arange(-5, 60)}, limits=loopscope.Limits(iterations=1000)
    )
    rows = list(sweep)
    assert [row["number"] for row in rows if row["error"]] == [-5, -4, -3, -2, -1, 0]
    assert {row["ended main/while_not_one"] for row in rows if row["error"]} == {"limit"}
    assert sweep.summary.failed == 6


def test_the_first_nan_has_its_place() -> None:
    model, rates = sample("diverging_training"), [0.1, 0.75]
    inputs = [{"weight": 1.0, "learning_rate": rate, "most_steps": 200} for rate in rates]
    rows = list(loopscope.sweep(model, inputs))
    debugger = loopscope.Debugger(model, inputs[1])
    debugger.run()
    assert rows[0]["first NaN"] is None
    assert rows[1]["first NaN"] == first_not_finite(debugger).address != ""


def test_lanes_with_a_nan_say_where() -> None:
    x = builder.Graph("squares").parameter("x", "f32", [])
    _, last = builder.while_loop(lambda i, x: i < 8, lambda i, x: (i + 1, x * x), (0, x))
    rates = np.array([0.5, 100.0, 2.0, -3.0, np.nan] * 10, np.float32)
    model = x.graph.model([last])
    assert assert_lanes_give_the_same(model, {"x": rates}) > 0
    first = [row["first NaN"] for row in loopscope.sweep(model, {"x": rates})]
    assert first[0] is None
    assert [str(one).count("[4]") for one in first[:4]] == [0, 1, 0, 0]
    assert "[0]" in str(first[4])


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    model, words = sample("collatz"), "random:700 seed=3 number=1..5000"
    whole_sweep = [bits(one) for one in loopscope.sweep(model, words, seconds=False).batches()]
    monkeypatch.setattr(runner, "_MAX_LANES", 97)
    parts = [
        row
        for one in loopscope.sweep(model, words, seconds=False).batches()
        for row in one.to_pylist()
    ]
    single = list(loopscope.sweep(model, words, seconds=False, lanes=False, workers=1))
    assert whole_sweep == [repr(parts).encode()] == [repr(single).encode()]


def test_the_summary_in_words() -> None:
    sweep = loopscope.sweep(sample("collatz"), "number=1..100")
    evens = odds = 0
    for number in range(2, 101):
        while number != 1:
            evens, odds = evens + (number % 2 == 0), odds + number % 2
            number = number // 2 if number % 2 == 0 else 3 * number + 1
    mean = f"{(evens + odds) / 100:.1f}"
    ends = "ended by condition (99), initial_condition (1)"
    assert list(sweep.run().sentences()) == [
        "100 runs",
        f"main/while_not_one: 0 to 118 iterations, {mean} a run, most in sample 96 (number = 97); {ends}",
        f"main/while_not_one/body/if_even: then {evens:,}, else {odds:,}",
    ]
    assert loopscope.sweep(sample("collatz"), "number=2,4").run().never_taken == (
        "else main/while_not_one/body/if_even",
    )

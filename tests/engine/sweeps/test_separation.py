"""What separates runs: the tree's rules hold for the runs that the sentence says, and chance is
not told as a rule.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import loopscope
from loopscope import builder
from loopscope.sweeps import Samples, features_of, samples_of, separation
from loopscope.sweeps.explain_split import Separation, SplitRule


def counting() -> loopscope.Model:
    """A loop of 20 iterations where ``n`` is beyond 10 and the second of ``x`` is positive, else
    of 2.
    """
    graph = builder.Graph()
    n, x = graph.parameter("n", "i64", []), graph.parameter("x", "f32", [2])
    long = builder.ops.LogicalAnd(
        n > 10, builder.ops.ReduceMax(x * np.array([0, 1], np.float32), [0], keep_dims=False) > 0
    )
    most = builder.ops.Select(long, np.int64(20), np.int64(2))
    return graph.model(
        {
            "last": builder.while_loop(
                lambda i: i < most, lambda i: i + 1, [np.int64(0)], name="counts"
            )[0]
        }
    )


def rows_of(model: loopscope.Model, samples: Samples) -> pa.Table:
    return pa.Table.from_batches(list(loopscope.sweep(model, samples, workers=1).batches()))


def test_a_rule_over_a_number_and_an_element_is_found() -> None:
    model = counting()
    samples = samples_of(model, "random:600 seed=1 n=0..30")
    rows = rows_of(model, samples)
    found = separation(rows, "iterations main/counts", 5, features_of(model, samples, rows))
    (rule,) = found.rules
    assert rule.conditions[0] == "n > 10"
    assert rule.conditions[1].startswith("x[1] > ")
    values = samples.batch(0, 600)
    assert isinstance(values.varying[0], np.ndarray)
    assert (
        rule.more
        == found.more
        == rule.runs
        == np.count_nonzero(
            (values.varying[0] > 10) & (np.stack(list(values.varying[1]))[:, 1] > 0)
        )
    )
    assert (
        f"where n > 10 and {rule.conditions[1]}: that holds for {rule.runs:,} runs, and all of these have more."
        in found.sentence
    )


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        (100, "No run has more than 100 in iterations main/counts."),
        (0, "All 50 runs have more than 0 in iterations main/counts."),
    ],
)
def test_all_and_none_need_no_rule(bound: float, sentence: str) -> None:
    model = counting()
    samples = samples_of(model, "random:50 n=0..30")
    rows = rows_of(model, samples)
    assert (
        separation(
            rows, "iterations main/counts", bound, features_of(model, samples, rows)
        ).sentence
        == sentence
    )


def test_a_rule_that_tells_few_of_them_is_not_said_to_tell_most() -> None:
    few = Separation("iterations main/a", 139, 3000, 280, (SplitRule(("number > 4,995",), 8, 7),))
    assert few.sentence.endswith(
        "No rule tells most of them; some are where number > 4,995: that holds for 8 runs, and 7 of these have more."
    )


def test_where_no_input_tells_the_sentence_says_so() -> None:
    model = loopscope.read_model(Path("sample_models/collatz/model.xml"))
    samples = samples_of(model, "number=1..8")
    rows = rows_of(model, samples)
    found = separation(rows, "iterations main/while_not_one", 10, {"nothing": np.zeros(8)})
    assert "no input, by itself or with others, tells which" in found.sentence

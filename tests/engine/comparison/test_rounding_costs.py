"""What rounding costs, and what has to stay: held against runs of the rounded model itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.comparison import Precision, RoundingCandidate, precision
from loopscope.comparison.rounding_costs import Cost, candidates
from loopscope.errors import EngineError
from loopscope.ir.model import Model
from loopscope.transform.rounding import rounded
from loopscope_samples import FOLDER
from loopscope_samples.recipes import linear_attention

ATTENTION = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")


def layers() -> Model:
    """Five layers, one with a column that is large; the second weight is unpacked from f16."""
    random, graph = np.random.default_rng(0), builder.Graph("layers")
    value = graph.parameter("x", "f32", [4, 16])
    for number in range(5):
        array = random.standard_normal((16, 16)).astype(np.float32) / 4
        array[:, 0] *= 200 if number == 2 else 1
        if number == 1:
            weight = builder.ops.convert(
                graph.constant(array.astype(np.float16), name="weight_1"),
                destination_type="f32",
                name="unpacked",
            )
        else:
            weight = graph.constant(array, name=f"weight_{number}")
        value = builder.ops.tanh(
            builder.ops.matmul(
                value, weight, transpose_a=False, transpose_b=False, name=f"layer_{number}"
            )
        )
    return graph.model(value)


INPUTS = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)}


def apart(model: Model, some: Sequence[RoundingCandidate], to: str) -> float:
    one = loopscope.run(model, INPUTS).outputs[0].astype(np.float64)
    other = (
        loopscope.run(rounded(model, {each.address: to for each in some}), INPUTS).outputs[0]
        if some
        else one
    )
    return float(np.abs(one - other).max() / max(np.abs(one).max(), np.abs(other).max()))


def test_candidates_and_who_reads_them() -> None:
    found = [(one.address, one.kind, one.readers) for one in candidates(layers())]
    assert found == [
        (f"main/weight_{number}", "weight", (f"layer_{number}",)) for number in range(5)
    ]
    states = [(one.address, one.kind, one.readers) for one in candidates(ATTENTION)]
    assert states == [
        ("main/for_each_token/body/S", "state", ("faded_state",)),
        ("main/for_each_token/body/written", "state", ("attention_so_far",)),
    ]


@pytest.mark.parametrize(
    ("to", "tolerance"),
    [("int8", 0.5), ("int8", 0.01), ("int8", 0.003), ("int4", 0.05), ("bf16", 0.0)],
)
def test_costs_and_what_has_to_stay(to: str, tolerance: float) -> None:
    model, runs = layers(), list[tuple[int, int]]()
    found = precision(
        model,
        INPUTS,
        to=to,
        tolerance=tolerance,
        report=lambda done, total: runs.append((done, total)),
    )
    every = candidates(model)
    for cost in found.costs:
        assert cost.error == pytest.approx(apart(model, [cost.candidate], to), rel=1e-9)
    assert [cost.error for cost in found.costs] == sorted(
        (cost.error for cost in found.costs), reverse=True
    )
    assert found.everything == pytest.approx(apart(model, every, to), rel=1e-9)
    others = [one for one in every if one not in found.stay]
    assert found.error == pytest.approx(apart(model, others, to), rel=1e-9)
    assert found.error <= tolerance
    for one in found.stay:  # one more that is rounded is one too many
        assert apart(model, [*others, one], to) > tolerance
    assert found.names == tuple(name for one in found.stay for name in one.readers)
    assert len(runs) <= 3 * len(every)
    assert found.sentence


def test_a_state() -> None:
    found = precision(ATTENTION, linear_attention.inputs(40, seed=1), to="int4", tolerance=1e-3)
    assert [one.address for one in found.stay] == [cost.candidate.address for cost in found.costs]
    assert found.error == 0


def test_a_model_without_candidates() -> None:
    graph = builder.Graph("none")
    with pytest.raises(EngineError, match="nothing to round"):
        precision(
            graph.model(graph.parameter("x", "f32", [2]) * 2.0),
            [np.ones(2, np.float32)],
            to="int8",
            tolerance=0.1,
        )


def test_the_time_is_up() -> None:
    with pytest.raises(EngineError):
        precision(layers(), INPUTS, to="int8", tolerance=0.0, seconds=1e-9)


@pytest.mark.parametrize(
    ("count", "error", "sentence"),
    [
        (2, 0.0058, "All 2 can be rounded to int8: the outputs are at most 0.0058 apart."),
        (1, 0.0, "The only candidate can be rounded to int8: the outputs are the same."),
    ],
)
def test_what_is_said_where_nothing_has_to_stay(count: int, error: float, sentence: str) -> None:
    costs = tuple(
        Cost(RoundingCandidate(f"main/{number}", "weight", ()), error) for number in range(count)
    )
    assert Precision("int8", 0.01, costs, error, (), error).sentence == sentence

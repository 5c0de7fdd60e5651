"""Two runs beside each other: what belongs together, how far it is apart in each iteration,
where loops and branches part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.comparison import Drift, Moment, cosine_words, write_table
from loopscope.comparison.entries import correlated, tells
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import Program
from loopscope.ir.model import Model, ModelGraph
from loopscope.ir.replace import replace
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.vectorised import Columns
from loopscope_samples import FOLDER
from loopscope_samples.recipes import linear_attention
from tests.engine.read.onnx_models import read

ATTENTION = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")


def finished(
    model: Model, inputs: Any, rounding: Mapping[str, str] | None = None
) -> loopscope.Debugger:
    debugger = loopscope.Debugger(
        model, inputs, rounding=rounding, record=loopscope.Record(everything=True)
    )
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    return debugger


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, str]]:
    """How often each instruction of each run was computed again."""
    found: Counter[tuple[int, str]] = Counter()
    before = RunValues.run_one

    def counted(self: RunValues, program: Program, number: int, *given: Any, **named: Any) -> None:
        found[id(self), f"{program.address}/{program.instructions[number].label}"] += 1
        before(self, program, number, *given, **named)

    monkeypatch.setattr(RunValues, "run_one", counted)
    return found


def test_a_row_is_computed_again_for_its_last_values_and_not_for_each(
    again: Counter[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an iteration computes to have its last value are most of the others."""
    inputs = linear_attention.inputs(16, seed=5)
    one, other = finished(ATTENTION, inputs), finished(ATTENTION, inputs, {"main/*/S": "bf16"})
    monkeypatch.setattr(Columns, "column", lambda *_: None)
    loopscope.drift(one, other)
    assert max(again.values()) == 2 * 16, "once for each end of the body: S and out"


def test_states_that_are_not_recorded_are_carried_on_from_row_to_row(
    again: Counter[tuple[int, str]],
) -> None:
    """Not computed a second time from the last one that is, though hardly any is; and what is
    found is the same to the bit.
    """
    inputs, rounding = linear_attention.inputs(16, seed=5), {"main/*/S": "bf16"}
    expected = loopscope.drift(finished(ATTENTION, inputs), finished(ATTENTION, inputs, rounding))
    little = loopscope.Record(budget_bytes=1)
    one, other = (
        loopscope.Debugger(ATTENTION, inputs, record=little, rounding=each)
        for each in ({}, rounding)
    )
    one.run()
    other.run()
    again.clear()
    found = loopscope.drift(one, other)
    assert max(again.values()) < 24, "31 where each iteration is computed for the next one too"
    for pair, same in zip(found.pairs, expected.pairs, strict=True):
        np.testing.assert_array_equal(pair.deviations.relative, same.deviations.relative)


def of(found: Drift, name: str) -> Any:
    (pair,) = [pair for pair in found.pairs if pair.one.rpartition("/")[2] == name]
    return pair


def test_every_iteration_of_every_value() -> None:
    inputs = linear_attention.inputs(40, seed=5)
    one, other = finished(ATTENTION, inputs), finished(ATTENTION, inputs, {"main/*/S": "bf16"})
    found = loopscope.drift(one, other)
    assert found.unmatched == ((), ())
    assert found.left_out == {}
    assert {pair.how for pair in found.pairs} == {"name"}
    for name in ("S", "out", "q"):
        pair = of(found, name)
        expected = []
        for token in range(40):
            here, there = (
                run.value(f"main/for_each_token[{token}]/body/{name}").astype(np.float64)
                for run in (one, other)
            )
            expected.append(
                np.abs(here - there).max() / max(np.abs(here).max(), np.abs(there).max(), 1e-300)
            )
        np.testing.assert_allclose(pair.deviations.relative, expected, rtol=1e-12)
    assert found.first is not None
    assert found.first.one == "main/for_each_token/body/S"
    first = found.first.first
    assert first is not None
    assert (first.address, first.iteration) == (
        "main/for_each_token[1]/body/S",
        1,
    )  # in iteration 0 the state is all zeros
    assert found.sentence.startswith("Begins in `for_each_token` at iteration 1 in `S`; ")
    one.seek(first.step)
    assert one.value("main/for_each_token/body/S").shape == (1, 4, 8, 8)


def test_equal_runs() -> None:
    inputs = linear_attention.inputs(5, seed=5)
    found = loopscope.drift(finished(ATTENTION, inputs), finished(ATTENTION, inputs))
    values = sum(len(pair.rows.left) for pair in found.pairs)
    assert found.sentence == f"All {values:,} values are equal."
    assert (found.first, found.partings, found.outputs) == (None, (), 0.0)


def renamed(model: Model) -> Model:
    """The same model without a name that tells anything."""

    def graph(given: ModelGraph) -> ModelGraph:
        nodes = (
            replace(
                node,
                name=f"n{node.id}",
                bodies=tuple(replace(body, graph=graph(body.graph)) for body in node.bodies),
            )
            for node in given.nodes
        )
        return replace(given, nodes=tuple(nodes))

    return replace(model, graph=graph(model.graph), file="")


def test_without_names_the_structure_tells() -> None:
    inputs = linear_attention.inputs(6, seed=5)
    found = loopscope.drift(
        finished(ATTENTION, inputs), finished(renamed(ATTENTION), list(inputs.values()))
    )
    assert found.unmatched == ((), ())
    assert {pair.how for pair in found.pairs} == {"structure"}
    assert found.worst is not None
    assert found.worst.worst.relative == 0


def chain(scale: float, *, more: bool = False) -> Model:
    graph = builder.Graph("chain")
    x = graph.parameter("x", "f32", [3])
    weight = graph.constant(np.array([scale, 1, 1], np.float32), name="weight")
    value = builder.ops.multiply(x, weight, name="scaled")
    if more:
        value = builder.ops.tanh(value, name="squashed")
    return graph.model(builder.ops.add(value, 1.0, name="end"))


def test_what_one_model_lacks_is_listed() -> None:
    found = loopscope.drift(
        finished(chain(1), [np.ones(3, np.float32)]),
        finished(chain(1, more=True), [np.ones(3, np.float32)]),
    )
    assert found.unmatched == ((), ("main/squashed",))
    assert found.first is not None
    assert found.first.one == "main/end"
    assert found.sentence.startswith("Begins in `end`, with 0.12.")


def test_the_sentence_has_names_as_the_model_writes_them() -> None:
    def scoped(by: float) -> Model:
        graph = builder.Graph("scoped")
        return graph.model(
            builder.ops.multiply(graph.parameter("x", "f32", [3]), by, name="layers.0/attn/out")
        )

    found = loopscope.drift(*(finished(scoped(by), [np.ones(3, np.float32)]) for by in (1.0, 2.0)))
    assert found.sentence.startswith("Begins in `layers.0/attn/out`, with 0.5.")


def heads(order: Sequence[int], *, named: bool) -> Model:
    """Three products of one input with other weights, in an order, each squashed; nothing but
    values tells them apart.
    """
    graph = builder.Graph("heads")
    x = graph.parameter("x", "f32", [4, 8])
    weights = np.random.default_rng(3).standard_normal((3, 8, 5)).astype(np.float32)

    def step(i: builder.Tensor, total: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        moved = x + builder.ops.convert(i, destination_type="f32")
        for which in order:
            head = builder.ops.mat_mul(
                moved,
                graph.constant(weights[which]),
                name=f"head_{which}" if named else f"m{which + 7}",
            )
            total = total + builder.ops.tanh(
                head, name=f"squashed_{which}" if named else f"t{which + 7}"
            )
        return i + 1, total

    start = graph.constant(np.zeros((4, 5), np.float32))
    return graph.model(
        builder.while_loop(
            lambda i, _: i < 5, step, [graph.constant(0), start], name="loop" if named else "w"
        )[1]
    )


def test_values_that_look_alike_are_matched_by_their_correlation() -> None:
    inputs = [np.random.default_rng(4).standard_normal((4, 8)).astype(np.float32)]
    found = loopscope.drift(
        finished(heads([0, 1, 2], named=True), inputs),
        finished(heads([2, 0, 1], named=False), inputs),
    )
    beside = {
        pair.one.rpartition("/")[2]: (pair.other.rpartition("/")[2], pair.how)
        for pair in found.pairs
    }
    for which in range(3):
        assert beside[f"head_{which}"] == (f"m{which + 7}", "correlation")
        assert beside[f"squashed_{which}"][0] == f"t{which + 7}"
        assert of(found, f"head_{which}").worst.relative == 0


def branches(order: Sequence[int], *, more: bool) -> Model:
    """Values of one shape of which each model has another number, so that neither name nor
    structure nor shape alone tells.
    """
    graph, side = builder.Graph("branches"), "a" if more else "b"
    x = graph.parameter("x", "f32", [16])
    scaled = [
        builder.ops.multiply(x, graph.constant(np.float32(which + 1)), name=f"{side}_scaled{which}")
        for which in order
    ]
    made = [
        builder.ops.sin(one, name=f"{side}{which}")
        for one, which in zip(scaled, order, strict=True)
    ]
    return graph.model(
        {f"out_{number}": builder.ops.tanh(one) if more else one for number, one in enumerate(made)}
    )


def test_of_unequally_many_candidates_those_are_matched_that_correlate_and_the_others_listed() -> (
    None
):
    inputs = [np.linspace(-2, 2, 16, dtype=np.float32)]
    one, other = (
        finished(branches([0, 1, 2], more=True), inputs),
        finished(branches([2, 3, 0, 1], more=False), inputs),
    )
    found = loopscope.drift(one, other)
    beside = {
        pair.one.rpartition("/")[2]: pair.other.rpartition("/")[2]
        for pair in found.pairs
        if pair.how == "correlation"
    }
    assert beside == {
        f"a{kind}{which}": f"b{kind}{which}" for kind in ("", "_scaled") for which in range(3)
    }
    assert {"main/b3", "main/b_scaled3"} <= {*found.unmatched[1]}


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ([[1.0, 2, 3, 5]], [[1.0, 2, 3, 5]], [(0, 0)]),
        ([[1.0, 2, 3, 5]], [[2.0, 4, 6, 10]], []),  # twice as much is another value
        ([[1.0, 2, 3, 5]], [[1.0, 2, 3, 5], [1.0, 2, 3, 5]], []),  # nothing tells which
        ([[1.0, 2, 3, 5], [5.0, 1, 2, 4]], [[5.01, 1, 2, 4]], [(1, 0)]),
        ([], [[1.0, 2, 3]], []),
    ],
)
def test_what_correlates(
    mine: list[list[float]], theirs: list[list[float]], expected: list[tuple[int, int]]
) -> None:
    assert (
        correlated([np.array(one) for one in mine], [np.array(one) for one in theirs]) == expected
    )


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([1.0, 2], False), ([3.0, 3, 3], False), ([1.0, np.nan, 2], False), ([0.0, 0, 1], True)],
)
def test_when_a_correlation_tells_something(numbers: list[float], expected: bool) -> None:
    assert tells(np.array(numbers)) is expected


def halving(until: float) -> Model:
    graph = builder.Graph("halving")
    x = graph.parameter("x", "f32", [])

    def body(i: builder.Tensor, v: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        return i + 1, builder.cond(v > 30.0, lambda: v * 0.5, lambda: v * 0.75)

    return graph.model(
        builder.while_loop(lambda i, v: v > until, body, [graph.constant(0), x], name="halve")
    )


def test_unequal_counts_are_compared_as_far_as_both_go() -> None:
    one, other = (
        finished(halving(1.0), [np.float32(100)]),
        finished(halving(3.0), [np.float32(100)]),
    )
    found = loopscope.drift(one, other)
    counts = [run.control_flow[0].iterations for run in (one, other)]
    (parting,) = found.partings
    assert (parting.kind, parting.address) == ("iterations", one.control_flow[0].address)
    assert (parting.one, parting.other) == tuple(f"{count} iterations" for count in counts)
    assert parting.sentence in found.sentence
    rows = {
        len(pair.rows.left)
        for pair in found.pairs
        if "/body" in pair.one and "/then" not in pair.one and "/else" not in pair.one
    }
    assert rows == {min(count for count in counts if count)}


def test_the_first_branch_that_differs() -> None:
    model = halving(1.0)
    one, other = finished(model, [np.float32(100)]), finished(model, [np.float32(59)])
    found = loopscope.drift(one, other)
    branch = next(parting for parting in found.partings if parting.kind == "branch")
    taken = [
        [record.branch for record in run.control_flow if record.kind == "If"]
        for run in (one, other)
    ]
    iteration = next(
        number for number, pair in enumerate(zip(*taken, strict=False)) if pair[0] != pair[1]
    )
    assert f"[{iteration}]" in branch.address
    assert (branch.one, branch.other) == tuple(f"the {side[iteration]} branch" for side in taken)


def test_a_narrow_decision_is_told_where_runs_part() -> None:
    graph = builder.Graph("narrow")
    x = graph.parameter("x", "f32", [])
    model = graph.model(builder.cond(x > 0.5, lambda: x * 2.0, lambda: x + 1.0))
    found = loopscope.drift(
        finished(model, [np.float32(0.5004)]), finished(model, [np.float32(0.5004)], {"*": "bf16"})
    )
    (parting,) = found.partings
    assert (parting.one, parting.other) == ("the then branch", "the else branch")
    assert parting.narrowly == "That was decided by 0.0004: bf16 would decide otherwise."
    assert parting.sentence in found.sentence


def test_no_model_lacks_a_rounding() -> None:
    inputs = linear_attention.inputs(5, seed=5)
    found = loopscope.drift(finished(ATTENTION, inputs), finished(ATTENTION, inputs, {"*": "bf16"}))
    assert found.unmatched == ((), ())


def test_loops_in_loops() -> None:
    graph = builder.Graph("nest")
    x = graph.parameter("x", "f32", [2])

    def outer(i: builder.Tensor, v: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        _, after = builder.while_loop(
            lambda j, _: j <= i,
            lambda j, w: (j + 1, w * 1.01),
            [graph.constant(0), v],
            name="inner",
        )
        return i + 1, after

    model = graph.model(
        builder.while_loop(lambda i, _: i < 5, outer, [graph.constant(0), x], name="outer")[1]
    )
    inputs = [np.array([0.1, 0.2], np.float32)]
    one, other = finished(model, inputs), finished(model, inputs, {"main/*/inner/body/*": "bf16"})
    found = loopscope.drift(one, other)
    assert found.partings == ()
    products = [
        pair
        for pair in found.pairs
        if pair.one.count("/") == 5 and pair.program.instructions[0] and len(pair.rows.left) == 15
    ]
    assert products
    for pair in products:
        assert pair.rows.iteration.tolist() == [i for count in range(1, 6) for i in range(count)]
        assert pair.rows.execution.tolist() == [
            outer for outer in range(5) for _ in range(outer + 1)
        ]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_table_of_every_iteration(ending: str, tmp_path: Path) -> None:
    import pandas as pd

    inputs = linear_attention.inputs(4, seed=5)
    one, other = finished(ATTENTION, inputs), finished(ATTENTION, inputs, {"main/*/S": "int8"})
    found = loopscope.drift(one, other)
    count = write_table(found, one, tmp_path / f"table{ending}")
    frame = (
        pd.read_parquet(tmp_path / "table.parquet")
        if ending == ".parquet"
        else pd.read_csv(tmp_path / "table.csv")
    )
    assert len(frame) == count == sum(len(pair.rows.left) for pair in found.pairs)
    assert list(frame.columns) == [
        "address",
        "other",
        "matched",
        "iteration",
        "absolute",
        "relative",
        "cosine",
    ]
    rows = frame[frame.address == "main/for_each_token[2]/body/S"]
    assert rows.iteration.tolist() == [2]
    assert rows.relative.tolist() == pytest.approx([of(found, "S").deviations.relative[2]])
    with pytest.raises(EngineError, match=r"\.parquet or \.csv"):
        write_table(found, one, tmp_path / "table.txt")


def test_a_quantized_value_belongs_to_the_one_of_its_tensor_name() -> None:
    """The operation that keeps its name gives bytes there, of another scale; what multiplies
    them again gives the tensor.
    """
    start = "main (int64[N] n) => (float[N, 2] y) { weights = Constant <value = float[3, 2] {0.1, 0.2, -0.3, 0.4, 0.5, -0.6}> () "
    end = "y = Tanh (found) }"
    plain = read(start + "[lookup] found = Gather (weights, n) " + end)
    quantizing = "bytes, size, zero = DynamicQuantizeLinear (weights) "
    quantized = read(
        start
        + quantizing
        + "[lookup] found_quantized = Gather (bytes, n) [back] found = DequantizeLinear (found_quantized, size, zero) "
        + end
    )
    inputs = {"n": np.array([2, 0, 1, 1])}
    found = loopscope.drift(finished(plain, inputs), finished(quantized, inputs), tolerance=0.05)
    assert [
        pair.how for pair in found.pairs if (pair.one, pair.other) == ("main/lookup", "main/back")
    ] == ["tensor"]
    assert found.first is None
    assert not [pair for pair in found.pairs if pair.other == "main/lookup"]


HANDED_ON = """
main (float[3] x, float[3] w, int64 trips) => (float[3] last, float[3] same) {
  last, same = Loop (trips, , x, w) <
    body = step (int64 i, bool go, float[3] v, float[3] weight) => (bool again, float[3] next, float[3] weight) {
      [grow] next = Mul (v, weight)
      again = Identity (go)
    }
  >
}
"""


def test_a_rounded_value_that_a_body_hands_on_belongs_to_itself() -> None:
    """Its Parameter and its Result have one name, so that the number of the node is part of the
    address; a rounding is a new node.
    """
    inputs = {
        "x": np.full(3, 0.7, np.float32),
        "w": np.array([0.9, 1.1, 1.3], np.float32),
        "trips": np.int64(4),
    }
    model = read(HANDED_ON)
    found = loopscope.drift(finished(model, inputs), finished(model, inputs, {"main/*": "bf16"}))
    assert {pair.how for pair in found.pairs} == {"name"}
    assert [pair.one.rpartition("~")[0] for pair in found.pairs if "~" in pair.one] == [
        "main/Loop_0/body/weight"
    ]
    assert found.unmatched == ((), ())


def test_only_finished_runs() -> None:
    inputs = linear_attention.inputs(4, seed=5)
    with pytest.raises(EngineError, match="have finished"):
        loopscope.drift(finished(ATTENTION, inputs), loopscope.Debugger(ATTENTION, inputs))


def test_the_largest_logit_is_another_one() -> None:
    """Two tokens of a vocabulary of four; rounding to int4 turns the narrow choice of the
    second.
    """
    graph = builder.Graph("head")
    x = graph.parameter("x", "f32", [2, 4])
    model = graph.model(
        {"logits": builder.for_loop(2, lambda i, a: [a * 1.5], [x], name="layers")[0]}
    )
    inputs = {"x": np.array([[1, 9, 0, 0], [0, 5.01, 5, 9e-3]], np.float32)}
    found = loopscope.drift(finished(model, inputs), finished(model, inputs, {"*": "bf16"}))
    assert "logit" not in found.sentence
    inputs["x"][1] = [5, 5.001, 0, 0]
    found = loopscope.drift(
        finished(model, inputs), finished(model, inputs, {"*": "bf16"}), tolerance=1e-5
    )
    assert found.sentence.endswith(" The largest logit is another one from token 1 on.")


@pytest.mark.parametrize("trips", [0, 3])
@pytest.mark.parametrize("rows", [0, 1])
def test_tensors_without_elements_are_equal(trips: int, rows: int) -> None:
    """A cache that grows from nothing, or from nothing to nothing, whose values no correlation
    can tell apart.
    """
    text = """
    grow (int64 n, float[A,3] first, float[B,3] x) => (float[C,3] last, float[N] sums) {
      yes = Constant <value = bool {1}> ()
      half = Mul (first, x)
      last, sums = Loop (n, yes, first) <body = b (int64 i, bool c, float[D,3] s) => (bool c2, float[E,3] s2, float r) {
        c2 = Identity (c)
        s2 = Concat <axis = 0> (s, x)
        r = ReduceSum <keepdims = 0> (s2)
      }>
    }"""
    model = read(text)
    inputs = {
        "n": np.array(trips),
        "first": np.zeros((0, 3), np.float32),
        "x": np.full((rows, 3), 0.5, np.float32),
    }
    one, other = finished(model, inputs), finished(model, inputs, {"*": "f16"})
    found = loopscope.drift(one, other)
    assert found.sentence.startswith("All ")
    assert found.sentence.endswith("values are equal.")
    assert found.unmatched == ((), ())


@pytest.mark.parametrize(
    ("cosine", "words"), [(0.5, ", cosine 0.500000"), (np.nan, ""), (np.inf, "")]
)
def test_a_cosine_that_is_not_a_number_is_not_told(cosine: float, words: str) -> None:
    assert cosine_words(Moment("main/a", 1, None, 1.0, 1.0, cosine)) == words

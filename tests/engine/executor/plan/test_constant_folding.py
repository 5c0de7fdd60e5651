"""What a plan keeps of a model's constants: weights converted from smaller types."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.executor.plan import computed_once, planner
from loopscope.executor.plan.computed_once import FoldedKernel
from loopscope.explain.history import history
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Operation
from loopscope.ops.infer import same
from tests.engine.drafts import BOOL, F32, I64, Draft, loop


def test_what_constants_make_is_kept() -> None:
    """Weights in f16 are converted and scaled, and are not converted and scaled again."""
    draft, random = Draft(), np.random.default_rng(0)
    half, scale = (
        random.standard_normal((64, 32)).astype(np.float16),
        random.standard_normal((1, 32)).astype(np.float32),
    )
    ports = (Port(1, F32, PartialShape.of((64, 32))),)
    x = draft.parameter("x", F32, (3, 64))
    wide = draft.op("Convert", draft.const(half, ElementType.F16), destination_type="f32")
    draft.nodes[-1] = replace(draft.nodes[-1], outputs=ports)
    scaled = draft.op("Multiply", wide, draft.const(scale))
    draft.nodes[-1] = replace(draft.nodes[-1], outputs=(replace(ports[0], id=2),))
    draft.result(draft.op("MatMul", x, scaled, transpose_a="false", transpose_b="false"))
    draft.result(draft.op("Convert", draft.const(scale), destination_type="f16"))
    model = draft.model()
    instructions = planner.plan_of(model).main.instructions
    folded = {one.node.type: isinstance(one.call, FoldedKernel) for one in instructions[:3]}
    assert folded == {"Convert": True, "Multiply": True, "MatMul": False}
    assert not isinstance(instructions[3].call, FoldedKernel), (
        "without a declared shape nobody knows how much would be kept"
    )
    feed, session = random.standard_normal((3, 64)).astype(np.float32), loopscope.Session(model)
    for _ in range(4):
        outputs = session.run([feed]).outputs
        np.testing.assert_array_equal(outputs[0], feed @ (half.astype(np.float32) * scale))
        np.testing.assert_array_equal(outputs[1], scale.astype(np.float16))


def test_once() -> None:
    calls = []

    def kernel(array: np.ndarray) -> np.ndarray:
        calls.append(array)
        return array + len(calls)

    one, small = np.ones(4, np.float32), FoldedKernel(kernel, 15)
    changing = FoldedKernel(kernel, 16)
    assert [changing(one)[0] for _ in range(3)] == [2, 3, 4], (
        "an array that may be written to is no constant"
    )
    calls.clear()
    one.flags.writeable = False
    assert [small(one)[0] for _ in range(3)] == [2, 3, 4]
    calls.clear()
    once = FoldedKernel(kernel, 16)
    made = [once(one) for _ in range(4)]
    assert [array[0] for array in made] == [2, 2, 2, 2]
    assert made[2] is made[0]
    assert not made[1].flags.writeable
    other = one + 1
    other.flags.writeable = False
    assert once(other)[0] == 4, "what a person sets in place of a constant is no constant of before"
    assert once(one) is made[1]
    pair = FoldedKernel(lambda array: (array + 1, array[0]), 20)
    assert [pair(one) is pair(one) for _ in range(2)] == [True, True]


class Counted:
    """An operation of a user's that adds 1 and counts its calls."""

    def __init__(self, *, pure: bool = True) -> None:
        self.calls = 0
        self.operation = Operation(
            name="Counted",
            version=1,
            opsets=(1, 17),
            opset="extension",
            page="",
            kernel=self._kernel,
            infer=same,
            pure=pure,
        )

    def _kernel(self, values: np.ndarray, /) -> np.ndarray:
        self.calls += 1
        return values + 1

    def since(self) -> int:
        """The calls since this was asked last."""
        calls, self.calls = self.calls, 0
        return calls

    def graph(self) -> builder.Graph:
        return builder.Graph("counted", catalogue=CATALOGUE.with_operations([self.operation]))


@pytest.mark.parametrize(
    "value",
    [np.float32(1), np.ones(3, np.float32), np.zeros(0, np.float32)],
    ids=["number", "few", "none"],
)
def test_a_chain_of_constants_is_folded_by_one_run(value: np.ndarray) -> None:
    counted = Counted()
    graph = counted.graph()
    x = graph.constant(value)
    for _ in range(13):
        (x,) = graph.apply(counted.operation, [x], {})
    session = loopscope.Session(graph.model([x]), catalogue=graph.catalogue)
    calls = []
    for _ in range(4):
        np.testing.assert_array_equal(session.run([]).outputs[0], value + 13)
        calls.append(counted.since())
    assert calls == [13, 0, 0, 0]


def test_a_large_chain_is_folded_by_the_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only run of a model does not pay for memory that nothing would use again."""
    monkeypatch.setattr(computed_once, "_STORED_AT_FIRST_CALL", 11)
    counted = Counted()
    graph = counted.graph()
    x = graph.constant(np.ones(3, np.float32))
    for _ in range(5):
        (x,) = graph.apply(counted.operation, [x], {})
    session = loopscope.Session(graph.model([x]), catalogue=graph.catalogue)
    assert [(session.run([]), counted.since())[1] for _ in range(4)] == [5, 5, 0, 0]


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("value", [3, np.ones(2, np.float32)], ids=["number", "tensor"])
def test_only_a_run_calls_the_kernel_of_a_user(value: object, pure: bool) -> None:
    counted = Counted(pure=pure)
    graph = counted.graph()
    (x,) = graph.apply(counted.operation, [graph.constant(value)], {})
    model = graph.model([x])
    assert counted.since() == 0
    loopscope.check(model, graph.catalogue)
    assert counted.since() == 0
    loopscope.run(model, [], catalogue=graph.catalogue)
    assert counted.since() == 1


def test_a_carried_value_that_nothing_needs_is_not_computed() -> None:
    """The counter of tf.while_loop's example 4 is fetched alone: x, which starts as a constant,
    is not computed.
    """
    counted = Counted()
    graph = counted.graph()
    start = (graph.constant(0), graph.constant(np.arange(20, dtype=np.int32)))
    i, out = builder.while_loop(
        lambda i, x: i < 20, lambda i, x: (i + 1, *graph.apply(counted.operation, [x], {})), start
    )
    model = graph.model([i])
    assert int(loopscope.run(model, [], catalogue=graph.catalogue).outputs[0]) == 20
    assert counted.since() == 0
    assert loopscope.run(graph.model([out]), [], catalogue=graph.catalogue).outputs[0][0] == 20
    assert counted.since() == 20


@pytest.mark.parametrize(
    ("pure", "fold", "count"), [(True, True, 1), (False, True, 4), (True, False, 4)]
)
def test_own_operations_of_constants_are_called_in_every_run_unless_they_are_pure(
    pure: bool, fold: bool, count: int
) -> None:
    """What a user's kernel does beyond computing is not ours to leave out."""
    calls = []

    def kernel(data: np.ndarray, /) -> np.ndarray:
        calls.append(data)
        return data * 2

    operation = Operation(
        name="Twice",
        version=1,
        opsets=(1, 16),
        opset="extension",
        page="",
        kernel=kernel,
        pure=pure,
    )
    draft = Draft()
    draft.result(draft.op("Twice", draft.const([1.0, 2.0])))
    draft.nodes[1] = replace(
        draft.nodes[1], opset="extension", outputs=(Port(1, F32, PartialShape.of((2,))),)
    )
    model = draft.model()
    session = loopscope.Session(
        model,
        optimise=loopscope.Optimise(fold=fold),
        catalogue=CATALOGUE.with_operations([operation]),
    )
    for _ in range(4):
        session.run([])
    assert len(calls) == count


def test_proving_types_does_not_change_what_constants_give() -> None:
    """Operations on constants are computed once; looking whether their values have one type must
    not count as computing.
    """
    graph = builder.Graph("constants")
    x = graph.parameter("x", "f32", [])

    def inner(j: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        few = graph.constant(0) < graph.constant(7)
        return j + 1, builder.cond(few, lambda: v + 1.0, lambda: v - 1.0)

    def outer(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        _, added = builder.while_loop(lambda j, _: j < i, inner, [graph.constant(0), v])
        return i + 1, added

    _, last = builder.while_loop(lambda i, _: i < 6, outer, [graph.constant(1), x])
    model = graph.model(last)
    for _ in range(3):
        assert loopscope.run(model, [np.float32(0)]).outputs[0] == 15.0


def of_constants(trips: int) -> loopscope.Model:
    """A loop in a loop adds 7 + 0.5 in each iteration: the sum of a constant array, and a
    constant.
    """
    body = Draft()
    value = body.parameter("value", F32, ())
    total = body.op(
        "ReduceSum", body.const([3.0, 4.0]), body.const([0], I64), keep_dims="false", name="total"
    )
    more = body.op("Add", total, body.const(0.5), name="more")
    for made in (total, more):
        node = body.nodes[made.layer]
        body.nodes[made.layer] = replace(
            node, outputs=(replace(node.outputs[0], element_type=F32, shape=PartialShape.of(())),)
        )
    graph, value, result = body, value, body.op("Add", value, more)
    for name, times in (("inner", 1), ("outer", trips)):
        out, again = graph.result(result), graph.result(graph.const(True, BOOL))
        around = Draft()
        first = around.parameter("x", F32, ())
        ends = around.const(times, I64), around.const(True, BOOL)
        result = loop(
            around, graph, *ends, again=again, carried=[(first, value, out)], last=[out], name=name
        )
        graph, value = around, first
    graph.result(result)
    return graph.model()


@pytest.mark.parametrize(
    "record", [loopscope.Record(), loopscope.Record(everything=True)], ids=["state", "everything"]
)
def test_columns_of_rows_do_not_change_what_constants_give(record: loopscope.Record) -> None:
    """What is computed for many iterations at once, or for one as for many, is not what a
    constant gives in one.
    """
    model, feeds, expected = of_constants(5), [np.float32(1)], np.float32(1 + 7.5 * 5)
    for _ in range(3):
        debugger = loopscope.Debugger(
            model, feeds, record=record, limits=loopscope.Limits(iterations=2)
        )
        while debugger.state != "finished":
            debugger.run()
            debugger.machine.recording.pack()
        for row in range(5):
            scalars = history(debugger, f"main/outer[{row}]/body/inner[*]/body/more").scalars
            assert scalars is not None
            assert scalars.tolist() == [7.5]
        np.testing.assert_array_equal(debugger.result.outputs[0], expected, strict=True)
        np.testing.assert_array_equal(loopscope.run(model, feeds).outputs[0], expected, strict=True)


def test_what_branches_and_loops_take_of_constants_is_folded_in_them_and_a_value_in_its_place_counts() -> (
    None
):
    graph = builder.Graph("taken")
    x, weights = (
        graph.parameter("x", "f32", [3]),
        graph.constant(np.arange(3, dtype=np.float32), name="weights"),
    )

    def body(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, builder.cond(
            i < 2, lambda: v + ops.negative(weights), lambda: v + ops.floor(weights)
        )

    _, last = builder.while_loop(lambda i, _: i < 4, body, [graph.constant(0), x])
    session = loopscope.Session(graph.model(last))
    bodies = [program for program in session._plan.programs if program.branch is not None]
    folded = {
        one.node.type
        for program in bodies
        for one in program.instructions
        if isinstance(one.call, FoldedKernel)
    }
    assert folded == {"Negative", "Floor"}
    zeros = np.zeros(3, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(session.run([zeros]).outputs[0], zeros)
    again = session.run({"x": zeros, "weights": np.full(3, 1.5, np.float32)})
    np.testing.assert_array_equal(again.outputs[0], np.full(3, -1, np.float32))

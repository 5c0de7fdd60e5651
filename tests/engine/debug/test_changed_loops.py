"""What if, in loops: every role that a value has in a Loop, TensorIterator and Scan, and loops
that run long before a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.executor.machine.machine import Machine
from tests.engine.debug.replay import RECORDS
from tests.engine.drafts import BOOL, F32, I64, Draft, loop, tensor_iterator
from tests.engine.read.onnx_models import read


def counted(trips: int = 4, *, length: int = 6, early: bool = False) -> loopscope.Model:
    """A Loop over slices of x: ``total`` += slice * ``factor`` + iteration, as long as ``keep``;
    outputs total and all totals.

    ``early``: ``keep`` is computed (total below 100); else it is a Const.
    """
    body = Draft()
    total, part, factor = (
        body.parameter("total", F32, (1,)),
        body.parameter("part", F32, (1,)),
        body.parameter("factor", F32, ()),
    )
    number = body.parameter("number", I64, ())
    counted_up = body.op(
        "Add",
        body.op("Multiply", part, factor, name="scaled"),
        body.op("Convert", number, destination_type="f32"),
    )
    grown = body.op("Add", total, counted_up, name="grown")
    limit = body.const(100.0)
    keep = body.op(
        "ReduceLogicalAnd",
        body.op("Less", grown, limit),
        body.const([0], I64),
        keep_dims="false",
        name="keep",
    )
    again = body.result(keep if early else body.const(True, BOOL, name="keep_on"))
    out = body.result(grown, "out")
    main = Draft()
    x, start = main.parameter("x", F32, (length,)), main.parameter("start", F32, (1,))
    made = loop(
        main,
        body,
        main.const(trips, I64, name="trips"),
        main.const(True, BOOL, name="begin"),
        again=again,
        carried=[(start, total, out)],
        invariants=[(main.const(2.0, name="two"), factor)],
        sliced=[(x, part, {"axis": 0})],
        iteration=number,
        last=[out],
        joined=[(out, {})],
        name="loop",
    )
    main.result(made, "last")
    main.result(type(made)(made.layer, 1), "all")
    return main.model()


COUNTED = [np.arange(1, 7, dtype=np.float32), np.zeros(1, np.float32)]
# totals 2, 2+5, 7+8, 15+11, and on with 26+14, 40+17
LOOPS = [
    ("nothing", {}, [2, 7, 15, 26]),
    ("more trips", {"main/trips": 6}, [2, 7, 15, 26, 40, 57]),
    ("fewer trips", {"main/trips": 2}, [2, 7]),
    ("no trip", {"main/trips": 0}, []),
    ("no limit: the slices end it", {"main/trips": -1}, [2, 7, 15, 26, 40, 57]),
    ("an initial condition that is false", {"main/begin": False}, []),
    (
        "the condition of an iteration, a Const of the body",
        {"main/loop[1]/body/keep_on": False},
        [2, 7],
    ),
    ("the counter of one iteration", {"main/loop[1]/body/number": 100}, [2, 106, 114, 125]),
    ("the slice of one iteration", {"main/loop[2]/body/part": [0.0]}, [2, 7, 9, 20]),
    (
        "what is the same in all iterations, in one",
        {"main/loop[1]/body/factor": 0.0},
        [2, 3, 11, 22],
    ),
    (
        "the same in the last, after which the loop is gone",
        {"main/loop[3]/body/factor": 0.0},
        [2, 7, 15, 18],
    ),
    ("an operation", {"main/loop[0]/body/scaled": [7.0]}, [7, 12, 20, 31]),
    ("the carried value", {"main/loop[3]/body/total": [0.0]}, [2, 7, 15, 11]),
    ("what comes back", {"main/loop[0]/body/grown": [0.0]}, [0, 5, 13, 24]),
    ("a Const before the loop", {"main/two": 0.0}, [0, 1, 3, 6]),
]


@pytest.mark.parametrize("record", RECORDS, ids=["state", "everything", "little"])
@pytest.mark.parametrize(
    ("changes", "totals"), [case[1:] for case in LOOPS], ids=[case[0] for case in LOOPS]
)
def test_every_role_in_a_loop(
    changes: Mapping[str, Any], totals: list[int], record: loopscope.Record
) -> None:
    debugger = loopscope.Debugger(counted(), COUNTED, record=record, changes=changes)
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    assert debugger.result.outputs[1].tolist() == totals
    assert debugger.result.outputs[0].tolist() == ([totals[-1]] if totals else [0])
    assert [one.iterations for one in debugger.control_flow] == [len(totals)]
    for iteration, total in enumerate(totals):
        assert debugger.value(f"main/loop[{iteration}]/body/grown").tolist() == [total]


@pytest.mark.parametrize(
    ("keep", "count"),
    [(None, 3), ((1, False), 2), ((2, True), 4)],
    ids=["as it is", "ends earlier", "ends later"],
)
def test_the_condition_of_an_iteration_decides_whether_there_is_another(
    keep: tuple[int, bool] | None, count: int
) -> None:
    feeds = [np.array([10, 20, 30, 40, 50, 60], np.float32), np.zeros(1, np.float32)]
    changes = {} if keep is None else {f"main/loop[{keep[0]}]/body/keep": keep[1]}
    debugger = loopscope.Debugger(counted(early=True), feeds, changes=changes)
    debugger.run()
    assert debugger.control_flow[0].iterations == count


def test_the_length_of_what_a_loop_joined_may_be_what_it_was_and_not_only_what_the_trip_count_said() -> (
    None
):
    feeds = [np.array([10, 20, 30, 40, 50, 60], np.float32), np.zeros(1, np.float32)]
    debugger = loopscope.Debugger(
        counted(early=True), feeds, changes={"main/loop:1": np.zeros(3, np.float32)}
    )
    debugger.run()
    assert debugger.result.outputs[1].tolist() == [0, 0, 0]


def test_what_nothing_feeds_is_zeros_again_after_the_iteration_in_which_it_was_set() -> None:
    body = Draft()
    total, free = body.parameter("total", F32, ()), body.parameter("free", F32, ())
    out = body.result(body.op("Add", total, free))
    main = Draft()
    x = main.parameter("x", F32, ())
    trips, go = main.const(5, I64), main.const(True, BOOL)
    again = body.result(body.const(True, BOOL))
    main.result(
        loop(main, body, trips, go, again=again, carried=[(x, total, out)], last=[out], name="loop")
    )
    debugger = loopscope.Debugger(
        main.model(), [np.float32(1)], changes={"main/loop[1]/body/free": 10.0}
    )
    debugger.run()
    assert debugger.result.outputs[0] == 11


def test_a_tensor_iterator_takes_changes_of_its_parameters_and_operations() -> None:
    body = Draft()
    state, part = body.parameter("state", F32, (1,)), body.parameter("part", F32, (1,))
    out = body.result(body.op("Add", state, part, name="sum"))
    main = Draft()
    x, start = main.parameter("x", F32, (4,)), main.parameter("start", F32, (1,))
    made = tensor_iterator(
        main,
        body,
        carried=[(start, state, out)],
        sliced=[(x, part, {"axis": 0})],
        joined=[(out, {})],
    )
    main.result(made)
    place = "main/" + main.nodes[made.layer].name
    changes = {
        f"{place}[1]/body/part": [10.0],
        f"{place}[2]/body/sum": [-1.0],
        f"{place}[3]/body/state": [100.0],
    }
    debugger = loopscope.Debugger(
        main.model(), [np.ones(4, np.float32), np.zeros(1, np.float32)], changes=changes
    )
    debugger.run()
    assert debugger.result.outputs[0].tolist() == [1, 11, -1, 101]


ONNX_LOOP = """
main (float x, int64 trips) => (float last, float[N] all) {
  start = Constant <value_int = 1> ()
  go = Cast <to = 9> (start)
  last, all = Loop (trips, go, x) <
    body = step (int64 i, bool again_in, float v) => (bool again, float w, float out) {
      one = Constant <value_float = 1.0> ()
      w = Add (v, one)
      limit = Constant <value_float = 4.0> ()
      again = Less (w, limit)
      out = Mul (w, w)
    }
  >
}
"""
ONNX_SCAN = """
main (float s, float[4] xs) => (float last, float[4] all) {
  last, all = Scan <num_scan_inputs = 1, body = step (float v, float x) => (float w, float out) {
      w = Add (v, x)
      out = Mul (x, x)
    }
  > (s, xs)
}
"""
ONNX = [
    (
        "Loop, condition",
        ONNX_LOOP,
        [np.float32(0), np.int64(9)],
        "Loop",
        {"[3]/body/again": True},
        [1, 4, 9, 16, 25],
    ),
    (
        "Loop, carried",
        ONNX_LOOP,
        [np.float32(0), np.int64(9)],
        "Loop",
        {"[2]/body/v": 0.0},
        [1, 4, 1, 4, 9, 16],
    ),
    (
        "Scan, slice",
        ONNX_SCAN,
        [np.float32(0), np.arange(1, 5, dtype=np.float32)],
        "Scan",
        {"[2]/body/x": 10.0},
        [1, 4, 100, 16],
    ),
]


@pytest.mark.parametrize(
    ("text", "feeds", "kind", "changes", "expected"),
    [one[1:] for one in ONNX],
    ids=[one[0] for one in ONNX],
)
def test_loops_of_onnx(
    text: str, feeds: list[Any], kind: str, changes: Mapping[str, Any], expected: list[int]
) -> None:
    model = read(text)
    plain = loopscope.Debugger(model, feeds)
    plain.run()
    place = next(one.address for one in plain.control_flow if one.kind == kind)
    body = place + next(iter(changes)).rpartition("/")[0]
    wanted = next(iter(changes)).rpartition("/")[2]
    label = next(
        one
        for one in plain.plan.program_by_address[f"{place}/body"].layer_of_label
        if _is_named(plain, f"{body}/{one}", wanted)
    )
    debugger = loopscope.Debugger(
        model, feeds, changes={f"{body}/{label}": next(iter(changes.values()))}
    )
    debugger.run()
    assert debugger.result.outputs[1].tolist() == expected


def _is_named(debugger: loopscope.Debugger, address: str, name: str) -> bool:
    """Whether a node has that name, or gives the tensor of that name."""
    program = debugger.plan.program_by_address[address.rpartition("[")[0] + "/body"]
    graph = next(node for node in debugger.model.graph.nodes if node.bodies).body("body").graph
    node = graph.by_id[program.layer_of_label[address.rpartition("/")[2]]]
    return node.type != "Result" and (
        node.name == name or any(name in port.names for port in node.outputs)
    )


# -- long loops
# -------------------------------------------------------------------------------------------------------


def endless(trips: int = -1) -> loopscope.Model:
    """A Loop that swaps 0 and 1 and goes on while ``keep``, which is true."""
    body = Draft()
    one, other = body.parameter("one", F32, ()), body.parameter("other", F32, ())
    keep = body.op("GreaterEqual", one, body.const(0.0), name="keep")
    first, second = (
        body.result(body.op("Add", other, body.const(0.0))),
        body.result(body.op("Add", one, body.const(0.0))),
    )
    main = Draft()
    x, y = main.parameter("x", F32, ()), main.parameter("y", F32, ())
    trips_, go = main.const(trips, I64), main.const(True, BOOL)
    again = body.result(keep)
    main.result(
        loop(
            main,
            body,
            trips_,
            go,
            again=again,
            carried=[(x, one, first), (y, other, second)],
            last=[first],
            name="loop",
        )
    )
    return main.model()


@pytest.mark.parametrize(
    "record", [loopscope.Record(), loopscope.Record(state=False)], ids=["recorded", "not recorded"]
)
def test_a_loop_that_only_a_change_ends_is_not_taken_for_endless(record: loopscope.Record) -> None:
    changes = {"main/loop[200001]/body/keep": False}
    debugger = loopscope.Debugger(
        endless(), [np.float32(0), np.float32(1)], record=record, changes=changes
    )
    debugger.run()
    assert debugger.state == "finished"
    assert debugger.control_flow[0].iterations == 200_002


def test_a_loop_that_goes_round_after_a_change_is_proved_endless_still() -> None:
    changes = {"main/loop[70001]/body/one": 7.0}
    debugger = loopscope.Debugger(endless(), [np.float32(0), np.float32(1)], changes=changes)
    debugger.run()
    assert debugger.state == "limit"
    assert "can never end" in (debugger.failure or "")
    assert all(one.reached for one in debugger.changes)


def test_only_the_iterations_with_changes_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Machine] = []
    step = Machine.step

    def counted_step(machine: Machine) -> None:
        steps.append(machine)
        step(machine)

    monkeypatch.setattr(Machine, "step", counted_step)
    changes = {"main/loop[60000]/body/one": 7.0, "main/loop[90000]/body/one": 8.0}
    debugger = loopscope.Debugger(endless(100_000), [np.float32(0), np.float32(1)], changes=changes)
    debugger.run()
    assert debugger.state == "finished"
    assert debugger.value("main/loop[90000]/body/one") == 8
    assert len(steps) < 40


def test_the_callers_array_is_not_the_runs() -> None:
    mine = np.full(1, 5, np.float32)
    debugger = loopscope.Debugger(counted(), COUNTED, changes={"main/loop[0]/body/grown": mine})
    mine[0] = 9
    debugger.run()
    assert debugger.value("main/loop[0]/body/grown") == 5
    debugger.restart()
    debugger.run()
    assert debugger.result.outputs[1].tolist() == [5, 10, 18, 29]


@pytest.mark.parametrize("record", RECORDS)
def test_an_iteration_number_stays_set_while_a_loop_inside_runs_up_to_another_change(
    record: loopscope.Record,
) -> None:
    inner, body, main = Draft(), Draft(), Draft()
    value = inner.parameter("value", I64, ())
    grown = inner.result(inner.op("Add", value, inner.const(1, I64), name="grown"))
    number, total, x = (
        body.parameter("number", I64, ()),
        body.parameter("total", I64, ()),
        main.parameter("x", I64, ()),
    )
    always = [one.result(one.const(True, BOOL)) for one in (inner, body)]
    trips = [one.const(9, I64) for one in (body, main)]
    go = [one.const(True, BOOL) for one in (body, main)]
    counted = loop(
        body,
        inner,
        trips[0],
        go[0],
        again=always[0],
        carried=[(total, value, grown)],
        last=[grown],
        name="inner",
    )
    out = body.result(body.op("Add", counted, number, name="sum"))
    end = loop(
        main,
        body,
        trips[1],
        go[1],
        again=always[1],
        carried=[(x, total, out)],
        iteration=number,
        last=[out],
        name="outer",
    )
    main.result(end)
    changes = {"main/outer[3]/body/number": 1000, "main/outer[3]/body/inner[6]/body/grown": 0}
    debugger = loopscope.Debugger(main.model(), [np.int64(0)], record=record, changes=changes)
    debugger.run()
    # Zero after iteration 6 of 9, two more in that execution, the number that is set; then five
    # times nine, and 4 to 8.
    assert debugger.result.outputs[0] == 0 + 2 + 1000 + 5 * 9 + (4 + 5 + 6 + 7 + 8)
    assert debugger.value("main/outer[3]/body/sum") == 1002

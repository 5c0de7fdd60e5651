"""Why loops ended, and what they are: the sentences and proofs of the samples, and of what no
sample shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import EngineError
from loopscope.executor.machine.machine import Machine
from loopscope.explain.pattern import pattern
from loopscope.explain.verdict import verdict
from loopscope.timeline.sizes import ExecutionIndex
from tests.engine.debug.walks import model as walk
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, Slice, loop, tensor_iterator
from tests.engine.explain.runs import begun, finished
from tests.engine.read.onnx_models import read

SENTENCES = [
    (
        "while_loop",
        "double_at_7_percent",
        "main/while_below_goal",
        "while loop",
        (
            "Stopped after 11 iterations because `keep_going` became false: it tests `next_balance` < `goal`, and they were 2104.85 and 2000."
        ),
    ),
    (
        "while_loop",
        "already_there",
        "main/while_below_goal",
        "while loop",
        (
            "Never started because the initial condition was false: it tests `balance` < `goal`, and they were 2500 and 2000."
        ),
    ),
    (
        "do_while_loop",
        "already_there",
        "main/do_while_below_goal",
        "do-while loop",
        (
            "Stopped after 1 iteration because `keep_going` became false: it tests `next_balance` < `goal`, and they were 2675 and 2000."
        ),
    ),
    (
        "for_loop",
        "ten_years",
        "main/for_each_year",
        "for loop",
        "Ran all 10 iterations: the trip count `years` was reached.",
    ),
    (
        "for_loop",
        "no_years",
        "main/for_each_year",
        "for loop",
        "Never started: the trip count `years` is 0.",
    ),
    (
        "for_loop_with_condition",
        "goal_first",
        "main/for_each_year_below_goal",
        "for loop with a condition",
        (
            "Stopped after 6 iterations of at most 30 because `keep_going` became false: "
            "it tests `next_balance` < `goal`, and they were 1500.73 and 1500."
        ),
    ),
    (
        "for_loop_with_condition",
        "years_first",
        "main/for_each_year_below_goal",
        "for loop with a condition",
        "Ran all 4 iterations: the trip count `years` was reached.",
    ),
    (
        "swap",
        "one_round",
        "main/swap_each_round",
        "for loop",
        "Ran its one iteration: the trip count `rounds` was reached.",
    ),
    (
        "walking_backwards",
        "three_rewards",
        "main/from_last_to_first",
        "sliced iteration",
        "Ran 3 iterations: the sliced input `rewards` ran out.",
    ),
]


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (
            "to_the_end",
            (
                "Stopped after 3 iterations because `keep_going` became false: `not_equal` tests `gather_6` ≠ 0, and `gather_6` was 0."
            ),
        ),
        (
            "two_words",
            (
                "Stopped after 2 iterations because `keep_going` became false: `less` tests `next_steps` < `longest`, and both were 2."
            ),
        ),
    ],
)
def test_booleans_may_be_joined_bit_by_bit(inputs: str, sentence: str) -> None:
    found = verdict(finished("beam_search", inputs), "main/while_not_ended")
    assert next(fact.operation for fact in found.proof) == "BitwiseAnd"
    assert len(found.proof) == 2
    assert found.sentence == sentence


@pytest.mark.parametrize(("sample", "inputs", "address", "name", "sentence"), SENTENCES)
def test_sentence(sample: str, inputs: str, address: str, name: str, sentence: str) -> None:
    found = verdict(finished(sample, inputs), address)
    assert found.pattern is not None
    assert (found.sentence, found.pattern.name) == (sentence, name)


def test_a_proof_goes_back_along_what_decided() -> None:
    debugger = finished("keras_gru", "two_steps")
    address = "main/network_1%2Fgru_1%2Fwhile"
    proof = verdict(debugger, address).proof
    assert [fact.operation for fact in proof] == ["LogicalAnd", "Less"]
    assert proof[0].address.startswith(f"{address}[1]/body/")
    assert proof[1].address in proof[0].operands
    for fact in proof:
        for operand in fact.operands:
            assert debugger.value(operand).size >= 1


def test_the_order_of_a_run_is_found_once_for_all_that_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debugger = finished("collatz", "three")
    found: list[Machine] = []

    class Counted(ExecutionIndex):
        def __init__(self, machine: Machine) -> None:
            found.append(machine)
            super().__init__(machine)

    monkeypatch.setattr("loopscope.timeline.timeline.ExecutionIndex", Counted)
    for _ in range(5):
        verdict(debugger, "main/while_not_one")
    assert len(found) <= 1


def test_a_verdict_is_about_one_execution() -> None:
    debugger = loopscope.Debugger(walk(), [np.float32(1)])
    debugger.run()
    for outer in range(3):
        found = verdict(debugger, f"main/outer[{outer}]/body/inner")
        assert found.address == f"main/outer[{outer}]/body/inner"
        assert (found.record.iterations, found.declared) == (2, 2)


@pytest.mark.parametrize(
    ("trips", "others", "told"),
    [
        (0, 0, "Never started: the trip count is 0. Its output was never computed: it is zeros."),
        (
            0,
            1,
            "Never started: the trip count is 0. Outputs 0 and 1 were never computed: they are zeros.",
        ),
        (
            0,
            2,
            "Never started: the trip count is 0. Outputs 0, 1 and 2 were never computed: they are zeros.",
        ),
        (1, 2, "Ran its one iteration: the trip count was reached."),
    ],
)
def test_values_that_were_never_computed_are_told(trips: int, others: int, told: str) -> None:
    main, body = Draft(), Draft()
    x, given = main.parameter("x", F32, (2,)), body.parameter("given", F32, (2,))
    again = body.result(body.const(True, BOOL))
    last = [body.result(body.op("Negative", given)) for _ in range(1 + others)]
    main.result(
        loop(
            main,
            body,
            main.const(trips, I64),
            main.const(True, BOOL),
            again=again,
            invariants=[(x, given)],
            last=last,
            name="loop",
        )
    )
    debugger = loopscope.Debugger(main.model(), [np.ones(2, np.float32)])
    debugger.run()
    assert verdict(debugger, "main/loop").sentence == told


@pytest.mark.parametrize("address", ["main/double", "main/outer[1]/body/grow", "main/nothing"])
def test_what_has_no_bodies_has_no_verdict(address: str) -> None:
    debugger = loopscope.Debugger(walk(), [np.float32(1)])
    debugger.run()
    with pytest.raises(EngineError):
        verdict(debugger, address)


def test_verdicts_of_what_goes_on_is_paused_or_failed() -> None:
    debugger = begun("while_loop")
    debugger.run_to("main/while_below_goal[2]/body/keep_going")
    assert (
        verdict(debugger, "main/while_below_goal").sentence
        == "Running: 2 iterations finished so far."
    )
    limited = loopscope.Debugger(walk(), [np.float32(1)], limits=loopscope.Limits(iterations=4))
    limited.run()
    assert limited.endless is None
    assert (
        verdict(limited, "main/outer").sentence
        == "Paused after 1 iteration of at most 3: the limit of 4 iterations is reached."
    )


def test_a_loop_that_is_proved_never_to_end_says_so_and_so_do_those_around_it() -> None:
    """x -> 1 - x comes back every second iteration; the loop around it waits for that for ever."""
    main, outer, inner = Draft(), Draft(), Draft()
    x, given, state = (
        main.parameter("x", F32, ()),
        outer.parameter("given", F32, ()),
        inner.parameter("state", F32, ()),
    )
    back = inner.op("Subtract", inner.const(1.0), state)
    again, handed = inner.result(inner.op("Less", back, inner.const(5.0))), inner.result(back)
    trips, start = outer.const(-1, I64), outer.const(True, BOOL)
    swings = loop(
        outer,
        inner,
        trips,
        start,
        again=again,
        carried=[(given, state, handed)],
        last=[handed],
        name="swings",
    )
    left, on = outer.result(swings), outer.result(outer.const(True, BOOL))
    trips, start = main.const(3, I64), main.const(True, BOOL)
    main.result(
        loop(
            main,
            outer,
            trips,
            start,
            again=on,
            carried=[(x, given, left)],
            last=[left],
            name="around",
        )
    )
    debugger = loopscope.Debugger(main.model(), [np.float32(0.25)])
    debugger.run()
    why = "the carried state of iterations 0 and 2 is equal, and nothing else feeds the next iteration"
    assert (debugger.state, debugger.endless) == ("limit", why)
    told = [verdict(debugger, address) for address in ("main/around[0]/body/swings", "main/around")]
    assert all((one.record.ended_by, one.record.endless) == ("limit", True) for one in told)
    count = told[0].record.iterations
    assert told[0].sentence == f"Can never end: {why}. Paused after {count:,} iterations."
    assert (
        told[1].sentence
        == f"Can never end: `swings` in it can never end, because {why}. Paused after 0 iterations of at most 3."
    )
    debugger.step()
    assert debugger.endless is None
    assert not any(one.endless for one in debugger.control_flow)


BRANCHES = [
    (
        lambda x, y: x < y,
        2.0,
        "then branch because `Less` was true: it tests `x` < `y`, and they were 1 and 2",
    ),
    (
        lambda x, y: x < y,
        0.0,
        "else branch because `Less` was false: it tests `x` < `y`, and they were 1 and 0",
    ),
    (
        lambda x, y: x == 1.0,
        2.0,
        "then branch because `Equal` was true: it tests `x` = 1, and `x` was 1",
    ),
    (
        lambda x, y: x != 1.0,
        2.0,
        "else branch because `NotEqual` was false: it tests `x` ≠ 1, and `x` was 1",
    ),
    (
        lambda x, y: ~(x >= y),
        2.0,
        "then branch because `LogicalNot` was true: `GreaterEqual` tests `x` ≥ `y`, and they were 1 and 2",
    ),
    (
        lambda x, y: ~(x >= y),
        0.0,
        "else branch because `LogicalNot` was false: `GreaterEqual` tests `x` ≥ `y`, and they were 1 and 0",
    ),
    (
        lambda x, y: (x < y) & (x < 9.0),
        2.0,
        "then branch because `LogicalAnd` was true: `Less` tests `x` < `y`, and they were 1 and 2; `Less_1` tests `x` < 9, and `x` was 1",
    ),
    (
        lambda x, y: (x < 9.0) & (x < y),
        0.0,
        "else branch because `LogicalAnd` was false: `Less_1` tests `x` < `y`, and they were 1 and 0",
    ),
    (
        lambda x, y: (x > 9.0) | (x < y),
        2.0,
        "then branch because `LogicalOr` was true: `Less` tests `x` < `y`, and they were 1 and 2",
    ),
    (
        lambda x, y: (x > 9.0) | (x < y),
        0.0,
        "else branch because `LogicalOr` was false: `Greater` tests `x` > 9, and `x` was 1; `Less` tests `x` < `y`, and they were 1 and 0",
    ),
]
"""A condition of x = 1 and y, the y, and what is said of it."""


@pytest.mark.parametrize(
    ("condition", "second", "sentence"), BRANCHES, ids=[sentence for *_, sentence in BRANCHES]
)
def test_why_a_branch_was_taken(
    condition: Callable[..., Any], second: float, sentence: str
) -> None:
    graph = builder.Graph("choice")
    x, y = graph.parameter("x", "f32", []), graph.parameter("y", "f32", [])
    debugger = loopscope.Debugger(
        graph.model(builder.cond(condition(x, y), lambda: x, lambda: y, name="choice")),
        {"x": 1.0, "y": second},
    )
    debugger.run()
    found = verdict(debugger, "main/choice")
    assert found.sentence == f"Took the {sentence}."
    assert sentence.startswith(str(found.record.branch))


def test_a_branch_that_is_asked_for_is_not_proved() -> None:
    graph = builder.Graph("choice")
    model = graph.model(
        builder.cond(
            graph.parameter("flag", "boolean", []), lambda: 1.0, lambda: 0.0, name="choice"
        )
    )
    debugger = loopscope.Debugger(model, {"flag": False})
    debugger.step_into()
    assert (
        verdict(debugger, "main/choice").sentence
        == "Took the else branch because `flag` was false."
    )


def conditional(trips: object, start: object, again: object) -> loopscope.Model:
    """A loop whose trip count, initial condition and condition are constants, or inputs where
    None.
    """
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, ()), body.parameter("state", F32, ())
    given_trips = main.parameter("trips", I64, ()) if trips is None else main.const(trips, I64)
    given_start = main.parameter("start", BOOL, ()) if start is None else main.const(start, BOOL)
    go = body.op("Less", state, body.const(4.0)) if again is None else body.const(again, BOOL)
    out = body.result(body.op("Add", state, body.const(1.0)))
    made = loop(
        main,
        body,
        given_trips,
        given_start,
        again=body.result(go),
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(Ref(made.layer))
    return main.model()


@pytest.mark.parametrize(
    ("trips", "start", "again", "name", "certain"),
    [
        (-1, True, True, "infinite loop", True),
        (2**63 - 1, True, True, "infinite loop", True),
        (-1, None, None, "while loop", True),
        (-1, True, None, "do-while loop", True),
        (5, True, True, "for loop", True),
        (5, None, None, "for loop with a condition", True),
        (5, True, None, "for loop with a condition", True),
        (None, True, True, "for loop", True),
        (5, None, True, "for loop that may not start", True),
        (-1, None, True, "infinite loop that may not start", True),
        (5, False, True, "loop that never starts", True),
        (5, True, False, "single pass", True),
    ],
)
def test_patterns_as_far_as_the_model_tells(
    trips: int | None, start: bool | None, again: bool | None, name: str, certain: bool
) -> None:
    feeds = (
        {"x": 0.0}
        | ({"trips": 2} if trips is None else {})
        | ({"start": True} if start is None else {})
    )
    found = pattern(loopscope.Debugger(conditional(trips, start, again), feeds), "main/loop")
    assert (found.name, found.certain) == (name, certain)


@pytest.mark.parametrize(
    ("trips", "again", "name", "count"),
    [
        (-1, True, "infinite loop", -1),
        (2**63 - 1, True, "infinite loop", -1),
        (0, True, "for loop", 0),
        (7, True, "for loop", 7),
        (-1, None, "do-while loop", -1),
        (7, None, "for loop with a condition", 7),
    ],
)
def test_a_trip_count_that_is_an_input_is_known_before_it_runs(
    trips: int, again: bool | None, name: str, count: int
) -> None:
    debugger = loopscope.Debugger(conditional(None, True, again), {"x": 0.0, "trips": trips})
    found = pattern(debugger, "main/loop")
    assert (found.name, found.trip_count, found.certain) == (name, count, True)


def test_a_trip_count_that_is_computed_is_known_only_after_running() -> None:
    graph = builder.Graph("doubled")
    x, count = graph.parameter("x", "f32", []), graph.parameter("count", "i64", [])
    (last,) = builder.for_loop(count * 2, lambda i, v: [v + 1.0], [x], name="loop")
    found = pattern(
        loopscope.Debugger(graph.model({"last": last}), {"x": 0.0, "count": 2}), "main/loop"
    )
    assert (found.name, found.trip_count, found.certain) == ("for loop", None, False)


ONNX_LOOP = """
main (float x, int64 n, bool c) => (float y) {
  y = Loop (ENTRY, x) <body = step (int64 i, bool go, float v) => (bool again, float w) {
    one = Constant <value_float = 1.0> ()
    five = Constant <value_float = 5.0> ()
    yes = Constant <value = bool {1}> ()
    w = Add (v, one)
    AGAIN
  }>
}
"""


@pytest.mark.parametrize(
    ("entry", "again", "name"),
    [
        ("n, c", "again = Identity (go)", "for loop that may not start"),
        ("n, ", "again = Identity (go)", "for loop"),
        ("n, ", "again = Identity (yes)", "for loop"),
        ("n, ", "again = Less (w, five)", "for loop with a condition"),
        (
            ", c",
            "same = Identity (go)  again = Identity (same)",
            "infinite loop that may not start",
        ),
        (", ", "again = Identity (go)", "infinite loop"),
        (", ", "again = Less (w, five)", "do-while loop"),
        (", c", "again = Less (w, five)", "while loop"),
        (", ", "again = Not (go)", "do-while loop"),
    ],
)
def test_a_condition_that_is_only_handed_on_is_always_true(
    entry: str, again: str, name: str
) -> None:
    model = read(ONNX_LOOP.replace("ENTRY", entry).replace("AGAIN", again))
    debugger = loopscope.Debugger(model, {"x": np.float32(0), "n": np.int64(3), "c": np.True_})
    (address,) = [f"main/{one.label}" for one in debugger.plan.main.instructions if one.region]
    assert pattern(debugger, address).name == name


@pytest.mark.parametrize(
    ("joining", "name", "count"),
    [({}, "single pass", None), ({"start": 0, "end": 2}, "for loop", 3)],
)
def test_a_tensor_iterator_without_slices(joining: Slice, name: str, count: int | None) -> None:
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (1,)), body.parameter("state", F32, (1,))
    out = body.result(body.op("Add", state, body.const([1.0])))
    made = tensor_iterator(main, body, carried=[(x, state, out)], joined=[(out, joining)])
    main.result(made)
    found = pattern(
        loopscope.Debugger(main.model(), [np.array([1], np.float32)]),
        f"main/{main.nodes[made.layer].name}",
    )
    assert (found.name, found.trip_count) == (name, count)


def test_a_call_may_leave_the_trip_count_out() -> None:
    model = read("""main (float x) => (float y) {
      on = Constant <value = bool {1}> ()
      y = local.halve (, on, x)
    }
    <domain: "local", opset_import: ["" : 17]> halve (n, on, x) => (y) {
      y = Loop (n, on, x) <body = step (int64 i, bool c, float v) => (bool more, float w) {
        two = Constant <value = float {2.0}> ()
        w = Div (v, two)
        one = Constant <value = float {1.0}> ()
        more = Greater (w, one)
      }>
    }""")
    debugger = loopscope.Debugger(model, {"x": np.float32(5)})
    debugger.run()
    address = next(one.address for one in debugger.control_flow if one.kind == "Loop")
    assert verdict(debugger, address).sentence.startswith("Stopped after 3 iterations because")

"""Fetching tensors by name or address: only what they need runs, and needs inputs."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.executor import plan_of
from tests.engine.drafts import F32, Draft

X = np.array([1, 2], np.float32)


@pytest.fixture(scope="module")
def model() -> loopscope.Model:
    graph = builder.Graph("fetches")
    x, z = graph.parameter("x", "f32", [2]), graph.parameter("z", "f32", [2])
    start = ops.add(x, 1.0, name="start")
    fails = ops.reshape(
        z, ops.concat([ops.convert(z[:1], destination_type="i64"), [7]], axis=0), special_zero=False
    )
    low, high = ops.split(start, 0, num_splits=2, name="halves")
    last, count = builder.while_loop(
        lambda v, n: ops.reduce_sum(v, 0) < 100.0,
        lambda v, n: (
            builder.cond(
                n < 2, lambda: ops.multiply(v, 2.0, name="twice"), lambda: v * 3.0, name="by"
            ),
            n + 1,
        ),
        (start, 0),
    )
    return graph.model({"last": last, "fails": fails, "both": low + high, "count": count})


FETCHES = {
    "node": (["start"], [[2, 3]]),
    "output": (["count"], [4]),
    "output of several, by its node": (["halves:1", "halves"], [[3], [2]]),
    "address": (["main/start"], [[2, 3]]),
    "address of an output": (["main/while:1", "main/halves:1"], [4, [3]]),
    "input": (["x"], [[1, 2]]),
    "Result": (["main/last"], [[72, 108]]),
    "twice": (["start", "count", "start"], [[2, 3], 4, [2, 3]]),
    "in an iteration": (["main/while[1]/body/by/then/twice"], [[8, 12]]),
    "in the last iteration": (["main/while/body/Add"], [4]),
    "inside and outside": (["start", "main/while[3]/body/v", "count"], [[2, 3], [24, 36], 4]),
    "one": ("start", [[2, 3]]),
    "none": ([], []),
}


@pytest.mark.parametrize("case", FETCHES)
def test_fetches(model: loopscope.Model, case: str) -> None:
    fetches, expected = FETCHES[case]
    result = loopscope.run(model, {"x": X}, fetches)
    assert [output.tolist() for output in result.outputs] == expected
    names = [fetches] if isinstance(fetches, str) else fetches
    assert {name: value.tolist() for name, value in result.named.items()} == dict(
        zip(names, expected, strict=True)
    )


def test_only_what_is_needed_runs(model: loopscope.Model) -> None:
    assert list(loopscope.run(model, {"x": X}, ["start"]).control_flow) == []
    assert loopscope.run(model, {"x": X}, ["count"]).control_flow[0].address == "main/while"
    with pytest.raises(loopscope.RunStopped, match="main/Reshape"):
        loopscope.run(model, {"x": X, "z": X}, ["fails"])
    # Inputs that are not needed may still be given, by position too.
    assert loopscope.run(model, [X, X], ["start"]).outputs[0].tolist() == [2, 3]
    assert loopscope.run(model, {1: X}, ["z"]).outputs[0].tolist() == [1, 2]


WRONG = {
    "nothing": (["nope"], loopscope.AddressError, "there is no tensor 'main/nope'"),
    "no such output": (["start:1"], loopscope.AddressError, "has no output 1"),
    "no such node in a body": (
        ["main/while/body/nope"],
        loopscope.AddressError,
        "there is no 'nope' in while",
    ),
    "a body": (["main/while/body"], loopscope.AddressError, "names a graph"),
    "too late an iteration": (
        ["main/while[4]/body/Add"],
        loopscope.ValueUnavailable,
        "iteration 4 of 'while' has not run",
    ),
    "the other branch": (["main/while[3]/body/by/then/twice"], loopscope.ValueUnavailable, "then"),
    "input that is needed": (["z"], loopscope.InputError, "no value is given for 'z'"),
    "no address": (["main/[x"], loopscope.AddressError, "is not an address"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_fetched(model: loopscope.Model, case: str) -> None:
    fetches, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        loopscope.run(model, {"x": X}, fetches)


def test_a_limit_ends_it_as_any_run(model: loopscope.Model) -> None:
    for fetches in (["count"], ["main/while[3]/body/v"]):
        with pytest.raises(loopscope.RunStopped) as stopped:
            loopscope.run(model, {"x": X}, fetches, limits=loopscope.Limits(iterations=2))
        assert stopped.value.cause == "limit"


def test_nodes_of_one_name_keep_their_addresses() -> None:
    draft = Draft()
    x = draft.parameter("x", F32, (2,))
    first = draft.op("ReLU", x, name="same")
    second = draft.op("Negative", first, name="same")
    for ref in (first, second):
        draft.result(ref)
    model = draft.model()
    assert [
        loopscope.run(model, [X], [name]).outputs[0].tolist()
        for name in ("main/same~1", "main/same~2")
    ] == [[1, 2], [-1, -2]]
    with pytest.raises(loopscope.AddressError, match="'same' matches 2 tensors"):
        loopscope.run(model, [X], ["same"])


def test_a_session_asked_again_plans_nothing_again() -> None:
    """Planning and generating code anew took five times as long as a run of collatz."""
    session = loopscope.Session(loopscope.read_model("sample_models/collatz/model.xml"))
    one, other = (session.run([number]).machine.plan for number in (3, 27))
    assert one is other
    label = f"main/{one.main.instructions[0].label}"
    fetched = [session.run([number], label).machine.plan for number in (3, 27)]
    assert fetched[0] is fetched[1]
    assert fetched[0] is not one


def test_few_parts_of_a_plan_are_kept() -> None:
    collatz = loopscope.read_model("sample_models/collatz/model.xml")
    for number in range(12):
        loopscope.run(collatz, [27], f"main/while_not_one[{number}]/body/equal")
        loopscope.run(collatz, [27], ["steps", *["highest"] * number])
    assert len(plan_of(collatz).parts) == 8


@pytest.mark.timeout(20)
def test_what_a_fetch_needs_of_ten_thousand_operations_is_told_in_linear_time() -> None:
    graph = builder.Graph("long")
    x = ops.relu(graph.parameter("x", "f32", [2]), name="first")
    for _ in range(10_000):
        x = ops.relu(x)
    debugger = loopscope.Debugger(graph.model({"y": x}), {"x": X}, fetches="first")
    debugger.run()
    statuses = debugger.statuses()
    assert (statuses["main/first"], statuses["main/ReLU_1"], len(statuses)) == (
        "done",
        "skipped",
        10_003,
    )

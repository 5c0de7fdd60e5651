"""Where values came from, across back edges, slices and branches; and which branch ran when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.errors import ValueUnavailable
from loopscope.explain.executions import branch_history
from loopscope.explain.provenance import provenance
from tests.engine.debug.walks import model as walk
from tests.engine.drafts import F32, Draft, tensor_iterator


def run(model: loopscope.Model, *inputs: object) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, list(inputs))
    debugger.run()
    return debugger


LINKS = [
    ("main/last", "Add", {("main/outer", "operand")}),
    ("main/outer", "Loop", {("main/outer[2]/body/choice", "last value")}),
    ("main/outer:1", "Loop", {(f"main/outer[{n}]/body/choice", "concatenated") for n in range(3)}),
    (
        "main/outer[2]/body/choice",
        "If",
        {
            ("main/outer[2]/body/choice/then/halve", "branch"),
            ("main/outer[2]/body/above", "condition"),
        },
    ),
    ("main/outer[0]/body/choice/else/q", "Parameter", {("main/outer[0]/body/inner", "branch")}),
    ("main/outer[2]/body/state", "Parameter", {("main/outer[1]/body/choice", "back edge")}),
    ("main/outer[0]/body/state", "Parameter", {("main/double", "initial value")}),
    (
        "main/outer[1]/body/inner[0]/body/value",
        "Parameter",
        {("main/outer[1]/body/state", "initial value")},
    ),
    (
        "main/outer[1]/body/inner[1]/body/value",
        "Parameter",
        {("main/outer[1]/body/inner[0]/body/grow", "back edge")},
    ),
    ("main/x", "Parameter", set()),
    ("main/outer[0]/body/inner[0]/body/one", "Const", set()),
]


@pytest.mark.parametrize(("address", "operation", "links"), LINKS)
def test_one_step_back(
    address: str, operation: str, links: set[Any] | set[tuple[str, str]]
) -> None:
    step = provenance(run(walk(), np.float32(1)), address, 1)[0]
    assert (step.address, step.operation) == (address, operation)
    assert {
        (link.address, link.role) for link in step.links if "const" not in link.address
    } == links


def test_a_provenance_ends_at_inputs_and_constants() -> None:
    debugger = run(walk(), np.float32(1))
    steps = provenance(debugger, "main/last")
    found = {step.address: step for step in steps}
    assert "main/x" in found
    assert "main/outer[0]/body/inner[0]/body/one" in found
    assert "main/outer[0]/body/choice/then/halve" not in found
    assert [step.distance for step in steps] == sorted(step.distance for step in steps)
    for step in steps:
        assert step.operation in ("Parameter", "Const") or step.links
        assert all(link.address in found for link in step.links)
        debugger.value(step.address)
    assert len(provenance(debugger, "main/last", limit=3)) == 3


def test_slices_lead_to_the_tensor_that_they_are_cut_from() -> None:
    main, body = Draft(), Draft()
    x, part = main.parameter("x", F32, (3, 1)), body.parameter("part", F32, (1, 1))
    out = body.result(body.op("Negative", part, name="minus"))
    main.result(tensor_iterator(main, body, sliced=[(x, part, {"axis": 0})], joined=[(out, {})]))
    debugger = run(main.model(), np.array([[1], [2], [3]], np.float32))
    label = debugger.control_flow[0].address
    step = provenance(debugger, f"{label}[1]/body/part", 1)[0]
    assert [(link.address, link.role, str(link.part)) for link in step.links] == [
        ("main/x", "slice", "[1]")
    ]


def test_pieces_that_are_too_many_are_counted() -> None:
    main, body = Draft(), Draft()
    x, part = main.parameter("x", F32, (70, 1)), body.parameter("part", F32, (1, 1))
    out = body.result(body.op("Negative", part))
    main.result(tensor_iterator(main, body, sliced=[(x, part, {"axis": 0})], joined=[(out, {})]))
    debugger = run(main.model(), np.ones((70, 1), np.float32))
    first, *others = provenance(debugger, debugger.control_flow[0].address)
    assert (len(first.links), first.left_out) == (64, 6)
    assert not any(step.left_out for step in others)


def test_what_was_not_computed_came_from_nowhere() -> None:
    with pytest.raises(ValueUnavailable):
        provenance(run(walk(), np.float32(1)), "main/outer[0]/body/choice/then/halve", 1)[0]


def test_a_loop_of_zero_iterations_hands_on_its_initial_value() -> None:
    step = provenance(run(walk(outer_trips=0), np.float32(1)), "main/outer", 1)[0]
    assert [(link.address, link.role) for link in step.links] == [
        ("main/double", "initial value"),
        ("main/const_3", "trip count"),
    ]


def test_the_tape_of_an_if() -> None:
    debugger = run(walk(outer_trips=6), np.float32(1))
    history = branch_history(debugger, "main/outer/body/choice")
    assert history.taken.tolist() == [0, 0, 1, 0, 1, 0]  # 4, 6, 8 -> 4, 6, 8 -> 4, 6
    assert history.counts == (2, 4)
    assert history.never == ()
    assert history.changes.tolist() == [2, 3, 4, 5]
    assert history.address(2) == "main/outer[2]/body/choice"
    assert history.static == "main/outer/body/choice"
    assert branch_history(run(walk(), np.float32(-9)), "main/outer/body/choice").never == ("then",)
    assert (
        branch_history(loopscope.Debugger(walk(), [np.float32(1)]), "main/outer/body/choice").never
        == ()
    )
    with pytest.raises(ValueError, match="is not an If"):
        branch_history(debugger, "main/outer")

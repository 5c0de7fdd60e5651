"""Values that go through variables: what a ReadValue read is what the last Assign before it
wrote.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.explain.export import computed
from loopscope.explain.provenance import provenance
from tests.engine.drafts import BOOL, F32, I64, Draft, branch, loop
from tests.engine.explain.test_slices import ran

KEPT: dict[str, Any] = {"variable_id": "kept", "variable_type": "f32", "variable_shape": "1"}


def remembering() -> loopscope.Model:
    """``read`` in each iteration, ``write`` where that is above x; a loop in a loop; and
    ``late`` after both.
    """
    then, otherwise = Draft(), Draft()
    p, q = then.parameter("p", F32, (1,)), otherwise.parameter("q", F32, (1,))
    wrote = then.result(
        then.op(
            "Assign",
            then.op("Multiply", p, then.const([0.5])),
            opset=6,
            name="halve",
            variable_id="kept",
        )
    )
    left = otherwise.result(otherwise.op("Add", q, otherwise.const([0.0])))
    inner = Draft()
    state = inner.parameter("state", F32, (1,))
    kept = inner.op("ReadValue", inner.const([1.0], name="first"), opset=6, name="read", **KEPT)
    grown = inner.op("Add", kept, state, name="grown")
    written = inner.op("Assign", grown, opset=6, name="write", variable_id="kept")
    above = inner.op(
        "Squeeze",
        inner.op("Greater", written, inner.const([4.0]), name="above"),
        inner.const([0], I64),
    )
    chosen = inner.region(
        "If",
        [above, written],
        [branch("then", then, [(1, p)], [wrote]), branch("else", otherwise, [(1, q)], [left])],
        1,
        opset=8,
    )
    out, again = inner.result(chosen), inner.result(inner.const(True, BOOL))
    outer = Draft()
    value = outer.parameter("value", F32, (1,))
    made = loop(
        outer,
        inner,
        outer.const(2, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(value, state, out)],
        last=[out],
        name="inner",
    )
    result, more = outer.result(made), outer.result(outer.const(True, BOOL))
    main = Draft()
    x = main.parameter("x", F32, (1,))
    ends = main.const(3, I64), main.const(True, BOOL)
    total = loop(
        main, outer, *ends, again=more, carried=[(x, value, result)], last=[result], name="outer"
    )
    main.result(main.op("Add", total, x, name="y"))
    return main.model()


def test_a_variable_holds_what_was_assigned_last() -> None:
    debugger = ran(remembering(), np.array([1], np.float32))
    reads = [
        f"main/outer[{one}]/body/inner[{two}]/body/read" for one in range(3) for two in range(2)
    ]
    found = [
        [(link.address, link.role) for link in provenance(debugger, place, 1)[0].links]
        for place in reads
    ]
    assert found[0] == [("main/outer[0]/body/inner[0]/body/first", "operand")]
    taken = {
        record.address.rpartition("/")[0]: (record.address, record.branch)
        for record in debugger.control_flow
        if record.kind == "If"
    }
    assert {branch for _, branch in taken.values()} == {"then", "else"}
    for before, place, links in zip(reads, reads[1:], found[1:], strict=False):
        body = before.rpartition("/")[0]
        address, branch_taken = taken[body]
        last = f"{address}/then/halve" if branch_taken == "then" else f"{body}/write"
        assert links == [(last, "assigned")], place
        np.testing.assert_array_equal(debugger.value(place), debugger.value(last))


def test_what_is_set_in_place_of_what_an_assign_gives_is_not_in_its_variable() -> None:
    changes = {"main/outer[0]/body/inner[0]/body/write": [50.0]}
    debugger = ran(remembering(), np.array([1], np.float32), changes=changes)
    step = provenance(debugger, "main/outer[0]/body/inner[1]/body/read", 1)[0]
    (link,) = step.links
    np.testing.assert_array_equal(debugger.value(step.address), debugger.value(link.address))


def test_all_that_changes_a_value_by_way_of_variables_is_behind_it() -> None:
    model, x = remembering(), np.array([1], np.float32)
    debugger = ran(model, x)
    asked = [place for place in computed(debugger) if debugger.value(place).dtype == np.float32]
    behind = {
        place: {step.address for step in provenance(debugger, place, 10_000)} for place in asked
    }
    for address in asked:
        other = loopscope.Debugger(
            model, [x], changes={address: debugger.value(address) + np.float32(0.125)}
        )
        other.run()
        for place in asked:
            try:
                differs = not np.array_equal(other.value(place), debugger.value(place))
            except EngineError:
                continue
            assert address in behind[place] or not differs, (address, place)

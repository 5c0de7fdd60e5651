"""What is said of loops that counts and inputs end, or that fail: which count, which input,
where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.explain.verdict import verdict
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, Slice, loop, tensor_iterator


def counted(
    trips: int | None, *, begin: bool = True, again: bool = True
) -> tuple[loopscope.Model, list[Any]]:
    """``loop`` adds 1; its trip count is computed from an input where it is None."""
    main, body = Draft(), Draft()
    x, v = main.parameter("x", F32, ()), body.parameter("v", F32, ())
    n = main.parameter("n", F32, ()) if trips is None else main.const(trips, I64, "trips")
    count = main.op("Convert", n, destination_type="i64", name="count") if trips is None else n
    out, go_on = (
        body.result(body.op("Add", v, body.const(1.0), name="next")),
        body.result(body.const(again, BOOL, "always")),
    )
    made = loop(
        main,
        body,
        count,
        main.const(begin, BOOL, "begin"),
        again=go_on,
        carried=[(x, v, out)],
        last=[out],
        name="loop",
    )
    main.result(made)
    return main.model(), [np.float32(0)]


def walking(
    lengths: list[int], trips: int | None, size: int = 1
) -> tuple[loopscope.Model, list[Any]]:
    """A Loop, or a TensorIterator where there is no trip count, over inputs of some lengths."""
    main, body = Draft(), Draft()
    inputs = [
        main.parameter(name, F32, (length, 1)) for name, length in zip("xyz", lengths, strict=False)
    ]
    parts = [body.parameter(f"part_{one.layer}", F32, (size, 1)) for one in inputs]
    summed = parts[0]
    for part in parts[1:]:
        summed = body.op("Add", summed, part)
    out = body.result(body.op("Negative", summed))
    sliced = [
        (one, part, Slice(axis=0, part_size=size, stride=size))
        for one, part in zip(inputs, parts, strict=True)
    ]
    if trips is None:
        made = tensor_iterator(main, body, sliced=sliced, joined=[(out, {})])
        name = main.nodes[made.layer].name
    else:
        ends, name = (main.const(trips, I64), main.const(True, BOOL)), "loop"
        again = body.result(body.const(True, BOOL))
        made = loop(main, body, *ends, again=again, sliced=sliced, joined=[(out, {})], name=name)
    main.result(made)
    return main.model(), [np.ones((length, 1), np.float32) for length in lengths]


def failing(pieces: Callable[[Draft, Ref], Ref]) -> tuple[loopscope.Model, list[Any]]:
    """``v`` is twice as long in each iteration."""
    main, body = Draft(), Draft()
    x, v = main.parameter("x", F32, (-1,)), body.parameter("v", F32, (-1,))
    longer, joined = body.result(body.op("Concat", v, v, axis="0")), body.result(pieces(body, v))
    ends, again = (main.const(5, I64), main.const(True, BOOL)), body.result(body.const(True, BOOL))
    main.result(
        loop(
            main,
            body,
            *ends,
            again=again,
            carried=[(x, v, longer)],
            last=[longer],
            joined=[(joined, {})],
            name="loop",
        )
    )
    return main.model(), [np.ones(1, np.float32)]


TOLD = [
    (
        counted(3),
        "Ran all 3 iterations: the trip count was reached.",
        ["the trip count `trips` is 3"],
        "for loop",
    ),
    (
        counted(1),
        "Ran its one iteration: the trip count was reached.",
        ["the trip count `trips` is 1"],
        "for loop",
    ),
    (
        counted(0),
        "Never started: the trip count is 0.",
        ["the trip count `trips` is 0"],
        "loop that never starts",
    ),
    (
        counted(3, begin=False),
        "Never started because the initial condition `begin` is the constant false.",
        ["`begin` is the constant false"],
        "loop that never starts",
    ),
    (
        counted(3, again=False),
        "Stopped after 1 iteration of at most 3 because `always` is the constant false.",
        ["`always` is the constant false"],
        "single pass",
    ),
    (
        walking([4], None),
        "Ran 4 iterations: the sliced input `x` ran out.",
        ["`x` has 4 parts along axis 0"],
        "sliced iteration",
    ),
    (
        walking([4], None, 2),
        "Ran 2 iterations: the sliced input `x` ran out.",
        ["`x` has 2 parts along axis 0"],
        "sliced iteration",
    ),
    (
        walking([2, 2], None),
        "Ran 2 iterations: the sliced inputs `x` and `y` ran out.",
        ["`x` has 2 parts along axis 0", "`y` has 2 parts along axis 0"],
        "sliced iteration",
    ),
    (
        walking([0], None),
        "Never started: the sliced input `x` has no parts.",
        ["`x` has 0 parts along axis 0"],
        "sliced iteration",
    ),
    (
        walking([0, 0], None),
        "Never started: the sliced inputs `x` and `y` have no parts.",
        ["`x` has 0 parts along axis 0", "`y` has 0 parts along axis 0"],
        "sliced iteration",
    ),
    (
        walking([7, 5], 9),
        "Ran 5 iterations: the sliced input `y` ran out, though the trip count is 9.",
        ["`y` has 5 parts along axis 0"],
        "for loop",
    ),
    (
        walking([7, 1], -1),
        "Ran 1 iteration: the sliced input `y` ran out.",
        ["`y` has 1 part along axis 0"],
        "for loop",
    ),
    (
        failing(lambda body, v: body.op("Add", v, body.const([1.0, 2.0]), name="bad")),
        "Failed at `bad` in iteration 2, after 2 iterations of at most 5.",
        [],
        "for loop",
    ),
    (
        failing(lambda body, v: body.op("Unsqueeze", v, body.const([0], I64))),
        "Failed at the end of iteration 4, after 4 iterations of at most 5.",
        [],
        "for loop",
    ),
]


@pytest.mark.parametrize(
    ("made", "sentence", "proof", "name"), TOLD, ids=[sentence for _, sentence, *_ in TOLD]
)
def test_what_is_said(made: tuple[Any, ...], sentence: str, proof: list[str], name: str) -> None:
    debugger = loopscope.Debugger(*made)
    debugger.run()
    found = verdict(debugger, debugger.control_flow[0].address)
    assert found.sentence.partition(" Its output")[0] == sentence
    assert [fact.text for fact in found.proof] == proof
    assert found.pattern is not None
    assert found.pattern.name == name
    for fact in found.proof:
        debugger.value(fact.address)


def test_a_computed_trip_count_is_named_and_led_back() -> None:
    model, feeds = counted(None)
    told = {
        4: "Ran all 4 iterations: the trip count `count` was reached.",
        0: "Never started: the trip count `count` is 0.",
    }
    for n, sentence in told.items():
        debugger = loopscope.Debugger(model, [*feeds, np.float32(n)])
        debugger.run()
        found = verdict(debugger, "main/loop")
        assert found.sentence == sentence
        assert [(fact.address, fact.operands) for fact in found.proof] == [
            ("main/count", ("main/n",))
        ]

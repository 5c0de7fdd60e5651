"""When a loop gets generated code: as soon as it was stepped through for about as long as making
the code takes, and not before.
"""

from __future__ import annotations

import pytest

import loopscope
from loopscope.executor.codegen import tiering
from loopscope.executor.codegen.compile import generated_loops
from tests.engine.executor.codegen.test_generated_code import zigzag

SHIPPED = tiering.STEPPED_FIRST
"""What users have; the tests make code earlier, after this file was imported."""


@pytest.mark.parametrize(
    ("trips", "inner_trips", "runs", "generated"),
    [
        (SHIPPED, None, 1, []),  # a short loop in one run: code would cost more than it saves
        (SHIPPED + 1, None, 1, ["main/loop"]),
        (
            5,
            None,
            3,
            [],
        ),  # iterations add up over the runs of a plan, as in a sweep; the first of an execution leads nowhere
        (5, None, 4, ["main/loop"]),
        (3, 4, 1, []),
        (
            3,
            SHIPPED + 1,
            1,
            ["main/loop/body/inner", "main/loop"],
        ),  # the inner one earns its code in the first outer iteration
        (
            SHIPPED + 1,
            1,
            1,
            ["main/loop"],
        ),  # the whole nest, so that the loop inside needs none of its own
    ],
)
def test_code_is_made_once_stepping_has_cost_as_much(
    monkeypatch: pytest.MonkeyPatch,
    trips: int,
    inner_trips: int | None,
    runs: int,
    generated: list[str],
) -> None:
    monkeypatch.setattr(tiering, "STEPPED_FIRST", SHIPPED)
    model = zigzag(trips, inner_trips=inner_trips)
    debuggers = [loopscope.Debugger(model, {"start": 0}) for _ in range(runs)]
    for debugger in debuggers:
        debugger.run()
    assert [address for address, _ in generated_loops(debuggers[0].plan)] == generated

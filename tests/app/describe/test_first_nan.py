"""The first NaN in the app: looked for briefly, once for each state of a run, and thoroughly
when a person asks.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope_app.describe import first_nan as looked
from loopscope_app.describe.first_nan import first_odd
from tests.engine.drafts import Draft, Ref
from tests.engine.explain.test_not_finite import looping


def multiplying(body: Draft, state: Ref) -> Ref:
    """A matrix product that is looked at row by row, infinite in iteration 2,500."""
    away = body.op("Subtract", state, body.const([[2500.0]]))
    body.op(
        "Divide",
        body.const([[1.0]]),
        body.op("MatMul", away, body.const([[1.0]]), transpose_a="false", transpose_b="false"),
        name="over",
    )
    return body.op("Add", state, body.const([[1.0]]), name="next")


def test_it_is_looked_for_once_and_thoroughly_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked, "_SECONDS_ENDED", 0.0)
    debugger = looping(multiplying, 3000, start=np.zeros((1, 1)))
    found = first_odd(debugger, "infinity")
    assert (found.step, found.is_certain) == (None, False)
    assert first_odd(debugger, "infinity") is found
    asked = first_odd(debugger, "infinity", thoroughly=True)
    assert (asked.address, asked.is_certain) == ("main/loop[2500]/body/over", True)
    assert first_odd(debugger, "infinity") is asked
    assert first_odd(debugger, "infinity", thoroughly=True) is asked


def test_a_run_that_went_on_is_looked_at_again() -> None:
    debugger = loopscope.Debugger(
        looping(multiplying, 3, start=np.zeros((1, 1))).model, [np.zeros((1, 1), np.float32)]
    )
    found = first_odd(debugger, "infinity")
    assert found.is_certain
    debugger.run()
    assert first_odd(debugger, "infinity") is not found

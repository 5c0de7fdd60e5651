"""Generated code can be read: a golden of one sample, its lines in tracebacks, and nothing of
the model in it.
"""

from __future__ import annotations

import gc
import linecache
import os
import traceback
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.debug.inputs import Inputs
from loopscope.executor.codegen import source_map
from loopscope.executor.codegen.compile import generated_loops
from loopscope.executor.codegen.source_map import compiled
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.slots import Slot
from loopscope_samples import sample
from tests.engine.executor.codegen.test_generated_code import zigzag

GOLDEN = Path(__file__).parent / "golden"


WHOLE = loopscope.Optimise(prune=False)
"""What no output needs runs too."""


def code_of(model: loopscope.Model, inputs: Inputs, record: loopscope.Record) -> str:
    debugger = loopscope.Debugger(model, inputs, record=record)
    debugger.run()
    assert debugger.state == "finished"
    ((address, loop),) = generated_loops(debugger.plan)
    return f"{address}\n\n{loop.annotated}"


@pytest.mark.parametrize(
    ("name", "record"),
    [("unrecorded", loopscope.Record(state=False)), ("default", loopscope.Record())],
)
def test_collatz(name: str, record: loopscope.Record) -> None:
    """Rewritten only when LOOPSCOPE_REWRITE_GOLDEN=1 is set."""
    found = sample("collatz")
    assert found is not None
    with np.load(found.sets[0].path) as inputs:
        text = code_of(loopscope.read_model(found.model), dict(inputs), record)
    stored = GOLDEN / f"collatz_{name}.py.txt"
    if os.environ.get("LOOPSCOPE_REWRITE_GOLDEN") == "1":
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_a_traceback_shows_the_line_that_failed_and_the_line_goes_with_the_function() -> None:
    loop = compiled("def loop(run, frame):\n    return 1 / 0", {}, [None] * 3, {}, set())
    file = loop.function.__code__.co_filename
    with pytest.raises(ZeroDivisionError) as caught:
        loop.function(None, None)
    assert "return 1 / 0" in "".join(traceback.format_tb(caught.tb))
    del loop, caught
    gc.collect()
    assert file not in linecache.cache


def test_a_run_that_fails_shows_the_generated_line_as_its_cause() -> None:
    debugger = loopscope.Debugger(zigzag(60, divisor=17), [np.int64(0)])
    debugger.run()
    assert debugger.state == "failed"
    with pytest.raises(loopscope.RunStopped) as caught:
        loopscope.run(zigzag(60, divisor=17), [np.int64(0)], optimise=WHOLE)
    assert caught.value.__cause__ is not None
    shown = "".join(traceback.format_tb(caught.value.__cause__.__traceback__))
    assert "generated loop" in shown
    assert source_map.kernel_of(Slot(0))[:-1] in shown


def test_no_name_of_a_model_enters_the_code() -> None:
    model = zigzag(60)
    loopscope.run(model, [np.int64(0)], optimise=WHOLE)
    ((_, loop),) = generated_loops(plan_of(model, optimise=WHOLE))
    words = set(loop.function.__code__.co_names) | set(loop.function.__code__.co_varnames)
    assert not words & {"down", "up", "high", "share", "inner", "start"}

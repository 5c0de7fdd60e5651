"""What nobody holds any more is freed at once."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopscope
from loopscope.executor.plan.planner import plan_of
from loopscope_samples import sample
from tests.engine.drafts import BOOL, F32, I64, Draft, loop

LENGTH = 1 << 18


def adding(*added: float) -> loopscope.Model:
    """Adds numbers to a vector in 40 iterations."""
    body = Draft()
    x = body.parameter("x", F32, (-1,))
    out = body.result(body.op("Add", x, body.const(added)))
    main = Draft()
    fed = main.parameter("x", F32, (-1,))
    again = body.result(body.const(True, BOOL))
    trips, begin = main.const(40, I64), main.const(True, BOOL)
    main.result(
        loop(
            main, body, trips, begin, again=again, carried=[(fed, x, out)], last=[out], name="loop"
        )
    )
    return main.model()


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Nothing is freed but by its last reference."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("added", "limits", "ends"),
    [
        ((1,), loopscope.Limits(), "finished"),
        ((1,), loopscope.Limits(memory_bytes=1000), "limit"),
        ((1, 2, 3), loopscope.Limits(), "failed"),
    ],
)
def test_a_run_and_its_model_go_with_their_last_reference(
    added: tuple[int, ...], limits: loopscope.Limits, ends: str
) -> None:
    with without_collections():
        model = adding(*added)
        debugger = loopscope.Debugger(model, [np.zeros(LENGTH, np.float32)], limits=limits)
        debugger.run()
        assert debugger.state == ends
        debugger.seek(2)
        assert debugger.statuses()
        assert debugger.control_flow[0].address == "main/loop"
        there: list[weakref.ref[object]] = [
            weakref.ref(one)
            for one in (debugger.machine, debugger.machine.recording, debugger.values, debugger)
        ]
        del debugger
        assert [one() for one in there] == [None] * len(there)
        shared: list[weakref.ref[object]] = [weakref.ref(model), weakref.ref(plan_of(model))]
        assert shared[1]() is not None, "the plan stays as long as its model"
        del model
        assert [one() for one in shared] == [None, None]


def test_what_a_loop_collects_counts_also_where_nothing_is_recorded() -> None:
    """Each part of one number takes 240 bytes, and none was counted: 5 GB in half a minute."""
    found = sample("infinite_loop")
    assert found is not None
    inputs = {"balance": 1, "growth": 1, "guard": 10**9}
    with pytest.raises(
        loopscope.RunStopped, match="the limit of 50,000,000 bytes is reached: loops have collected"
    ) as stopped:
        loopscope.run(
            loopscope.read_model(found.model),
            inputs,
            limits=loopscope.Limits(memory_bytes=50_000_000),
        )
    assert 100_000 < (stopped.value.result.control_flow[0].iterations or 0) < 1_000_000


def test_a_session_goes_with_its_last_reference() -> None:
    with without_collections():
        session = loopscope.Session(adding(1))
        session.run([np.zeros(LENGTH, np.float32)])
        there: list[weakref.ref[object]] = [weakref.ref(session), weakref.ref(session._plan)]
        del session
        assert [one() for one in there] == [None, None]


@pytest.mark.parametrize("name", ["model.xml", "model.onnx"])
def test_a_model_that_was_read_goes_with_its_last_reference(tmp_path: Path, name: str) -> None:
    if name == "model.xml":
        loopscope.write_model(adding(1), tmp_path / name)
    else:
        proto = helper.make_graph(
            [], "empty", [], [], [helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3])]
        )
        onnx.save(helper.make_model(proto), tmp_path / name)
    with without_collections():
        model = loopscope.read_model(tmp_path / name)
        graph = weakref.ref(model.graph)
        del model
        assert graph() is None

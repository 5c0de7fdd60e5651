"""A run opens as it was recorded, without running again: same moment, same values, and it goes
on as the first one would have.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.debug.run import Run
from loopscope.errors import ValueUnavailable
from loopscope.executor import drive
from loopscope.executor.machine.machine import Machine
from loopscope.run_file import loading
from loopscope_samples import sample, samples


def begun(
    name: str, record: loopscope.Record | None = None, limits: loopscope.Limits | None = None
) -> loopscope.Debugger:
    found = sample(name)
    assert found is not None
    return loopscope.Debugger(
        loopscope.read_model(found.model),
        next(iter(found.sets)).arrays(),
        record=record,
        limits=limits,
        seed=3,
    )


def reopened(
    debugger: loopscope.Debugger, folder: Path, budget_bytes: int = 2**26
) -> loopscope.Debugger:
    """The run from its file, where opening must compute nothing."""
    loopscope.save(debugger, folder / "run.loopscope", budget_bytes=budget_bytes)
    with (
        mock.patch.object(Machine, "step", side_effect=AssertionError),
        mock.patch.object(drive, "run", side_effect=AssertionError),
    ):
        return loopscope.load(folder / "run.loopscope")


def addresses(run: Run) -> Iterator[str]:
    """A few values of every graph."""
    drawn = random.Random(0)
    executions = run.timeline.executions
    for program in run.plan.programs:
        rows = executions.rows[program.index]
        for row in {drawn.randrange(rows) for _ in range(3)} if rows else ():
            for label in drawn.sample(
                sorted(program.layer_of_label), min(4, len(program.layer_of_label))
            ):
                yield f"{run.timeline.address(program, row)}/{label}"


def value(run: Run, address: str) -> object:
    try:
        found = run.value(address)
    except ValueUnavailable as none:
        return str(none)
    return found.dtype, found.shape, found.tolist() if found.dtype == object else found.tobytes()


def expect_same(one: loopscope.Debugger, other: loopscope.Debugger) -> None:
    assert (one.cursor, one.state, one.steps, one.failure) == (
        other.cursor,
        other.state,
        other.steps,
        other.failure,
    )
    assert list(one.control_flow) == list(other.control_flow)
    for address in addresses(one):
        assert value(one, address) == value(other, address), address


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_every_sample_opens_without_running(name: str, everything: bool, tmp_path: Path) -> None:
    record = loopscope.Record(everything=everything)
    debugger = begun(name, record)
    debugger.run()
    expect_same(debugger, reopened(debugger, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_a_run_that_is_paused_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    whole = begun(name)
    whole.run()
    for share in (0, 3, 7):
        debugger = begun(name)
        debugger.seek(whole.steps * share // 10)
        again = reopened(debugger, tmp_path)
        expect_same(debugger, again)
        again.run()
        assert (again.state, again.steps) == (whole.state, whole.steps)
        for one, other in zip(again.result.outputs, whole.result.outputs, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [1, 5, 13])
@pytest.mark.parametrize("name", ["collatz", "hybrid_stack", "speech_decoder", "keras_gru"])
def test_a_run_at_its_limit_goes_on_for_as_much_again(
    name: str, iterations: int, tmp_path: Path
) -> None:
    debugger = begun(name, limits=loopscope.Limits(iterations=iterations))
    debugger.run()
    again = reopened(debugger, tmp_path)
    expect_same(debugger, again)
    for _ in range(3):
        debugger.run()
        again.run()
        expect_same(debugger, again)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["collatz", "hybrid_stack", "speech_decoder", "mlp"])
def test_what_has_no_room_is_computed_when_it_is_asked_for(name: str, tmp_path: Path) -> None:
    if sample(name) is None:
        name = "while_loop"
    debugger = begun(name, loopscope.Record(everything=True))
    debugger.run()
    loopscope.save(debugger, tmp_path / "whole.loopscope")
    for budget in (300, 1000, 4000, 20_000):
        loopscope.save(debugger, tmp_path / "part.loopscope", budget_bytes=budget)
        saved = loading.read_run(tmp_path / "part.loopscope")
        again = loopscope.load(tmp_path / "part.loopscope")
        if saved.recording:
            assert sum(getattr(one, "nbytes", 0) for one in saved.recorded.values()) <= budget * 1.5
        expect_same(debugger, again)


def test_a_run_goes_on_with_values_that_its_file_left_out(tmp_path: Path) -> None:
    """Values of the graph around a loop that do not fit are computed before the next step."""
    graph = builder.Graph("large")
    x = graph.parameter("x", "f32", [400])
    doubled = ops.add(x, x, name="doubled")
    _, last = builder.while_loop(
        lambda i, _: i < 3, lambda i, v: (i + 1, v + doubled), (0, x), name="sum"
    )
    debugger = loopscope.Debugger(graph.model({"last": last}), {"x": np.ones(400, np.float32)})
    debugger.seek("main/sum[1]")
    loopscope.save(debugger, tmp_path / "run.loopscope", budget_bytes=6_000)
    again = loopscope.load(tmp_path / "run.loopscope")
    assert again.values.missing, "a value is left out"
    again.run()
    assert again.result.outputs[0].tolist() == [7.0] * 400

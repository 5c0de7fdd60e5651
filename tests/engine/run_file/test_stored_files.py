"""Files of each version of the format, as they were written: they open for ever, or a change of
the format needs a new version.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

import loopscope
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import Plan
from loopscope.run_file import read_recording, recording_codec
from loopscope.run_file.loading import read_run
from loopscope.run_file.saved_run import VERSION_OF_FORMAT

STORED = Path(__file__).parent / "stored"
PLACE = "main/for_each_word[2]/body/next_word"


def expect_the_moment(run: loopscope.Debugger) -> None:
    assert (run.cursor.step, run.cursor.address, run.steps, run.state) == (
        20,
        "main/for_each_word[1]/body",
        46,
        "paused",
    )
    assert [(one.pattern, one.kind, one.on) for one in run.breakpoints.items()] == [
        ("main/for_each_word[4]/body/next_word", "address", True),
        ("", "nan", False),
    ]
    assert [expression for _, expression in run.watches.items()] == ["iteration + 1"]
    assert [one.address for one in run.changes] == [PLACE]
    assert run.value(PLACE).item() == run.value("main/for_each_word[1]/body/next_word").item()
    assert [(one.address, one.branch or one.iterations) for one in run.control_flow][:2] == [
        ("main/for_each_word", 4),
        ("main/for_each_word[0]/body/confident_enough", "then"),
    ]


@pytest.mark.parametrize("name", ["version_2", "version_2_without_weights"])
def test_the_present_version_opens_without_running(name: str) -> None:
    assert VERSION_OF_FORMAT == 2, "store a file of the new version, and keep these"
    with mock.patch.object(Machine, "step", side_effect=AssertionError):
        run = loopscope.load(STORED / f"{name}.loopscope")
    expect_the_moment(run)


def test_version_1_is_computed_again_and_goes_on() -> None:
    run = loopscope.load(STORED / "version_1.loopscope")
    expect_the_moment(run)
    assert not read_run(STORED / "version_1.loopscope").recording
    other = loopscope.load(STORED / "version_2.loopscope")
    for one in (run, other):
        one.breakpoints.clear()
        one.run()
    assert (run.state, run.steps) == (other.state, other.steps) == ("finished", run.steps)
    assert [one.tobytes() for one in run.result.outputs] == [
        one.tobytes() for one in other.result.outputs
    ]


def test_a_version_that_orders_operations_otherwise_computes_again_or_says_why_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(plan: Plan) -> str:
        return f"not {recording_codec.layout_of(plan)}"

    monkeypatch.setattr(read_recording, "layout_of", other)
    expect_the_moment(loopscope.load(STORED / "version_2.loopscope"))
    with pytest.raises(
        loopscope.ReadError,
        match=r"saved without weights by Loopscope .*, and cannot be opened here: .* in another way than",
    ):
        loopscope.load(STORED / "version_2_without_weights.loopscope")

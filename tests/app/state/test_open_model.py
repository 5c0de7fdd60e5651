"""What is done when a model opens, and what comes after its picture: nothing runs, and a large
one is not even checked.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.checks import Report, check
from loopscope.ops.catalogue import Catalogue
from loopscope_app.state import open_model
from loopscope_app.state.background_run import Fitting, Preparing
from loopscope_app.state.open_model import MADE_UP, Opened, is_large, open_path, prepared
from tests.benchmarks.big_transformers import saved


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Has runs and checks note themselves."""
    done: list[str] = []
    monkeypatch.setattr(loopscope.Debugger, "run", lambda *_: done.append("run"))

    def noted(model: loopscope.Model, *given: Catalogue) -> Report:
        done.append("check")
        return check(model, *given)

    monkeypatch.setattr(open_model, "check", noted)
    return done


def of_length(length: int) -> loopscope.Model:
    graph = builder.Graph("open")
    return graph.model(
        ops.reshape(graph.parameter("x", "f32", [None]), np.array([length]), special_zero=False)
    )


def test_opening_runs_nothing(no_runs: list[str], tmp_path: Path) -> None:
    loopscope.write_model(of_length(64), tmp_path / "open.xml")
    opened = open_path(str(tmp_path / "open.xml"))
    assert no_runs == ["check"]
    assert not opened.pending
    assert opened.sets[MADE_UP]["x"].shape == (3,)


def test_a_large_model_is_checked_after_its_picture(no_runs: list[str], tmp_path: Path) -> None:
    opened = open_path(str(saved(tmp_path, "large", layers=60)))
    assert is_large(opened.model)
    assert opened.pending
    assert (no_runs, dict(opened.sets), opened.report.diagnostics) == ([], {}, ())
    phases: list[str] = []

    def going(phase: str) -> bool:
        phases.append(phase)
        return True

    after = prepared(opened, going)
    assert phases == ["Checking the model", "Generating inputs", "Planning the run"]
    assert (after.pending, after.report.ok, list(after.sets)) == (False, True, [MADE_UP])
    assert no_runs == ["check"]
    assert not open_path(opened.link).pending, "the second one to open it need not wait"


def test_a_model_with_heavy_weights_is_large() -> None:
    assert not is_large(of_length(3))
    graph = builder.Graph("heavy")
    assert is_large(
        graph.model(
            graph.parameter("x", "f32", [1]) * np.zeros(open_model._HEAVY // 4 + 1, np.float32)
        )
    )


def test_preparing_stops_between_two_phases() -> None:
    opened = Opened("", "m", of_length(3), loopscope.check(of_length(3)), {}, pending=True)
    told: list[Opened] = []
    running = Preparing(opened, told.append)
    running.stop()
    assert running.done()
    running.tell()
    assert told == []
    another = Preparing(opened, told.append)
    assert another.done(20)
    another.tell()
    assert [one.pending for one in told] == [False]
    assert prepared(opened, lambda _: False) is opened


def test_the_length_that_fits_is_found_in_the_background() -> None:
    opened = Opened("", "m", of_length(64), loopscope.check(of_length(64)), {})
    fitting = Fitting(opened)
    assert fitting.done(20)
    assert fitting.lengths == fitting.trying == (64, 1)

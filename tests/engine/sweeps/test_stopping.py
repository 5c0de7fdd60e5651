"""A sweep that is stopped keeps whole rows alone, and a run that is under way ends at once."""

from __future__ import annotations

import importlib
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import EngineError
from loopscope.sweeps import completed, numbers, of_table, places_where, samples_of, samples_said
from loopscope.sweeps.job import Batch, RowsOfChunk
from loopscope.sweeps.process_pool import ProcessPool
from loopscope.sweeps.runner import rows_of

SAMPLES = Path("sample_models")


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.measured
def test_a_run_that_would_take_long_ends_at_a_stop(lanes: bool) -> None:
    graph = builder.Graph()
    most = graph.parameter("most", "i64", [])
    model = graph.model(
        {"last": builder.while_loop(lambda i: i < most, lambda i: i + 1, [np.int64(0)])[0]}
    )
    bounds = loopscope.Limits(iterations=None, seconds=100)
    sweep = loopscope.sweep(
        model, {"most": np.full(64, 10**12)}, workers=1, lanes=lanes, limits=bounds
    )
    alarm = threading.Timer(0.5, sweep.stop)
    alarm.start()
    begun = time.monotonic()
    rows = list(sweep)
    assert time.monotonic() - begun < 10
    assert len(rows) < 64
    assert all("stopped" not in str(row["error"]) for row in rows)
    assert not sweep.is_complete


@pytest.mark.slow
def test_a_stop_reaches_worker_processes() -> None:
    """Each of them is in a run that would take days, with more of the kind waiting."""
    graph = builder.Graph()
    most = graph.parameter("most", "i64", [])
    model = graph.model(
        {"last": builder.while_loop(lambda i: i < most, lambda i: i + 1, [np.int64(0)])[0]}
    )
    bounds = loopscope.Limits(iterations=None, seconds=None)
    sweep = loopscope.sweep(
        model, {"most": np.full(600, 10**15)}, workers=2, lanes=False, limits=bounds
    )
    alarm = threading.Timer(4, sweep.stop)
    alarm.start()
    assert not list(sweep)
    assert not sweep.is_complete


@pytest.mark.parametrize(
    ("workers", "cores", "long", "here"),
    [
        (None, 2, 0.0, 16),
        (None, 2, 1e9, 600),
        (None, 1, 0.0, 600),
        (1, 2, 0.0, 600),
        (2, 2, 1e9, 0),
    ],
)
def test_processes_are_used_once_runs_turn_out_to_take_long(
    workers: int | None, cores: int, long: float, here: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody said how many; the rows are the same."""
    handed: list[int] = []

    class InThisProcess(ProcessPool):
        def submit(self, batch: Batch) -> RowsOfChunk:
            handed.append(int(batch.samples[0]))
            return lambda stop: rows_of(self._order, batch, stop)

    door = importlib.import_module(
        "loopscope.sweeps.sweep"
    )  # the name of the room is that of the function too
    monkeypatch.setattr(
        importlib.import_module("loopscope.sweeps.process_pool"), "ProcessPool", InThisProcess
    )
    monkeypatch.setattr(door, "_cores", lambda: cores)
    monkeypatch.setattr(door, "_TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(door, "_MIN_SECONDS_FOR_PROCESSES", long)
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    rows = list(loopscope.sweep(model, "number=1..600", workers=workers, lanes=False))
    assert [row["number"] for row in rows] == list(range(1, 601))
    assert handed == list(range(here, 600, 64))


def test_inputs_that_samples_leave_out_are_given_beside_them() -> None:
    model = loopscope.read_model(SAMPLES / "early_exit" / "model.xml")
    names = [one.name for one in model.inputs]
    features = np.load(next((SAMPLES / "early_exit" / "inputs").glob("*.npz")))
    given = {name: features[name] for name in names}
    bar = next(name for name in names if given[name].size == 1)
    samples = completed(model, samples_of(model, f"{bar}=0,2"), given)
    rows = list(loopscope.sweep(model, samples, workers=1))
    assert [row[bar] for row in rows] == [0, 2]
    assert [row["then main/early_exit"] for row in rows] == [1, 0]
    assert samples.description != samples_of(model, f"{bar}=0,2").description


def test_a_table_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    assert (
        of_table(model, "numbers.csv", b"number\n3\n27\n", "").batch(0, 2).inputs(1)[0].item() == 27
    )
    with pytest.raises(EngineError, match="cannot be read as a table"):
        of_table(model, "numbers.parquet", b"PAR1 and then nothing of it", "")


def test_words_that_name_a_file_say_no_inputs(tmp_path: Path) -> None:
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    with pytest.raises(EngineError, match="does not describe inputs"):
        samples_said(model, str(tmp_path))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", [1, 2, 3, 4, 5, 6]),
        ("number > 4", [5, 6]),
        ("iterations main/while_not_one > 3 and number < 6", [3, 5]),
        ("`iterations main/while_not_one` == number", [5]),
        ("(number == 1) | (number == 6)", [1, 6]),
        ("iterations while_not_one > 3", [3, 5, 6]),
        ("then while_not_one › if_even >= 4 and else if_even == 1", [5]),
        ('ended while_not_one == "condition"', [2, 3, 4, 5, 6]),
        ('ended main/while_not_one != "condition" and number < 3', [1]),
        ('`ended while_not_one` contains "cond" and number > 5', [6]),
        ('error == "" and error lacks "and then"', [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_condition_keeps_the_runs_for_which_it_holds(condition: str, expected: list[int]) -> None:
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    rows = pa.Table.from_batches(list(loopscope.sweep(model, "number=1..6", workers=1).batches()))
    assert numbers(rows, "number")[places_where(rows, condition)].tolist() == expected


@pytest.mark.parametrize(
    "condition",
    [
        "number",
        "3 > 2",
        "nothing > 3",
        "number >",
        "ended main/while_not_one == 1",
        'number == "3"',
    ],
)
def test_what_is_no_condition_is_refused(condition: str) -> None:
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    rows = pa.Table.from_batches(list(loopscope.sweep(model, "number=1..6", workers=1).batches()))
    with pytest.raises(EngineError):
        places_where(rows, condition)

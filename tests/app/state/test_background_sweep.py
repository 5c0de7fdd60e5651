"""A sweep of the app ends at its bounds, says which, and what it holds is counted and let go
with its session.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.sweeps import samples_of
from loopscope_app.actions.memory_budget import held_bytes
from loopscope_app.actions.running_many import inputs_of
from loopscope_app.state.many_runs import Bounds, Sweeping, bounds
from loopscope_app.state.user_session import UserSession

COLLATZ = Path("sample_models/collatz/model.xml")
ROOMY = Bounds(rows=1000, seconds=60, of_one_run=10, most_bytes=1 << 30)


def begun(within: Bounds, words: str = "number=1..500") -> Sweeping:
    model = loopscope.read_model(COLLATZ)
    return Sweeping(model, samples_of(model, words), within)


@pytest.mark.parametrize(("server", "workers"), [(False, None), (True, 1)])
def test_a_server_for_others_gives_a_sweep_one_process(
    server: bool, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopscope_app.state.launch.LAUNCH.server", server)
    assert bounds().workers == workers


def test_a_worker_process_that_imports_the_page_draws_nothing() -> None:
    """Python lets every process that it starts import the main file; Streamlit says that the
    page is it.
    """
    script = "import runpy, sys; runpy.run_path('app/loopscope_app/main.py', run_name='__mp_main__'); print('streamlit' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == ("False\n", "")


def test_all_rows_are_there_when_it_is_done() -> None:
    sweeping = begun(ROOMY)
    assert sweeping.done(60)
    assert (len(sweeping.rows), sweeping.cut, sweeping.error) == (500, "", None)
    assert sweeping.rows["number"].to_pylist() == list(range(1, 501))


@pytest.mark.parametrize(
    ("within", "words", "rows", "cut"),
    [
        (Bounds(rows=100, seconds=60, of_one_run=10, most_bytes=1 << 30), "number=1..500", 100, ""),
        (
            Bounds(rows=1 << 20, seconds=0.5, of_one_run=10, most_bytes=1 << 30),
            "number=1..1000000",
            None,
            "0.5 seconds are over",
        ),
        (
            Bounds(rows=1 << 20, seconds=60, of_one_run=10, most_bytes=1 << 20),
            "number=1..1000000",
            None,
            "its rows take 1 MB",
        ),
    ],
)
def test_it_ends_at_its_bounds(within: Bounds, words: str, rows: int | None, cut: str) -> None:
    sweeping = begun(within, words)
    assert sweeping.done(60)
    assert sweeping.cut == cut
    assert len(sweeping.rows) == rows or (rows is None and len(sweeping.rows) < 1_000_000)


def test_its_rows_count_as_the_sessions_and_go_with_them() -> None:
    session = UserSession()
    session.many.sweeping = begun(ROOMY)
    assert session.many.sweeping.done(60)
    assert held_bytes(session) == session.many.sweeping.held_bytes > 0
    session.many.forget()
    assert held_bytes(session) == 0


def test_values_of_samples_are_the_inputs_that_the_debugger_gets() -> None:

    sweeping = begun(ROOMY)
    assert sweeping.done(60)
    assert {name: np.asarray(value).item() for name, value in inputs_of(sweeping, 26).items()} == {
        "number": 27
    }

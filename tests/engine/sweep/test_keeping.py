"""Rows on disk and on a cluster: a stop keeps them, a lost worker costs nothing, the bytes are always the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from pyarrow import parquet

import engine
from engine.errors import EngineError, InputError
from engine.sweep.batch import Batch
from engine.sweep.cluster import rows_on_cluster
from engine.sweep.stopping import Stop
from engine.sweep.work_order import Order

COLLATZ = Path("sample_models/collatz/model.xml")


def kept(path: Path, **options: object) -> bytes:
    engine.sweep(engine.read_model(COLLATZ), "number=1..600", seconds=False, out=path, **options).run()  # type: ignore[arg-type]
    assert not path.with_name(path.name + ".part").exists()
    return path.read_bytes()


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers_or_lanes(tmp_path: Path) -> None:
    alone = kept(tmp_path / "alone.parquet", lanes=False, workers=1)
    assert kept(tmp_path / "lanes.parquet") == alone
    assert kept(tmp_path / "two.parquet", lanes=False, workers=2) == alone
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        assert kept(tmp_path / "cluster.parquet", lanes=False, scheduler=cluster.scheduler_address) == alone


@pytest.mark.slow
def test_a_lost_worker_has_its_chunks_done_again() -> None:
    """One of two is killed between two chunks; no row is missing."""
    order = Order(engine.read_model(COLLATZ), seconds=False, lanes=False)
    batches = [Batch(np.arange(20 * one, 20 * one + 20), {0: np.arange(20 * one, 20 * one + 20) + 1}, {}) for one in range(8)]
    found = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        rows = rows_on_cluster(order, "lost", iter(batches), 2, cluster.scheduler_address, Stop())
        found.append(next(rows))
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        found += rows
    assert [row["number"] for one in found for row in one.to_pylist()] == list(range(1, 161))


@pytest.mark.slow
def test_no_scheduler_there_is_a_sentence() -> None:
    with pytest.raises(EngineError, match=r"there is no Dask scheduler at tcp://127\.0\.0\.1:9"):
        engine.sweep(engine.read_model(COLLATZ), "number=1..3", scheduler="tcp://127.0.0.1:9").run()


def test_a_stop_keeps_rows_and_resume_goes_on(tmp_path: Path) -> None:
    path, model = tmp_path / "runs.parquet", engine.read_model(COLLATZ)
    sweep = engine.sweep(model, "number=1..600", seconds=False, lanes=False, workers=1, out=path)
    for number, _ in enumerate(sweep.batches()):
        if number == 2:
            sweep.stop()
    assert not sweep.is_complete
    assert parquet.read_table(path).num_rows == sweep.summary.rows == 48
    part = path.with_name("runs.parquet.part")
    part.write_bytes(part.read_bytes()[:-100])  # a crash in the middle of a chunk
    onwards = engine.sweep(model, "number=1..600", seconds=False, lanes=False, workers=1, out=path, resume=True)
    onwards.run()
    assert onwards.is_complete
    assert path.read_bytes() == kept(tmp_path / "whole.parquet")


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_rows_that_the_disk_has_damaged_are_computed_again(share: float, tmp_path: Path) -> None:
    """Arrow reads wherever a damaged stream sends it, and a number that has changed is a number like others."""
    path, model = tmp_path / "runs.parquet", engine.read_model(COLLATZ)
    sweep = engine.sweep(model, "number=1..600", seconds=False, lanes=False, workers=1, out=path)
    for number, _ in enumerate(sweep.batches()):
        if number == 2:
            sweep.stop()
    part = path.with_name("runs.parquet.part")
    data = bytearray(part.read_bytes())
    at = int(share * len(data))
    data[at : at + 64] = bytes(byte ^ 0xFF for byte in data[at : at + 64])
    part.write_bytes(data)
    onwards = engine.sweep(model, "number=1..600", seconds=False, lanes=False, workers=1, out=path, resume=True)
    onwards.run()
    assert onwards.is_complete
    assert path.read_bytes() == kept(tmp_path / "whole.parquet")


def test_rows_of_another_sweep_are_not_taken_for_its_own(tmp_path: Path) -> None:
    path, model = tmp_path / "runs.parquet", engine.read_model(COLLATZ)
    sweep = engine.sweep(model, "number=1..200", seconds=False, lanes=False, out=path)
    next(sweep.batches())
    sweep = engine.sweep(model, "number=1..200", seconds=False, lanes=False, out=path)
    for _ in sweep.batches():
        sweep.stop()
    with pytest.raises(InputError, match="holds rows of another sweep"):
        engine.sweep(model, "number=1..300", seconds=False, out=path, resume=True).run()
    assert path.with_name("runs.parquet.part").exists()


@pytest.mark.parametrize(("name", "sentence"), [("runs.csv", "ends in .parquet"), ("no/runs.parquet", "there is no folder")])
def test_where_rows_cannot_go(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        engine.sweep(engine.read_model(COLLATZ), "number=1..2", out=tmp_path / name).run()

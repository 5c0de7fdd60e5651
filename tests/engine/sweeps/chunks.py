"""Chunks of a small sweep, for tests of the processes that compute them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

import loopscope
from loopscope.sweeps.job import Batch, SweepJob


def order_and_chunks() -> tuple[SweepJob, list[Batch]]:
    """Return the order of a sweep over 160 numbers, and their eight chunks."""
    order = SweepJob(
        loopscope.read_model(Path("sample_models/collatz/model.xml")), seconds=False, lanes=False
    )
    samples = np.arange(160)
    return order, [Batch(part, {0: part + 1}, {}) for part in np.split(samples, 8)]


def numbers_of(rows: Iterable[pa.RecordBatch]) -> list[int]:
    """Return the input of each row."""
    return [row["number"] for batch in rows for row in batch.to_pylist()]

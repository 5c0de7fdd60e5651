"""Columns of a sweep that are offered as axes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import loopscope
from loopscope_app.describe.sweep_words import drawable
from loopscope_samples import sample


@pytest.mark.parametrize(("words", "first"), [("number=1..4", "number"), ("number=7..7", "sample")])
def test_what_is_the_same_in_all_runs_is_no_axis_to_begin_with(words: str, first: str) -> None:
    found = sample("collatz")
    assert found is not None
    sweep = loopscope.sweep(loopscope.read_model(found.model), words, workers=1)
    axes = drawable(sweep.layout, pa.Table.from_batches(list(sweep.batches())))
    assert axes[0] == first
    assert "number" in axes

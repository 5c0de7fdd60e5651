"""Traces as files: every format holds every value under its full address."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import engine
from engine.errors import EngineError
from engine.explain.export import computed, export
from tests.engine.debug.walks import TRAIL
from tests.engine.debug.walks import model as walk


@pytest.fixture
def debugger() -> engine.Debugger:
    made = engine.Debugger(walk(), [np.float32(1)])
    made.run()
    return made


def test_what_was_computed_is_listed_once(debugger):
    found = list(computed(debugger))
    operations = {place for place in TRAIL if not place.endswith(("/body", "/then", "/else"))}
    assert len(found) == len(set(found))
    assert {place for place in found if not place.endswith(":1")} == operations


def test_npz(debugger, tmp_path):
    count = export(debugger, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz", allow_pickle=False) as stored:
        assert len(stored.files) == count
        for address in stored.files:
            np.testing.assert_array_equal(stored[address], debugger.value(address))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables(debugger, tmp_path, ending):
    path = tmp_path / f"trace{ending}"
    count = export(debugger, path)
    table = pd.read_csv(path) if ending == ".csv" else pd.read_parquet(path)
    assert len(table) == count
    row = table.set_index("address").loc["main/outer[2]/body/inner[1]/body/grow"]
    assert float(row["value"]) == 8.0
    assert (row["type"], row["max"]) == ("float32", 8.0)


def test_json_is_strict_and_tells_the_control_flow(debugger, tmp_path):
    export(debugger, tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text(), parse_constant=lambda text: pytest.fail(text))
    values = {row["address"]: row for row in told["values"]}
    assert values["main/last"]["value"] == 104
    assert [(one["address"], one["branch"]) for one in told["control_flow"] if one["kind"] == "If"] == [
        ("main/outer[0]/body/choice", "else"),
        ("main/outer[1]/body/choice", "else"),
        ("main/outer[2]/body/choice", "then"),
    ]


def test_odd_numbers_and_a_run_that_has_not_ended(tmp_path):
    debugger = engine.Debugger(walk(), [np.float32(np.nan)])
    debugger.seek("main/outer[1]/body/above")
    export(debugger, tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text(), parse_constant=lambda text: pytest.fail(text))
    values = {row["address"]: row for row in told["values"]}
    assert values["main/double"]["value"] == "nan"
    assert values["main/double"]["not_finite"] == 1
    assert "main/outer[1]/body/above" not in values


def test_bounds_and_other_endings_are_told(debugger, tmp_path):
    with pytest.raises(EngineError, match="more than 3 values"):
        export(debugger, tmp_path / "trace.npz", most_values=3)
    with pytest.raises(EngineError, match="more than 8 bytes"):
        export(debugger, tmp_path / "trace.npz", most_bytes=8)
    for name in ("trace.pkl", "trace"):
        with pytest.raises(EngineError, match=r"a trace is written as .npz"):
            export(debugger, tmp_path / name)
    assert not list(tmp_path.iterdir())

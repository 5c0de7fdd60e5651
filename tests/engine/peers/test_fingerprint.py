"""Large values are compared by few numbers, which both runtimes compute as we do; those that
differ are asked for as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import parser

import loopscope
from loopscope.peers import against, beside, drift_from_runtime
from loopscope.peers import probes as choosing
from loopscope.peers.fingerprint import Fingerprint
from loopscope.peers.other_runtimes import rows_of
from loopscope.peers.probes import ProbeSelection
from loopscope_samples import FOLDER, sample
from loopscope_samples.recipes import linear_attention

_ONNX = """<ir_version: 8, opset_import: ["" : 17]>
carried (int64 count, float[4,6] x) => (float[4,6] y) {
  y = Loop (count, , x) <body = step (int64 i, bool go, float[4,6] v) => (bool again, float[4,6] w) {
    again = Identity (go)
    three = Constant <value_int = 3> ()
    odd = Mod (i, three)
    none = Constant <value_int = 0> ()
    small = Equal (odd, none)
    w = If (small) < then_branch = t () => (float[4,6] a) { a = Sin (v) }, else_branch = e () => (float[4,6] b) { b = Softmax (v) } >
  }>
}"""


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1), st.floats(1e-3, 10))
def test_one_element_that_differs_is_told_by_its_distance(size: int, seed: int, by: float) -> None:
    random = np.random.default_rng(seed)
    here = random.standard_normal((2, size)).astype(np.float32)
    there = here.copy()
    there[1, random.integers(size)] += np.float32(by)
    told = Fingerprint.of_size(size)
    assert told.shape[0] * told.shape[1] == size
    found = told.apart(*(np.stack([told.of(row) for row in side]) for side in (here, there)))
    assert found.absolute[0] == found.relative[0] == 0
    assert found.cosine[0] == 1
    np.testing.assert_allclose(
        found.absolute[1], np.abs(there[1] - here[1]).max(), atol=1e-4
    )  # sums of 256 numbers in f32


def test_what_is_spread_is_never_told_as_less() -> None:
    random = np.random.default_rng(0)
    told = Fingerprint.of_size(128 * 128)
    here = random.standard_normal((1, 128, 128)).astype(np.float32)
    for scale in (1e-3, 1e-2, 1.0):
        there = (here + random.uniform(-scale, scale, here.shape)).astype(np.float32)
        found = told.apart(told.of(here)[None], told.of(there)[None])
        assert np.abs(here - there).max() <= found.absolute[0] <= 40 * np.abs(here - there).max()
    assert (
        told.apart(
            told.of(here)[None], told.of(np.where(here == here.max(), np.nan, here))[None]
        ).relative[0]
        == np.inf
    )


@pytest.fixture
def everything_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_MAX_TOTAL_BYTES", 0)
    monkeypatch.setattr(choosing, "_MIN_FINGERPRINT_ELEMENTS", 1)


def finished(model: loopscope.Model, inputs: Mapping[str, object]) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, inputs)
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    return debugger


@pytest.mark.usefixtures("everything_large")
@pytest.mark.parametrize("name", ["onnx", "linear_attention", "collatz"])
def test_both_runtimes_compute_them_as_we_do(name: str, tmp_path: Path) -> None:
    if name == "onnx":
        (tmp_path / "carried.onnx").write_bytes(parser.parse_model(_ONNX).SerializeToString())
        model = loopscope.read_model(tmp_path / "carried.onnx")
        inputs: dict[str, np.ndarray] = {
            "count": np.array(5),
            "x": np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32),
        }
    else:
        model = loopscope.read_model(FOLDER / name / "model.xml")
        with np.load(next((FOLDER / name / "inputs").glob("*.npz"))) as arrays:
            inputs = dict(arrays)
    run = finished(model, inputs)
    both = beside(run, inputs)
    assert both.estimated
    assert not both.answer.values, "nothing differs, so nothing is asked for as it is"
    assert not both.answer.refused
    for probe, guessed in both.estimated.items():
        assert len(guessed.relative) == len(probe.expected)
    report = against(run, inputs)
    assert report.agrees
    assert report.places == len(both.estimated)
    found = drift_from_runtime(run, inputs)
    assert found.drift.first is None
    assert len(found.drift.pairs) == report.places


@pytest.mark.usefixtures("everything_large")
def test_what_differs_is_asked_for_as_it_is() -> None:
    swap = sample("swap")
    assert swap is not None
    model, inputs = loopscope.read_model(swap.model), swap.sets[0].arrays()
    run = finished(model, inputs)
    report = against(run, inputs)
    assert report.first is not None
    assert report.first.address == "main/swap_each_round[1]/body/right"
    found = drift_from_runtime(run, inputs)
    assert "main/swap_each_round/body/right" in found.values


def test_values_are_not_held_twice() -> None:
    """Those of the outermost graph are the run's own; of a loop's first iteration only the shape
    is remembered while the others run.
    """
    model = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")
    run = finished(model, linear_attention.inputs(6, seed=1))
    choice = ProbeSelection(run)
    probes = choice.probes(choice.candidates)
    outer = [probe for probe in probes if probe.program.parent is None]
    assert outer
    for probe in outer:
        assert (
            np.shares_memory(probe.expected, np.asarray(run.machine.values[probe.slot]))
            or probe.expected.ndim == 1
        )
    assert run.values.cached_bytes == 0
    inner = next(probe for probe in probes if probe.program.parent is not None)
    given = np.zeros((6, *inner.expected.shape[1:]), inner.expected.dtype)
    rows = rows_of(inner, given)
    assert rows is not None
    assert np.shares_memory(rows, given)

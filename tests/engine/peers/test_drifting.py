"""Error per iteration beside the runtimes themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from onnx import parser
from openvino import opset13

import loopscope
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.peers import RuntimeDrift, drift_from_runtime
from loopscope.peers import other_runtimes as parting
from loopscope.peers.differ import RuntimeComparison
from loopscope.peers.other_runtimes import RuntimeAnswer
from loopscope.peers.probes import Probe, ProbeSelection
from loopscope.read import read_model
from loopscope_app import cli
from loopscope_samples import FOLDER
from loopscope_samples.recipes import linear_attention

ATTENTION = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")
INPUTS = linear_attention.inputs(16, seed=1)


def drifted(model: loopscope.Model, catalogue: Catalogue = CATALOGUE) -> RuntimeDrift:
    debugger = loopscope.Debugger(model, INPUTS, catalogue=catalogue)
    debugger.run()
    return drift_from_runtime(debugger, INPUTS)


def test_a_runtime_that_agrees() -> None:
    found = drifted(ATTENTION)
    assert found.sentence.startswith("All ")
    assert found.drift.outputs < 1e-5
    assert found.replaced == ()
    (state,) = [pair for pair in found.drift.pairs if pair.one == "main/for_each_token/body/S"]
    assert state.rows.iteration.tolist() == list(range(16))
    assert 0 < state.deviations.relative.max() < 1e-5


def test_where_and_when_ours_is_wrong() -> None:
    """With an exponential that is wrong from the first token on, its factor in our run is where
    it begins.
    """
    exact = CATALOGUE.find("Exp", "opset1")
    assert exact is not None
    wrong = CATALOGUE.with_operations(
        [replace(exact, kernel=lambda x: np.exp(x) * np.float32(1.01), float_symbol="")],
        replace=True,
    )
    found = drifted(ATTENTION, wrong)
    assert found.drift.first is not None
    assert found.drift.first.first is not None
    assert (found.drift.first.first.iteration, found.drift.first.one.rpartition("/")[2][:3]) == (
        0,
        "Exp",
    )
    assert found.drift.outputs > 1e-3
    assert found.replaced == ()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place of the outermost graph is asked for alone."""
    monkeypatch.setattr(parting, "_MAX_BATCH_BYTES", 1)


def followed(trips: int, path: Path) -> loopscope.Model:
    """The loop, and what computes with its outputs."""
    model = linear_attention.model(trips)
    for number, result in enumerate(model.get_results()):
        given = result.input_value(0)
        result.input(0).replace_source_output(opset13.tanh(given, name=f"after_{number}").output(0))
    ov.save_model(model, path, compress_to_fp16=False)
    return loopscope.read_model(path)


@pytest.mark.usefixtures("small_parts")
def test_values_asked_for_in_parts_are_those_of_one_run(tmp_path: Path) -> None:
    """What follows a loop follows from the loop as it is in later parts too, where OpenVINO
    would replace it.
    """
    found = drifted(followed(5, tmp_path / "model.xml"))
    assert not found.refused
    assert any("after_" in pair.one for pair in found.drift.pairs)
    assert found.drift.first is None, "the outputs differ, and no value inside"
    assert found.drift.outputs > 1e-3
    assert "GatedDeltaNet" in found.sentence


@pytest.mark.usefixtures("small_parts")
def test_parts_leave_nothing_out() -> None:
    model = loopscope.read_model(FOLDER / "hybrid_stack" / "model.xml")
    inputs = {"input_ids": np.arange(12)[None] % 32}
    debugger = loopscope.Debugger(model, inputs)
    debugger.run()
    candidates = ProbeSelection(debugger).candidates
    some = list(parting.batches(candidates))
    assert len(some) > 100
    assert sorted(map(id, chain(*some))) == sorted(map(id, candidates))
    of_loops = [
        {one.program.index for one in part if one.program.parent is not None} for part in some
    ]
    assert sum(map(len, of_loops)) == len(set().union(*of_loops)), "no loop is divided"


def test_a_part_takes_few_of_many_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    debugger = loopscope.Debugger(ATTENTION, INPUTS)
    debugger.run()
    candidates = ProbeSelection(debugger).candidates
    assert len(list(parting.batches(candidates))) == 1
    monkeypatch.setattr(parting, "_MAX_BATCH_BYTES", 2**20)
    assert 1 < len(list(parting.batches(candidates))) < 10


def test_a_loop_that_is_replaced(tmp_path: Path) -> None:
    ov.save_model(linear_attention.model(5), tmp_path / "model.xml", compress_to_fp16=False)
    found = drifted(loopscope.read_model(tmp_path / "model.xml"))
    assert found.drift.first is None
    assert found.drift.outputs > 1e-3
    reads = f"{found.runtime} runs 'for_each_token' as one GatedDeltaNet, which reads all 16 slices"
    runs, begins = found.replaced
    assert runs == f"{reads}; the loop runs 5 iterations (trip count 5)."
    assert begins.startswith(
        "What runs in place of 'for_each_token' begins to differ at iteration 5, along axis 2 of its output 0: "
    )
    assert found.replaced[0] in found.sentence


def test_each_step_of_what_replaces_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_from = 3

    def ask_wrong(both: RuntimeComparison, probes: Sequence[Probe]) -> RuntimeAnswer:
        answer = ask(both, probes)
        wrong = {probe: values.copy() for probe, values in answer.values.items()}
        for values in wrong.values():
            values[..., wrong_from:, :] *= 1.5
        return replace(answer, values=wrong)

    ask = RuntimeComparison.ask
    monkeypatch.setattr(RuntimeComparison, "ask", ask_wrong)
    ov.save_model(linear_attention.model(5), tmp_path / "model.xml", compress_to_fp16=False)
    result = drifted(loopscope.read_model(tmp_path / "model.xml"))
    assert result.drift.first is not None
    assert result.drift.first.first is not None
    assert result.drift.first.first.iteration == wrong_from
    assert result.drift.first.rows.iteration.tolist() == [0, 1, 2, 3, 4]
    assert f"Begins in `for_each_token` at iteration {wrong_from}" in result.sentence
    assert len(result.values[result.drift.first.one]) == 5


def test_onnx() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    carried (int64 count, float[3] x) => (float[3] y) {
      always = Constant <value = bool {1}> ()
      y = Loop (count, always, x) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
        again = Identity (go)
        w = Tanh (v)
      }>
    }"""
    document = parser.parse_model(text).SerializeToString()
    inputs = {"count": np.array(6), "x": np.array([1, 2, 3], np.float32)}
    debugger = loopscope.Debugger(read_model(document), inputs)
    debugger.run()
    found = drift_from_runtime(debugger, inputs, document=document)
    assert found.drift.first is None
    assert found.drift.partings == ()
    assert {len(pair.rows.left) for pair in found.drift.pairs if "/body/" in pair.one} == {6}


@pytest.mark.parametrize(("runtime", "code"), [("openvino:CPU", 0), ("onnxruntime", 2)])
def test_the_command(runtime: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = FOLDER / "linear_attention" / "inputs" / "twelve_tokens.npz"
    model = FOLDER / "linear_attention" / "model.xml"
    assert (
        cli.main(["drift", str(model), runtime, "--inputs", str(inputs), "--fail-over", "0.001"])
        == code
    )
    told = capsys.readouterr()
    assert (
        "values agree within 0.001" in told.out
        if code == 0
        else "expected openvino:CPU" in told.err
    )

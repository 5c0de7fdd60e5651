"""Known faults of runtimes are reduced to the few operations that show them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope import cases
from loopscope.cases import Difference, Fault, NotANumber, Reduced, ReductionSearch, RuntimeFailure
from loopscope.errors import EngineError
from loopscope.ir.address import nodes
from loopscope.ir.model import Model
from loopscope.peers import RuntimeName, RuntimeProcess
from loopscope_samples.recipes import linear_attention
from tests.engine.cases import sinkhorn
from tests.engine.peers.test_fate import saved
from tests.source_files import ROOT

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
SAMPLES = ROOT / "sample_models"
TOO_LARGE = """<ir_version: 8, opset_import: ["" : 17]>
main (float[2] x, float[2] y) => (float[2] z) <int64[1] indices = {9}> {
  a = Neg (x)
  b = Mul (a, y)
  part = Gather (b, indices)
  z = Add (b, part)
}"""


def reduced(
    model: Model,
    inputs: Any,
    runtime: RuntimeName,
    fault: Callable[[RuntimeProcess], Fault],
    folder: Path,
) -> Reduced:
    """Reduce a model, and check that the written folder shows the fault without Loopscope."""
    with RuntimeProcess(runtime) as process:
        shown = fault(process)
        result = cases.reduce(model, inputs, shown, seconds=300)
        cases.reproduction_folder(result, shown, folder)
    ended = subprocess.run(
        [sys.executable, str(folder / "run.py")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "oopscope" not in (folder / "run.py").read_text()
    return result


def types(result: Reduced) -> list[str]:
    return [
        node.type
        for _, node in nodes(result.candidate.model)
        if node.type not in ("Parameter", "Result") and node.constant is None
    ]


def test_a_loop_of_48_operations_becomes_the_two_that_are_fused(tmp_path: Path) -> None:
    model = sinkhorn.sinkhorn_model()
    result = reduced(model, sinkhorn.inputs(), "onnxruntime", Difference, tmp_path)
    assert result.original.node_count == 48
    assert types(result) == ["Transpose", "MatMul"]
    assert result.candidate.place == "main/until_balanced[0]/body"
    assert result.candidate.element_count <= 6
    readme = (tmp_path / "README.md").read_text()
    assert "Without graph optimisations the outputs agree." in readme
    assert "`Transpose_8` (Transpose)" in readme


def test_an_overwritten_swap_keeps_its_loop(tmp_path: Path) -> None:
    model = loopscope.read_model(SAMPLES / "swap" / "model.xml")
    result = reduced(model, [1.0, 2.0, 6], "openvino", Difference, tmp_path)
    assert types(result) == ["Loop"]
    assert len(result.candidate.model.outputs) == 1
    assert int(result.candidate.inputs[2]) <= 3


@pytest.mark.slow
def test_an_ignored_trip_count_keeps_the_pattern_that_is_fused(tmp_path: Path) -> None:
    model = saved(linear_attention.model(5), tmp_path)
    inputs = dict(linear_attention.inputs(12, seed=1))
    result = reduced(model, inputs, "openvino", Difference, tmp_path / "case")
    assert result.candidate.node_count < result.original.node_count
    assert result.candidate.element_count < result.original.element_count / 20
    assert Counter(types(result))["Loop"] == 1


def test_nan_comes_from_finite_numbers(tmp_path: Path) -> None:
    folder = SAMPLES / "diverging_training"
    model = loopscope.read_model(folder / "model.xml")
    inputs = dict(np.load(folder / "inputs" / "too_fast.npz"))
    result = reduced(model, inputs, "openvino", NotANumber, tmp_path)
    assert result.candidate.node_count <= 6
    assert all(np.isfinite(value).all() for value in result.candidate.inputs)
    assert "NaN" in (tmp_path / "README.md").read_text()


def test_a_failure_keeps_the_operation_that_fails(tmp_path: Path) -> None:
    model = loopscope.read_model(parser.parse_model(TOO_LARGE).SerializeToString())
    inputs = {"x": np.array([1, 2], np.float32), "y": np.array([3, 4], np.float32)}
    result = reduced(model, inputs, "onnxruntime", RuntimeFailure, tmp_path)
    assert types(result) == ["Gather"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Difference, "there is no difference to reproduce"),
        (NotANumber, "no output contains NaN"),
        (RuntimeFailure, "there is no failure to reproduce"),
    ],
)
def test_a_model_without_the_fault_is_refused(
    fault: Callable[[RuntimeProcess], Fault], message: str
) -> None:
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    with RuntimeProcess("openvino") as process, pytest.raises(EngineError, match=message):
        cases.reduce(model, [7], fault(process))


@pytest.mark.parametrize(
    ("error", "reason"), [(KeyboardInterrupt, "it was stopped"), (None, "the time limit")]
)
def test_the_best_model_so_far_survives_an_early_end(
    error: type[BaseException] | None, reason: str
) -> None:
    def stop(step: str, search: ReductionSearch) -> None:
        if search.accepted and error is not None:
            raise error

    model = sinkhorn.sinkhorn_model()
    seconds = 0.0 if error is None else 300.0
    with RuntimeProcess("onnxruntime") as process:
        result = cases.reduce(
            model, sinkhorn.inputs(), Difference(process), seconds=seconds, report=stop
        )
    assert reason in result.ended
    assert result.was_stopped is (error is not None)
    assert result.candidate.node_count == (48 if error is None else 24)


def test_a_process_that_dies_is_started_again() -> None:
    model = loopscope.read_model(SAMPLES / "collatz" / "model.xml")
    with RuntimeProcess("openvino") as process:
        before = process.outputs(model, [np.int64(7)])
        assert process._process is not None
        process._process.kill()
        process._process.wait()
        with pytest.raises(EngineError, match="it crashed"):
            process.outputs(model, [np.int64(7)])
        assert [int(value) for value in process.outputs(model, [np.int64(7)])] == [
            int(value) for value in before
        ]

"""Repairs change what the runtime computes, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.checks.check import check
from loopscope.ir.model import Model
from loopscope.ops.catalogue import CATALOGUE
from loopscope.peers import compare_repair
from loopscope.transform import repair
from tests.engine.checks.samples import SAMPLES
from tests.engine.executor.machine.test_where_runtimes_differ import fibonacci, swapping
from tests.source_files import ROOT

DO_WHILE = """<ir_version: 8, opset_import: ["" : 17]>
main (float x, float limit) => (float y) <bool yes = {1}> {
  y = Loop (, yes, x) <body = step (int64 i, bool go, float v) => (bool again, float w) {
    w = Add (v, v)
    again = Less (w, limit)
  }>
}"""


def swap() -> Model:
    return loopscope.read_model(ROOT / "sample_models" / "swap" / "model.xml")


def do_while_of_onnx() -> Model:
    return loopscope.read_model(parser.parse_model(DO_WHILE).SerializeToString())


def codes(model: Model) -> set[str]:
    return {diagnostic.code for diagnostic in check(model, CATALOGUE).diagnostics}


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (swap, [1.0, 2.0, 4]),
        (swapping, [[1.0], [2.0]]),
        (fibonacci, [[1.0], [0.0]]),
    ],
    ids=["sample", "swap", "fibonacci"],
)
def test_openvino_computes_the_repaired_model_as_defined(model: Any, inputs: list[Any]) -> None:
    before = model()
    after, repairs = repair(before)
    assert [(each.code, each.refused) for each in repairs] == [("LS906", "")]
    assert "LS906" not in codes(after)
    comparison = compare_repair(before, after, inputs)
    assert comparison.before > 0
    assert (comparison.after, comparison.changed) == (0, 0)
    assert "all agree" in comparison.sentence


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("model", "inputs", "values"),
    [
        (SAMPLES["LS931"].model, [1.0], (16, 16)),
        (SAMPLES["LS931"].model, [20.0], (40, 20)),
        (do_while_of_onnx, [1.0, 9.0], (16, 16)),
        (do_while_of_onnx, [20.0, 9.0], (40, 20)),
    ],
    ids=["runs", "does not run", "onnx runs", "onnx does not run"],
)
def test_a_repaired_while_may_run_zero_times(
    model: Any, inputs: list[float], values: tuple[int, int]
) -> None:
    """The values are those before and after the repair."""
    before = model()
    after, repairs = repair(before)
    assert [(each.code, each.refused) for each in repairs] == [("LS931", "")]
    assert "LS931" not in codes(after)
    outputs = [loopscope.run(each, inputs).outputs[0] for each in (before, after)]
    assert [float(output) for output in outputs] == list(values)
    comparison = compare_repair(before, after, inputs)
    assert (comparison.before, comparison.after) == (0, 0)
    assert comparison.changed == (values[0] != values[1])


def test_only_the_requested_faults_are_repaired() -> None:
    model = do_while_of_onnx()
    assert repair(model, ["LS906"]) == (model, ())


def test_a_model_without_faults_is_the_same_object() -> None:
    model = loopscope.read_model(ROOT / "sample_models" / "collatz" / "model.xml")
    assert repair(model) == (model, ())


def test_the_names_of_the_copied_condition_are_new() -> None:
    after, _ = repair(do_while_of_onnx())
    names = [name for node in after.graph.nodes for port in node.outputs for name in port.names]
    assert len(names) == len(set(names))
    assert np.isfinite(loopscope.run(after, [1.0, 9.0]).outputs[0])

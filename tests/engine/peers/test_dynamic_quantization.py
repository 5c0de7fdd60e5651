"""Where a runtime quantizes the other operand of packed weights itself, a comparison says so;
other differences are not explained by it.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.peers import against, drift_from_runtime, inexact_products, npz_protocol
from loopscope.peers.other_runtimes import Patience

_X = np.random.default_rng(1).normal(size=(1, 256)).astype(np.float32)


def packed(dtype: type[np.generic] = np.int8) -> loopscope.Model:
    """A product with weights of bytes, in a row each its scale."""
    random = np.random.default_rng(0)
    graph = builder.Graph("packed")
    x = graph.parameter("x", "f32", [1, 256])
    weights = graph.constant(random.integers(-127, 127, (256, 256)).astype(dtype))
    scale = graph.constant(random.uniform(0.5, 1.5, (256, 1)).astype(np.float32) / 2000)
    whole = ops.multiply(ops.convert(weights, destination_type="f32"), scale)
    return graph.model({"y": ops.matmul(x, whole, transpose_b=True)})


def finished(model: loopscope.Model) -> loopscope.Debugger:
    run = loopscope.Debugger(model, {"x": _X})
    run.run()
    return run


def test_it_is_said_where_it_is_so() -> None:
    """Not every processor has it: where the outputs agree, there is nothing to say."""
    run = finished(packed())
    said = "quantizes by itself what it multiplies by packed weights, as in MatMul: with DYNAMIC_QUANTIZATION_GROUP_SIZE=0 it gives"
    report = against(run, {"x": _X})
    assert (said in report.sentence) is not report.outputs_agree
    assert (said in drift_from_runtime(run, {"x": _X}).sentence) is not report.outputs_agree


def in_blocks(folder: Path, attributes: str | None) -> loopscope.Model:
    """A product with weights of 4 bits, in blocks of 32 each its scale: one node with those
    attributes, or DequantizeLinear and MatMul.
    """
    random = np.random.default_rng(0)
    packed, scale = (
        random.integers(0, 256, (16, 8, 16), np.uint8),
        random.uniform(0.5, 1.5, (16, 8)).astype(np.float32),
    )
    if attributes is not None:
        call = f"com.microsoft.MatMulNBits <K = 256, N = 16, bits = 4, block_size = 32, {attributes}> (x, w, s)"
        held = {"w": packed, "s": scale.reshape(-1)}
    else:
        call = "MatMul(x, whole)"
        held = {
            "w": random.integers(-8, 8, (256, 16)).astype(ml_dtypes.int4),
            "s": np.ascontiguousarray(scale.T),
        }
    unpacked = (
        ""
        if attributes is not None
        else "whole = DequantizeLinear <axis = 0, block_size = 32> (w, s)\n"
    )
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        blocks (float[1, 256] x) => (float[1, 16] y) {{
            {unpacked}y = {call}
        }}""")
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in held.items()
    )
    onnx.save(model, folder / "blocks.onnx")
    return loopscope.read_model(folder / "blocks.onnx")


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        (
            None,
            "packed weights, as in MatMul_1: with session.qdq_matmulnbits_accuracy_level=1 it gives",
        ),
        (
            "accuracy_level = 4",
            "packed weights, as in MatMulNBits_0: with accuracy_level=1 it gives",
        ),
        ("accuracy_level = 1", ""),
    ],
)
def test_onnx_runtime_says_it_too(attributes: str | None, told: str, tmp_path: Path) -> None:
    run = finished(in_blocks(tmp_path, attributes))
    report = against(run, {"x": _X})
    assert (bool(told) and told in report.sentence) is not report.outputs_agree
    assert told or report.outputs_agree


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_nothing_is_said_of_what_differs_for_another_reason(
    dtype: type[np.generic], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = finished(packed(dtype))
    wrong = np.array(run.result.outputs[0])
    wrong[0, 0] += 1
    asked: list[object] = []

    def run_file(*words: object) -> tuple[str, Path]:
        asked.append(words)
        return "OpenVINO", Path()

    monkeypatch.setattr(inexact_products, "run_file", run_file)
    monkeypatch.setattr(npz_protocol, "read", lambda _: {"y": wrong})
    assert inexact_products.quantization_sentence(run, [_X], ["y"], Patience(60), 1e-3) == ""
    assert bool(asked) is (dtype is np.int8)

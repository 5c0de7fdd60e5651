"""Whole models from ONNX Runtime's quantizers and, after them, its optimizer: run here and
there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

import loopscope
from tests.engine.ops.byte_limits import pairs_saturate
from tests.engine.ops.microsoft_nodes import by_runtime

LEVELS = onnxruntime.GraphOptimizationLevel


class Builder:
    """A graph of named nodes with random weights."""

    def __init__(self, seed: int) -> None:
        self.dice = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []

    def constant(self, array: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape: int) -> str:
        return self.constant(
            (self.dice.normal(size=shape) / np.sqrt(max(math.prod(shape[1:]), 4))).astype(
                np.float32
            )
        )

    def add(self, type: str, *inputs: str, **attributes: Any) -> str:
        output = f"{type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(type, inputs, [output], name=output, **attributes))
        return output

    def model(self, shape: tuple[int, ...], output: str) -> ModelProto:
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, length)
            for name, length in (("x", shape), (output, None))
        ]
        graph = helper.make_graph(self.nodes, "small", ends[:1], ends[1:], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def images() -> tuple[ModelProto, tuple[int, ...]]:
    """Convolutions, a residual sum, pools, a gate, channels joined, a larger picture, classes."""
    made = Builder(5)
    first = made.add(
        "Relu", made.add("Conv", "x", made.weight(8, 3, 3, 3), made.weight(8), pads=[1, 1, 1, 1])
    )
    pooled = made.add("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2])
    deep = made.add(
        "LeakyRelu",
        made.add("Conv", pooled, made.weight(8, 1, 3, 3), group=8, pads=[1, 1, 1, 1]),
        alpha=0.1,
    )
    total = made.add("Add", made.add("Conv", deep, made.weight(8, 8, 1, 1), made.weight(8)), pooled)
    gated = made.add("Mul", total, made.add("Sigmoid", total))
    mean = made.add("AveragePool", gated, kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
    joined = made.add("Concat", mean, pooled, axis=1)
    larger = made.add(
        "Resize",
        joined,
        "",
        made.constant(np.array([1, 1, 2, 2], np.float32)),
        mode="nearest",
        nearest_mode="floor",
    )
    last = made.add("Conv", larger, made.weight(12, 16, 3, 3), strides=[2, 2])
    row = made.add("Flatten", made.add("GlobalAveragePool", last))
    classes = made.add("Gemm", row, made.weight(12, 10), made.weight(10))
    return made.model((1, 3, 12, 12), made.add("Softmax", classes, axis=-1)), (1, 3, 12, 12)


def words() -> tuple[ModelProto, tuple[int, ...]]:
    """An LSTM of both directions, and attention over what it shows."""
    made = Builder(7)
    shown = made.add(
        "LSTM",
        "x",
        made.weight(2, 32, 6),
        made.weight(2, 32, 8),
        made.weight(2, 64),
        hidden_size=8,
        direction="bidirectional",
    )
    rows = made.add(
        "Reshape",
        made.add("Transpose", shown, perm=[2, 0, 1, 3]),
        made.constant(np.array([0, 0, -1])),
    )
    query, key, value = (
        made.add("Add", made.add("MatMul", rows, made.weight(16, 12)), made.weight(12))
        for _ in range(3)
    )
    scores = made.add(
        "Softmax", made.add("MatMul", query, made.add("Transpose", key, perm=[0, 2, 1])), axis=-1
    )
    return made.model(
        (5, 2, 6), made.add("MatMul", made.add("MatMul", scores, value), made.weight(12, 4))
    ), (5, 2, 6)


NETS: dict[str, Callable[[], tuple[ModelProto, tuple[int, ...]]]] = {
    "images": images,
    "words": words,
}
TYPES = {"u8": QuantType.QUInt8, "i8": QuantType.QInt8}


class Samples(CalibrationDataReader):  # type: ignore[misc]  # the package declares no types
    """Random inputs from which the quantizer finds ranges."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        dice = np.random.default_rng(11)
        self._inputs: Iterator[dict[str, np.ndarray]] = iter(
            [{"x": dice.normal(size=shape).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._inputs, None)


def quantized(
    folder: Path,
    net: str,
    form: str,
    data: str,
    weights: str,
    each: bool,
    *,
    seven_bits: bool | None = None,
) -> tuple[Path, dict[str, np.ndarray]]:
    """Return a file that the quantizer wrote, and inputs for it.

    ``seven_bits``: the range of the weights; None chooses the range that is exact on the processor
    at hand.
    """
    model, shape = NETS[net]()
    reduced = pairs_saturate() if seven_bits is None else seven_bits
    source, made = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(model, source)
    if form == "dynamic":
        quantize_dynamic(
            source, made, weight_type=TYPES[weights], per_channel=each, reduce_range=reduced
        )
    else:
        kinds = {
            "activation_type": TYPES[data],
            "weight_type": TYPES[weights],
            "per_channel": each,
            "reduce_range": reduced,
        }
        quantize_static(source, made, Samples(shape), quant_format=QuantFormat[form], **kinds)
    return made, {"x": np.random.default_rng(13).normal(size=shape).astype(np.float32)}


def optimized(path: Path, level: Any) -> Path:
    """The file that ONNX Runtime writes when it has optimized another."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(path.with_name("optimized.onnx"))
    options.log_severity_level = 4
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return path.with_name("optimized.onnx")


CASES = [
    *(
        (net, form, data, weights, each)
        for net in NETS
        for form in ("QDQ", "QOperator")
        for data, weights in (("u8", "i8"), ("i8", "i8"), ("u8", "u8"))
        for each in (False, True)
    ),
    *(("words", "dynamic", "u8", weights, each) for weights in TYPES for each in (False, True)),
]


@pytest.mark.parametrize(
    "level",
    [None, LEVELS.ORT_ENABLE_BASIC, LEVELS.ORT_ENABLE_EXTENDED],
    ids=["as it is", "basic", "extended"],
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case)))
def test_as_the_runtime(case: tuple[str, str, str, str, bool], level: Any, tmp_path: Path) -> None:
    """To the last quantum: a quantum of the outputs is at least a thousandth, floats in between
    are summed in another order.
    """
    path, feeds = quantized(tmp_path, *case)
    data = (path if level is None else optimized(path, level)).read_bytes()
    (mine,) = loopscope.run(loopscope.read_model(data), feeds).outputs
    np.testing.assert_allclose(mine, by_runtime(data, feeds)[0], rtol=1e-5, atol=1e-5)

"""Times our kernels against OpenVINO's CPU, both on one thread, in turns, and prints the ratios:
``python -m tests.benchmarks.kernels``.

CPU time of the process, so that other work on the machine matters less; medians over rounds. Names
of layers as arguments choose.
"""

from __future__ import annotations

import os
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import process_time_ns

import numpy as np
import openvino as ov
from openvino.utils.node_factory import NodeFactory

from loopscope.executor.machine.execute import computing
from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known, typed

_CONFIG = {
    "INFERENCE_PRECISION_HINT": "f32",
    "INFERENCE_NUM_THREADS": 1,
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": 1,
}
_FACTORY_NAMES = {"SoftMax": "Softmax"}
_ROUNDS = 15
_LEAST_NANOSECONDS = 4_000_000
_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class Layer:
    """One operation on typical inputs; those numbered in ``constant`` are weights of the model."""

    title: str
    operation: str
    version: int
    inputs: Sequence[np.ndarray]
    attributes: dict[str, object] = field(default_factory=dict)
    constant: tuple[int, ...] = ()
    bar: float = 3


def numbers(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def window(strides: int, pad: int, **more: object) -> dict[str, object]:
    return {
        "strides": [strides] * 2,
        "pads_begin": [pad] * 2,
        "pads_end": [pad] * 2,
        "auto_pad": "explicit",
        **more,
    }


def _recurrent(gates: int, directions: int = 1) -> list[np.ndarray]:
    return [
        numbers(directions, gates * 256, 256) / 16,
        numbers(directions, gates * 256, 256) / 16,
        numbers(directions, gates * 256),
    ]


_DENSE = {"dilations": [1, 1]}
_POOL = {"kernel": [3, 3], "rounding_type": "floor"}
_LSTM = {"hidden_size": 256, "direction": "forward", "activations": ["sigmoid", "tanh", "tanh"]}
_GRU = {
    "hidden_size": 256,
    "direction": "forward",
    "activations": ["sigmoid", "tanh"],
    "linear_before_reset": True,
}
_NO_PARAMETERS: dict[str, object] = {"activations_alpha": [], "activations_beta": []}


def layers() -> list[Layer]:
    """Twenty and some layers of real networks."""
    return [
        Layer(
            "conv 3x3 64>64 56x56",
            "Convolution",
            1,
            [numbers(1, 64, 56, 56), numbers(64, 64, 3, 3)],
            window(1, 1, **_DENSE),
            (1,),
            1.5,
        ),
        Layer(
            "conv 7x7 3>64 224 /2",
            "Convolution",
            1,
            [numbers(1, 3, 224, 224), numbers(64, 3, 7, 7)],
            window(2, 3, **_DENSE),
            (1,),
            1.5,
        ),
        Layer(
            "conv 1x1 256>64 56x56",
            "Convolution",
            1,
            [numbers(1, 256, 56, 56), numbers(64, 256, 1, 1)],
            window(1, 0, **_DENSE),
            (1,),
            1.5,
        ),
        Layer(
            "conv 3x3 256>256 14x14",
            "Convolution",
            1,
            [numbers(1, 256, 14, 14), numbers(256, 256, 3, 3)],
            window(1, 1, **_DENSE),
            (1,),
            1.5,
        ),
        Layer(
            "depthwise 3x3 144 56x56",
            "GroupConvolution",
            1,
            [numbers(1, 144, 56, 56), numbers(144, 1, 1, 3, 3)],
            window(1, 1, **_DENSE),
            (1,),
        ),
        Layer(
            "transposed 4x4 64>32 28 /2",
            "ConvolutionBackpropData",
            1,
            [numbers(1, 64, 28, 28), numbers(64, 32, 4, 4)],
            window(2, 1, **_DENSE, output_padding=[0, 0]),
            (1,),
        ),
        Layer(
            "max pool 3x3 /2 64 112",
            "MaxPool",
            1,
            [numbers(1, 64, 112, 112)],
            window(2, 1, **_POOL),
            bar=3.5,
        ),
        Layer(
            "max pool with indices",
            "MaxPool",
            8,
            [numbers(1, 64, 112, 112)],
            window(2, 1, **_POOL, **_DENSE, index_element_type="i64", axis=0),
            bar=3.5,
        ),
        Layer(
            "average pool 3x3 /2 64 112",
            "AvgPool",
            1,
            [numbers(1, 64, 112, 112)],
            window(2, 1, **_POOL, **{"exclude-pad": True}),
        ),
        Layer(
            "global average pool",
            "ReduceMean",
            1,
            [numbers(1, 512, 7, 7), np.array([2, 3])],
            {"keep_dims": True},
            (1,),
        ),
        Layer("matmul 512", "MatMul", 1, [numbers(512, 512), numbers(512, 512)], {}, (1,), 1.2),
        Layer(
            "matmul 128x768x3072",
            "MatMul",
            1,
            [numbers(128, 768), numbers(768, 3072)],
            {},
            (1,),
            1.2,
        ),
        Layer(
            "matmul 8x768x3072 transposed",
            "MatMul",
            1,
            [numbers(8, 768), numbers(3072, 768)],
            {"transpose_b": True},
            (1,),
            1.2,
        ),
        Layer(
            "matmul 12 x 128x64x128",
            "MatMul",
            1,
            [numbers(12, 128, 64), numbers(12, 64, 128)],
            {},
            (),
            1.2,
        ),
        Layer("softmax 12x128x128", "SoftMax", 8, [numbers(12, 128, 128)], {"axis": -1}),
        Layer(
            "layer norm 128x768",
            "MVN",
            6,
            [numbers(1, 128, 768), np.array([2])],
            {"eps": 1e-5, "eps_mode": "inside_sqrt", "normalize_variance": True},
            (1,),
        ),
        Layer(
            "batch norm 64x56x56",
            "BatchNormInference",
            5,
            [numbers(1, 64, 56, 56), numbers(64), numbers(64), numbers(64), np.abs(numbers(64))],
            {"epsilon": 1e-5},
            (1, 2, 3, 4),
        ),
        Layer(
            "group norm 32 of 64x56x56",
            "GroupNormalization",
            12,
            [numbers(1, 64, 56, 56), numbers(64), numbers(64)],
            {"num_groups": 32, "epsilon": 1e-5},
            (1, 2),
        ),
        Layer(
            "attention 12x128x64",
            "ScaledDotProductAttention",
            13,
            [numbers(1, 12, 128, 64), numbers(1, 12, 128, 64), numbers(1, 12, 128, 64)],
            {"causal": False},
        ),
        Layer(
            "LSTM 128 steps 256>256",
            "LSTMSequence",
            5,
            [
                numbers(1, 128, 256),
                numbers(1, 1, 256),
                numbers(1, 1, 256),
                np.array([128], np.int32),
                *_recurrent(4),
            ],
            {**_LSTM, **_NO_PARAMETERS},
            (3, 4, 5, 6),
            1.7,
        ),
        Layer(
            "GRU 128 steps 256>256",
            "GRUSequence",
            5,
            [
                numbers(1, 128, 256),
                numbers(1, 1, 256),
                np.array([128], np.int32),
                *_recurrent(3)[:2],
                numbers(1, 4 * 256),
            ],
            {**_GRU, **_NO_PARAMETERS},
            (2, 3, 4, 5),
        ),
        Layer(
            "fake quantize 64x56x56",
            "FakeQuantize",
            1,
            [
                numbers(1, 64, 56, 56),
                *(np.full((1, 64, 1, 1), value, np.float32) for value in (-2, 2, -2, 2)),
            ],
            {"levels": 256},
            (1, 2, 3, 4),
        ),
        Layer(
            "gather 128 of 30000x768",
            "Gather",
            8,
            [numbers(30000, 768), _RANDOM.integers(0, 30000, 128), np.array(0)],
            {},
            (0, 2),
        ),
        Layer(
            "top 100 of 10000",
            "TopK",
            11,
            [numbers(100, 10000), np.array(100)],
            {"axis": 1, "mode": "max", "sort": "value"},
            (1,),
        ),
        Layer(
            "top 20 of 64 channels 56x56",
            "TopK",
            11,
            [numbers(1, 64, 56, 56), np.array(20)],
            {"axis": 1, "mode": "max", "sort": "value"},
            (1,),
        ),
    ]


def ours(layer: Layer) -> Callable[[], object]:
    """A call of the kernel that a plan binds."""
    operation = next(
        one for one in CATALOGUE.versions(layer.operation) if one.version == layer.version
    )
    texts = {name: _text(value) for name, value in layer.attributes.items()}
    keywords = typed(operation, texts)
    inputs = [array[()] if array.ndim == 0 else array for array in layer.inputs]
    assert operation.kernel is not None
    kernel: Callable[..., Any] = partial(operation.kernel, **keywords)
    if operation.by_constant is not None and 1 in layer.constant:
        kernel = operation.by_constant(Known.of(layer.inputs[1]), **keywords) or kernel
    return lambda: kernel(*inputs)


def openvinos(layer: Layer) -> Callable[[], object]:
    """A run of a compiled model of this one operation."""
    sources, parameters, feeds = [], [], []
    for index, array in enumerate(layer.inputs):
        if index in layer.constant:
            sources.append(ov.opset16.constant(array).output(0))
        else:
            parameters.append(
                ov.opset16.parameter(
                    list(array.shape), getattr(ov.Type, ElementType.of(array).value)
                )
            )
            sources.append(parameters[-1].output(0))
            feeds.append(ov.Tensor(np.ascontiguousarray(array)))
    node = NodeFactory(f"opset{layer.version}").create(
        _FACTORY_NAMES.get(layer.operation, layer.operation), sources, layer.attributes
    )
    request = (
        ov.Core()
        .compile_model(ov.Model(node.outputs(), parameters, "one"), "CPU", _CONFIG)
        .create_infer_request()
    )
    for index, tensor in enumerate(feeds):
        request.set_input_tensor(index, tensor)
    return lambda: request.infer()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def compared(contenders: Sequence[Callable[[], object]]) -> tuple[float, float]:
    """Median nanoseconds of one call of the first of two, and the median of the rounds'
    quotients.
    """
    repeats = [_repeats(contender) for contender in contenders]
    times: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        for contender, repeat, measured in zip(contenders, repeats, times, strict=True):
            start = process_time_ns()
            for _ in range(repeat):
                contender()
            measured.append((process_time_ns() - start) / repeat)
    return median(times[0]), median(mine / theirs for mine, theirs in zip(*times, strict=True))


def _repeats(contender: Callable[[], object]) -> int:
    for _ in range(3):
        contender()
    start = process_time_ns()
    contender()
    return max(1, _LEAST_NANOSECONDS // max(1, process_time_ns() - start))


def printed_row(title: str, contenders: Sequence[Callable[[], object]], bar: float) -> bool:
    """Prints what was measured of ours and theirs; whether the bar was missed."""
    nanoseconds, ratio = compared(contenders)
    missed = ratio > bar
    print(
        f"{title:34}{nanoseconds / 1000:9.1f}us{ratio:12.2f}{bar:6.1f}{'  MISSED' if missed else ''}",
        flush=True,
    )
    return missed


def main(wanted: Sequence[str]) -> int:
    """Prints a line for each layer; 1 when one misses its bar."""
    missed = 0
    print(f"{'layer':34}{'ours':>11}{'x OpenVINO':>12}{'bar':>6}")
    for layer in layers():
        if wanted and not any(word in layer.title for word in wanted):
            continue
        with computing():
            missed += printed_row(layer.title, [ours(layer), openvinos(layer)], layer.bar)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

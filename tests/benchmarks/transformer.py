"""A whole 24-layer transformer against OpenVINO's CPU on one thread: `python -m
tests.benchmarks.transformer [LENGTH ...]`.

The model is made with OpenVINO's Python API: pre-norm blocks of 512 channels, 8 heads, attention
spelt out in MatMul and SoftMax, layer norm in ReduceMean and Power, Gelu: about 1,100 operations,
303 MB of weights. Bar: at most 1.8 times OpenVINO's time. CPU time of the process, so that other
work on the machine matters less; medians over rounds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import openvino as ov
import openvino.opset13 as o

import loopscope

CHANNELS, HEADS, LAYERS, BAR, ROUNDS = 512, 8, 24, 1.8, 7


def transformer() -> ov.Model:
    """The model; its one input has shape [1, length, channels]."""
    random = np.random.default_rng(0)

    def weight(*shape: int) -> ov.Node:
        return o.constant((random.standard_normal(shape) * 0.02).astype(np.float32))

    def normed(x: ov.Node) -> ov.Node:
        axis = o.constant([-1])
        centred = o.subtract(x, o.reduce_mean(x, axis, True))
        variance = o.reduce_mean(o.power(centred, o.constant(np.float32(2))), axis, True)
        return o.add(
            o.multiply(
                o.divide(centred, o.sqrt(o.add(variance, o.constant(np.float32(1e-5))))),
                weight(CHANNELS),
            ),
            weight(CHANNELS),
        )

    def heads(x: ov.Node) -> ov.Node:
        return o.transpose(
            o.reshape(x, o.constant([1, -1, HEADS, CHANNELS // HEADS]), False),
            o.constant([0, 2, 1, 3]),
        )

    def attention(x: ov.Node) -> ov.Node:
        query, key, value = (
            heads(o.add(o.matmul(x, weight(CHANNELS, CHANNELS), False, False), weight(CHANNELS)))
            for _ in range(3)
        )
        scores = o.multiply(
            o.matmul(query, key, False, True), o.constant(np.float32((CHANNELS // HEADS) ** -0.5))
        )
        mixed = o.transpose(
            o.matmul(o.softmax(scores, -1), value, False, False), o.constant([0, 2, 1, 3])
        )
        return o.matmul(
            o.reshape(mixed, o.constant([1, -1, CHANNELS]), False),
            weight(CHANNELS, CHANNELS),
            False,
            False,
        )

    x = o.parameter([1, -1, CHANNELS], np.float32, name="x")
    y: ov.Node = x
    for _ in range(LAYERS):
        y = o.add(y, attention(normed(y)))
        wide = o.gelu(
            o.add(
                o.matmul(normed(y), weight(CHANNELS, 4 * CHANNELS), False, False),
                weight(4 * CHANNELS),
            ),
            "tanh",
        )
        y = o.add(y, o.matmul(wide, weight(4 * CHANNELS, CHANNELS), False, False))
    return ov.Model([o.result(normed(y))], [x], "transformer")


def main() -> int:
    lengths = [int(word) for word in sys.argv[1:]] or [1, 8, 32, 128]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/transformer.xml"
        ov.save_model(transformer(), path, compress_to_fp16=False)
        config = {
            "INFERENCE_NUM_THREADS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": 1,
            "EXECUTION_MODE_HINT": "ACCURACY",
        }
        ours = loopscope.Session(loopscope.read_model(path))
        worst = 0.0
        for length in lengths:
            # Compiled afresh: the CPU plugin of 2026.4 is wrong by 5e-3 at length 32 when it ran
            # lengths 1 and 8 before.
            compiled = ov.Core().compile_model(path, "CPU", config)
            x = np.random.default_rng(1).standard_normal((1, length, CHANNELS)).astype(np.float32)
            np.testing.assert_allclose(
                ours.run([x]).outputs[0], compiled(x)[0], rtol=1e-3, atol=1e-3
            )
            times = [
                (_seconds(lambda: ours.run([x])), _seconds(lambda: compiled(x)))
                for _ in range(ROUNDS)
            ]
            ratio = median(mine / theirs for mine, theirs in times)
            worst = max(worst, ratio)
            mine, theirs = (1000 * median(one) for one in zip(*times, strict=True))
            print(
                f"length {length:4d}   ours {mine:8.1f} ms   OpenVINO {theirs:8.1f} ms   ratio {ratio:5.2f}   bar {BAR}"
            )
    return int(worst > BAR)


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())

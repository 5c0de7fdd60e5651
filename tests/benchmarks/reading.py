"""How long reading takes, against OpenVINO's ``read_model``: ``python -m
tests.benchmarks.reading [ROUNDS]``.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from loopscope.read import read_model

BAR = 0.9


def chain(layers: int) -> ov.Model:
    """A long chain of elementwise operations, every tenth with a constant of its own."""
    start = ops.parameter([1, 16, 32], np.float32, name="x")
    value = start
    for index in range(layers):
        if index % 10 == 0:
            value = ops.add(value, ops.constant(np.full((1, 1, 32), index, np.float32)))
        else:
            value = (ops.relu, ops.tanh, ops.sigmoid)[index % 3](value)
    return ov.Model([value], [start], "chain")


def transformer(blocks: int, width: int) -> ov.Model:
    """The decoder blocks of a GPT, decomposed as a converter does it, with named tensors."""
    generator = np.random.default_rng(0)

    def weight(*shape: int) -> ov.Node:
        return ops.constant(generator.standard_normal(shape, np.float32))

    def norm(value: ov.Node) -> ov.Node:
        centred = ops.subtract(value, ops.reduce_mean(value, ops.constant([-1]), True))
        variance = ops.reduce_mean(ops.multiply(centred, centred), ops.constant([-1]), True)
        scaled = ops.divide(centred, ops.sqrt(ops.add(variance, ops.constant(np.float32(1e-5)))))
        return ops.add(ops.multiply(scaled, weight(1, 1, width)), weight(1, 1, width))

    def linear(value: ov.Node, inside: int, outside: int) -> ov.Node:
        return ops.add(
            ops.matmul(value, weight(outside, inside), False, True), weight(1, 1, outside)
        )

    def number(value: float) -> ov.Node:
        return ops.constant(np.full((1, 1, 1), value, np.float32))

    def heads(value: ov.Node) -> ov.Node:
        lengths = ops.gather(ops.shape_of(value), ops.constant([0, 1]), ops.constant(0))
        shaped = ops.reshape(value, ops.concat([lengths, ops.constant([8, width // 8])], 0), False)
        return ops.transpose(shaped, ops.constant([0, 2, 1, 3]))

    def softmax(value: ov.Node) -> ov.Node:
        raised = ops.exp(ops.subtract(value, ops.reduce_max(value, ops.constant([-1]), True)))
        return ops.divide(raised, ops.reduce_sum(raised, ops.constant([-1]), True))

    def gelu(value: ov.Node) -> ov.Node:
        cubed = ops.multiply(ops.multiply(value, ops.multiply(value, value)), number(0.044715))
        bent = ops.tanh(ops.multiply(ops.add(value, cubed), number(0.7978846)))
        return ops.multiply(ops.multiply(value, number(0.5)), ops.add(bent, number(1)))

    start = ops.parameter([-1, -1, width], np.float32, name="x")
    value = start
    for block in range(blocks):
        inner = norm(value)
        query, key, other = (heads(linear(inner, width, width)) for _ in range(3))
        scores = softmax(ops.divide(ops.matmul(query, key, False, True), number(8)))
        joined = ops.reshape(
            ops.transpose(ops.matmul(scores, other, False, False), ops.constant([0, 2, 1, 3])),
            ops.constant([0, 0, -1]),
            True,
        )
        value = ops.add(value, linear(joined, width, width))
        hidden = gelu(linear(norm(value), width, 4 * width))
        value = ops.add(value, linear(hidden, 4 * width, width))
        value.output(0).get_tensor().set_names({f"block.{block}.out", f"transformer.h.{block}"})
    return ov.Model([value], [start], "transformer")


def cpu_seconds(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def compare(path: Path, rounds: int) -> float:
    """Median CPU time of our reader over OpenVINO's, the two taking turns."""
    core = ov.Core()
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(cpu_seconds(lambda: core.read_model(path)))
        ours.append(cpu_seconds(lambda: read_model(path)))
    ratio = statistics.median(ours) / statistics.median(theirs)
    size = len(read_model(path).graph.nodes)
    print(
        f"{path.stem:12} {size:6} layers  ours {statistics.median(ours) * 1e3:7.1f} ms  OpenVINO {statistics.median(theirs) * 1e3:7.1f} ms"
        f"  ratio {ratio:.2f} (bar {BAR})"
    )
    return ratio


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for model in (chain(50_000), transformer(24, 256)):
            path = Path(folder) / f"{model.get_friendly_name()}.xml"
            ov.save_model(model, path, compress_to_fp16=False)
            ratios.append(compare(path, rounds))
    return int(max(ratios) > BAR)


if __name__ == "__main__":
    sys.exit(main())

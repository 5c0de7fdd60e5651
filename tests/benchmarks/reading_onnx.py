"""How long reading ONNX takes, against ``onnx.load``: ``python -m tests.benchmarks.reading_onnx
[FILE ...]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from loopscope.read import read_model

BAR = 3
_ROUNDS = 9
_RANDOM = np.random.default_rng(0)


def chain(nodes: int) -> ModelProto:
    """Elementwise operations one after the other, every tenth with a constant of its own,
    without declared types.
    """
    made, weights, value = [], [], "x"
    for number in range(nodes):
        inputs, kind = [value], ("Relu", "Tanh", "Sigmoid")[number % 3]
        if number % 10 == 0:
            weights.append(
                numpy_helper.from_array(np.full((1, 1, 32), number, np.float32), f"w{number}")
            )
            inputs, kind = [value, f"w{number}"], "Add"
        value = f"v{number}"
        made.append(helper.make_node(kind, inputs, [value], name=f"node_{number}"))
    return _model(made, weights, value)


def transformer(blocks: int, width: int) -> ModelProto:
    """Decoder blocks as exporters write them: shapes computed, layer norms spelt out."""
    made: list[NodeProto] = []
    weights: list[TensorProto] = []

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        made.append(
            helper.make_node(
                kind,
                inputs,
                [f"/{kind}_{len(made)}_output"],
                name=f"/{kind}_{len(made)}",
                **attributes,
            )
        )
        return str(made[-1].output[0])

    def weight(*shape: int) -> str:
        weights.append(
            numpy_helper.from_array(
                _RANDOM.standard_normal(shape, np.float32), f"onnx::weight_{len(weights)}"
            )
        )
        return weights[-1].name

    def whole(*values: int) -> str:
        return op("Constant", value=numpy_helper.from_array(np.array(values, np.int64)))

    def norm(value: str) -> str:
        centred = op("Sub", value, op("ReduceMean", value, axes=[-1]))
        variance = op("ReduceMean", op("Mul", centred, centred), axes=[-1])
        return op(
            "Add", op("Mul", op("Div", centred, op("Sqrt", variance)), weight(width)), weight(width)
        )

    def heads(value: str) -> str:
        length = op("Unsqueeze", op("Gather", op("Shape", value), whole(1), axis=0), whole(0))
        shaped = op("Reshape", value, op("Concat", whole(1), length, whole(8, width // 8), axis=0))
        return op("Transpose", shaped, perm=[0, 2, 1, 3])

    def linear(value: str, inside: int, outside: int) -> str:
        return op("Add", op("MatMul", value, weight(inside, outside)), weight(outside))

    value = "x"
    for _ in range(blocks):
        inner = norm(value)
        query, key, other = (heads(linear(inner, width, width)) for _ in range(3))
        scores = op(
            "Softmax", op("MatMul", query, op("Transpose", key, perm=[0, 1, 3, 2])), axis=-1
        )
        mixed = op(
            "Reshape",
            op("Transpose", op("MatMul", scores, other), perm=[0, 2, 1, 3]),
            whole(1, -1, width),
        )
        value = op("Add", value, linear(mixed, width, width))
        value = op(
            "Add", value, linear(op("Erf", linear(norm(value), width, 4 * width)), 4 * width, width)
        )
    return _model(made, weights, value)


def branches(count: int) -> ModelProto:
    """Small graphs in graphs: an If after the other, whose branches hold constants and
    operations.
    """
    made, value = (
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
            helper.make_node("Cast", ["sum"], ["yes"], to=9),
        ],
        "x",
    )
    for number in range(count):
        sides = {}
        for side in ("then_branch", "else_branch"):
            constant = helper.make_node("Constant", [], [f"{side}_c{number}"], value_float=1.5)
            nodes = [
                constant,
                *(
                    helper.make_node(
                        "Add", [value, f"{side}_c{number}"], [f"{side}_{number}_{one}"]
                    )
                    for one in range(4)
                ),
            ]
            sides[side] = helper.make_graph(
                nodes, side, [], [onnx.ValueInfoProto(name=f"{side}_{number}_3")]
            )
        made.append(helper.make_node("If", ["yes"], [f"if_{number}"], name=f"if_{number}", **sides))
        value = f"if_{number}"
    return _model(made, [], value)


def _model(nodes: list[NodeProto], weights: list[TensorProto], output: str) -> ModelProto:
    lengths = [1, None, next((one.dims[-1] for one in weights), 32)]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, lengths)
    graph: GraphProto = helper.make_graph(
        nodes, "one", [given], [onnx.ValueInfoProto(name=output)], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _seconds(action: Callable[[], object]) -> float:
    """By the clock: shape inference works in another process."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def compared(path: Path) -> float:
    """Prints a line of medians; the median of the rounds' quotients."""
    ours, theirs = [], []
    read_model(path)
    for _ in range(_ROUNDS):
        theirs.append(_seconds(lambda: onnx.load(path)))
        ours.append(_seconds(lambda: read_model(path)))
    ratio = median(mine / other for mine, other in zip(ours, theirs, strict=True))
    size = (
        f"{path.stat().st_size / 1e6:8.1f} MB{sum(1 for _ in onnx.load(path).graph.node):7} nodes"
    )
    print(
        f"{path.stem[:28]:28}{size}{median(ours) * 1e3:9.1f} ms{ratio:7.2f}{'  MISSED' if ratio > BAR else ''}",
        flush=True,
    )
    return ratio


def main(files: list[str]) -> int:
    """Prints ratios of models that are made here and of the files that are given; 1 when their
    median misses the bar.
    """
    print(f"{'model':28}{'':22}{'ours':>12}{'x load':>7}   bar of the median: {BAR}")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(one) for one in files]
        made = {
            "chain": chain(2000),
            "transformer": transformer(12, 256),
            "branches": branches(150),
            "small": chain(20),
        }
        for name, model in made.items():
            paths.append(Path(folder) / f"{name}.onnx")
            onnx.save(model, paths[-1])
        middle = median([compared(path) for path in paths])
    print(f"{'median':28}{'':22}{'':12}{middle:7.2f}{'  MISSED' if middle > BAR else ''}")
    return int(middle > BAR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

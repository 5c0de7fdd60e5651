"""Models a to e of the benchmark of loops: each for the engine, in ONNX for its peers, and
written by hand in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import loopscope
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop

_RANDOM = np.random.default_rng(0)
_ADD, _FACTOR, _LIMIT, _HALF = (
    np.float32(1e-3),
    np.float32(0.9999),
    np.float32(1e9),
    np.float32(0.5),
)
_HIDDEN, _CHANNELS, _SIDE = 256, 64, 56


@dataclass(frozen=True)
class Case:
    """One model: what it does, how often, and every form of it."""

    name: str
    text: str
    iterations: int
    operations: int
    """Operations in one iteration."""
    inputs: tuple[np.ndarray, ...]
    ours: loopscope.Model
    by_hand: Callable[..., Any]
    """The same in numpy; scalars computed with operators. Takes the inputs."""
    onnx: Callable[[int], Any]
    """The ONNX twin for a number of iterations, as a ModelProto; needs the onnx package."""
    scalar: bool
    few: int = 500
    """Iterations for what is too slow for all of them."""


def cases() -> tuple[Case, ...]:
    """All five."""
    return (scalars(), vectors(), cell(), nested(), convolution())


def _looped(
    body: Draft,
    state: Sequence[Ref],
    results: Sequence[Ref],
    again: Ref,
    inputs: Sequence[np.ndarray],
    trips: int,
) -> loopscope.Model:
    """A loop over some state."""
    outer = Draft()
    fed = [outer.parameter(f"x{number}", F32, array.shape) for number, array in enumerate(inputs)]
    outs = [body.result(one) for one in results]
    carried = list(zip(fed, state, outs, strict=True))
    made = loop(
        outer,
        body,
        outer.const(trips, I64),
        outer.const(True, BOOL),
        again=body.result(again),
        carried=carried,
        last=outs,
        name="loop",
    )
    for number in range(len(outs)):
        outer.result(Ref(made.layer, number), f"y{number}")
    return outer.model()


def _twin(
    nodes: Sequence[Any],
    consts: dict[str, np.ndarray],
    state: dict[str, str],
    again: str,
    inputs: Sequence[np.ndarray],
    trips: int,
) -> Any:
    """The ONNX model of a loop: body nodes, their constants, state (Parameter to Result) and the
    condition.
    """
    import onnx
    from onnx import helper, numpy_helper

    kind = onnx.TensorProto.FLOAT
    constants = [numpy_helper.from_array(value, name) for name, value in consts.items()]
    shapes = [array.shape for array in inputs]
    body = helper.make_graph(
        list(nodes),
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            *(
                helper.make_tensor_value_info(name, kind, shape)
                for name, shape in zip(state, shapes, strict=True)
            ),
        ],
        [
            helper.make_tensor_value_info(again, onnx.TensorProto.BOOL, []),
            *(
                helper.make_tensor_value_info(name, kind, shape)
                for name, shape in zip(state.values(), shapes, strict=True)
            ),
        ],
        constants,
    )
    outer = [
        helper.make_tensor_value_info(f"x{number}", kind, shape)
        for number, shape in enumerate(shapes)
    ]
    ends = [
        helper.make_tensor_value_info(f"y{number}", kind, shape)
        for number, shape in enumerate(shapes)
    ]
    node = helper.make_node(
        "Loop", ["M", "start", *(one.name for one in outer)], [one.name for one in ends], body=body
    )
    fixed = [
        numpy_helper.from_array(np.array(trips, np.int64), "M"),
        numpy_helper.from_array(np.array(True), "start"),
    ]
    model = helper.make_model(
        helper.make_graph([node], "main", outer, ends, fixed),
        opset_imports=[helper.make_opsetid("", 18)],
    )
    model.ir_version = 9
    return model


def scalars(trips: int = 100_000) -> Case:
    """a: four operations on scalars."""
    body = Draft()
    x = body.parameter("x", F32, ())
    total = body.op("Add", x, body.const(_ADD), name="Add")
    scaled = body.op("Multiply", total, body.const(_FACTOR), name="Mul")
    again = body.op("Identity", body.op("Less", scaled, body.const(_LIMIT), name="Less"), opset=16)
    inputs = (np.zeros((), np.float32),)

    def by_hand(x: Any) -> Any:
        x = x[()]
        add, factor, limit = _ADD, _FACTOR, _LIMIT
        for _ in range(trips):
            total = x + add
            x = total * factor
            go = x < limit
            if not go:
                break
        return np.asarray(x)

    def twin(trips: int) -> Any:
        from onnx.helper import make_node

        nodes = [
            make_node("Add", ["x", "add"], ["total"]),
            make_node("Mul", ["total", "factor"], ["scaled"]),
            make_node("Less", ["scaled", "limit"], ["less"]),
            make_node("Identity", ["less"], ["again"]),
        ]
        consts = {"add": np.array(_ADD), "factor": np.array(_FACTOR), "limit": np.array(_LIMIT)}
        return _twin(nodes, consts, {"x": "scaled"}, "again", inputs, trips)

    model = _looped(body, [x], [scaled], again, inputs, trips)
    return Case(
        "a", f"{trips:,} x 4 operations on scalars", trips, 4, inputs, model, by_hand, twin, True
    )


def vectors(trips: int = 10_000) -> Case:
    """b: twenty operations on 64 numbers."""
    given = [
        np.float32(0.9) + _RANDOM.random(64, np.float32) / 100,
        _RANDOM.random(64, np.float32),
        np.full(64, 0.25, np.float32),
    ]
    floor = np.full(64, -1, np.float32)
    names = ("Multiply", "Add", "Subtract", "Maximum")
    body = Draft()
    x = body.parameter("x", F32, (64,))
    consts = [body.const(array) for array in (*given, floor)]
    value = x
    for number in range(20):
        value = body.op(names[number % 4], value, consts[number % 4], name=f"op_{number}")
    inputs = (_RANDOM.random(64, np.float32),)

    def by_hand(x: Any) -> Any:
        factor, more, less = given
        maximum = np.maximum
        for _ in range(trips):
            a = x * factor
            b = a + more
            c = b - less
            d = maximum(c, floor)
            e = d * factor
            f = e + more
            g = f - less
            h = maximum(g, floor)
            i = h * factor
            j = i + more
            k = j - less
            m = maximum(k, floor)
            n = m * factor
            o = n + more
            p = o - less
            q = maximum(p, floor)
            r = q * factor
            s = r + more
            t = s - less
            x = maximum(t, floor)
        return x

    def twin(trips: int) -> Any:
        from onnx.helper import make_node

        onnx_names = ("Mul", "Add", "Sub", "Max")
        nodes = [
            make_node(onnx_names[n % 4], [f"v{n}" if n else "x", f"c{n % 4}"], [f"v{n + 1}"])
            for n in range(20)
        ]
        nodes.append(make_node("Identity", ["go"], ["again"]))
        constants = {f"c{n}": np.asarray(array) for n, array in enumerate((*given, floor))}
        return _twin(nodes, constants, {"x": "v20"}, "again", inputs, trips)

    model = _looped(body, [x], [value], body.const(True, BOOL), inputs, trips)
    return Case(
        "b", f"{trips:,} x 20 operations on [64]", trips, 20, inputs, model, by_hand, twin, False
    )


def cell(trips: int = 1000) -> Case:
    """c: an LSTM cell, operation by operation."""
    size = _HIDDEN
    weights = (_RANDOM.standard_normal((size, 4 * size)) / 16).astype(np.float32)
    bias = (_RANDOM.standard_normal((1, 4 * size)) / 4).astype(np.float32)
    inputs = (np.zeros((1, size), np.float32), np.zeros((1, size), np.float32))
    body = Draft()
    h, c = body.parameter("h", F32, (1, size)), body.parameter("c", F32, (1, size))
    gates = body.op(
        "Add",
        body.op("MatMul", h, body.const(weights), transpose_a="false", transpose_b="false"),
        body.const(bias),
    )
    split = body.op("Split", gates, body.const(1, I64), outputs=4, num_splits="4")
    i, f, o = (body.op("Sigmoid", Ref(split.layer, output)) for output in (0, 1, 2))
    g = body.op("Tanh", Ref(split.layer, 3))
    state = body.op("Add", body.op("Multiply", f, c), body.op("Multiply", i, g))
    hidden = body.op("Multiply", o, body.op("Tanh", state))

    def by_hand(h: Any, c: Any) -> Any:
        one, tanh, exp, half = np.float32(1), np.tanh, np.exp, size
        for _ in range(trips):
            gates = h @ weights + bias
            i = one / (one + exp(-gates[:, :half]))
            f = one / (one + exp(-gates[:, half : 2 * half]))
            o = one / (one + exp(-gates[:, 2 * half : 3 * half]))
            g = tanh(gates[:, 3 * half :])
            c = f * c + i * g
            h = o * tanh(c)
        return h

    def twin(trips: int) -> Any:
        from onnx.helper import make_node

        nodes = [
            make_node("MatMul", ["h", "weights"], ["product"]),
            make_node("Add", ["product", "bias"], ["gates"]),
            make_node("Split", ["gates"], ["gi", "gf", "go_", "gg"], axis=1, num_outputs=4),
            *(
                make_node("Sigmoid", [one], [other])
                for one, other in (("gi", "i_"), ("gf", "f"), ("go_", "o"))
            ),
            make_node("Tanh", ["gg"], ["g"]),
            make_node("Mul", ["f", "c"], ["kept"]),
            make_node("Mul", ["i_", "g"], ["new"]),
            make_node("Add", ["kept", "new"], ["state"]),
            make_node("Tanh", ["state"], ["tanh"]),
            make_node("Mul", ["o", "tanh"], ["hidden"]),
            make_node("Identity", ["go"], ["again"]),
        ]
        return _twin(
            nodes,
            {"weights": weights, "bias": bias},
            {"h": "hidden", "c": "state"},
            "again",
            inputs,
            trips,
        )

    model = _looped(body, [h, c], [hidden, state], body.const(True, BOOL), inputs, trips)
    return Case(
        "c",
        f"{trips:,} x LSTM cell {size}",
        trips,
        12,
        inputs,
        model,
        by_hand,
        twin,
        False,
        few=200,
    )


def nested(trips: int = 300) -> Case:
    """d: a loop in a loop, with an If inside."""
    factor = np.float32(0.25)
    then, otherwise = Draft(), Draft()
    p, q = then.parameter("p", F32, ()), otherwise.parameter("q", F32, ())
    added = then.result(then.op("Add", p, then.const(_ADD), name="Add"))
    multiplied = otherwise.result(otherwise.op("Multiply", q, otherwise.const(factor), name="Mul"))
    inner = Draft()
    x = inner.parameter("x", F32, ())
    small = inner.op("Less", x, inner.const(_HALF), name="Less")
    made = inner.region(
        "If",
        [small, x],
        [
            branch("then", then, [(1, p)], [added]),
            branch("else", otherwise, [(1, q)], [multiplied]),
        ],
        1,
        name="if",
        opset=8,
    )
    again = inner.op("Identity", inner.const(True, BOOL), opset=16)
    out = inner.result(made)
    body = Draft()
    y = body.parameter("y", F32, ())
    carried = [(y, x, out)]
    trip, go = body.const(trips, I64), body.const(True, BOOL)
    end = loop(
        body, inner, trip, go, again=inner.result(again), carried=carried, last=[out], name="inner"
    )
    inputs = (np.zeros((), np.float32),)

    def by_hand(x: Any) -> Any:
        x = x[()]
        for _ in range(trips):
            for _ in range(trips):
                small = x < _HALF
                x = x + _ADD if small else x * factor
        return np.asarray(x)

    def twin(outer_trips: int) -> Any:
        import onnx
        from onnx import helper, numpy_helper
        from onnx.helper import make_node

        def arm(kind: str, other: str) -> Any:
            result = helper.make_tensor_value_info(f"{kind}_out", onnx.TensorProto.FLOAT, [])
            return helper.make_graph(
                [make_node(kind, ["xi", other], [f"{kind}_out"])], kind, [], [result]
            )

        value = helper.make_tensor_value_info
        inside = helper.make_graph(
            [
                make_node("Less", ["xi", "half"], ["small"]),
                make_node(
                    "If",
                    ["small"],
                    ["next"],
                    then_branch=arm("Add", "add"),
                    else_branch=arm("Mul", "factor"),
                ),
                make_node("Identity", ["goi"], ["again_i"]),
            ],
            "inside",
            [
                value("ii", onnx.TensorProto.INT64, []),
                value("goi", onnx.TensorProto.BOOL, []),
                value("xi", onnx.TensorProto.FLOAT, []),
            ],
            [
                value("again_i", onnx.TensorProto.BOOL, []),
                value("next", onnx.TensorProto.FLOAT, []),
            ],
            [
                numpy_helper.from_array(np.array(one), name)
                for name, one in (("half", _HALF), ("add", _ADD), ("factor", factor))
            ],
        )
        nodes = [
            make_node("Loop", ["N", "yes", "x"], ["x_end"], body=inside),
            make_node("Identity", ["go"], ["again"]),
        ]
        consts = {"N": np.array(trips, np.int64), "yes": np.array(True)}
        return _twin(nodes, consts, {"x": "x_end"}, "again", inputs, outer_trips)

    model = _looped(body, [y], [end], body.const(True, BOOL), inputs, trips)
    return Case(
        "d",
        f"{trips} x {trips} nested, If inside",
        trips,
        4 * trips,
        inputs,
        model,
        by_hand,
        twin,
        True,
        few=3,
    )


def convolution(trips: int = 20) -> Case:
    """e: a convolution, Relu and a product."""
    channels, side = _CHANNELS, _SIDE
    weights = (_RANDOM.standard_normal((channels, channels, 3, 3)) / 17).astype(np.float32)
    scale = (0.5 + _RANDOM.random((1, channels, 1, 1), np.float32)).astype(np.float32)
    inputs = (_RANDOM.standard_normal((1, channels, side, side)).astype(np.float32),)
    body = Draft()
    x = body.parameter("x", F32, inputs[0].shape)
    attributes: dict[str, Any] = {
        "strides": "1,1",
        "pads_begin": "1,1",
        "pads_end": "1,1",
        "dilations": "1,1",
        "auto_pad": "explicit",
    }
    product = body.op(
        "Multiply",
        body.op("ReLU", body.op("Convolution", x, body.const(weights), **attributes)),
        body.const(scale),
    )
    rows = np.ascontiguousarray(weights.transpose(2, 0, 3, 1).reshape(3, channels, 3 * channels))

    def by_hand(x: Any) -> Any:
        for _ in range(trips):
            # One matrix for each kernel row: three shifted copies of the padded image side by side,
            # and one product.
            padded = np.zeros((channels, side + 2, side + 2), np.float32)
            padded[:, 1:-1, 1:-1] = x[0]
            columns = np.empty((3, channels, side + 2, side), np.float32)
            for shift in range(3):
                columns[shift] = padded[:, :, shift : shift + side]
            total: Any = None
            for row in range(3):
                part = np.ascontiguousarray(columns[:, :, row : row + side]).reshape(
                    3 * channels, side * side
                )
                made = rows[row] @ part
                total = made if total is None else total + made
            image = total.reshape(1, channels, side, side)
            x = np.maximum(image, np.float32(0)) * scale
        return x

    def twin(trips: int) -> Any:
        from onnx.helper import make_node

        nodes = [
            make_node("Conv", ["x", "weights"], ["image"], pads=[1, 1, 1, 1]),
            make_node("Relu", ["image"], ["relu"]),
            make_node("Mul", ["relu", "scale"], ["product"]),
            make_node("Identity", ["go"], ["again"]),
        ]
        return _twin(
            nodes, {"weights": weights, "scale": scale}, {"x": "product"}, "again", inputs, trips
        )

    model = _looped(body, [x], [product], body.const(True, BOOL), inputs, trips)
    return Case(
        "e",
        f"{trips} x convolution 3x3 {channels} channels, Relu, Mul",
        trips,
        3,
        inputs,
        model,
        by_hand,
        twin,
        False,
        few=20,
    )

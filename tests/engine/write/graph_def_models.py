"""Models whose operations TensorFlow has too, with feeds: every rule, and every way of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope import builder
from loopscope.builder import ops
from loopscope.ir.model import Model

Feeds = list[dict[str, Any]]
X = np.linspace(-0.9, 0.8, 6, dtype=np.float32).reshape(2, 3)


def _floats(
    make: Callable[[builder.Tensor], Mapping[str, Any]], values: np.ndarray = X
) -> tuple[Model, Feeds]:
    graph = builder.Graph("floats")
    return graph.model(make(graph.parameter("x", "f32", values.shape))), [{"x": values}]


def _arithmetic(x: builder.Tensor) -> Mapping[str, Any]:
    y = x * 3 - 0.25
    made = {
        "add": x + y,
        "subtract": x - y,
        "multiply": x * y,
        "divide": x / y,
        "power": ops.power(abs(x), 1.5),
        "floor_mod": x % y,
    }
    made |= {
        name: getattr(ops, name)(x, y)
        for name in ("maximum", "minimum", "squared_difference", "mod")
    }
    made |= {
        "clamp": ops.clamp(y, min=-1.0, max=0.5),
        "cast": ops.convert(y, destination_type="i32"),
    }
    return made


def _unary(x: builder.Tensor) -> Mapping[str, Any]:
    names = "exp sqrt sin cos tan asin acos atan sinh cosh tanh asinh atanh erf floor sign sigmoid negative ceiling relu softplus abs log"
    inputs = {"sqrt": abs(x), "log": abs(x) + 0.1}
    return {name: getattr(ops, name)(inputs.get(name, x)) for name in names.split()} | {
        "acosh": ops.acosh(x + 2.5)
    }


def _whole() -> tuple[Model, Feeds]:
    graph = builder.Graph("whole")
    a, b = graph.parameter("a", "i32", [4]), graph.parameter("b", "i32", [4])
    made = {"floor": a // b, "floor_mod": a % b, "mod": ops.mod(a, b)}
    made |= {"rounded": ops.floor(a), "same": ops.identity(ops.ceiling(b))}
    made |= {"and": a & b, "or": a | b, "xor": a ^ b, "not": ~a}
    feeds = [{"a": np.array([7, -7, 6, -1], np.int32), "b": np.array([2, 2, -4, 3], np.int32)}]
    return graph.model(made), feeds


def _booleans(x: builder.Tensor) -> Mapping[str, Any]:
    low, high = x < 0.2, x >= -0.3
    made = {
        name: getattr(ops, name)(low, high) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    }
    made |= {
        "bitwise_not": ops.bitwise_not(low),
        "and": low & high,
        "or": low | ~high,
        "xor": ops.logical_xor(low, high),
        "chosen": ops.select(low, x, -x),
    }
    made |= {
        "less_equal": x <= 0.0,
        "greater": x > 0.0,
        "equal": ops.equal(x, x),
        "not_equal": ops.not_equal(x, 0.0),
    }
    made |= {
        "all": ops.reduce_logical_and(high, [1]),
        "any": ops.reduce_logical_or(low, [0], keep_dims=True),
    }
    return made


def _reductions(x: builder.Tensor) -> Mapping[str, Any]:
    names = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
    made = {name: getattr(ops, name)(x, [1]) for name in names} | {
        "kept": ops.reduce_sum(x, [0, 1], keep_dims=True)
    }
    made["best"], made["places"] = ops.topk(
        x, 2, axis=-1, mode="max", sort="value", index_element_type="i64"
    )
    return made | {
        "matmul": ops.matmul(x, x, transpose_b=True),
        "softmax": ops.softmax(x, axis=-1),
        "cum": ops.cum_sum(x, 1, reverse=True),
    }


def _movements(x: builder.Tensor) -> Mapping[str, Any]:
    flat = ops.reshape(x, [6], special_zero=False)
    low, high = ops.split(x, 0, num_splits=2)
    made = {
        "flat": flat,
        "turned": ops.transpose(x, [1, 0]),
        "joined": ops.concat(x, x, axis=1),
        "low": low,
        "high": high,
    }
    made |= {
        "unsqueezed": ops.unsqueeze(x, [0, -1]),
        "squeezed": ops.squeeze(low, [0]),
        "tiled": ops.tile(x, [2, 1]),
    }
    made |= {
        "gathered": ops.gather(x, [2, 0], 1),
        "rows": x[::-1],
        "corner": x[1:, :2],
        "end": ops.gather(x, [-1, 0], 1),
        "one": x[0, 1],
        "new": x[None, ..., 1],
    }
    made |= {
        "kept": ops.reshape(x[:, :2], [0, 1, -1], special_zero=True),
        "last": ops.scatter_update(x, 2, x[:, 0], 1),
    }
    made |= {
        "lengths": ops.shape_of(x, output_type="i32"),
        "range": ops.range(0, 10, 3, output_type="i64"),
    }
    made |= {
        "sliced": ops.slice(x, [0, -1], [2, -100], [1, -2], [0, -1]),
        "chosen": ops.gather(x, ops.shape_of(x)[:1] - 4, 0),
    }
    made |= {
        "wide": ops.broadcast(flat[:3], [2, 3]),
        "updated": ops.scatter_update(x, [1], x[:1] * 5, 0),
    }
    made |= {
        "one_updated": ops.scatter_update(x, 0, x[1], 0),
        "last_updated": ops.scatter_update(x, [-1], x[:1] * 5, 0),
        "computed_updated": ops.scatter_update(x, ops.shape_of(x)[:1] - 3, x[:1] * 5, 0),
        "column": ops.scatter_update(x, [1], x[:, :1], 1),
        "everywhere": ops.broadcast(2.5, [2, 2]),
    }
    return made


def _while() -> tuple[Model, Feeds]:
    graph = builder.Graph("while")
    n, x = graph.parameter("n", "i64", []), graph.parameter("x", "f32", [2, 3])
    i, y = builder.while_loop(
        lambda i, v: i < n,
        lambda i, v: (i + 1, v * 1.5 + x),
        (graph.constant(0), x),
        maximum_iterations=4,
    )
    return graph.model({"i": i, "y": y}), [{"n": np.int64(count), "x": X} for count in (0, 1, 3, 9)]


def _for() -> tuple[Model, Feeds]:
    """The number of the iteration, values that are collected, and rows."""
    graph = builder.Graph("for")
    x = graph.parameter("x", "f32", [4, 3])
    kept = builder.Collected("kept")

    def body(i: Any, v: Any) -> Any:
        kept.append(ops.unsqueeze(v * ops.convert(i, destination_type="f32"), [0]))
        return v + 1.0

    last = builder.for_loop(3, body, x[0])
    rows = builder.map_fn(lambda row: ops.reduce_sum(row, [0]) * 2.0, x)
    totals = builder.scan(lambda total, row: total + row, x, x[0] * 0.0)
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    return graph.model({"last": last, "kept": kept.tensor, "rows": rows, "totals": totals}), [
        {"x": values}
    ]


def _nested() -> tuple[Model, Feeds]:
    graph = builder.Graph("nested")
    n, limit = graph.parameter("n", "i64", []), graph.parameter("limit", "f32", [])

    def inner(value: Any, i: Any) -> Any:
        return builder.cond(
            value > limit,
            lambda: value * 0.5,
            lambda: value * 3.0 + ops.convert(i, destination_type="f32"),
        )

    def outer(i: Any, value: Any) -> Any:
        return i + 1, builder.for_loop(2, lambda j, v: inner(v, j), value)

    _, value = builder.while_loop(
        lambda i, v: i < n, outer, (graph.constant(0), graph.constant(1.0))
    )
    arrays = builder.TensorArray("f32", 3)
    _, arrays = builder.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, value + 1.0)), (0, arrays)
    )
    made = {"value": value, "array": arrays.stack()}
    return graph.model(made), [
        {"n": np.int64(count), "limit": np.float32(limit)}
        for count, limit in ((0, 1), (2, 4), (5, 30))
    ]


MODELS: dict[str, Callable[[], tuple[Model, Feeds]]] = {
    "arithmetic": lambda: _floats(_arithmetic),
    "functions of one number": lambda: _floats(_unary),
    "whole numbers": _whole,
    "booleans": lambda: _floats(_booleans),
    "reductions": lambda: _floats(_reductions),
    "movements": lambda: _floats(_movements),
    "while": _while,
    "for": _for,
    "a branch in a loop in a loop": _nested,
}
"""A model and feeds, by what is in it."""

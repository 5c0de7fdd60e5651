"""Operations that a random graph may get next. Each looks for values that it can use, and makes
some where there are none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.drafts import Ref
from tests.engine.drawn.graph import (
    BOOLEAN,
    F32,
    FLOATS,
    I32,
    I64,
    MOST_ELEMENTS,
    U8,
    Growing,
    together,
)


def binary(g: Growing) -> Any:
    c = g.c
    v = g.some(lambda v: v.type is not BOOLEAN)
    if v is None:
        v = g.want(c.pick(g.options.floats), ())
    w = g.partner(v)
    kinds = ["Add", "Multiply", "Subtract", "Maximum", "Minimum"]
    opset = 1
    if v.type in FLOATS:
        kinds += ["SquaredDifference"]
        if g.options.exotic:
            kinds += ["Divide", "Mod", "FloorMod", "Power"]
    elif g.options.exotic:
        kinds += ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "SquaredDifference"]
    kind = c.pick(kinds)
    if kind.startswith("Bitwise"):
        opset = 13
    a, b = (v, w) if c.chance(70) else (w, v)
    ref = g.op(kind, a.ref, b.ref, opset=opset)
    g.put(ref, v.type, np.broadcast_shapes(v.shape, w.shape) if v.static else v.shape)


def arithmetic(g: Growing) -> Any:
    """What Python has an operator for."""
    v = g.some(lambda v: v.type is not BOOLEAN) or g.want(F32, ())
    w = g.partner(v)
    shape = np.broadcast_shapes(v.shape, w.shape) if v.static and w.static else v.shape
    return g.put(g.op(g.c.pick(["Add", "Subtract", "Multiply"]), v.ref, w.ref), v.type, shape)


def unary(g: Growing) -> Any:
    c = g.c
    v = g.some(lambda v: v.type is not BOOLEAN) or g.want(c.pick(g.options.floats), ())
    if v.type in FLOATS:
        kind = c.pick(
            ["Negative", "Abs", "Relu", "Clamp", "Floor", "Ceiling", "Sign"]
            + (
                [
                    "Exp",
                    "Tanh",
                    "Sigmoid",
                    "Sqrt",
                    "Sin",
                    "Cos",
                    "Erf",
                    "HSwish",
                    "Log",
                    "Round",
                    "Atan",
                    "Gelu",
                    "SoftPlus",
                    "Elu",
                    "Selu",
                ]
                if g.options.exotic
                else ["Tanh", "Sigmoid"]
            )
        )
    elif v.type is U8:
        kind = "Clamp"
    else:
        kind = c.pick(["Negative", "Abs", "Sign"])
    if kind == "Clamp":
        return g.put(
            g.op("Clamp", v.ref, min="0" if v.type is U8 else "-2", max="2"), v.type, v.shape
        )
    if kind == "HSwish":
        return g.put(g.op(kind, v.ref, opset=4), v.type, v.shape)
    if kind == "SoftPlus":
        return g.put(g.op(kind, v.ref, opset=4), v.type, v.shape)
    if kind == "Gelu":
        return g.put(
            g.op(kind, v.ref, opset=7, approximation_mode=c.pick(["ERF", "TANH"])), v.type, v.shape
        )
    if kind == "Round":
        return g.put(
            g.op(kind, v.ref, opset=5, mode=c.pick(["half_to_even", "half_away_from_zero"])),
            v.type,
            v.shape,
        )
    if kind == "Elu":
        return g.put(g.op(kind, v.ref, alpha="0.7"), v.type, v.shape)
    if kind == "Selu":
        return g.put(g.op(kind, v.ref, g.const(1.1, v.type), g.const(0.9, v.type)), v.type, v.shape)
    return g.put(g.op(kind, v.ref), v.type, v.shape)


def compare(g: Growing) -> Any:
    v = g.some(lambda v: v.type is not BOOLEAN) or g.want(F32, ())
    w = g.partner(v)
    kind = g.c.pick(["Less", "Greater", "LessEqual", "GreaterEqual", "Equal", "NotEqual"])
    return g.put(
        g.op(kind, v.ref, w.ref),
        BOOLEAN,
        np.broadcast_shapes(v.shape, w.shape) if v.static else v.shape,
    )


def logic(g: Growing) -> Any:
    v = g.some(lambda v: v.type is BOOLEAN) or compare(g)
    kind = g.c.pick(["LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot"])
    if kind == "LogicalNot":
        return g.put(g.op(kind, v.ref), BOOLEAN, v.shape)
    w = g.partner(v)
    return g.put(
        g.op(kind, v.ref, w.ref),
        BOOLEAN,
        np.broadcast_shapes(v.shape, w.shape) if v.static else v.shape,
    )


def select(g: Growing) -> Any:
    v = g.some(lambda v: v.static) or g.want(F32, ())
    w = g.partner(v)
    shape = np.broadcast_shapes(v.shape, w.shape)
    m = g.some(lambda m: m.type is BOOLEAN and m.static and together(shape, m.shape)) or g.want(
        BOOLEAN, ()
    )
    g.put(g.op("Select", m.ref, v.ref, w.ref), v.type, np.broadcast_shapes(shape, m.shape))


def conversion(g: Growing) -> Any:
    v = g.some() or g.want(F32, ())
    g.convert(v, g.any_type())


def of_constants(g: Growing) -> Any:
    """Operations on constants only."""
    c = g.c
    type, shape = g.any_type(), g.any_shape()
    before = list(g.pool)
    g.pool = []
    g.constant(type, shape)
    for _ in range(1 + c.integer(3)):
        c.pick([binary, unary, compare, select, conversion, shaping, reduce])(g)
    g.pool = before + g.pool


def shaping(g: Growing) -> Any:
    c = g.c
    v = g.some(lambda v: v.static and v.size > 0) or g.want(F32, (4,))
    rank, shape = len(v.shape), v.shape
    kinds = ["Reshape", "Unsqueeze", "ShapeOf", "Concat", "Tile"]
    if rank:
        kinds += [
            "Transpose",
            "Gather",
            "Slice",
            "StridedSlice",
            "Split",
            "Reverse",
            "Pad",
            "GatherOf",
            "ScatterUpdate",
        ]
    if 1 in shape:
        kinds += ["Squeeze"]
    kind = c.pick(kinds)
    if kind == "Reshape":
        ways = [(v.size,), (1, v.size), (-1,)] + ([(v.size // 2, 2)] if v.size % 2 == 0 else [])
        way = c.pick(ways)
        ref = g.op("Reshape", v.ref, g.ints(list(way)), special_zero=c.pick(["false", "true"]))
        return g.put(ref, v.type, (v.size,) if way == (-1,) else way)
    if kind == "Unsqueeze":
        axis = c.integer(rank + 1)
        return g.put(
            g.op("Unsqueeze", v.ref, g.ints([axis])), v.type, (*shape[:axis], 1, *shape[axis:])
        )
    if kind == "Squeeze":
        axis = shape.index(1)
        return g.put(
            g.op("Squeeze", v.ref, g.ints([axis])), v.type, shape[:axis] + shape[axis + 1 :]
        )
    if kind == "ShapeOf":
        type = c.pick([I64, I32])
        return g.put(g.op("ShapeOf", v.ref, opset=3, output_type=type.value), type, (rank,))
    if kind == "Concat":
        if not rank:
            v = g.put(g.op("Unsqueeze", v.ref, g.ints([0])), v.type, (1,))
            shape, rank = (1,), 1
        axis = c.integer(rank)
        other = (
            g.some(
                lambda w: (
                    w.type is v.type
                    and w.static
                    and len(w.shape) == rank
                    and all(
                        a == b
                        for k, (a, b) in enumerate(zip(shape, w.shape, strict=False))
                        if k != axis
                    )
                )
            )
            or v
        )
        made = list(shape)
        made[axis] += other.shape[axis]
        if np.prod(made) > MOST_ELEMENTS:
            return None
        return g.put(
            g.op("Concat", v.ref, other.ref, axis=str(axis - (rank if c.chance(20) else 0))),
            v.type,
            made,
        )
    if kind == "Tile":
        if v.size * 2 > MOST_ELEMENTS or not rank:
            return None
        return g.put(
            g.op("Tile", v.ref, g.ints([1] * (rank - 1) + [2])),
            v.type,
            (*shape[:-1], shape[-1] * 2),
        )
    axis = c.integer(rank)
    if kind == "Transpose":
        order = list(range(rank))
        if c.chance(70):
            order.reverse()
        return g.put(
            g.op("Transpose", v.ref, g.ints(order)), v.type, tuple(shape[k] for k in order)
        )
    if kind == "Gather":
        where = c.pick([(), (1,), (2,)])
        at = g.ints(
            np.array([c.integer(shape[axis]) for _ in range(int(np.prod(where)))]).reshape(where)
        )
        return g.put(
            g.op("Gather", v.ref, at, g.ints(axis), opset=8, batch_dims="0"),
            v.type,
            shape[:axis] + where + shape[axis + 1 :],
        )
    if kind == "GatherOf":  # at a computed place
        n = g.want(I64, ())
        at = g.op("Mod" if c.chance(30) else "FloorMod", n.ref, g.const(shape[axis], I64))
        return g.put(
            g.op("Gather", v.ref, at, g.ints(axis), opset=8, batch_dims="0"),
            v.type,
            shape[:axis] + shape[axis + 1 :],
        )
    if kind == "Slice":
        backwards = c.chance(25)
        first = c.integer(shape[axis])
        length = shape[axis] - first
        start, stop, step = (
            ([shape[axis] - 1], [first - shape[axis] - 1], [-1])
            if backwards
            else ([first], [10**6], [1])
        )
        ref = g.op(
            "Slice", v.ref, g.ints(start), g.ints(stop), g.ints(step), g.ints([axis]), opset=8
        )
        return g.put(ref, v.type, (*shape[:axis], length, *shape[axis + 1 :]))
    if kind == "StridedSlice":
        ref = g.op(
            "StridedSlice",
            v.ref,
            g.ints([0]),
            g.ints([1]),
            g.ints([1]),
            begin_mask="0",
            end_mask="0",
            shrink_axis_mask="1",
            new_axis_mask="",
            ellipsis_mask="",
        )
        return g.put(ref, v.type, shape[1:])
    if kind == "Split":
        if shape[axis] % 2:
            return None
        ref = g.op("Split", v.ref, g.ints(axis), outputs=2, num_splits="2")
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        g.put(Ref(ref.layer, 1), v.type, half)
        return g.put(ref, v.type, half)
    if kind == "Reverse":
        return g.put(g.op("Reverse", v.ref, g.ints([axis]), mode="index"), v.type, shape)
    if kind == "Pad":
        ref = g.op(
            "Pad",
            v.ref,
            g.ints([0] * rank),
            g.ints([1] * rank),
            g.const(0, v.type),
            pad_mode="constant",
        )
        return g.put(ref, v.type, tuple(n + 1 for n in shape))
    if kind == "ScatterUpdate":
        n = g.fit(g.want(I64, ()), I64, (1,))
        at = g.op("FloorMod", n.ref, g.const(shape[axis], I64))
        update = g.want(v.type, (*shape[:axis], 1, *shape[axis + 1 :]))
        return g.put(
            g.op("ScatterUpdate", v.ref, at, update.ref, g.ints([axis]), opset=3), v.type, shape
        )
    return None


def reduce(g: Growing) -> Any:
    c = g.c
    v = g.some(lambda v: v.static and v.shape != () and v.type is not U8) or g.want(F32, (3,))
    kinds = {
        "b": ["ReduceLogicalAnd", "ReduceLogicalOr"],
        "f": ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL2"],
        "i": ["ReduceSum", "ReduceMax", "ReduceMin"],
        "u": ["ReduceMax"],
    }
    kind = c.pick(kinds[v.type.dtype.kind])
    axis, keep = c.integer(len(v.shape)), c.chance(30)
    shape = list(v.shape)
    if keep:
        shape[axis] = 1
    else:
        del shape[axis]
    g.put(
        g.op(
            kind,
            v.ref,
            g.ints([axis]),
            keep_dims="true" if keep else "false",
            opset=4 if kind == "ReduceL2" else 1,
        ),
        v.type,
        shape,
    )


def matmul(g: Growing) -> Any:
    c = g.c
    type = c.pick(g.options.floats)
    v = g.some(lambda v: v.static and len(v.shape) in (1, 2) and v.type in FLOATS) or g.want(
        type, (2, 3)
    )
    k, n = v.shape[-1], c.pick([2, 3, 16, 32] if g.options.large else [2, 3])
    back = c.chance(30)
    w = g.want(v.type, (n, k)) if back else g.want(v.type, (k, n))
    ref = g.op("MatMul", v.ref, w.ref, transpose_a="false", transpose_b="true" if back else "false")
    g.put(ref, v.type, (*v.shape[:-1], n))


def normal(g: Growing) -> Any:
    c = g.c
    v = g.some(lambda v: v.static and v.shape != () and v.type in FLOATS) or g.want(F32, (3,))
    kind = c.pick(["Softmax", "LogSoftmax", "CumSum", "MVN", "TopK"])
    if kind in ("Softmax", "LogSoftmax"):
        return g.put(
            g.op(kind, v.ref, opset=8 if kind == "Softmax" else 5, axis="-1"), v.type, v.shape
        )
    if kind == "CumSum":
        return g.put(
            g.op(kind, v.ref, g.ints(0), opset=3, exclusive="false", reverse="false"),
            v.type,
            v.shape,
        )
    if kind == "MVN":
        return g.put(
            g.op(
                kind,
                v.ref,
                g.ints([-1]),
                opset=6,
                normalize_variance="true",
                eps="1e-6",
                eps_mode="inside_sqrt",
            ),
            v.type,
            v.shape,
        )
    ref = g.op(
        "TopK",
        v.ref,
        g.const(1, I64),
        opset=3,
        outputs=2,
        axis="-1",
        mode=c.pick(["max", "min"]),
        sort="value",
        index_element_type="i64",
    )
    g.put(Ref(ref.layer, 1), I64, (*v.shape[:-1], 1))
    return g.put(ref, v.type, (*v.shape[:-1], 1))


def random_numbers(g: Growing) -> Any:
    c = g.c
    shape = c.pick([(1,), (2,), (3,), (2, 3)])
    seed = str(c.pick([0, 7]))
    ref = g.op(
        "RandomUniform",
        g.ints(list(shape)),
        g.const(0.0),
        g.const(1.0),
        opset=8,
        global_seed=seed,
        op_seed=seed,
        output_type="f32",
    )
    return g.put(ref, F32, shape)


def variable(g: Growing) -> Any:
    if len(g.variables) >= 3:
        return None
    c = g.c
    type, shape = c.pick([F32, F32, I64]), c.pick([(), (1,), (3,)])
    name = f"state{len(g.variables)}"
    g.variables.append(name)
    said: dict[str, Any] = {
        "variable_id": name,
        "variable_type": type.value,
        "variable_shape": ",".join(map(str, shape)),
    }
    read = g.put(g.op("ReadValue", g.want(type, shape).ref, opset=6, **said), type, shape)
    new = g.put(g.op("Add", read.ref, g.want(type, shape).ref), type, shape)
    if c.chance(50):
        new = g.clamped(new)
    g.put(g.op("Assign", new.ref, opset=6, variable_id=name), type, shape)
    return read


SIMPLE = [
    binary,
    unary,
    compare,
    logic,
    select,
    conversion,
    of_constants,
    shaping,
    reduce,
    matmul,
    normal,
]

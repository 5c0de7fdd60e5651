"""Nodes of ONNX operations with random attributes and inputs of any element type and shape, with
empty ones and all special floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

TYPES: Mapping[str, np.dtype] = {
    "tensor(bfloat16)": np.dtype(ml_dtypes.bfloat16),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(bool)": np.dtype(np.bool_),
    **{
        f"tensor({name})": np.dtype(name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
}
_SPECIAL = [
    0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-40,
    1e38,
    1,
    -1,
    0.5,
    2,
    -3,
    88,
    -89,
    1.5,
    2.5,
]
Dice = np.random.Generator
Node = tuple[list[Any], dict[str, Any], int]
"""Inputs (None: left out), attributes, number of outputs."""


def drawn(dice: Dice, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """Numbers of all sizes, among them those at which floats behave differently."""
    if dtype.kind == "b":
        return dice.random(shape) < 0.5
    if dtype.kind in "iu":
        small = dice.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
        limits = np.iinfo(dtype)
        return np.where(
            dice.random(shape) < 0.8,
            small,
            dice.choice(np.array([limits.min, limits.max], dtype), shape),
        )
    scattered = dice.standard_normal(shape) * 10 ** dice.uniform(-2, 2, shape)
    with np.errstate(all="ignore"):
        return np.where(dice.random(shape) < 0.7, scattered, dice.choice(_SPECIAL, shape)).astype(
            dtype
        )


def lengths(dice: Dice, least: int = 0, most: int = 4) -> tuple[int, ...]:
    return tuple(
        int(one)
        for one in dice.choice(
            [0, 1, 2, 3, 5], int(dice.integers(least, most + 1)), p=[0.07, 0.3, 0.25, 0.23, 0.15]
        )
    )


def broadcast_with(dice: Dice, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that is broadcast together with another to no more elements."""
    kept = list(shape)[int(dice.integers(0, len(shape) + 1)) :]
    return tuple(1 if dice.random() < 0.3 else one for one in kept)


_ATTRIBUTES: Mapping[str, Sequence[dict[str, Any]]] = {
    "Mod": ({"fmod": 0}, {"fmod": 1}),
    "IsInf": (
        {},
        {"detect_negative": 0},
        {"detect_positive": 0},
        {"detect_negative": 0, "detect_positive": 0},
    ),
    "LeakyRelu": ({}, {"alpha": 0.25}),
    "Elu": ({}, {"alpha": 2.0}),
    "HardSigmoid": ({}, {"alpha": 0.5, "beta": 0.25}),
}
_VARIADIC = frozenset({"Max", "Min", "Sum"})


def elementwise(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice)
    inputs = [drawn(dice, dtype, shape)]
    attributes = dict(dice.choice(np.array(_ATTRIBUTES.get(schema.name, ({},)), object)))
    if schema.name == "Clip":
        if schema.since_version < 11:
            return (
                inputs,
                dice.choice(np.array([{}, {"min": -1.5}, {"min": -2.0, "max": 2.0}], object)),
                1,
            )
        bounds = [drawn(dice, dtype, ()) if dice.random() < 0.7 else None for _ in range(2)]
        return [*inputs, *bounds][: int(dice.integers(1, 4))], {}, 1
    count = int(dice.integers(1, 5)) if schema.name in _VARIADIC else len(schema.inputs)
    inputs += [drawn(dice, dtype, broadcast_with(dice, shape)) for _ in range(count - 1)]
    if schema.name == "Where":
        inputs[1:] = [
            drawn(dice, TYPES[f"tensor({dice.choice(['float', 'int64', 'bool'])})"], one.shape)
            for one in inputs[1:]
        ]
        inputs[2] = drawn(dice, inputs[1].dtype, inputs[2].shape)
    if schema.name == "Pow":
        inputs[1] = (
            inputs[1] & 3
            if dtype.kind in "iu"
            else np.array(dice.integers(-1, 4), dtype)
            if dice.random() < 0.5
            else inputs[1]
        )
    if schema.name == "Mod" and dtype.kind in "iu":
        inputs[1] = np.where(inputs[1] == 0, np.array(1, dtype), inputs[1])
        attributes = {"fmod": 0} if dtype.kind == "u" else attributes
    return inputs, attributes, 1


def axes_of(dice: Dice, rank: int, *, least: int = 0) -> list[int]:
    """Axes of a rank, some counted from the end."""
    chosen = dice.permutation(rank)[: int(dice.integers(min(least, rank), rank + 1))]
    return [int(axis) - (rank if dice.random() < 0.4 else 0) for axis in chosen]


def concat(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = list(lengths(dice, 1))
    axis = int(dice.integers(-len(shape), len(shape)))
    parts = [
        drawn(dice, dtype, [*shape[: axis % len(shape)], length, *shape[axis % len(shape) + 1 :]])
        for length in (2, 0, 3)
    ]
    return parts[: int(dice.integers(1, 4))], {"axis": axis}, 1


def constant_of_shape(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    kinds = [np.dtype(name) for name in ("float32", "int64", "bool", "float16")]
    value = drawn(dice, kinds[int(dice.integers(4))], (1,))
    return [np.array(lengths(dice), np.int64)], {"value": value} if dice.random() < 0.7 else {}, 1


def expand(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice)
    one, other = (shape, broadcast_with(dice, shape))[:: int(dice.choice([1, -1]))]
    return [drawn(dice, dtype, one), np.array(other, np.int64)], {}, 1


def flatten(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = tuple(max(one, 1) for one in lengths(dice))
    return [drawn(dice, dtype, shape)], {"axis": int(dice.integers(0, len(shape) + 1))}, 1


def gather(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = tuple(max(one, 1) for one in lengths(dice, 1))
    axis = int(dice.integers(-len(shape), len(shape)))
    indices = dice.integers(-shape[axis], shape[axis], lengths(dice, 0, 2))
    return (
        [drawn(dice, dtype, shape), np.asarray(indices, dice.choice(["int32", "int64"]))],
        {"axis": axis},
        1,
    )


def range_(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    start, limit = dice.integers(-20, 20, 2)
    delta = dice.choice([-3, -1, 1, 2]) * (1 if dtype.kind == "i" else 0.5)
    return [np.array(one, dtype) for one in (start, limit, delta)], {}, 1


def reshape(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = tuple(max(one, 1) for one in lengths(dice))
    target = [*shape]
    if target and dice.random() < 0.5:
        target[int(dice.integers(len(target)))] = 0
    if dice.random() < 0.5:
        target.insert(int(dice.integers(len(target) + 1)) if 0 not in target else len(target), -1)
    attributes = (
        {"allowzero": 1}
        if schema.since_version >= 14 and 0 not in target and dice.random() < 0.5
        else {}
    )
    return [drawn(dice, dtype, shape), np.array(target, np.int64)], attributes, 1


def shape_of(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice)
    attributes = (
        {"start": int(dice.integers(len(shape) + 1))}
        if schema.since_version >= 15 and dice.random() < 0.5
        else {}
    )
    return [drawn(dice, dtype, shape)], attributes, 1


def size_of(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    return [drawn(dice, dtype, lengths(dice))], {}, 1


def slice_(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice, 1)
    axes = axes_of(dice, len(shape))
    kind = dice.choice(["int32", "int64"])
    limits = np.iinfo(kind)
    steps = dice.choice([-2, -1, 1, 2, 3], len(axes))
    starts = np.array(
        [dice.choice([0, 1, -1, 7] if step > 0 else [-1, 1, 7, limits.max]) for step in steps], kind
    )
    ends = dice.choice([0, 2, -1, -9, limits.max, limits.min], len(axes))
    inputs: list[np.ndarray | None] = [
        drawn(dice, dtype, shape),
        starts,
        ends.astype(kind),
        np.array(axes, kind),
        steps.astype(kind),
    ]
    if (steps == 1).all() and dice.random() < 0.5:
        del inputs[4]
    if axes == list(range(len(axes))) and dice.random() < 0.5:
        inputs[3:4] = [None] if len(inputs) > 4 else []
    return inputs, {}, 1


def split(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = list(lengths(dice, 1))
    axis = int(dice.integers(-len(shape), len(shape)))
    parts = [int(one) for one in dice.integers(0, 4, int(dice.integers(1, 5)))]
    shape[axis] = sum(parts)
    data = drawn(dice, dtype, shape)
    if dice.random() < 0.5:
        by_number = schema.since_version >= 18
        shape[axis] = len(parts) * 2 - (by_number and len(parts) > 1)
        attributes = {"num_outputs": len(parts)} if by_number else {}
        return [drawn(dice, dtype, shape)], {"axis": axis, **attributes}, len(parts)
    if schema.since_version < 13:
        return [data], {"axis": axis, "split": tuple(parts)}, len(parts)
    return [data, np.array(parts, np.int64)], {"axis": axis}, len(parts)


def squeeze(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice)
    ones = [
        axis - (len(shape) if dice.random() < 0.4 else 0)
        for axis, length in enumerate(shape)
        if length == 1
    ]
    return (
        [
            drawn(dice, dtype, shape),
            *([np.array(ones, np.int64)] if ones and dice.random() < 0.6 else []),
        ],
        {},
        1,
    )


def top_k(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    """Of numbers that differ: which of equal ones comes first is not said."""
    shape = tuple(max(one, 1) for one in lengths(dice, 1))
    axis = int(dice.integers(-len(shape), len(shape)))
    attributes = (
        {"largest": int(dice.integers(2))}
        if "largest" in schema.attributes and dice.random() < 0.7
        else {}
    )
    count = int(dice.integers(1, shape[axis] + 1))
    numbers = dice.permutation(math.prod(shape)).reshape(shape).astype(dtype)
    return [numbers, np.array([count], np.int64)], {"axis": axis, **attributes}, 2


def transpose(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice)
    perm = tuple(int(axis) for axis in dice.permutation(len(shape)))
    return [drawn(dice, dtype, shape)], {"perm": perm} if dice.random() < 0.7 else {}, 1


def unsqueeze(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice, 0, 3)
    count = int(dice.integers(1, 4))
    rank = len(shape) + count
    axes = [
        int(axis) - (rank if dice.random() < 0.4 else 0) for axis in dice.permutation(rank)[:count]
    ]
    return (
        [
            drawn(dice, dtype, shape),
            np.array(axes[0] if count == 1 and dice.random() < 0.3 else axes, np.int64),
        ],
        {},
        1,
    )


MOVING: Mapping[str, Callable[[Any, Dice, np.dtype], Node]] = {
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "Range": range_,
    "Reshape": reshape,
    "Shape": shape_of,
    "Size": size_of,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "TopK": top_k,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}


def tame(dice: Dice, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """Numbers whose sums in any order differ by roundings alone."""
    if dtype.kind in "iu":
        return dice.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    if dtype.kind == "b":
        return dice.random(shape) < 0.5
    return dice.uniform(0.25, 2, shape).astype(dtype)


def product(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    batch, (rows, inner, columns) = lengths(dice, 0, 2), dice.integers(1, 9, 3)
    one, other = (*batch, rows, inner), (*broadcast_with(dice, batch), inner, columns)
    one, other = (
        one if dice.random() < 0.8 else (inner,),
        other if dice.random() < 0.8 else (inner,),
    )
    return [tame(dice, dtype, one), tame(dice, dtype, other)], {}, 1


def gemm(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    rows, inner, columns = dice.integers(1, 9, 3)
    turned = [bool(one) for one in dice.integers(0, 2, 2)]
    one, other = (
        (rows, inner)[:: -1 if turned[0] else 1],
        (inner, columns)[:: -1 if turned[1] else 1],
    )
    inputs = [tame(dice, dtype, one), tame(dice, dtype, other)]
    if schema.since_version < 11 or dice.random() < 0.8:
        inputs.append(tame(dice, dtype, broadcast_with(dice, (rows, columns))))
    scales: dict[str, Any] = (
        {"alpha": 0.5, "beta": 2.0}
        if dice.random() < 0.4
        else {"beta": 0.0}
        if dice.random() < 0.3
        else {}
    )
    return inputs, {"transA": int(turned[0]), "transB": int(turned[1]), **scales}, 1


def along_an_axis(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice, 1)
    return [drawn(dice, dtype, shape)], {"axis": int(dice.integers(-len(shape), len(shape)))}, 1


def layer_normalization(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = tuple(max(one, 1) for one in lengths(dice, 1))
    axis = int(dice.integers(-len(shape), len(shape)))
    inputs = [
        drawn_finite(dice, dtype, shape),
        *(tame(dice, dtype, shape[axis:]) for _ in range(int(dice.integers(1, 3)))),
    ]
    return inputs, {"axis": axis, **({"epsilon": 0.5} if dice.random() < 0.5 else {})}, 1


def drawn_finite(dice: Dice, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    return dice.standard_normal(shape).astype(dtype)


def reduction(schema: Any, dice: Dice, dtype: np.dtype) -> Node:
    shape = lengths(dice)
    if schema.name in ("ReduceMax", "ReduceMin"):
        data = drawn(dice, dtype, shape)
        data = np.where(
            data == 0, np.zeros((), dtype), data
        )  # which of two zeros is greater is left open
    else:
        data = tame(dice, dtype, shape)
    axes, attributes = axes_of(dice, len(shape), least=1), {"keepdims": int(dice.integers(2))}
    by_input = schema.since_version >= (13 if schema.name == "ReduceSum" else 18)
    if not axes or dice.random() < 0.2:
        return (
            [data],
            attributes | ({"noop_with_empty_axes": 1} if by_input and dice.random() < 0.5 else {}),
            1,
        )
    return (
        ([data, np.array(axes, np.int64)], attributes, 1)
        if by_input
        else ([data], attributes | {"axes": tuple(axes)}, 1)
    )

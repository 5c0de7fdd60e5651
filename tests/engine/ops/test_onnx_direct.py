"""ONNX operations that are computed here directly give what the onnx package's reference kernels
give, whatever the types and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.executor.plan.slots import settle
from loopscope.ops.declare import Operation, typed
from loopscope.ops.onnx import table, tensor_rows
from loopscope.ops.onnx.reference import prepared
from loopscope.ops.onnx.row import OnnxRow
from loopscope.ops.onnx.table import find_row
from loopscope.ops.onnx_catalogue import ONNX
from tests.draws import draws
from tests.engine.ops.onnx_nodes import (
    MOVING,
    TYPES,
    Dice,
    Node,
    along_an_axis,
    elementwise,
    gemm,
    layer_normalization,
    product,
    reduction,
)

Schema = Any
_SEEDS = st.integers(0, 2**32 - 1)
_DRAWS = settings(max_examples=draws(20), deadline=None)


def types_of(schema: Any) -> list[np.dtype]:
    """The element types that the first input of an operation may have."""
    names = next(
        (
            one.allowed_type_strs
            for one in schema.type_constraints
            if one.type_param_str == schema.inputs[0].type_str
        ),
        (),
    )
    return [TYPES[name] for name in names if name in TYPES] or [TYPES[schema.inputs[0].type_str]]


def direct_names(rows: Iterable[OnnxRow]) -> set[str]:
    """The operations of rows whose kernel takes the machine's values."""
    return {row.name for row in rows if _is_direct(row)}


def _is_direct(row: OnnxRow) -> bool:
    return row.kernel is not None and not row.convert and row.attributes is None


def versions_of(names: Iterable[str]) -> list[Any]:
    """The versions of operations whose row has a kernel that takes the machine's values."""
    return [
        schema
        for schema in onnx.defs.get_all_schemas_with_history()
        if not schema.domain
        and schema.name in names
        and (row := find_row("", schema.name, schema.since_version)) is not None
        and _is_direct(row)
    ]


def operation_of(schema: Schema) -> Operation:
    operation = ONNX.find(schema.name, f"ai.onnx {schema.since_version}")
    assert operation is not None
    return operation


def ours(schema: Schema, node: Node) -> tuple[np.ndarray, ...]:
    inputs, attributes, outputs = node
    operation = operation_of(schema)
    assert operation.kernel is not None
    assert operation.prepare is None
    counted = {"outputs": outputs} if operation.counts_outputs else {}
    with np.errstate(all="ignore"):
        made = operation.kernel(*map(settle, inputs), **typed(operation, attributes), **counted)
    return made[:outputs] if operation.outputs != 1 else (made,)


def theirs(schema: Schema, node: Node, *, in_f32: bool = False) -> tuple[np.ndarray, ...]:
    """What the reference gives; ``in_f32``: for the same numbers in f32, rounded once."""
    inputs, attributes, outputs = node
    kernel = prepared(
        schema,
        int(schema.since_version),
        typed(operation_of(schema), attributes),
        outputs,
        drawn=False,
    )
    with np.errstate(all="ignore"):
        if not in_f32:
            return tuple(kernel(*inputs))
        return tuple(
            one.astype(inputs[0].dtype)
            for one in kernel(*[_in_f32(one, inputs[0].dtype) for one in inputs])
        )


def _in_f32(one: np.ndarray, narrow: np.dtype) -> np.ndarray:
    return one.astype(np.float32) if one.dtype == narrow else one


def assert_same(mine: Any, other: Any, steps: float) -> None:
    """Alike to the last bit (a zero's sign too, not that of NaN), or within so many roundings."""
    assert mine.dtype == other.dtype
    assert mine.shape == other.shape
    if mine.dtype.kind in "biu":
        np.testing.assert_array_equal(mine, other)
        return
    one, two = np.asarray(mine).astype(np.float64), np.asarray(other).astype(np.float64)
    if steps:
        info = ml_dtypes.finfo(mine.dtype)
        np.testing.assert_allclose(
            one, two, rtol=steps * float(info.eps), atol=steps * float(info.smallest_normal)
        )
    else:
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(
            np.signbit(one)[~np.isnan(one)], np.signbit(two)[~np.isnan(two)]
        )


def compare(
    schema: Schema,
    draw: Callable[[Schema, Dice, np.dtype], Node],
    seed: int,
    *,
    once: bool = False,
    steps: float = 0,
) -> None:
    """``once``: floats of up to 16 bits are rounded once where the reference rounds after each
    of its steps.
    """
    dice = np.random.default_rng(seed)
    dtypes = [one for one in types_of(schema) if one.kind not in _NOT_COMPARED.get(schema.name, "")]
    dtype = dtypes[int(dice.integers(len(dtypes)))]
    node = draw(schema, dice, dtype)
    in_f32 = once and dtype.kind not in "biu" and dtype.itemsize == 2
    for mine, other in zip(ours(schema, node), theirs(schema, node, in_f32=in_f32), strict=True):
        if schema.name == "Sum":
            other = np.where((mine == 0) & (other == 0), mine, other)[
                ()
            ]  # ours keeps -0, as the runtime does
        if schema.name == "Clip" and schema.since_version >= 11 and dtype.kind == "f":
            other = _within_finite_bounds(other, node[0][1:])
        if schema.name == "Erf" and dtype == np.float64:
            mine, other = (
                mine.astype(np.float32),
                other.astype(np.float32),
            )  # theirs is rounded to f32
        assert_same(mine, other, 1 if in_f32 else steps)


def _within_finite_bounds(clipped: np.ndarray, bounds: Sequence[np.ndarray | None]) -> np.ndarray:
    """A bound that is left out is, by its definition, the limit of finite numbers; theirs has
    none.
    """
    least, most = (*bounds, None, None)[:2]
    limits = np.finfo(clipped.dtype)
    made: np.ndarray = np.clip(
        clipped, limits.min if least is None else None, limits.max if most is None else None
    )
    return made


_NOT_COMPARED: Mapping[str, str] = {
    # Theirs divides by zero and rounds down; see test_onnx_numbers.py.
    "Div": "iu",
    # Theirs refuses integers, which old versions allow.
    "ReduceLogSum": "iu",
}
_WIDE_STEPS: Mapping[str, float] = {
    # Both formulas round thrice; the runtime has no denormals where the reference has them.
    "Sigmoid": 4,
    "Softplus": 4,
    # One formula takes a tanh of a logarithm, ours a fraction of powers of e.
    "Mish": 4,
    # A square is a product, and a cube two, as in the runtime.
    "Pow": 2,
    # Theirs is computed in f64.
    "Erf": 1,
}
_ONCE = frozenset(
    {"Elu", "Erf", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Sigmoid", "Softplus"}
)


def ids(schema: Schema) -> str:
    return f"{schema.name}-{schema.since_version}"


@pytest.mark.parametrize("schema", versions_of(direct_names(tensor_rows.ELEMENTWISE)), ids=ids)
@_DRAWS
@given(seed=_SEEDS)
def test_elementwise(schema: Schema, seed: int) -> None:
    compare(
        schema, elementwise, seed, once=schema.name in _ONCE, steps=_WIDE_STEPS.get(schema.name, 0)
    )


@pytest.mark.parametrize("schema", versions_of(MOVING), ids=ids)
@_DRAWS
@given(seed=_SEEDS)
def test_moving(schema: Schema, seed: int) -> None:
    compare(schema, MOVING[schema.name], seed)


_FOLDS: Mapping[str, tuple[Callable[[Schema, Dice, np.dtype], Node], bool, float]] = {
    # type: nodes, whether narrow floats are rounded once, roundings by which sums in another order may differ
    "MatMul": (product, True, 16),
    "Gemm": (gemm, True, 16),
    "Softmax": (along_an_axis, False, 4),
    "LayerNormalization": (layer_normalization, True, 0),
    **dict.fromkeys(
        ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceProd", "ReduceSum"), (reduction, True, 4)
    ),
    "ReduceMax": (reduction, False, 0),
    "ReduceMin": (reduction, False, 0),
}
_BY_THE_RUNTIME = frozenset({"LogSoftmax", "ReduceLogSumExp", "ReduceMean", "ReduceSumSquare"})
"""Theirs overflows, or refuses some types; see ``test_onnx_own.py``."""
_COMPARED_ELSEWHERE = frozenset(
    {
        "Col2Im",
        "CumSum",
        "Identity",
        "InstanceNormalization",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "RMSNormalization",
        "Scatter",
        "ScatterElements",
        "ScatterND",
    }
)


@pytest.mark.parametrize("schema", versions_of(_FOLDS), ids=ids)
@_DRAWS
@given(seed=_SEEDS)
def test_folding(schema: Schema, seed: int) -> None:
    draw, once, steps = _FOLDS[schema.name]
    compare(schema, draw, seed, once=once, steps=steps)


def test_every_row_is_compared() -> None:
    assert set(MOVING) == direct_names(tensor_rows.MOVEMENT) - _COMPARED_ELSEWHERE
    folds = direct_names((*table.MATRIX, *table.NORMALIZATION)) - _COMPARED_ELSEWHERE
    assert set(_FOLDS) | _BY_THE_RUNTIME == folds

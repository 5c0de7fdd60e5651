"""Derivatives of ONNX's operations: those of the operations of OpenVINO that are the same
functions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse
from loopscope.ops.onnx.openvino_rules import by


def same_as(openvino: str) -> Gradient:
    def gradient(at: Reverse, /) -> Adjoints:
        if openvino in ("Maximum", "Minimum") and len(at.inputs) != 2:
            raise ValueError(
                f"it has {len(at.inputs)} inputs, and only the one of two is an operation of OpenVINO's"
            )
        return by(
            openvino,
            at,
            at.inputs,
            {name: value for name, value in at.attributes.items() if value is not None},
        )

    return gradient


def total(at: Reverse, /) -> Adjoints:
    """Of any number of terms."""
    return [at.sum_to(at.adjoint, one) for one in at.inputs]


def mean(at: Reverse, /) -> Adjoints:
    return [at.sum_to(at.adjoint / float(len(at.inputs)), one) for one in at.inputs]


def leaky_relu(at: Reverse, /) -> Adjoints:
    data = at.inputs[0]
    return (at.ops.select(data < 0.0, at.adjoint * at.attributes["alpha"], at.adjoint),)


def power(at: Reverse, /) -> Adjoints:
    base, exponent = at.inputs
    if base.element_type is not exponent.element_type:
        exponent = at.ops.convert_like(exponent, base)
        return [*by("Power", at, (base, exponent), {})[:1], None]
    return by("Power", at, at.inputs, {})


def reciprocal(at: Reverse, /) -> Adjoints:
    return (-at.adjoint * at.outputs[0] * at.outputs[0],)


def matmul(at: Reverse, /) -> Adjoints:
    return by("MatMul", at, at.inputs, {"transpose_a": False, "transpose_b": False})


def gemm(at: Reverse, /) -> Adjoints:
    """``alpha A B + beta C``, each operand transposed where it is asked for."""
    alpha, beta = at.attributes["alpha"], at.attributes["beta"]
    transposes = {
        "transpose_a": bool(at.attributes["transA"]),
        "transpose_b": bool(at.attributes["transB"]),
    }
    factors = by("MatMul", replace(at, adjoints=(at.adjoint * alpha,)), at.inputs[:2], transposes)[
        :2
    ]
    return [*factors, *(at.sum_to(at.adjoint * beta, one) for one in at.inputs[2:])]


def same_elements(at: Reverse, /) -> Adjoints:
    return [at.reshaped(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1)]


def identity(at: Reverse, /) -> Adjoints:
    return (at.adjoint,)


def cast(at: Reverse, /) -> Adjoints:
    return [at.ops.convert_like(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1)]


def transpose(at: Reverse, /) -> Adjoints:
    order = at.constant(np.array(at.attributes["perm"] or (), np.int64))
    return by("Transpose", at, (*at.inputs, order), {})


def concat(at: Reverse, /) -> Adjoints:
    return by("Concat", at, at.inputs, {"axis": at.attributes["axis"]})


def split(at: Reverse, /) -> Adjoints:
    parts = [at.adjoint_of(number) for number in range(len(at.outputs))]
    return [at.ops.concat(*parts, axis=at.attributes["axis"] or 0), *[None] * (len(at.inputs) - 1)]


def gather(at: Reverse, /) -> Adjoints:
    return by(
        "Gather",
        at,
        (*at.inputs, at.constant(np.array(at.attributes["axis"] or 0, np.int64))),
        {"batch_dims": 0},
    )


def gather_elements(at: Reverse, /) -> Adjoints:
    return by("GatherElements", at, at.inputs, {"axis": at.attributes["axis"] or 0})


def slice_(at: Reverse, /) -> Adjoints:
    data, starts, ends, *rest = at.inputs
    if not starts.shape.is_static:
        raise ValueError("it is not known how many axes it slices")
    count = starts.shape.lengths[0]
    axes = rest[0] if rest else at.constant(np.arange(count))
    steps = rest[1] if len(rest) > 1 else at.constant(np.ones(count, np.int64))
    return [
        by("Slice", at, (data, starts, ends, steps, axes), {})[0],
        *[None] * (len(at.inputs) - 1),
    ]


def where(at: Reverse, /) -> Adjoints:
    return by("Select", at, at.inputs, {})


def expand(at: Reverse, /) -> Adjoints:
    return [at.sum_to(at.adjoint, at.inputs[0]), None]


def along_an_axis(openvino: str) -> Gradient:
    return lambda at: by(
        openvino,
        at,
        at.inputs,
        {"axis": -1 if at.attributes["axis"] is None else at.attributes["axis"]},
    )


def reduction(openvino: str) -> Gradient:
    def gradient(at: Reverse, /) -> Adjoints:
        data = at.inputs[0]
        if len(at.inputs) > 1:
            axes = at.inputs[1]
        elif at.attributes.get("axes"):
            axes = at.constant(np.array(at.attributes["axes"], np.int64))
        elif at.attributes.get("noop_with_empty_axes"):
            raise ValueError("it folds nothing, and says so by noop_with_empty_axes")
        elif data.rank is None:
            rank = at.ops.reshape(
                at.ops.shape_of(at.shape_of(data)), np.zeros(0, np.int64), special_zero=False
            )
            axes = at.ops.range(np.array(0), rank, np.array(1), output_type="i64")
        else:
            axes = at.constant(np.arange(data.rank))
        found = by(openvino, at, (data, axes), {"keep_dims": bool(at.attributes["keepdims"])})
        return [found[0], *[None] * (len(at.inputs) - 1)]

    return gradient

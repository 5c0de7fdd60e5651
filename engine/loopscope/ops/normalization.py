"""Category normalization of the OpenVINO operation specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, REAL_FLOATS
from loopscope.ir.shape import Dimension, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import normalizing as gradients
from loopscope.ops.gradients.normalizing import lrn as gradient_of_lrn
from loopscope.ops.infer import axes_of, common_type, same
from loopscope.ops.kernel_arithmetic import COMPUTED_INTEGERS, computable, rounded
from loopscope.ops.kernel_checks import axis_within


def batch_norm_inference(
    data: Array, gamma: Array, beta: Array, mean: Array, variance: Array, /, *, epsilon: float
) -> Array:
    """Normalise each channel (the second axis) by its mean and variance, then scale and shift.

    ``gamma * (data - mean) / sqrt(variance + epsilon) + beta``. ``[N, C, ...], 4 times [C] -> [N,
    C, ...]``. Spec: normalization/batch-norm-inference-5.
    """
    if data.ndim < 2 or any(
        values.shape != data.shape[1:2] for values in (gamma, beta, mean, variance)
    ):
        shapes = [list(values.shape) for values in (gamma, beta, mean, variance)]
        raise ValueError(
            f"data of shape {list(data.shape)} does not fit channel values of the shapes {shapes}"
        )
    wide = computable(data)
    scale = computable(gamma) / np.sqrt(computable(variance) + wide.dtype.type(epsilon))
    shift = computable(beta) - computable(mean) * scale
    each = (-1, *(1,) * (data.ndim - 2))
    result = wide * scale.reshape(each)
    result += shift.reshape(each)
    return rounded(result, data.dtype)


def batch_norm_inference_1(
    first: Array, second: Array, third: Array, mean: Array, variance: Array, /, *, epsilon: float
) -> Array:
    """Normalise each channel as BatchNormInference-5, with another order of inputs.

    The data comes first on the page and third in files of the runtime; only the data has more than
    one axis. Spec: normalization/batch-norm-inference-1.
    """
    if third.ndim > first.ndim:
        first, second, third = third, first, second
    return batch_norm_inference(first, second, third, mean, variance, epsilon=epsilon)


def infer_batch_norm_inference_1(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the type and shape of the data, which is the first or the third input."""
    first, third = inputs[0].shape, inputs[2].shape
    if first.rank == 1 or (third.rank or 0) > 1:
        return (Known(common_type(inputs), third),)
    return (Known(common_type(inputs), first if first.rank is not None else PartialShape()),)


def grn(data: Array, /, *, bias: float) -> Array:
    """Divide each element by the root of ``bias`` plus the sum of squares over the channels.

    ``[N, C, ...] -> [N, C, ...]``. Spec: normalization/grn-1.
    """
    if data.ndim < 2:
        raise ValueError(f"the data has shape {list(data.shape)}, expected batch and channels")
    wide = computable(data)
    total = np.square(wide).sum(axis=1, keepdims=True, dtype=wide.dtype)
    total += wide.dtype.type(bias)
    return rounded(wide / np.sqrt(total, out=total), data.dtype)


def normalize_l2(data: Array, axes: Array, /, *, eps: float, eps_mode: str) -> Array:
    """Divide each element by the root of the sum of squares along ``axes``.

    ``eps`` is added to the sum or is its lower bound, by ``eps_mode``. Without axes, the result is
    1 for every nonzero element, as in the page's text and in the runtime. ``[...] -> [...]``. Spec:
    normalization/normalize-l2-1.
    """
    wide = computable(data)
    axis_numbers = _axes(axes, data.ndim)
    if not axis_numbers:
        return (data != 0).astype(data.dtype)
    total = np.square(wide).sum(axis=axis_numbers, keepdims=True, dtype=wide.dtype)
    epsilon = wide.dtype.type(eps)
    total = total + epsilon if eps_mode == "add" else np.maximum(total, epsilon)
    return rounded(wide / np.sqrt(total), data.dtype)


def lrn(data: Array, axes: Array, /, *, alpha: float, beta: float, bias: float, size: int) -> Array:
    """Divide each element by a power of the mean square of its neighbourhood along ``axes``.

    ``data / (bias + alpha / size ** len(axes) * sum) ** beta`` with the sum over ``(size - 1) //
    2`` neighbours on both sides. For an even size the page describes a region wider than ``size``;
    this is the runtime's region. ``[...] -> [...]``. Spec: normalization/lrn-1.
    """
    wide = computable(data)
    axis_numbers = _axes(axes, data.ndim)
    total = np.square(wide)
    for axis in axis_numbers:
        total = _sum_neighbours(total, axis, (size - 1) // 2)
    total = total * wide.dtype.type(alpha / size ** len(axis_numbers)) + wide.dtype.type(bias)
    return rounded(wide / np.power(total, wide.dtype.type(beta)), data.dtype)


def _sum_neighbours(values: Array, axis: int, reach: int) -> Array:
    """Sum each element and its neighbours along an axis."""
    result = values.copy()
    length = values.shape[axis]
    before = (slice(None),) * axis
    for shift in range(1, min(reach, length - 1) + 1):
        result[(*before, slice(shift, None))] += values[(*before, slice(None, length - shift))]
        result[(*before, slice(None, length - shift))] += values[(*before, slice(shift, None))]
    return result


def mvn(
    data: Array,
    /,
    *,
    across_channels: bool,
    reduction_axes: tuple[int, ...],
    normalize_variance: bool,
    eps: float,
) -> Array:
    """Shift to mean 0 and, with ``normalize_variance``, scale to variance 1 over the spatial axes.

    ``across_channels`` adds the channels; ``reduction_axes`` replaces the axes if it is not empty.
    ``[N, C, ...] -> [N, C, ...]``. Spec: normalization/mvn-1.
    """
    axes = reduction_axes or tuple(range(1 if across_channels else 2, data.ndim))
    return _normalize(
        data,
        tuple(axis_within(axis, data.ndim) for axis in axes),
        normalize_variance,
        eps,
        "inside_sqrt",
    )


def mvn_with_axes(
    data: Array, axes: Array, /, *, normalize_variance: bool, eps: float, eps_mode: str
) -> Array:
    """Shift to mean 0 and, with ``normalize_variance``, scale to variance 1 along ``axes``.

    ``[...] -> [...]``. The page's formula has a sum of squares, but its introduction and the
    runtime use the variance, their mean. Spec: normalization/mvn-6.
    """
    return _normalize(data, _axes(axes, data.ndim), normalize_variance, eps, eps_mode.lower())


def _normalize(
    data: Array, axes: tuple[int, ...], normalize_variance: bool, eps: float, eps_mode: str
) -> Array:
    wide = computable(data)
    others = [axis for axis in range(data.ndim) if axis not in axes]
    transposed = wide.transpose([*others, *axes])
    count = prod(data.shape[axis] for axis in axes)
    rows = transposed.reshape(prod(data.shape[axis] for axis in others), count)
    result = _standardize(rows, normalize_variance, eps, eps_mode).reshape(transposed.shape)
    back = np.argsort([*others, *axes])
    return rounded(np.asarray(result.transpose(back), order="C"), data.dtype)


def _standardize(
    rows: Array, normalize_variance: bool, eps: float, eps_mode: str = "inside_sqrt"
) -> Array:
    """Return a copy with each row of ``[rows, n]`` shifted to mean 0 and, on request, scaled to
    variance 1.
    """
    if not rows.size:
        return rows.copy()
    count = rows.dtype.type(rows.shape[1])
    result = rows - (np.add.reduce(rows, axis=1, dtype=rows.dtype) / count)[:, None]
    if normalize_variance:
        variance = np.vecdot(result, result) / count
        epsilon = rows.dtype.type(eps)
        spread = (
            np.sqrt(variance + epsilon)
            if eps_mode == "inside_sqrt"
            else np.sqrt(variance) + epsilon
        )
        result *= np.reciprocal(spread)[:, None]
    return result


def group_normalization(
    data: Array, scale: Array, bias: Array, /, *, num_groups: int, epsilon: float
) -> Array:
    """Normalise each group of channels to mean 0 and variance 1, then scale and shift each channel.

    ``[N, C, ...], [C], [C] -> [N, C, ...]``. Spec: normalization/group-normalization-12.
    """
    if (
        data.ndim < 2
        or num_groups < 1
        or data.shape[1] % num_groups
        or scale.shape != data.shape[1:2]
        or bias.shape != data.shape[1:2]
    ):
        shapes = [list(array.shape) for array in (data, scale, bias)]
        raise ValueError(
            f"data, scale and bias have the shapes {shapes}: the channels do not fit "
            f"them and {num_groups} groups"
        )
    wide = computable(data)
    rows = wide.reshape(data.shape[0] * num_groups, prod(data.shape[1:]) // num_groups)
    result = _standardize(rows, True, epsilon).reshape(data.shape)
    each = (-1, *(1,) * (data.ndim - 2))
    result *= computable(scale).reshape(each)
    result += computable(bias).reshape(each)
    return rounded(result, data.dtype)


def infer_over_axes(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the type and shape of the data; raise ``ValueError`` if the axes are out of range."""
    rank = inputs[0].shape.rank
    if rank is not None and len(inputs) > 1:
        axes_of(inputs[1], rank)
    return (Known(inputs[0].element_type, inputs[0].shape),)


def infer_channels(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the type and shape of the data, whose second axis has the length of all other
    inputs.
    """
    element_type = common_type(inputs)
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(element_type, inputs[0].shape),)
    if len(dimensions) < 2:
        raise ValueError(f"the data has shape {inputs[0].shape}, expected batch and channels")
    channels: Dimension | None = dimensions[1]
    for known in inputs[1:]:
        channels = (
            channels.intersect(known.shape.at(0))
            if channels is not None and known.shape.rank in (None, 1)
            else None
        )
    if channels is None:
        raise ValueError(
            f"the data has shape {inputs[0].shape}, the others "
            f"{', '.join(str(known.shape) for known in inputs[1:])}: channels differ"
        )
    return (Known(element_type, PartialShape((dimensions[0], channels, *dimensions[2:]))),)


def _axes(axes: Array, rank: int) -> tuple[int, ...]:
    axis_numbers = tuple(axis_within(int(axis), rank) for axis in np.asarray(axes).reshape(-1))
    if len(set(axis_numbers)) != len(axis_numbers):
        raise ValueError(f"axes {axis_numbers} name one axis twice")
    return axis_numbers


_EPSILON = Attribute("epsilon", "float", least=0)
_VARIANCE = Attribute("normalize_variance", "bool")

row = family("normalization", types=(REAL_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "BatchNormInference",
        batch_norm_inference_1,
        opsets=(1, 4),
        infer=infer_batch_norm_inference_1,
        inputs=(5, 5),
        attributes=(_EPSILON,),
        gradient=gradients.batch_norm_1,
    ),
    row(
        "BatchNormInference",
        batch_norm_inference,
        version=5,
        infer=infer_channels,
        inputs=(5, 5),
        attributes=(_EPSILON,),
        gradient=gradients.batch_norm,
    ),
    row(
        "GRN",
        grn,
        infer=infer_channels,
        attributes=(Attribute("bias", "float"),),
        gradient=gradients.grn,
    ),
    row(
        "GroupNormalization",
        group_normalization,
        version=12,
        infer=infer_channels,
        inputs=(3, 3),
        attributes=(Attribute("num_groups", "int", least=1), Attribute("epsilon", "float")),
        gradient=gradients.group_normalization,
    ),
    row(
        "LRN",
        lrn,
        infer=infer_over_axes,
        inputs=(2, 2),
        attributes=(
            Attribute("alpha", "float"),
            Attribute("beta", "float"),
            Attribute("bias", "float"),
            Attribute("size", "int", least=1),
        ),
        types=(REAL_FLOATS, COMPUTED_INTEGERS),
        gradient=gradient_of_lrn,
    ),
    row(
        "MVN",
        mvn,
        version=2,
        opsets=(2, 5),
        page="normalization/mvn-1",
        infer=same,
        attributes=(
            Attribute("across_channels", "bool", False),
            Attribute("reduction_axes", "ints", ()),
            Attribute("normalize_variance", "bool"),
            Attribute("eps", "float"),
        ),
        gradient=gradients.mvn,
    ),
    row(
        "MVN",
        mvn_with_axes,
        version=6,
        infer=infer_over_axes,
        inputs=(2, 2),
        attributes=(
            _VARIANCE,
            Attribute("eps", "float"),
            Attribute("eps_mode", "str", allowed=("inside_sqrt", "outside_sqrt")),
        ),
        types=(REAL_FLOATS, INDEX_TYPES),
        gradient=gradients.mvn_with_axes,
    ),
    row(
        "NormalizeL2",
        normalize_l2,
        infer=infer_over_axes,
        inputs=(2, 2),
        attributes=(
            Attribute("eps", "float"),
            Attribute("eps_mode", "str", allowed=("add", "max")),
        ),
        types=(REAL_FLOATS, COMPUTED_INTEGERS),
        gradient=gradients.normalize_l2,
    ),
)

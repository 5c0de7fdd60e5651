"""Category condition of the OpenVINO operation specs: selection by a condition, and indices of true
elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation, Role
from loopscope.ops.elementwise_kernels import (
    AUTO_BROADCAST,
    COMPUTED,
    PACKED,
    as_numbers,
    fit_operand,
    widened,
)
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import broadcast_shapes, common_type, type_from_attribute


def select(
    condition: Array, then: Array, otherwise: Array, /, *, auto_broadcast: str = "numpy"
) -> Array:
    """Select elements of the second tensor where the first is true, of the third elsewhere.

    ``numpy``: all three are broadcast together. ``pdpd``: the first and the third are broadcast to
    the shape of the second. Page condition/select-1.
    """
    if (
        auto_broadcast in ("none", "explicit")
        and not condition.shape == then.shape == otherwise.shape
    ):
        shapes = f"shapes {list(condition.shape)}, {list(then.shape)} and {list(otherwise.shape)}"
        raise ValueError(f"{shapes} differ, and auto_broadcast is '{auto_broadcast}'")
    if auto_broadcast == "pdpd":
        condition = fit_operand(then, condition, "pdpd")
        otherwise = fit_operand(then, otherwise, "pdpd")
    if then.dtype.names or then.dtype != otherwise.dtype:
        return _select_packed(condition, then, otherwise)
    if condition.ndim == 0 and then.shape == otherwise.shape:
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


def _select_packed(condition: Array, then: Array, otherwise: Array) -> Array:
    if then.dtype != otherwise.dtype:
        raise ValueError(
            f"element types differ: {ElementType.of(then)} and {ElementType.of(otherwise)}"
        )
    return np.where(condition, then.view(np.uint8), otherwise.view(np.uint8)).view(then.dtype)


def _select_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    if inputs[0].element_type not in (None, ElementType.BOOLEAN):
        raise ValueError(f"the condition is {inputs[0].element_type}, expected boolean")
    element_type = common_type(inputs[1:])
    if attributes["auto_broadcast"] == "pdpd":
        return (Known(element_type, inputs[1].shape),)
    return (Known(element_type, broadcast_shapes(*[known.shape for known in inputs])),)


def bucketize(
    data: Array,
    boundaries: Array,
    /,
    *,
    output_type: ElementType = ElementType.I64,
    with_right_bound: bool = True,
) -> Array:
    """Return for each element the number of its bucket between the sorted boundaries.

    Page condition/bucketize-3.
    """
    numbers, edges = _as_comparable(data), _as_comparable(boundaries)
    return np.searchsorted(
        edges.reshape(-1), numbers, "left" if with_right_bound else "right"
    ).astype(output_type.dtype)


def _as_comparable(data: Array) -> Array:
    """Return numbers that can be compared with those of another type: integers unchanged, small
    floats as f32.
    """
    data = as_numbers(np.asarray(data))
    return data if data.dtype.kind in "iu" else widened(data)


def nonzero(data: Array, /, *, output_type: ElementType = ElementType.I64) -> Array:
    """Return the indices of the nonzero elements, one column each, in row-major order.

    The shape is (rank, count). A scalar counts as one element: (1, 1) or (1, 0), as in OpenVINO.
    Page condition/nonzero-3.
    """
    data = np.atleast_1d(as_numbers(np.asarray(data)))
    return np.array(np.nonzero(data), output_type.dtype)


def _nonzero_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(attributes["output_type"]),)
    upper = math.prod(dimensions, start=static(1)).most
    return (
        Known(
            attributes["output_type"],
            PartialShape((static(max(len(dimensions), 1)), Dimension(0, upper))),
        ),
    )


_BOOLEAN = frozenset({ElementType.BOOLEAN})
_INDEX_TYPE = Attribute(
    "output_type", "type", ElementType.I64, allowed=(ElementType.I64, ElementType.I32)
)

row = family("condition")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Bucketize",
        bucketize,
        version=3,
        infer=type_from_attribute("output_type"),
        inputs=(2, 2),
        attributes=(_INDEX_TYPE, Attribute("with_right_bound", "bool", True)),
        types=(COMPUTED,),
    ),
    row(
        "If",
        version=8,
        inputs=(1, None),
        outputs=None,
        types=(_BOOLEAN, ANY_TYPE),
        role=Role.REGION,
    ),
    row(
        "NonZero",
        nonzero,
        version=3,
        page="condition/nonzero-3",
        infer=_nonzero_rule,
        attributes=(_INDEX_TYPE,),
        types=(ANY_TYPE - PACKED - {ElementType.STRING},),
    ),
    row(
        "Select",
        select,
        infer=_select_rule,
        inputs=(3, 3),
        attributes=(AUTO_BROADCAST,),
        types=(_BOOLEAN, ANY_TYPE),
        gradient=gradients.select,
    ),
)

"""Categories logical, comparison, bitwise and condition of the OpenVINO specs.

The operations compute truth values and bits, select by a condition, and return indices of true
elements.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation, Role
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import (
    broadcast_shapes,
    common_type,
    comparison,
    elementwise,
    predicate,
    same,
    type_from_attribute,
)
from loopscope.ops.kernel_arithmetic import (
    AUTO_BROADCAST,
    COMPUTED,
    COMPUTED_FLOATS,
    COMPUTED_INTEGERS,
    PACKED,
    as_numbers,
    binary,
    fit_operand,
    own_type,
    widened,
)

logical_and = binary(operator.and_, "Return True where both are true.")
logical_or = binary(operator.or_, "Return True where at least one is true.")
logical_xor = binary(operator.xor, "Return True where exactly one is true.")


def logical_not(data: Array, /) -> Array:
    """Return True for each element that is false.

    Page logical/logical-not-1.
    """
    return ~data


def _infer_booleans(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer booleans, broadcast by ``auto_broadcast``; numbers are an error, as in OpenVINO's
    reader.
    """
    for position, known in enumerate(inputs):
        if known.element_type not in (None, ElementType.BOOLEAN):
            raise ValueError(
                f"input {position} is {known.element_type}, expected boolean: compare "
                "it with zero (NotEqual)"
            )
    return elementwise(inputs, attributes)


_BOOLEAN = frozenset({ElementType.BOOLEAN})
_NUMPY = {"auto_broadcast": "numpy"}

row = family(
    "logical",
    infer=_infer_booleans,
    inputs=(2, 2),
    attributes=(AUTO_BROADCAST,),
    types=(_BOOLEAN,),
    symbol_when=_NUMPY,
)
unary_row = family("logical", infer=_infer_booleans, types=(_BOOLEAN,))

OPERATIONS: tuple[Operation, ...] = (
    row("LogicalAnd", logical_and, symbol="{0} & {1}"),
    unary_row("LogicalNot", logical_not, symbol="~{0}"),
    row("LogicalOr", logical_or, symbol="{0} | {1}"),
    row(
        "LogicalXor",
        logical_xor,
        version=2,
        opsets=(1, 16),
        page="logical/logical-xor-1",
        symbol="{0} ^ {1}",
    ),
    row("Xor", logical_xor, opsets=(1, 1), page="logical/logical-xor-1", symbol="{0} ^ {1}"),
)


equal = binary(operator.eq, "Return True where two tensors are equal.")
not_equal = binary(operator.ne, "Return True where two tensors differ.")
greater = binary(operator.gt, "Return True where the first tensor is greater than the second.")
greater_equal = binary(
    operator.ge, "Return True where the first tensor is greater than or equal to the second."
)
less = binary(operator.lt, "Return True where the first tensor is less than the second.")
less_equal = binary(
    operator.le, "Return True where the first tensor is less than or equal to the second."
)


def is_finite(data: Array, /) -> Array:
    """Return True for each element that is neither infinite nor NaN.

    Page comparison/isfinite-10.
    """
    result: Array = np.isfinite(data)
    return result


def is_infinite(
    data: Array, /, *, detect_negative: bool = True, detect_positive: bool = True
) -> Array:
    """Return True for each element that is an infinity of a requested sign.

    Page comparison/isinf-10.
    """
    result: Array = np.isinf(data)
    if not detect_negative:
        result = result & (data > 0)
    if not detect_positive:
        result = result & (data < 0)
    return result


def is_nan(data: Array, /) -> Array:
    """Return True for each element that is NaN.

    Page comparison/isnan-10.
    """
    result: Array = np.isnan(data)
    return result


_COMPARABLE = COMPUTED | {ElementType.BOOLEAN}
_DETECTED = (Attribute("detect_negative", "bool", True), Attribute("detect_positive", "bool", True))

_comparison = family(
    "comparison",
    infer=comparison,
    inputs=(2, 2),
    attributes=(AUTO_BROADCAST,),
    types=(_COMPARABLE,),
    symbol_when={"auto_broadcast": "numpy"},
)
_detection = family("comparison", infer=predicate, types=(COMPUTED_FLOATS,))

COMPARISONS: tuple[Operation, ...] = (
    _comparison("Equal", equal, symbol="{0} == {1}"),
    _comparison("Greater", greater, symbol="{0} > {1}"),
    _comparison("GreaterEqual", greater_equal, symbol="{0} >= {1}"),
    _detection("IsFinite", is_finite, version=10, page="comparison/isfinite-10"),
    _detection("IsInf", is_infinite, version=10, page="comparison/isinf-10", attributes=_DETECTED),
    _detection("IsNaN", is_nan, version=10, page="comparison/isnan-10"),
    _comparison("Less", less, symbol="{0} < {1}"),
    _comparison("LessEqual", less_equal, page="comparison/lessequal-1", symbol="{0} <= {1}"),
    _comparison("NotEqual", not_equal, page="comparison/notequal-1", symbol="{0} != {1}"),
)


def bitwise_and(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Set the bits that are set in both inputs.

    Page bitwise/bitwise-and-13.
    """
    right = fit_operand(left, right, auto_broadcast)
    return own_type(left & right, left.dtype)


def bitwise_or(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Set the bits that are set in at least one input.

    Page bitwise/bitwise-or-13.
    """
    right = fit_operand(left, right, auto_broadcast)
    return own_type(left | right, left.dtype)


def bitwise_xor(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Set the bits that are set in exactly one input.

    Page bitwise/bitwise-xor-13.
    """
    right = fit_operand(left, right, auto_broadcast)
    return own_type(left ^ right, left.dtype)


def bitwise_not(data: Array, /) -> Array:
    """Invert all bits.

    Page bitwise/bitwise-not-13.
    """
    return own_type(~data, data.dtype)


def left_shift(data: Array, shifts: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Shift the bits up by ``shifts`` positions; bits that leave the type are lost.

    Page bitwise/bitwise-left-shift-15.
    """
    shifts = fit_operand(data, shifts, auto_broadcast)
    return own_type(np.left_shift(data, shifts), data.dtype)


def right_shift(data: Array, shifts: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Shift the bits down by ``shifts`` positions, with the sign for signed integers.

    Page bitwise/bitwise-right-shift-15.
    """
    shifts = fit_operand(data, shifts, auto_broadcast)
    return own_type(np.right_shift(data, shifts), data.dtype)


_BITS = COMPUTED_INTEGERS | {ElementType.BOOLEAN}

_bits = family(
    "bitwise", infer=elementwise, inputs=(2, 2), attributes=(AUTO_BROADCAST,), types=(_BITS,)
)
_unary_bits = family("bitwise", infer=same, types=(_BITS,))

BITWISE: tuple[Operation, ...] = (
    _bits("BitwiseAnd", bitwise_and, version=13),
    _bits("BitwiseLeftShift", left_shift, version=15, types=(COMPUTED_INTEGERS,)),
    _unary_bits("BitwiseNot", bitwise_not, version=13),
    _bits("BitwiseOr", bitwise_or, version=13),
    _bits("BitwiseRightShift", right_shift, version=15, types=(COMPUTED_INTEGERS,)),
    _bits("BitwiseXor", bitwise_xor, version=13),
)


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


_INDEX_TYPE = Attribute(
    "output_type", "type", ElementType.I64, allowed=(ElementType.I64, ElementType.I32)
)

condition_row = family("condition")

CONDITIONS: tuple[Operation, ...] = (
    condition_row(
        "Bucketize",
        bucketize,
        version=3,
        infer=type_from_attribute("output_type"),
        inputs=(2, 2),
        attributes=(_INDEX_TYPE, Attribute("with_right_bound", "bool", True)),
        types=(COMPUTED,),
    ),
    condition_row(
        "If",
        version=8,
        inputs=(1, None),
        outputs=None,
        types=(_BOOLEAN, ANY_TYPE),
        role=Role.REGION,
    ),
    condition_row(
        "NonZero",
        nonzero,
        version=3,
        page="condition/nonzero-3",
        infer=_nonzero_rule,
        attributes=(_INDEX_TYPE,),
        types=(ANY_TYPE - PACKED - {ElementType.STRING},),
    ),
    condition_row(
        "Select",
        select,
        infer=_select_rule,
        inputs=(3, 3),
        attributes=(AUTO_BROADCAST,),
        types=(_BOOLEAN, ANY_TYPE),
        gradient=gradients.select,
    ),
)

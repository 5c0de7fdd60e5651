"""Category comparison of the OpenVINO operation specs: booleans for relations and kinds of
numbers.
"""

from __future__ import annotations

import operator

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.broadcast import AUTO_BROADCAST, binary
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.elements import COMPUTED, COMPUTED_FLOATS
from loopscope.ops.family import family
from loopscope.ops.infer import comparison, predicate

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

row = family(
    "comparison",
    infer=comparison,
    inputs=(2, 2),
    attributes=(AUTO_BROADCAST,),
    types=(_COMPARABLE,),
    symbol_when={"auto_broadcast": "numpy"},
)
unary_row = family("comparison", infer=predicate, types=(COMPUTED_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row("Equal", equal, symbol="{0} == {1}"),
    row("Greater", greater, symbol="{0} > {1}"),
    row("GreaterEqual", greater_equal, symbol="{0} >= {1}"),
    unary_row("IsFinite", is_finite, version=10, page="comparison/isfinite-10"),
    unary_row("IsInf", is_infinite, version=10, page="comparison/isinf-10", attributes=_DETECTED),
    unary_row("IsNaN", is_nan, version=10, page="comparison/isnan-10"),
    row("Less", less, symbol="{0} < {1}"),
    row("LessEqual", less_equal, page="comparison/lessequal-1", symbol="{0} <= {1}"),
    row("NotEqual", not_equal, page="comparison/notequal-1", symbol="{0} != {1}"),
)

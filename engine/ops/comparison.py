"""Category comparison of the OpenVINO operation specs: booleans that say how numbers relate, or what kind they are."""

from __future__ import annotations

import operator

import numpy as np

from engine.ir.element_type import ElementType
from engine.ops.broadcast import AUTO_BROADCAST, binary
from engine.ops.declare import Array, Attribute, Operation
from engine.ops.elements import COMPUTED, COMPUTED_FLOATS
from engine.ops.infer import comparison, predicate

equal = binary(operator.eq, "Whether two tensors are equal.")
not_equal = binary(operator.ne, "Whether two tensors differ.")
greater = binary(operator.gt, "Whether the first tensor is greater than the second.")
greater_equal = binary(operator.ge, "Whether the first tensor is greater than or equal to the second.")
less = binary(operator.lt, "Whether the first tensor is less than the second.")
less_equal = binary(operator.le, "Whether the first tensor is less than or equal to the second.")


def is_finite(data: Array, /) -> Array:
    """Whether each element is neither infinite nor NaN. Page comparison/isfinite-10."""
    found: Array = np.isfinite(data)
    return found


def is_infinite(data: Array, /, *, detect_negative: bool = True, detect_positive: bool = True) -> Array:
    """Whether each element is an infinity of a sign that is looked for. Page comparison/isinf-10."""
    found: Array = np.isinf(data)
    if not detect_negative:
        found = found & (data > 0)
    if not detect_positive:
        found = found & (data < 0)
    return found


def is_nan(data: Array, /) -> Array:
    """Whether each element is NaN. Page comparison/isnan-10."""
    found: Array = np.isnan(data)
    return found


_COMPARABLE = COMPUTED | {ElementType.BOOLEAN}
_NUMPY = {"auto_broadcast": "numpy"}
_DETECTED = (Attribute("detect_negative", "bool", True), Attribute("detect_positive", "bool", True))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="Equal",
        version=1,
        opsets=(1, 16),
        page="comparison/equal-1",
        kernel=equal,
        infer=comparison,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_COMPARABLE,),
        symbol="{0} == {1}",
        symbol_when=_NUMPY,
    ),
    Operation(
        name="Greater",
        version=1,
        opsets=(1, 16),
        page="comparison/greater-1",
        kernel=greater,
        infer=comparison,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_COMPARABLE,),
        symbol="{0} > {1}",
        symbol_when=_NUMPY,
    ),
    Operation(
        name="GreaterEqual",
        version=1,
        opsets=(1, 16),
        page="comparison/greater-equal-1",
        kernel=greater_equal,
        infer=comparison,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_COMPARABLE,),
        symbol="{0} >= {1}",
        symbol_when=_NUMPY,
    ),
    Operation(
        name="IsFinite",
        version=10,
        opsets=(10, 16),
        page="comparison/isfinite-10",
        kernel=is_finite,
        infer=predicate,
        types=(COMPUTED_FLOATS,),
    ),
    Operation(
        name="IsInf",
        version=10,
        opsets=(10, 16),
        page="comparison/isinf-10",
        kernel=is_infinite,
        infer=predicate,
        attributes=_DETECTED,
        types=(COMPUTED_FLOATS,),
    ),
    Operation(
        name="IsNaN",
        version=10,
        opsets=(10, 16),
        page="comparison/isnan-10",
        kernel=is_nan,
        infer=predicate,
        types=(COMPUTED_FLOATS,),
    ),
    Operation(
        name="Less",
        version=1,
        opsets=(1, 16),
        page="comparison/less-1",
        kernel=less,
        infer=comparison,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_COMPARABLE,),
        symbol="{0} < {1}",
        symbol_when=_NUMPY,
    ),
    Operation(
        name="LessEqual",
        version=1,
        opsets=(1, 16),
        page="comparison/lessequal-1",
        kernel=less_equal,
        infer=comparison,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_COMPARABLE,),
        symbol="{0} <= {1}",
        symbol_when=_NUMPY,
    ),
    Operation(
        name="NotEqual",
        version=1,
        opsets=(1, 16),
        page="comparison/notequal-1",
        kernel=not_equal,
        infer=comparison,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_COMPARABLE,),
        symbol="{0} != {1}",
        symbol_when=_NUMPY,
    ),
)

"""Propagation of element intervals through operations: one table of rules by operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import MOST_ELEMENTS, PartialValue
from loopscope.ops.declare import Known, Operation
from loopscope.ops.kernel_arithmetic import integer_limits

Ends = tuple[Any, Any]
"""Lower and upper bounds of an output's elements."""
Rule = Callable[[Operation, Sequence[Known], Mapping[str, Any]], Sequence[Ends]]
"""Function that returns the bounds of each output. It raises the exceptions of kernels, or
``_NotFollowed``.
"""

_FLOATS = frozenset({ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16})
_INTEGERS = frozenset(
    {
        ElementType.I64,
        ElementType.I32,
        ElementType.I16,
        ElementType.I8,
        ElementType.U64,
        ElementType.U32,
        ElementType.U8,
    }
)
_SCATTERS = ("ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate")
_FOLLOWED_TYPES = _FLOATS | _INTEGERS | {ElementType.BOOLEAN}
_USEFUL_WITH_ONE_INPUT = frozenset(
    {"Concat", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Select", *_SCATTERS}
)
"""Operations that can narrow their output when one input is known and another is not."""
_UNBOUNDED = (-np.inf, np.inf)
_RANGES: Mapping[ElementType | None, tuple[float, float]] = {
    ElementType.BOOLEAN: (0.0, 1.0),
    **{integer: integer_limits(integer.dtype) for integer in _INTEGERS if integer.bits < 64},
}
"""Type ranges; a result outside its range may wrap to any number. 64-bit types are left out,
because they hold every length.
"""


class _NotFollowed(ValueError):
    """Too little is known of an input, or an attribute makes the rule invalid."""


def followed(
    operation: Operation,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
    inferred: Sequence[Known],
) -> Sequence[Known]:
    """Return ``inferred`` with the element intervals that follow from the inputs' intervals.

    Exceptions of kernels are not caught.
    """
    name = _ONNX_NAMES.get(operation.name, operation.name)
    rule = None if operation.opset else FOLLOWED.get(name) or _OF_SHAPES.get(name)
    if rule is None or not _is_worth_following(name, inputs, inferred):
        return inferred
    try:
        ends = rule(operation, inputs, attributes)
    except _NotFollowed:
        return inferred
    return [_with_bounds(known, *each) for known, each in zip(inferred, ends, strict=True)]


def _is_worth_following(name: str, inputs: Sequence[Known], inferred: Sequence[Known]) -> bool:
    """Return True if intervals of the outputs can be narrower than their type.

    Without an input known in part, only few operations qualify. Floats matter only if they come
    from a shape.
    """
    in_part = any(known.partial is not None for known in inputs)
    if name in _OF_SHAPES:
        return all(map(_is_small, inferred))
    if not in_part and (
        name not in _USEFUL_WITH_ONE_INPUT or all(known.value is None for known in inputs)
    ):
        return False
    return all(
        known.value is None and _is_small(known) and (in_part or known.element_type not in _FLOATS)
        for known in inferred
    )


def _is_small(known: Known) -> bool:
    return known.shape.is_static and math.prod(known.shape.lengths) <= MOST_ELEMENTS


def _elements(known: Known) -> PartialValue:
    """Return an interval for each element, within the range of the type, also for an unknown small
    tensor.
    """
    elements, (lower, upper) = known.elements, _RANGES.get(known.element_type, _UNBOUNDED)
    if elements is not None:
        return PartialValue(np.maximum(elements.least, lower), np.minimum(elements.most, upper))
    if known.value is not None or not _is_small(known):
        raise _NotFollowed
    return PartialValue(np.full(known.shape.lengths, lower), np.full(known.shape.lengths, upper))


def _with_bounds(known: Known, lower: Any, upper: Any) -> Known:
    """Return an output with bounds in its own type: as a value if they are equal, as intervals if
    they narrow the type.
    """
    element_type = known.element_type
    lower = np.asarray(lower, np.float64)
    upper = np.asarray(upper, np.float64)
    if element_type not in _FOLLOWED_TYPES or known.shape.lengths != lower.shape:
        return known
    if element_type in _FLOATS:
        lower, upper = (end.astype(element_type.dtype).astype(np.float64) for end in (lower, upper))
    type_lower, type_upper = _RANGES.get(element_type, _UNBOUNDED)
    lost = np.isnan(lower) | np.isnan(upper) | (lower < type_lower) | (upper > type_upper)
    if not lost.any() and np.isfinite(lower).all() and (lower == upper).all():
        return Known.of(_frozen(lower.astype(element_type.dtype)))
    intervals = PartialValue(
        np.where(lost | (lower == type_lower), -np.inf, lower),
        np.where(lost | (upper == type_upper), np.inf, upper),
    )
    return known if intervals.is_idle else Known(element_type, known.shape, partial=intervals)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _monotonic(*positions: int) -> Rule:
    """Return a rule for kernels that are monotonic in the inputs at these positions (all inputs if
    none are named).

    The kernel's results for the inputs' bounds are the bounds of its result.
    """

    def rule(
        operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
    ) -> Sequence[Ends]:
        if operation.kernel is None or attributes.get("reduction", "none") != "none":
            raise _NotFollowed
        low: list[Any] = []
        high: list[Any] = []
        for position, known in enumerate(inputs):
            if not positions or position in positions:
                elements = _elements(known)
                low.append(elements.least[()])
                high.append(elements.most[()])
            elif known.value is not None:
                low.append(known.value[()])
                high.append(known.value[()])
            else:
                raise _NotFollowed
        lower, upper = (operation.kernel(*arrays, **attributes) for arrays in (low, high))
        return (
            list(zip(lower, upper, strict=True)) if isinstance(lower, tuple) else [(lower, upper)]
        )

    return rule


def _shape(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """Return the lengths of ONNX's Shape, from ``start`` to ``end``."""
    lengths = PartialValue.of_shape(inputs[0].shape)
    if lengths is None:
        raise _NotFollowed
    part = slice(attributes.get("start", 0), attributes.get("end"))
    return [(lengths.least[part], lengths.most[part])]


def _size(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    if not inputs[0].shape.is_static:
        raise _NotFollowed
    size = math.prod(inputs[0].shape.lengths)
    return [(size, size)]


def _integer_sum(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """Return the bounds of an integer sum; a float sum is not followed, because each addition would
    be rounded.
    """
    if inputs[0].element_type not in _INTEGERS:
        raise _NotFollowed
    return _monotonic(0)(operation, inputs, attributes)


def _integer_product(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """Return the bounds of an integer product, which is monotonic if no factor is negative."""
    if (_elements(inputs[0]).least < 0).any():
        raise _NotFollowed
    return _integer_sum(operation, inputs, attributes)


def _at_corners(formula: Callable[..., np.ndarray]) -> Rule:
    """Return a rule for elementwise formulas that are monotonic in each input. The bounds of the
    result are among the results of the bounds.
    """

    def rule(
        operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
    ) -> Sequence[Ends]:
        results = [
            formula(*ends)
            for ends in product(
                *[
                    (elements.least, elements.most)
                    for elements in _broadcast_elements(inputs, attributes)
                ]
            )
        ]
        return [(np.minimum.reduce(results), np.maximum.reduce(results))]

    return rule


def _broadcast_elements(
    inputs: Sequence[Known], attributes: Mapping[str, Any]
) -> list[PartialValue]:
    if attributes.get("auto_broadcast", "numpy") == "pdpd":
        raise _NotFollowed
    return [_elements(known) for known in inputs]


def _multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiply with 0 * infinity = 0."""
    return np.where((left == 0) | (right == 0), 0.0, left * right)


def _divide(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    divisor = _elements(inputs[1])
    if ((divisor.least <= 0) & (divisor.most >= 0)).any():
        raise _NotFollowed
    if inputs[0].element_type in _FLOATS:
        return _at_corners(np.divide)(operation, inputs, attributes)
    cut = np.floor if attributes.get("m_pythondiv", True) else np.trunc
    return _at_corners(lambda dividend, divider: cut(dividend / divider))(
        operation, inputs, attributes
    )


def _convert(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """Return the bounds after a conversion; integers truncate, and only 0 and 1 are followed as
    booleans.
    """
    source, elements = inputs[0].element_type, _elements(inputs[0])
    target = attributes.get("destination_type", inputs[-1].element_type)
    if target is ElementType.BOOLEAN and source is not ElementType.BOOLEAN:
        raise _NotFollowed
    if target in _INTEGERS:
        return [(np.trunc(elements.least), np.trunc(elements.most))]
    return [(elements.least, elements.most)]


def _select(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    choice, then, otherwise = _broadcast_elements(inputs, attributes)
    always, never = choice.least > 0, choice.most < 1
    lower = np.where(
        always,
        then.least,
        np.where(never, otherwise.least, np.minimum(then.least, otherwise.least)),
    )
    upper = np.where(
        always, then.most, np.where(never, otherwise.most, np.maximum(then.most, otherwise.most))
    )
    return [(lower, upper)]


def _equal(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    left, right = _broadcast_elements(inputs, attributes)
    must = (left.least == left.most) & (right.least == right.most) & (left.least == right.least)
    may = (left.least <= right.most) & (right.least <= left.most)
    return [(must, may)]


def _not_equal(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    ((must, may),) = _equal(operation, inputs, attributes)
    return [(~may, ~must)]


FOLLOWED: Mapping[str, Rule] = {
    # Data movement.
    "Broadcast": _monotonic(0),
    "Concat": _monotonic(),
    "Gather": _monotonic(0),
    "GatherElements": _monotonic(0),
    "GatherND": _monotonic(0),
    "Pad": _monotonic(0, 3),
    "Reshape": _monotonic(0),
    **dict.fromkeys(_SCATTERS, _monotonic(0, 2)),
    "Slice": _monotonic(0),
    "Split": _monotonic(0),
    "Squeeze": _monotonic(0),
    "StridedSlice": _monotonic(0),
    "Tile": _monotonic(0),
    "Transpose": _monotonic(0),
    "Unsqueeze": _monotonic(0),
    "VariadicSplit": _monotonic(0),
    # Reductions.
    "ReduceMax": _monotonic(0),
    "ReduceMin": _monotonic(0),
    "ReduceProd": _integer_product,
    "ReduceSum": _integer_sum,
    # Elementwise arithmetic.
    "Add": _at_corners(np.add),
    "Ceiling": _at_corners(np.ceil),
    "Divide": _divide,
    "Floor": _at_corners(np.floor),
    "Maximum": _at_corners(np.maximum),
    "Minimum": _at_corners(np.minimum),
    "Multiply": _at_corners(_multiply),
    "Negative": _at_corners(np.negative),
    "Subtract": _at_corners(np.subtract),
    # Type conversions.
    "Convert": _convert,
    "ConvertLike": _convert,
    # Comparisons, logic and selection.
    "Equal": _equal,
    "Greater": _at_corners(np.greater),
    "GreaterEqual": _at_corners(np.greater_equal),
    "Less": _at_corners(np.less),
    "LessEqual": _at_corners(np.less_equal),
    "LogicalAnd": _at_corners(np.minimum),
    "LogicalNot": _at_corners(lambda truth: 1 - truth),
    "LogicalOr": _at_corners(np.maximum),
    "NotEqual": _not_equal,
    "Select": _select,
}
_OF_SHAPES: Mapping[str, Rule] = {"Shape": _shape, "Size": _size}
"""Operations of ONNX that depend on the shape of their input alone."""
_ONNX_NAMES: Mapping[str, str] = {
    "And": "LogicalAnd",
    "Max": "Maximum",
    "Min": "Minimum",
    "Mul": "Multiply",
    "Neg": "Negative",
    "Not": "LogicalNot",
    "Or": "LogicalOr",
    "Sub": "Subtract",
    "Where": "Select",
}
"""Names in OpenVINO of ONNX operations that follow the same rule."""

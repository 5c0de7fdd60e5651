"""Propagates partially known values through operations: the one table of what each operation
does to intervals of elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.partial_value import MOST_ELEMENTS, PartialValue
from loopscope.ops.declare import Known, Operation
from loopscope.ops.elements import integer_limits

Ends = tuple[Any, Any]
"""Least and greatest values of an output's elements."""
Rule = Callable[[Operation, Sequence[Known], Mapping[str, Any]], Sequence[Ends]]
"""The ends of each output; raises what kernels raise, or ``_NotFollowed``."""

_FLOATS = frozenset({ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16})
_WHOLE = frozenset(
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
_FOLLOWED_TYPES = _FLOATS | _WHOLE | {ElementType.BOOLEAN}
_OF_ONE_KNOWN = frozenset(
    {"Concat", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Select", *_SCATTERS}
)
"""Operations that say something also when one input is known and another not at all."""
_ENDLESS = (-np.inf, np.inf)
_RANGES: Mapping[ElementType | None, tuple[float, float]] = {
    ElementType.BOOLEAN: (0.0, 1.0),
    **{one: integer_limits(one.dtype) for one in _WHOLE if one.bits < 64},
}
"""Where a result out of range may have become any number; 64 bits hold whatever becomes a
length.
"""


class _NotFollowed(ValueError):
    """Too little is known of an input, or an attribute makes the rule invalid."""


def followed(
    operation: Operation,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
    inferred: Sequence[Known],
) -> Sequence[Known]:
    """``inferred`` with what the inputs' intervals say of the outputs' elements; kernels'
    exceptions come through.
    """
    rule = None if operation.opset else FOLLOWED.get(operation.name)
    if rule is None or not _is_worth_following(operation.name, inputs, inferred):
        return inferred
    try:
        ends = rule(operation, inputs, attributes)
    except _NotFollowed:
        return inferred
    return [_settled(known, *each) for known, each in zip(inferred, ends, strict=True)]


def _is_worth_following(name: str, inputs: Sequence[Known], inferred: Sequence[Known]) -> bool:
    """Where nothing is known in part, only few operations make something of it; and floats
    matter only where they come from a shape.
    """
    in_part = any(known.partial is not None for known in inputs)
    if not in_part and (name not in _OF_ONE_KNOWN or all(known.value is None for known in inputs)):
        return False
    return all(
        known.value is None and _is_small(known) and (in_part or known.element_type not in _FLOATS)
        for known in inferred
    )


def _is_small(known: Known) -> bool:
    return known.shape.is_static and math.prod(known.shape.lengths) <= MOST_ELEMENTS


def _elements(known: Known) -> PartialValue:
    """An interval for each element, also of a small tensor of which nothing is known; within the
    range of the type.
    """
    found, (lowest, highest) = known.elements, _RANGES.get(known.element_type, _ENDLESS)
    if found is not None:
        return PartialValue(np.maximum(found.least, lowest), np.minimum(found.most, highest))
    if known.value is not None or not _is_small(known):
        raise _NotFollowed
    return PartialValue(np.full(known.shape.lengths, lowest), np.full(known.shape.lengths, highest))


def _settled(known: Known, least: Any, most: Any) -> Known:
    """The ends in the output's own type: as its value where they meet, as intervals where they
    say something.
    """
    element_type, least, most = (
        known.element_type,
        np.asarray(least, np.float64),
        np.asarray(most, np.float64),
    )
    if element_type not in _FOLLOWED_TYPES or known.shape.lengths != least.shape:
        return known
    if element_type in _FLOATS:
        least, most = (end.astype(element_type.dtype).astype(np.float64) for end in (least, most))
    lowest, highest = _RANGES.get(element_type, _ENDLESS)
    lost = np.isnan(least) | np.isnan(most) | (least < lowest) | (most > highest)
    if not lost.any() and np.isfinite(least).all() and (least == most).all():
        return Known.of(_frozen(least.astype(element_type.dtype)))
    found = PartialValue(
        np.where(lost | (least == lowest), -np.inf, least),
        np.where(lost | (most == highest), np.inf, most),
    )
    return known if found.is_idle else Known(element_type, known.shape, partial=found)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _moved(*carried: int) -> Rule:
    """The kernel rises with these inputs (with all, when none is named): what it makes of the
    ends are the ends of what it makes.
    """

    def rule(
        operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
    ) -> Sequence[Ends]:
        if operation.kernel is None or attributes.get("reduction", "none") != "none":
            raise _NotFollowed
        low: list[Any] = []
        high: list[Any] = []
        for position, known in enumerate(inputs):
            if not carried or position in carried:
                elements = _elements(known)
                low.append(elements.least[()])
                high.append(elements.most[()])
            elif known.value is not None:
                low.append(known.value[()])
                high.append(known.value[()])
            else:
                raise _NotFollowed
        least, most = (operation.kernel(*given, **attributes) for given in (low, high))
        return list(zip(least, most, strict=True)) if isinstance(least, tuple) else [(least, most)]

    return rule


def _whole_sum(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """Of integers only: with floats each addition would be rounded."""
    if inputs[0].element_type not in _WHOLE:
        raise _NotFollowed
    return _moved(0)(operation, inputs, attributes)


def _whole_product(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """A product rises with its factors where none is negative."""
    if (_elements(inputs[0]).least < 0).any():
        raise _NotFollowed
    return _whole_sum(operation, inputs, attributes)


def _at_corners(formula: Callable[..., np.ndarray]) -> Rule:
    """Elementwise, rising or falling with each input: the ends of the result are among the
    results of the ends.
    """

    def rule(
        operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
    ) -> Sequence[Ends]:
        results = [
            formula(*ends)
            for ends in product(
                *[(one.least, one.most) for one in _broadcast_elements(inputs, attributes)]
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


def _multiplied(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Nothing times a number without bound is nothing."""
    return np.where((one == 0) | (other == 0), 0.0, one * other)


def _divided(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    divisor = _elements(inputs[1])
    if ((divisor.least <= 0) & (divisor.most >= 0)).any():
        raise _NotFollowed
    if inputs[0].element_type in _FLOATS:
        return _at_corners(np.divide)(operation, inputs, attributes)
    cut = np.floor if attributes.get("m_pythondiv", True) else np.trunc
    return _at_corners(lambda one, other: cut(one / other))(operation, inputs, attributes)


def _converted(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    """Numbers stay, those that become integers are cut; as boolean only 0 and 1 are followed."""
    source, elements = inputs[0].element_type, _elements(inputs[0])
    wanted = attributes.get("destination_type", inputs[-1].element_type)
    if wanted is ElementType.BOOLEAN and source is not ElementType.BOOLEAN:
        raise _NotFollowed
    if wanted in _WHOLE:
        return [(np.trunc(elements.least), np.trunc(elements.most))]
    return [(elements.least, elements.most)]


def _selected(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    choice, then, otherwise = _broadcast_elements(inputs, attributes)
    always, never = choice.least > 0, choice.most < 1
    least = np.where(
        always,
        then.least,
        np.where(never, otherwise.least, np.minimum(then.least, otherwise.least)),
    )
    most = np.where(
        always, then.most, np.where(never, otherwise.most, np.maximum(then.most, otherwise.most))
    )
    return [(least, most)]


def _equal(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    one, other = _broadcast_elements(inputs, attributes)
    must = (one.least == one.most) & (other.least == other.most) & (one.least == other.least)
    may = (one.least <= other.most) & (other.least <= one.most)
    return [(must, may)]


def _not_equal(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> Sequence[Ends]:
    ((must, may),) = _equal(operation, inputs, attributes)
    return [(~may, ~must)]


FOLLOWED: Mapping[str, Rule] = {
    # The same elements, elsewhere.
    "Broadcast": _moved(0),
    "Concat": _moved(),
    "Gather": _moved(0),
    "GatherElements": _moved(0),
    "GatherND": _moved(0),
    "Pad": _moved(0, 3),
    "Reshape": _moved(0),
    **dict.fromkeys(_SCATTERS, _moved(0, 2)),
    "Slice": _moved(0),
    "Split": _moved(0),
    "Squeeze": _moved(0),
    "StridedSlice": _moved(0),
    "Tile": _moved(0),
    "Transpose": _moved(0),
    "Unsqueeze": _moved(0),
    "VariadicSplit": _moved(0),
    # Many to one.
    "ReduceMax": _moved(0),
    "ReduceMin": _moved(0),
    "ReduceProd": _whole_product,
    "ReduceSum": _whole_sum,
    # Element by element.
    "Add": _at_corners(np.add),
    "Ceiling": _at_corners(np.ceil),
    "Divide": _divided,
    "Floor": _at_corners(np.floor),
    "Maximum": _at_corners(np.maximum),
    "Minimum": _at_corners(np.minimum),
    "Multiply": _at_corners(_multiplied),
    "Negative": _at_corners(np.negative),
    "Subtract": _at_corners(np.subtract),
    # From one type to another.
    "Convert": _converted,
    "ConvertLike": _converted,
    # Conditions and choices.
    "Equal": _equal,
    "Greater": _at_corners(np.greater),
    "GreaterEqual": _at_corners(np.greater_equal),
    "Less": _at_corners(np.less),
    "LessEqual": _at_corners(np.less_equal),
    "LogicalAnd": _at_corners(np.minimum),
    "LogicalNot": _at_corners(lambda one: 1 - one),
    "LogicalOr": _at_corners(np.maximum),
    "NotEqual": _not_equal,
    "Select": _selected,
}

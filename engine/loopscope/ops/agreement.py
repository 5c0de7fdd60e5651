"""Whether what a kernel gives is what its operation's shape function says: compared for
operations of users at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType, type_name
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, Kernel, Known, Operation

_MOST_VALUES = 1024
"""Elements of an input whose values are told to a shape function."""
_MOST_KEPT = 256
_RULE_FAULTS = (TypeError, LookupError, ArithmeticError, AttributeError)


def call_foreign(
    kernel: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Call a kernel of a user with read-only views of its inputs; ``ValueError`` says so where
    it writes into one.
    """
    try:
        return kernel(*map(_read_only, arguments), **keywords)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(
            "its kernel writes into an input, which other operations read too: let it write into a copy"
        ) from error


def _read_only(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_read_only, value))
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


class Agreeing:
    """A kernel with its attributes bound, whose every answer is compared with that of the shape
    function; ``ValueError`` says both.

    What follows from types and shapes alone is asked for once for each; the values of small inputs
    are told only where that leaves something open.
    """

    __slots__ = ("_answers", "_attributes", "_kernel", "_operation", "_several")

    def __init__(
        self, operation: Operation, kernel: Kernel, attributes: Mapping[str, Any], *, several: bool
    ) -> None:
        self._operation, self._kernel, self._attributes, self._several = (
            operation,
            kernel,
            attributes,
            several,
        )
        self._answers: dict[tuple[object, ...], tuple[Known, ...] | None] = {}

    def __call__(self, *arguments: Any, **state: Any) -> Any:
        made = call_foreign(self._kernel, arguments, state)
        outputs = made[0] if state and isinstance(made, tuple) and made else made
        values = outputs if self._several else (outputs,)
        # What is no array at all, the machine tells of built-in kernels and these alike.
        if isinstance(values, (tuple, list)) and all(
            isinstance(one, (np.ndarray, np.generic)) for one in values
        ):
            self._compare(arguments, values)
        return made

    def _compare(self, arguments: Sequence[Any], values: Sequence[Any]) -> None:
        for value in values:
            if not _has_type(value):
                raise ValueError(
                    f"its kernel returned an array of {type_name(value.dtype)}, which is no element type"
                )
        if self._operation.infer is None:
            return
        expected = self._expected(arguments)
        for number, (known, value) in enumerate(zip(expected, values, strict=False)):
            told = difference(known, value)
            if told:
                raise ValueError(f"output {number}: {told}" if len(values) > 1 else told)

    def _expected(self, arguments: Sequence[Any]) -> tuple[Known, ...]:
        given = list(arguments)
        while given and given[-1] is None:
            given.pop()
        key = tuple((one.dtype, one.shape) if _has_type(one) else None for one in given)
        if key not in self._answers:
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            try:
                self._answers[key] = self._ask([_without_value(one) for one in given])
            except ValueError:
                self._answers[key] = None  # perhaps only for want of a value
        found = self._answers[key]
        if found is not None and all(
            known.element_type is not None and known.shape.is_static for known in found
        ):
            return found
        try:
            return self._ask([_with_value(one) for one in given])
        except ValueError as error:
            raise ValueError(
                f"its shape function refuses what its kernel computed: {error}"
            ) from None

    def _ask(self, knowns: Sequence[Known]) -> tuple[Known, ...]:
        """What the shape function says; nothing where it fails, as in the checks before a run."""
        assert self._operation.infer is not None
        try:
            return tuple(self._operation.infer(knowns, self._attributes))
        except _RULE_FAULTS:
            return ()


def difference(known: Known, value: np.ndarray | np.generic) -> str:
    """Both answers where a value is not what is said of it; empty where it is."""
    element_type = ElementType.of(value)
    if known.element_type in (None, element_type) and known.shape.contains(value.shape):
        return ""
    said = f"{known.element_type or 'any type'}{known.shape}"
    return f"its shape function says {said}, and its kernel returned {element_type}{PartialShape.of(value.shape)}"


def _has_type(value: Any) -> bool:
    try:
        ElementType.of(value)
    except (KeyError, AttributeError):
        return False
    return True


def _without_value(value: Any) -> Known:
    return (
        Known(ElementType.of(value), PartialShape.of(value.shape))
        if _has_type(value)
        else NOTHING_KNOWN
    )


def _with_value(value: Any) -> Known:
    return (
        Known.of(value)
        if _has_type(value) and value.size <= _MOST_VALUES
        else _without_value(value)
    )

"""Comparison of a kernel's outputs with the answer of its shape function, at every call of a user's
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType, type_name
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, Kernel, Known, Operation

_MAX_VALUE_ELEMENTS = 1024
"""Maximum elements of an input whose values are passed to a shape function."""
_MAX_ANSWERS = 256
_RULE_FAULTS = (TypeError, LookupError, ArithmeticError, AttributeError)


def call_foreign(
    kernel: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Call a user's kernel with read-only views of its inputs.

    Raise ``ValueError`` with an explanation if the kernel writes into one.
    """
    try:
        return kernel(*map(_read_only, arguments), **keywords)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(
            "its kernel writes into an input, which other operations read too: let "
            "it write into a copy"
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
    """A kernel with bound attributes whose outputs are compared with its shape function at every
    call.

    It raises ``ValueError`` with both answers if they differ. The answer for types and shapes is
    cached. The values of small inputs are passed only if types and shapes leave something open.
    """

    __slots__ = ("_answers", "_attributes", "_kernel", "_operation", "_several")

    def __init__(
        self, operation: Operation, kernel: Kernel, attributes: Mapping[str, Any], *, several: bool
    ) -> None:
        self._operation = operation
        self._kernel = kernel
        self._attributes = attributes
        self._several = several
        self._answers: dict[tuple[object, ...], tuple[Known, ...] | None] = {}

    def __call__(self, *arguments: Any, **state: Any) -> Any:
        result = call_foreign(self._kernel, arguments, state)
        outputs = result[0] if state and isinstance(result, tuple) and result else result
        values = outputs if self._several else (outputs,)
        # The machine reports values that are not arrays, for built-in kernels as well.
        if isinstance(values, (tuple, list)) and all(
            isinstance(value, (np.ndarray, np.generic)) for value in values
        ):
            self._compare(arguments, values)
        return result

    def _compare(self, arguments: Sequence[Any], values: Sequence[Any]) -> None:
        for value in values:
            if not _has_type(value):
                raise ValueError(
                    f"its kernel returned an array of {type_name(value.dtype)}, which "
                    "is not an element type"
                )
        if self._operation.infer is None:
            return
        expected = self._inferred_outputs(arguments)
        for number, (known, value) in enumerate(zip(expected, values, strict=False)):
            message = difference(known, value)
            if message:
                raise ValueError(f"output {number}: {message}" if len(values) > 1 else message)

    def _inferred_outputs(self, arguments: Sequence[Any]) -> tuple[Known, ...]:
        inputs = list(arguments)
        while inputs and inputs[-1] is None:
            inputs.pop()
        key = tuple((value.dtype, value.shape) if _has_type(value) else None for value in inputs)
        if key not in self._answers:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            try:
                self._answers[key] = self._call_shape_function(
                    [_without_value(value) for value in inputs]
                )
            except ValueError:
                self._answers[key] = None  # The shape function may only need a value.
        answer = self._answers[key]
        if answer is not None and all(
            known.element_type is not None and known.shape.is_static for known in answer
        ):
            return answer
        try:
            return self._call_shape_function([_with_value(value) for value in inputs])
        except ValueError as error:
            raise ValueError(
                f"its shape function rejects the inputs that its kernel computed: {error}"
            ) from None

    def _call_shape_function(self, knowns: Sequence[Known]) -> tuple[Known, ...]:
        """Return the answer of the shape function; empty if it fails, as in the checks before a
        run.
        """
        assert self._operation.infer is not None
        try:
            return tuple(self._operation.infer(knowns, self._attributes))
        except _RULE_FAULTS:
            return ()


def difference(known: Known, value: np.ndarray | np.generic) -> str:
    """Return a message with both answers if a value contradicts what is known of it; empty if it
    agrees.
    """
    element_type = ElementType.of(value)
    if known.element_type in (None, element_type) and known.shape.contains(value.shape):
        return ""
    expected = f"{known.element_type or 'any type'}{known.shape}"
    return (
        f"its shape function inferred {expected}, its kernel returned "
        f"{element_type}{PartialShape.of(value.shape)}"
    )


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
        if _has_type(value) and value.size <= _MAX_VALUE_ELEMENTS
        else _without_value(value)
    )

"""Tests of a user's operation: in one call, and of its outputs at every call of a run.

The outputs of the kernel are compared with the answer of the shape function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import EngineError, shorten
from loopscope.ir.element_type import ElementType, type_name
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.attribute_text import ITEMS, written
from loopscope.ops.custom.registration import declaration_problem, name_problem
from loopscope.ops.declare import (
    NOTHING_KNOWN,
    Array,
    AttributeProblem,
    Kernel,
    Known,
    Operation,
    typed,
)
from loopscope.ops.infer import with_shared_type
from loopscope.ops.port_meanings import input_text
from loopscope.ops.values import described

_RULE_FAULTS = (TypeError, LookupError, ArithmeticError, AttributeError, ValueError)


def verify_operation(
    operation: Operation, inputs: Sequence[Any], attributes: Mapping[str, object]
) -> Any:
    """Return the kernel's result after every check; see ``loopscope.ops.custom.verify``."""
    message = name_problem(operation) or declaration_problem(operation)
    if message:
        raise _failure(operation, message)
    operation = with_shared_type(operation)
    keywords = _keywords(operation, attributes)
    arrays = _arrays(operation, inputs)
    before = [_bits(value) for value in arrays]
    result, values = _call(operation, arrays, keywords)
    for number, (value, bits) in enumerate(zip(arrays, before, strict=True)):
        if _bits(value) != bits:
            raise _failure(
                operation,
                f"has a kernel that writes into input {number}, expected it to leave "
                "its inputs alone",
            )
    again = _call(operation, arrays, keywords)[1]
    if [_bits(value) for value in values] != [_bits(value) for value in again]:
        raise _failure(
            operation,
            "has a kernel that gave two answers for the same inputs, expected one: "
            "declare it `stateful`",
        )
    if operation.infer is not None:
        for words, knowns in _knowledge(arrays):
            _compare(operation, words, knowns, keywords, values)
    return result


def _failure(operation: Operation, message: str) -> EngineError:
    return EngineError(f"operation {operation.title} {message}")


def _keywords(operation: Operation, values: Mapping[str, object]) -> dict[str, Any]:
    """Return typed attributes as a model has them: written as text, parsed, and checked against
    their constraints.
    """
    by_keyword = {attribute.keyword: attribute for attribute in operation.attributes}
    texts: dict[str, object] = {}
    for keyword, value in values.items():
        attribute = by_keyword.get(keyword)
        if attribute is None:
            raise _failure(
                operation,
                f"has no attribute {keyword!r}, only {', '.join(by_keyword) or 'none at all'}",
            )
        value = tuple(value) if attribute.kind in ITEMS and isinstance(value, list) else value
        try:
            texts[attribute.name] = written(attribute.kind, value)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise _failure(
                operation, f"gets {shorten(repr(value), 60)} for its attribute {keyword!r}: {error}"
            ) from None
    try:
        return typed(operation, texts)
    except AttributeProblem as error:
        raise _failure(operation, f"cannot be called: {error}") from None


def _arrays(operation: Operation, inputs: Sequence[Any]) -> list[Any]:
    lower, upper = operation.inputs
    if len(inputs) < lower or (upper is not None and len(inputs) > upper):
        raise _failure(operation, f"takes {input_text(operation)}, and gets {len(inputs)}")
    arrays: list[Any] = []
    for number, value in enumerate(inputs):
        array = None if value is None else _array(value)
        allowed = operation.types[min(number, len(operation.types) - 1)]
        if array is not None and not _is_among(array, allowed):
            names = ", ".join(sorted(str(element_type) for element_type in allowed))
            raise _failure(
                operation, f"gets {type_name(array.dtype)} as input {number}, expected {names}"
            )
        arrays.append(array)
    return arrays


def _array(value: Any) -> Any:
    """Return a value in the form of a run: a Python int is i64, a float f32, and rank 0 a numpy
    scalar.
    """
    array = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        natural = {"f": np.float32, "i": np.int64, "U": object}.get(array.dtype.kind)
        array = array if natural is None else array.astype(natural)
    is_number = array.ndim == 0 and array.dtype != object and array.dtype.names is None
    return array[()] if is_number else array


def _is_among(array: Array | np.generic, allowed: frozenset[ElementType]) -> bool:
    try:
        return ElementType.of(array) in allowed
    except KeyError:
        return False


def _call(
    operation: Operation, arrays: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Any, list[Array]]:
    """Return the kernel's result, and its outputs as a list of arrays."""
    assert operation.kernel is not None
    extra: dict[str, Any] = {"state": 0} if operation.stateful else {}
    extra |= {"outputs": operation.outputs or 1} if operation.counts_outputs else {}
    try:
        with np.errstate(all="ignore"):
            result = operation.kernel(*arrays, **keywords, **extra)
            result = result[0] if operation.stateful else result
    except Exception as error:
        raise _failure(
            operation, f"failed: {str(error).strip().rstrip('.') or type(error).__name__}"
        ) from error
    if operation.outputs != 1 and not isinstance(result, tuple):
        raise _failure(
            operation, f"has a kernel that returned {described(result)}, expected a tuple of arrays"
        )
    values = list(result) if operation.outputs != 1 else [result]
    if operation.outputs is not None and len(values) != operation.outputs:
        raise _failure(
            operation,
            f"has a kernel that returned {len(values)} outputs, expected {operation.outputs}",
        )
    for value in values:
        if not isinstance(value, (np.ndarray, np.generic)):
            raise _failure(
                operation, f"has a kernel that returned {described(value)}, expected an array"
            )
        if not _is_among(value, frozenset(ElementType)):
            raise _failure(
                operation,
                f"has a kernel that returned an array of {type_name(value.dtype)}, "
                "which is not an element type",
            )
    return result, values


def _knowledge(arrays: Sequence[Any]) -> list[tuple[str, list[Known]]]:
    """Return the levels of knowledge to test a shape function with, from everything to nothing."""
    present = [NOTHING_KNOWN if known is None else Known.of(known) for known in arrays]
    return [
        ("types, shapes and values", present),
        ("types and shapes", [Known(known.element_type, known.shape) for known in present]),
        (
            "types and ranks",
            [Known(known.element_type, _only_rank(known.shape)) for known in present],
        ),
        ("types", [Known(known.element_type) for known in present]),
        ("nothing", [NOTHING_KNOWN for _ in present]),
    ]


def _only_rank(shape: PartialShape) -> PartialShape:
    return DYNAMIC if shape.rank is None else PartialShape.unknown(shape.rank)


def _compare(
    operation: Operation,
    words: str,
    knowns: Sequence[Known],
    keywords: Mapping[str, Any],
    values: Sequence[Array],
) -> None:
    assert operation.infer is not None
    try:
        answers = tuple(operation.infer(knowns, keywords))
    except _RULE_FAULTS as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        raise _failure(
            operation,
            f"has a shape function that fails when it knows {words} of the inputs: {reason}",
        ) from error
    if len(answers) != len(values) and not (operation.outputs is None and not answers):
        raise _failure(
            operation,
            f"has a shape function that infers {len(answers)} outputs, and its kernel "
            f"returned {len(values)}",
        )
    for number, (known, value) in enumerate(zip(answers, values, strict=False)):
        message = difference(known, value)
        if not message and known.value is not None and _bits(known.value) != _bits(value):
            message = (
                f"its shape function inferred the value {shorten(str(known.value))}, its "
                f"kernel returned {shorten(str(value))}"
            )
        if message:
            raise _failure(
                operation,
                f"disagrees with itself in output {number}: knowing {words} of the "
                f"inputs, {message}",
            )


def _bits(value: Any) -> object:
    if value is None:
        return None
    array = np.asarray(value)
    return (
        array.dtype,
        array.shape,
        repr(array.tolist()) if array.dtype == object else array.tobytes(),
    )


_MAX_VALUE_ELEMENTS = 1024
"""Maximum elements of an input whose values are passed to a shape function."""
_MAX_ANSWERS = 256
_NO_ANSWER = (TypeError, LookupError, ArithmeticError, AttributeError)


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
        except _NO_ANSWER:
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

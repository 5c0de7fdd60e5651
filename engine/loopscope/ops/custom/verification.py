"""Test of a user's operation in one call: the checks of its kernel and its shape function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import EngineError, shorten
from loopscope.ir.element_type import ElementType, type_name
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.attribute_text import ITEMS, written
from loopscope.ops.custom.agreement import difference
from loopscope.ops.custom.registration import declaration_problem, name_problem
from loopscope.ops.declare import NOTHING_KNOWN, Array, AttributeProblem, Known, Operation, typed
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

"""Python expressions of an operation, for the types that have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from loopscope.executor.plan.plan import Instruction
from loopscope.executor.plan.slots import Slot
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import ModelGraph, Node
from loopscope.ops.declare import Operation

_FLOATS = "fd"


def expression(instruction: Instruction, values: list[Any]) -> str:
    """Return the Python expression of an operation for the types of its inputs in ``values``; empty
    if none exists.
    """
    if instruction.symbol or not instruction.float_symbol:
        return instruction.symbol
    same = {getattr(values[slot], "dtype", None) for slot in instruction.inputs}
    dtype = next(iter(same))
    return (
        instruction.float_symbol
        if len(same) == 1 and isinstance(dtype, np.dtype) and dtype.char in _FLOATS
        else ""
    )


def of_integers(
    instruction: Instruction, numbers: Mapping[Slot, np.dtype], constant_of: Callable[[Slot], Any]
) -> str:
    """Return the Python expression of an operation on ``numbers`` of one integer type; empty if
    none exists.
    """
    text, (first, *others) = (
        instruction.integer_symbol,
        [numbers[slot] for slot in instruction.inputs],
    )
    if (
        not text
        or first.kind not in "iu"
        or first.isbuiltin != 1
        or any(other != first for other in others)
    ):
        return ""
    divides = "/" in text or "%" in text
    return text if not divides or constant_of(instruction.inputs[1]) else ""


class Expressions(NamedTuple):
    """Python expressions of an operation; each is empty if none exists."""

    symbol: str = ""
    """Expression for all types."""
    float_symbol: str = ""
    integer_symbol: str = ""


NO_EXPRESSIONS = Expressions()


def expressions_of(
    operation: Operation, attributes: Mapping[str, Any], inputs: Sequence[ElementType | None]
) -> Expressions:
    """Return the Python expressions of an operation with these attributes and input types.

    An expression requires input types that the operation accepts; for example, booleans cannot be
    negated.
    """
    if not (operation.symbol or operation.float_symbol):
        return NO_EXPRESSIONS
    types = operation.types
    is_unsupported = types and any(
        element_type is not None and element_type not in types[min(index, len(types) - 1)]
        for index, element_type in enumerate(inputs)
    )
    if is_unsupported or not (
        _is_satisfied(operation.symbol_when, attributes)
        and _fits_input_count(operation, len(inputs))
    ):
        return NO_EXPRESSIONS
    has_integer_symbol = _is_satisfied(operation.integer_symbol_when, attributes)
    return Expressions(
        operation.symbol,
        operation.float_symbol,
        operation.integer_symbol if has_integer_symbol else "",
    )


def _fits_input_count(operation: Operation, inputs: int) -> bool:
    """Return True if the operation's expression has this number of inputs. Variadic operations have
    one for two inputs.
    """
    text = operation.symbol or operation.float_symbol
    return f"{{{inputs - 1}}}" in text and f"{{{inputs}}}" not in text


def _is_satisfied(when: Mapping[str, object], keywords: Mapping[str, object]) -> bool:
    return all(keywords.get(name) == value for name, value in when.items())


def input_types(graph: ModelGraph, node: Node) -> list[ElementType | None]:
    """Return the declared type of each input, or None."""
    sources = graph.sources[node.id]
    return [
        None if source is None else graph.by_id[source.layer].outputs[source.output].element_type
        for source in sources[: len(node.inputs)]
    ]

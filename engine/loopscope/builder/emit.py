"""Inputs and outputs of one operation call: inputs as tensors, and inferred outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.python_values import as_array
from loopscope.builder.tensor import Tensor
from loopscope.checks.known import computed
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import NOTHING_KNOWN, Known, Operation, typed
from loopscope.ops.port_meanings import input_names, input_text

_RULE_FAULTS = (LookupError, ArithmeticError, AttributeError, TypeError)


def newest(catalogue: Catalogue, type: str) -> Operation:
    """Return the newest version of an operation, or raise ``BuildError`` if it does not exist."""
    versions = catalogue.versions(type)
    if not versions:
        raise BuildError(f"operation {type!r} does not exist")
    return max(versions, key=lambda operation: operation.version)


def lift_inputs(
    frame: GraphFrame, operation: Operation, inputs: Sequence[Any], caller: str
) -> tuple[Tensor, ...]:
    """Return the inputs as tensors of a frame.

    Numbers become Consts of the type of the tensor inputs in the same type group.
    """
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    lower, upper = operation.inputs
    if len(inputs) < lower or (upper is not None and len(inputs) > upper):
        raise BuildError(f"{caller}() expects {input_text(operation)}, got {len(inputs)}")
    names = input_names(operation, len(inputs))
    kinds = [operation.types[min(index, len(operation.types) - 1)] for index in range(len(inputs))]
    tensors: list[Tensor] = []
    for index, value in enumerate(inputs):
        description = f"{caller}(): input {index} ({names[index]})"
        if isinstance(value, Tensor):
            tensor = frame.bring(value)
            if tensor.element_type is not None and tensor.element_type not in kinds[index]:
                raise BuildError(f"{description} is {tensor!r}, expected {_types(kinds[index])}")
        elif value is None:
            raise BuildError(f"{description} is missing, but a later input is not")
        else:
            # Inputs that may have the same types are meant to have the same type: an axis takes
            # none from the data.
            tensors_of_group = [
                other
                for other, kind in zip(inputs, kinds, strict=True)
                if isinstance(other, Tensor) and kind == kinds[index]
            ]
            candidates = [
                other.element_type for other in tensors_of_group if other.element_type is not None
            ]
            tensor = frame.graph.constant(as_array(value, candidates, kinds[index], description))
        tensors.append(tensor)
    return tuple(tensors)


def _types_differ(operation: Operation, inputs: Sequence[Tensor]) -> bool:
    """Return True if inputs that must have one type have several."""
    return (
        len(set(operation.types)) == 1
        and len({tensor.element_type for tensor in inputs} - {None}) > 1
    )


def _advice(inputs: Sequence[Tensor]) -> str:
    """Return advice about inputs of several types, as the end of a sentence."""
    mixes_integers = {tensor.element_type for tensor in inputs} == {
        ElementType.I32,
        ElementType.I64,
    }
    note = (
        "; integers of builder.constant are i32 as in TensorFlow, those of loop variables are i64"
        if mixes_integers
        else ""
    )
    return f": convert one with ops.convert{note}"


def _types(allowed: frozenset[ElementType]) -> str:
    return ", ".join(sorted(str(element_type) for element_type in allowed))


def infer_outputs(
    operation: Operation,
    catalogue: Catalogue,
    inputs: Sequence[Tensor],
    texts: Mapping[str, object],
    caller: str,
) -> tuple[Known, ...]:
    """Return the inferred outputs of an operation.

    ``BuildError`` if the inputs contradict the operation.
    """
    attributes = typed(operation, texts)
    knowns = [tensor.known for tensor in inputs]
    try:
        outputs = operation.infer(knowns, attributes) if operation.infer is not None else ()
    except ValueError as problem:
        advice = _advice(inputs) if _types_differ(operation, inputs) else ""
        raise BuildError(
            f"{caller}(): {problem}; the inputs are "
            f"{', '.join(map(repr, inputs)) or 'none'}{advice}"
        ) from None
    except _RULE_FAULTS as problem:
        raise BuildError(
            f"{caller}() does not support {', '.join(map(repr, inputs))}: {problem}"
        ) from problem
    if operation.outputs is None and not outputs:
        raise BuildError(
            f"{caller}() has a number of outputs that cannot be inferred from "
            f"{', '.join(map(repr, inputs))}"
        )
    with np.errstate(all="ignore"):
        known = tuple(
            outputs
            if catalogue.is_foreign(operation)
            else computed(operation, knowns, attributes, outputs)
        )
    return (*known, *[NOTHING_KNOWN] * ((operation.outputs or len(known)) - len(known)))

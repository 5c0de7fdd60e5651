"""Names of an operation's inputs, from its specification or its kernel's parameters."""

from __future__ import annotations

import functools
import inspect

from loopscope.ops.declare import Operation, Role

_WITHOUT_KERNEL = {Role.READ_VALUE: ("initial",), Role.ASSIGN: ("value",)}


def input_names(operation: Operation, count: int | None = None) -> tuple[str, ...]:
    """Return a name for each input (``count`` of them for an operation that takes any number)."""
    lower, upper = operation.inputs
    number = count if count is not None else (upper if upper is not None else lower)
    names = list(named_inputs(operation)[:number])
    return (*names, *(f"input_{index}" for index in range(len(names), number)))


def named_inputs(operation: Operation) -> tuple[str, ...]:
    """Return the inputs that the specification or the kernel names; empty if the operation takes
    any number, or its kernel has no readable signature.
    """
    if operation.spec_inputs:
        return operation.spec_inputs
    kernel = operation.kernel
    while isinstance(kernel, functools.partial):
        kernel = kernel.func
    if kernel is None:
        return _WITHOUT_KERNEL.get(operation.role, ())
    try:
        parameters = inspect.signature(kernel).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(
        parameter.name.rstrip("_")
        for parameter in parameters
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    )


def input_text(operation: Operation) -> str:
    """Return the number of inputs that an operation takes, in words."""
    lower, upper = operation.inputs
    names = ", ".join(input_names(operation))
    if upper is None:
        return f"{lower} or more inputs"
    if lower == upper:
        return f"{lower} input{'' if lower == 1 else 's'}" + (f" ({names})" if names else "")
    return f"{lower} to {upper} inputs ({names})"

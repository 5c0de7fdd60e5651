"""What the inputs of an operation are called, taken from its kernel."""

from __future__ import annotations

import functools
import inspect

from loopscope.ops.declare import Operation, Role

_WITHOUT_KERNEL = {Role.READ_VALUE: ("initial",), Role.ASSIGN: ("value",)}


def input_names(operation: Operation, count: int | None = None) -> tuple[str, ...]:
    """A name for each input (``count`` of them for an operation that takes any number)."""
    least, most = operation.inputs
    number = count if count is not None else (most if most is not None else least)
    names = list(named_inputs(operation)[:number])
    return (*names, *(f"input_{index}" for index in range(len(names), number)))


def named_inputs(operation: Operation) -> tuple[str, ...]:
    """The inputs that its kernel names; none where it takes any number, or does not tell."""
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
        one.name.rstrip("_") for one in parameters if one.kind is inspect.Parameter.POSITIONAL_ONLY
    )


def input_text(operation: Operation) -> str:
    """How many inputs an operation takes, in words."""
    least, most = operation.inputs
    names = ", ".join(input_names(operation))
    if most is None:
        return f"{least} or more inputs"
    if least == most:
        return f"{least} input{'' if least == 1 else 's'}" + (f" ({names})" if names else "")
    return f"{least} to {most} inputs ({names})"

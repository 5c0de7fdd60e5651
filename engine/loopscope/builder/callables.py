"""Functions passed by users: checks of their signatures, calls, and names of their arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from loopscope.builder.structure import leaves, rebuild


def check_callable(caller: str, **arguments: object) -> None:
    """Raise ``TypeError`` for the first argument that is not callable."""
    for name, value in arguments.items():
        if not callable(value):
            raise TypeError(f"{caller}(): {name} is {value!r}, expected a function")


def check_signature(count: int, values: str, caller: str, **arguments: object) -> None:
    """Raise ``TypeError`` for the first argument that is not a function of ``count`` values.

    ``values`` describes the values in the message.
    """
    check_callable(caller, **arguments)
    for name, function in arguments.items():
        try:
            signature = inspect.signature(function)  # type: ignore[arg-type]  # it is callable
        except (TypeError, ValueError):  # those of C need not say
            continue
        try:
            signature.bind(*range(count))
        except TypeError:
            count_words = "1 value" if count == 1 else f"{count} values"
            raise TypeError(
                f"{caller}(): {name} has the signature {signature}, but is called with "
                f"{count_words if count else 'none'}: {values}"
            ) from None


def argument_count(structure: Any) -> int:
    """Return the number of arguments that ``call`` passes for a structure."""
    return len(structure) if isinstance(structure, (tuple, list)) else 1


def call(function: Callable[..., Any], structure: Any, values: Any) -> Any:
    """Call a function with values in a structure; a tuple or list is unpacked into arguments."""
    filled = rebuild(structure, values)
    return function(*filled) if isinstance(structure, (tuple, list)) else function(filled)


def argument_names(structure: Any, function: Callable[..., Any], skip: int = 0) -> list[str]:
    """Return names for the values of a structure, from the function's argument names and the fields
    below them.
    """
    try:
        arguments = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind <= parameter.POSITIONAL_OR_KEYWORD
        ][skip:]
    except (TypeError, ValueError):
        arguments = []
    names = []
    for position, part in enumerate(
        structure if isinstance(structure, (tuple, list)) else [structure]
    ):
        stem = arguments[position] if position < len(arguments) else f"variable_{position}"
        names += ["_".join([stem, *re.findall(r"\w+", leaf.path)]) for leaf in leaves(part)]
    return names

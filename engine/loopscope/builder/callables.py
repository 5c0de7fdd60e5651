"""The functions that users hand over: that they are callable and take what they get, and what
they call it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from loopscope.builder.structure import leaves, rebuilt


def must_be_callable(called: str, **given: object) -> None:
    """``TypeError`` for the first argument that is not callable."""
    for name, value in given.items():
        if not callable(value):
            raise TypeError(f"{called}(): {name} is {value!r}, expected a function")


def must_take(count: int, values: str, called: str, **given: object) -> None:
    """``TypeError`` for the first argument that is not a function of so many values; ``values``
    says in words which.
    """
    must_be_callable(called, **given)
    for name, function in given.items():
        try:
            signature = inspect.signature(function)  # type: ignore[arg-type]  # it is callable
        except (TypeError, ValueError):  # those of C need not say
            continue
        try:
            signature.bind(*range(count))
        except TypeError:
            many = "1 value" if count == 1 else f"{count} values"
            raise TypeError(
                f"{called}(): {name} takes {signature}, and is called with {many if count else 'none'}: {values}"
            ) from None


def spread(structure: Any) -> int:
    """How many arguments ``call`` makes of a structure."""
    return len(structure) if isinstance(structure, (tuple, list)) else 1


def call(function: Callable[..., Any], structure: Any, values: Any) -> Any:
    """Calls a function with values in a structure: a tuple or list is spread into its arguments."""
    given = rebuilt(structure, values)
    return function(*given) if isinstance(structure, (tuple, list)) else function(given)


def argument_names(given: Any, function: Callable[..., Any], skip: int = 0) -> list[str]:
    """What the user calls the values of a structure: by the arguments of the function that gets
    them, and the fields below them.
    """
    try:
        arguments = [
            one.name
            for one in inspect.signature(function).parameters.values()
            if one.kind <= one.POSITIONAL_OR_KEYWORD
        ][skip:]
    except (TypeError, ValueError):
        arguments = []
    names = []
    for place, part in enumerate(given if isinstance(given, (tuple, list)) else [given]):
        stem = arguments[place] if place < len(arguments) else f"variable_{place}"
        names += ["_".join([stem, *re.findall(r"\w+", leaf.path)]) for leaf in leaves(part)]
    return names

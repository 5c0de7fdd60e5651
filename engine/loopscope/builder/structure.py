"""Nested structures of tensors, and calls of functions that users pass."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from loopscope.errors import BuildError, shorten

FIXED: Mapping[str, bool] = MappingProxyType({"fixed": True})
"""Metadata of dataclass fields that are constant over iterations and not values of the
structure.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a structure with its path, such as ``[1].left``."""

    path: str
    value: Any


def leaves(structure: Any) -> list[Leaf]:
    """Return all values that are not structures themselves, in order.

    >>> [leaf.path for leaf in leaves((1, {"a": [2, 3]}))]
    ['[0]', "[1]['a'][0]", "[1]['a'][1]"]
    """
    return list(_walk(structure, ""))


def _walk(structure: Any, path: str) -> Iterator[Leaf]:
    parts = _parts(structure)
    if parts is None:
        yield Leaf(path, structure)
        return
    for key, value in parts:
        yield from _walk(value, path + key)


def _parts(structure: Any) -> list[tuple[str, Any]] | None:
    """Return the (key, part) pairs of one level, or None for a leaf."""
    if isinstance(structure, dict):
        return [(f"[{key!r}]", value) for key, value in structure.items()]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return [
            (f".{name}", value) for name, value in zip(structure._fields, structure, strict=True)
        ]
    if isinstance(structure, (tuple, list)):
        return [(f"[{index}]", value) for index, value in enumerate(structure)]
    if dataclasses.is_dataclass(structure) and not isinstance(structure, type):
        fields = [
            field for field in dataclasses.fields(structure) if not field.metadata.get("fixed")
        ]
        return [(f".{field.name}", getattr(structure, field.name)) for field in fields]
    return None


def rebuild(structure: Any, values: Sequence[Any]) -> Any:
    """Return the same structure with other leaf values, in the order of ``leaves``."""
    remaining = iter(values)
    return map_leaves(structure, lambda _: next(remaining))


def map_leaves(structure: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same structure with a function applied to every leaf."""
    parts = _parts(structure)
    if parts is None:
        return change(structure)
    values = [map_leaves(value, change) for _, value in parts]
    if isinstance(structure, dict):
        changed = copy.copy(structure)
        changed.update(zip(structure, values, strict=True))
        return changed
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*values)
    if isinstance(structure, (tuple, list)):
        return type(structure)(values)
    # A copy, not a new instance: the validation in the class's constructor may reject the new
    # values.
    changed = copy.copy(structure)
    for (key, _), value in zip(parts, values, strict=True):
        object.__setattr__(changed, key[1:], value)
    return changed


def align_leaves(like: Any, structure: Any, what: str) -> list[Leaf]:
    """Return the leaves of ``structure``, in the order and with the paths of ``like``. A leaf of
    ``like`` may be any structure in ``structure``.

    ``BuildError`` if the structures differ; ``what`` names ``structure`` in its message. Lists and
    tuples are interchangeable.
    """
    result: list[Leaf] = []
    _align(like, structure, "", what, result)
    return result


def _align(like: Any, structure: Any, path: str, what: str, result: list[Leaf]) -> None:
    pairs = pair_parts(like, structure, path, what)
    if pairs is None:
        result.append(Leaf(path, structure))
        return
    for inner, part, value in pairs:
        _align(part, value, inner, what, result)


def pair_parts(
    like: Any, structure: Any, path: str, what: str
) -> list[tuple[str, Any, Any]] | None:
    """Return one level of two structures: path, part of ``like``, part of ``structure``; None if
    ``like`` is a leaf.

    The errors are those of ``align_leaves``.
    """
    expected = _parts(like)
    if expected is None:
        return None
    actual = _parts(structure)
    keys = [key for key, _ in expected]
    if structure is None:
        raise BuildError(f"{what}{path} is None, expected {describe(like)}; is a return missing?")
    if (
        actual is None
        or _kind(like) is not _kind(structure)
        or sorted(keys) != sorted(key for key, _ in actual)
    ):
        raise BuildError(f"{what}{path} is {describe(structure)}, expected {describe(like)}")
    values = dict(actual)
    return [(path + key, part, values[key]) for key, part in expected]


def matches(like: Any, structure: Any) -> bool:
    """Return True if both structures have the same parts, down to the same leaves."""
    try:
        return all(_parts(leaf.value) is None for leaf in align_leaves(like, structure, ""))
    except BuildError:
        return False


def _kind(structure: Any) -> type:
    if isinstance(structure, dict):
        return dict
    if isinstance(structure, (tuple, list)) and not hasattr(structure, "_fields"):
        return tuple
    return type(structure)


def describe(structure: Any) -> str:
    """Return a description of a structure for messages: its type and parts, or the repr of a
    leaf.
    """
    parts = _parts(structure)
    if parts is None:
        return shorten(repr(structure), 60)
    keys = ", ".join(key for key, _ in parts[:8])
    return (
        f"a {type(structure).__name__} of {len(parts)} ({keys}{', ...' if len(parts) > 8 else ''})"
    )


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
        except (TypeError, ValueError):  # functions written in C may have no signature
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
    below them. The first ``skip`` arguments of the function are not for the structure.
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

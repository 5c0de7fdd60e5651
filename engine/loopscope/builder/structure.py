"""Nested structures of tensors: tuples, named tuples, lists, dicts and dataclasses, taken apart
and put together again.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from loopscope.errors import BuildError, shorten

FIXED: Mapping[str, bool] = MappingProxyType({"fixed": True})
"""The metadata of a dataclass's field that is the same in every iteration, and no value of the
structure.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a structure, and where it is: ``[1].left``."""

    path: str
    value: Any


def leaves(structure: Any) -> list[Leaf]:
    """The leaves: all values that are not structures themselves, in order.

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
    """The (key, part) pairs of one level; None for a leaf."""
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


def rebuilt(structure: Any, values: Sequence[Any]) -> Any:
    """The same structure with other values at its leaves, in the order of ``leaves``."""
    remaining = iter(values)
    return mapped(structure, lambda _: next(remaining))


def mapped(structure: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with every leaf changed."""
    parts = _parts(structure)
    if parts is None:
        return change(structure)
    values = [mapped(value, change) for _, value in parts]
    if isinstance(structure, dict):
        changed = copy.copy(structure)
        changed.update(zip(structure, values, strict=True))
        return changed
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*values)
    if isinstance(structure, (tuple, list)):
        return type(structure)(values)
    # Not constructed anew: the checks in the class's constructor passed for the original values,
    # not for these.
    changed = copy.copy(structure)
    for (key, _), value in zip(parts, values, strict=True):
        object.__setattr__(changed, key[1:], value)
    return changed


def aligned(like: Any, given: Any, what: str) -> list[Leaf]:
    """The leaves of ``given``, in the order and with the paths of ``like``; what is a leaf there
    may be anything here.

    ``BuildError`` where the structures part. A list may stand for a tuple, and the other way round.
    """
    found: list[Leaf] = []
    _align(like, given, "", what, found)
    return found


def _align(like: Any, given: Any, path: str, what: str, found: list[Leaf]) -> None:
    below = paired(like, given, path, what)
    if below is None:
        found.append(Leaf(path, given))
        return
    for inner, part, value in below:
        _align(part, value, inner, what, found)


def paired(like: Any, given: Any, path: str, what: str) -> list[tuple[str, Any, Any]] | None:
    """One level of two structures: path, part of ``like``, part of ``given``; None where
    ``like`` is a leaf; errors as of ``aligned``.
    """
    expected = _parts(like)
    if expected is None:
        return None
    there = _parts(given)
    keys = [key for key, _ in expected]
    if given is None:
        raise BuildError(
            f"{what}{path} is None, expected {described(like)}: was a return forgotten?"
        )
    if (
        there is None
        or _kind(like) is not _kind(given)
        or sorted(keys) != sorted(key for key, _ in there)
    ):
        raise BuildError(f"{what}{path} is {described(given)}, expected {described(like)}")
    values = dict(there)
    return [(path + key, part, values[key]) for key, part in expected]


def matches(like: Any, given: Any) -> bool:
    """Whether two structures are the same down to the leaves of the first, and these are leaves
    in the second.
    """
    try:
        return all(_parts(leaf.value) is None for leaf in aligned(like, given, ""))
    except BuildError:
        return False


def _kind(structure: Any) -> type:
    if isinstance(structure, dict):
        return dict
    if isinstance(structure, (tuple, list)) and not hasattr(structure, "_fields"):
        return tuple
    return type(structure)


def described(structure: Any) -> str:
    """A structure for a message: what it is, of how many parts; a leaf by its repr."""
    parts = _parts(structure)
    if parts is None:
        return shorten(repr(structure), 60)
    keys = ", ".join(key for key, _ in parts[:8])
    return (
        f"a {type(structure).__name__} of {len(parts)} ({keys}{', ...' if len(parts) > 8 else ''})"
    )

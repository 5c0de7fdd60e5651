"""Cache of results that belong to an object, such as a model, and are deleted with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, overload
from weakref import WeakKeyDictionary

_Owner = TypeVar("_Owner")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Function = Callable[Concatenate[_Owner, _Arguments], _Result]


@overload
def cache_by_object(
    function: _Function[_Owner, _Arguments, _Result], /
) -> _Function[_Owner, _Arguments, _Result]: ...


@overload
def cache_by_object(
    *, key: Callable[..., Hashable] | None = None, newest_only: bool = False
) -> Callable[[_Function[_Owner, _Arguments, _Result]], _Function[_Owner, _Arguments, _Result]]: ...


def cache_by_object(
    function: Callable[..., _Result] | None = None,
    /,
    *,
    key: Callable[..., Hashable] | None = None,
    newest_only: bool = False,
) -> Callable[..., object]:
    """Cache the results of a function by its first argument, an object with weak references.

    An entry is deleted together with the object. A result that references the object keeps it
    alive forever: return what was computed from the object, not the object. The same holds for
    keys.

    The other arguments are the key of a result. ``key`` computes another key from all arguments,
    for arguments that are not hashable and for objects that change, such as a run. With
    ``newest_only``, an object has one result, which another key replaces.

    Two threads may compute the same result, and each of them receives a complete one. An exception
    is not cached.

    >>> class Model:
    ...     name = "m"
    >>> @cache_by_object
    ... def title(model, suffix):
    ...     print("computed")
    ...     return model.name + suffix
    >>> model = Model()
    >>> title(model, "!"), title(model, "!")
    computed
    ('m!', 'm!')
    """
    if function is None:
        return lambda function: _cached(function, key, newest_only)
    return _cached(function, key, newest_only)


def _cached(
    function: Callable[..., _Result], key: Callable[..., Hashable] | None, newest_only: bool
) -> Callable[..., _Result]:
    results: WeakKeyDictionary[object, dict[Hashable, _Result]] = WeakKeyDictionary()

    @wraps(function)
    def cached(owner: object, /, *arguments: object, **named: object) -> _Result:
        entry = key(owner, *arguments, **named) if key else (arguments, *named.items())
        known = results.get(owner)
        if known is not None and entry in known:
            return known[entry]
        result = function(owner, *arguments, **named)
        if newest_only:
            # A new table instead of a changed one: another thread may be reading the old one.
            results[owner] = {entry: result}
        else:
            results.setdefault(owner, {})[entry] = result
        return result

    return cached

"""Frozen dataclasses that are made three times as fast: a model is hundreds of thousands of them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def swiftly_made(frozen: Class) -> Class:
    """Of a dataclass with ``frozen=True, slots=True`` and no weak references: the same class, with another ``__init__``.

    That of the dataclass goes around its own lock once for each field. This one lets the new instance be of a class without a lock while it
    is filled. Defaults are taken as they are now: factories among them have to give the same object each time.
    """
    unlocked = type(frozen.__name__, frozen.__bases__, {"__slots__": frozen.__dict__["__slots__"]})
    known: dict[str, Any] = {"_frozen": frozen, "_unlocked": unlocked, "_set": object.__setattr__}
    taken = ["self"]
    for field in fields(frozen):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if default is MISSING:
            taken.append(field.name)
        else:
            known[f"_{field.name}"] = default
            taken.append(f"{field.name}=_{field.name}")
    filled = [f"self.{field.name} = {field.name}" for field in fields(frozen)]
    body = "\n    ".join(["_set(self, '__class__', _unlocked)", *filled, "self.__class__ = _frozen"])
    exec(f"def __init__({', '.join(taken)}):\n    {body}", known)
    known["__init__"].__qualname__ = f"{frozen.__qualname__}.__init__"
    frozen.__init__ = known["__init__"]  # type: ignore[misc]  # of a class of ours, before anybody has it
    return frozen

"""Families of operations: tables whose rows share fields.

The fields that a family shares are written once, a row adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypedDict, Unpack

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Attribute, Infer, KeepingKernel, Kernel, Operation, Role
from loopscope.ops.derivative import Gradient

LAST = 16
"""Last opset of most operations: opset17 contains few so far, and their rows set ``opsets``."""


class Fields(TypedDict, total=False):
    """Fields of ``Operation`` that a family may share; fields that no two rows share are
    omitted.
    """

    infer: Infer | None
    inputs: tuple[int, int | None]
    optional_inputs: frozenset[int]
    outputs: int | None
    attributes: tuple[Attribute, ...]
    types: tuple[frozenset[ElementType], ...]
    alike: tuple[str, ...]
    symbol: str
    float_symbol: str
    integer_symbol: str
    integer_symbol_when: Mapping[str, object]
    symbol_when: Mapping[str, object]
    identity: bool
    stateful: bool
    counts_outputs: bool
    by_constant: Callable[..., KeepingKernel | None] | None
    kept_input: int
    only_tensors: bool
    opset: str
    gradient: Gradient | None
    role: Role
    prepare: Callable[[Mapping[str, Any], int], Kernel] | None


class FamilyRow(Protocol):
    """A function that returns one row of a family."""

    def __call__(
        self,
        name: str,
        kernel: Kernel | None = None,
        /,
        *,
        version: int = 1,
        opsets: tuple[int, int] | None = None,
        page: str = "",
        **own: Unpack[Fields],
    ) -> Operation:
        """Return a row with its own fields and the fields of its family.

        By default ``opsets`` is from the version to ``LAST``, and ``page`` follows from the name.
        """
        ...


def family(folder: str, **shared: Unpack[Fields]) -> FamilyRow:
    """Return a constructor of rows whose spec pages are in one folder and which share some fields.

    >>> row = family("arithmetic", inputs=(2, 2))
    >>> add = row("FloorMod", symbol="{0} % {1}")
    >>> add.title, add.opsets, add.page, add.inputs
    ('FloorMod-1', (1, 16), 'arithmetic/floor-mod-1', (2, 2))
    """

    def row(
        name: str,
        kernel: Kernel | None = None,
        /,
        *,
        version: int = 1,
        opsets: tuple[int, int] | None = None,
        page: str = "",
        **own: Unpack[Fields],
    ) -> Operation:
        fields: Fields = {**shared, **own}
        return Operation(
            name=name,
            version=version,
            opsets=opsets or (version, LAST),
            page=page or _page(folder, name, version),
            kernel=kernel,
            **fields,
        )

    return row


def _page(folder: str, name: str, version: int) -> str:
    """Return the usual name of an operation's page.

    >>> _page("movement", "ScatterNDUpdate", 15), _page("reduction", "ReduceL2", 4)
    ('movement/scatter-nd-update-15', 'reduction/reduce-l2-4')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return f"{folder}/{words.lower()}-{version}"

"""Type stub of ``builder.ops``, generated from the catalogue for editors: ``python -m
loopscope.builder.stub``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from loopscope.builder.naming import snake_case
from loopscope.builder.operations import buildable
from loopscope.ir.element_type import ElementType
from loopscope.ops.attribute_text import AttributeKind
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import REQUIRED, Attribute, Operation
from loopscope.ops.port_meanings import input_names
from loopscope.replaced_file import replaced_file

STUB = Path(__file__).with_name("named.pyi")

_HEAD = '''\
# Written by `python -m loopscope.builder.stub` from the catalogue of operations; not by hand.
"""One method per operation, with its inputs, attributes and outputs."""

from collections.abc import Iterable
from typing import Literal

from numpy.typing import ArrayLike

from loopscope.builder.python_values import ElementTypeLike
from loopscope.builder.operations import Operations
from loopscope.builder.tensor import Tensor
from loopscope.ir.shape import Dimension, PartialShape

Value = Tensor | ArrayLike
"""A tensor of the graph, or numbers, lists and arrays, which become a constant."""
Shape = PartialShape | str | Iterable[int | Dimension | None]

class NamedOperations(Operations):
    """The operations of the catalogue, each in its newest version."""
'''
_KINDS: dict[AttributeKind, str] = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "type": "ElementTypeLike",
    "ints": "int | Iterable[int]",
    "floats": "float | Iterable[float]",
    "strs": "str | Iterable[str]",
    "shape": "Shape",
    "tensor": "ArrayLike",
    "bytes": "bytes | str",
    "bools": "bool | Iterable[bool]",
    "bytes_list": "bytes | Iterable[bytes | str]",
    "types": "ElementTypeLike | Iterable[ElementTypeLike]",
    "shapes": "Iterable[Shape]",
    "tensors": "Iterable[ArrayLike]",
}
"""Python type of each kind of attribute."""


def stub(catalogue: Catalogue) -> str:
    """Return the text of the stub: a class with a method for the newest version of each operation,
    sorted by name.
    """
    newest: dict[str, Operation] = {}
    for operation in buildable(catalogue):
        name = snake_case(operation.name)
        if name not in newest or newest[name].version < operation.version:
            newest[name] = operation
    return _HEAD + "".join(f"\n{_method(name, newest[name])}" for name in sorted(newest))


def _method(name: str, operation: Operation) -> str:
    lines = "".join(f"        {parameter},\n" for parameter in ("self", *_parameters(operation)))
    summary = operation.summary or f"{operation.title}."
    page = "" if " Page " in summary else f" Page {operation.page}."
    return (
        f'    def {name}(\n{lines}    ) -> {_returned(operation)}:\n        """{summary}{page}"""\n'
    )


def _parameters(operation: Operation) -> Iterator[str]:
    lower, upper = operation.inputs
    if upper is None:
        yield "*inputs: Value | Iterable[Value]"
    else:
        for index, name in enumerate(input_names(operation)):
            yield f"{name}: Value" if index < lower else f"{name}: Value | None = None"
        if upper:
            yield "/"
        yield "*"
    for attribute in sorted(
        operation.attributes, key=lambda attribute_key: attribute_key.default is not REQUIRED
    ):
        is_required = attribute.default is REQUIRED
        default = "" if is_required else f" = {_default(attribute.default)}"
        yield f"{attribute.keyword}: {_type(attribute)}{default}"
    yield 'name: str = ""'


def _type(attribute: Attribute) -> str:
    if attribute.kind == "str" and attribute.allowed:
        return f"Literal[{', '.join(_quoted(str(choice)) for choice in attribute.allowed)}]"
    return _KINDS[attribute.kind]


def _default(default: object) -> str:
    """Return the source text of a default; values that need an import become ``...``."""
    if isinstance(default, ElementType):
        return _quoted(default.value)
    if isinstance(default, (str, bool, int, tuple)) or (
        isinstance(default, float) and math.isfinite(default)
    ):
        return repr(default).replace("'", '"')
    return "..."


def _quoted(text: str) -> str:
    return f'"{text}"'


def _returned(operation: Operation) -> str:
    if operation.outputs == 1:
        return "Tensor"
    return (
        "tuple[Tensor, ...]"
        if operation.outputs is None
        else f"tuple[{', '.join(['Tensor'] * operation.outputs)}]"
    )


if __name__ == "__main__":
    with replaced_file(STUB) as file:
        file.write(stub(CATALOGUE).encode())

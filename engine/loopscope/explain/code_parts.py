"""Parts of generated code: identifiers, constants, and lines with their model nodes.

Small values are written out exactly as Python text, large ones are read from a weights file.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import ABSENT, Instruction, Plan, Program
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Defaults
from loopscope.ir.address import decode
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ir.shape import PartialShape
from loopscope.ops.values import NOT_KEPT


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code and the node that it belongs to."""

    text: str
    address: str = ""
    """Static address, such as ``main/while_3/body/Add_1``; empty if the line belongs to no node."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The code of a graph."""

    lines: tuple[CodeLine, ...]
    weights: Mapping[str, np.ndarray]
    """Constants too large to write out, by the name under which the code reads them."""
    complete: bool
    """False if bodies were omitted because they are nested too deeply."""

    @property
    def text(self) -> str:
        """Text of all lines."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def address_of(self, number: int) -> str:
        """Return the static address of a line (counted from 1); empty if the line belongs to no
        node.
        """
        return self.lines[number - 1].address

    def lines_of(self, address: str) -> tuple[int, ...]:
        """Return the lines (counted from 1) of the node at a static address."""
        return self._by_address.get(address, ())

    @cached_property
    def _by_address(self) -> dict[str, tuple[int, ...]]:
        numbers_by_address: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines, 1):
            if line.address:
                numbers_by_address.setdefault(line.address, []).append(number)
        return {address: tuple(numbers) for address, numbers in numbers_by_address.items()}


_NON_IDENTIFIER = re.compile(r"[^0-9a-zA-Z]+")
_MAX_LENGTH = 40
_LAST_WORDS = re.compile(rf"(?<![^_]).{{1,{_MAX_LENGTH}}}$")
_RESERVED = frozenset(
    {
        "np",
        "inf",
        "nan",
        "kernel",
        "onnx_kernel",
        "iterations",
        "join",
        "part",
        "parts",
        "converted",
        "ElementType",
        "WEIGHTS",
        "VARIABLES",
    }
)


class Identifiers:
    """Generator of unique identifiers from names."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self._taken = (
            set(reserved) | set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
        )

    def unique(self, name: str) -> str:
        """Return a new identifier for a name in address spelling; long names are cut to their last
        words.

        >>> names = Identifiers()
        >>> names.unique("while/Add_3"), names.unique("while.Add_3")
        ('while_add_3', 'while_add_3_2')
        >>> names.unique("3 × x\\n"), names.unique("if")
        ('v_3_x', 'if_2')
        >>> names.unique("If_0_then_branch__Inline_0__%2Fdecoder%2Frnn%2FGather_2")
        'branch_inline_0_decoder_rnn_gather_2'
        """
        words = _NON_IDENTIFIER.sub("_", decode(name)[: 4 * _MAX_LENGTH]).strip("_").lower()
        whole = _LAST_WORDS.search(words)
        plain = whole[0] if whole else words[-_MAX_LENGTH:] or "value"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        identifier, number = plain, 1
        while identifier in self._taken:
            number += 1
            identifier = f"{plain}_{number}"
        self._taken.add(identifier)
        return identifier


@dataclass(eq=False)
class Operands:
    """Identifiers assigned so far, by slot, and the constants that they refer to."""

    plan: Plan
    names: dict[int, str] = field(default_factory=dict[int, str])
    addresses: dict[int, str] = field(default_factory=dict[int, str])
    labels: dict[int, str] = field(default_factory=dict[int, str])
    types: dict[int, ElementType | None] = field(default_factory=dict[int, "ElementType | None"])
    constants: list[CodeLine] = field(default_factory=list[CodeLine])
    weights: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    identifiers: Identifiers = field(default_factory=lambda: Identifiers(_RESERVED))

    @cached_property
    def defaults(self) -> Defaults:
        return Defaults(self.plan)

    def add_graph(self, program: Program) -> None:
        """Store label, address and type of every slot of a graph."""
        labels = {layer: label for label, layer in program.layer_of_label.items()}
        for (layer, output), slot in program.slots.items():
            if layer not in program.results and slot not in self.labels:
                self.labels[slot] = labels[layer] + (f"_{output}" if output else "")
                self.addresses[slot] = f"{program.address}/{labels[layer]}"
                self.types[slot] = self.plan.propagated.output(
                    program.address, layer, output
                ).element_type

    def new(self, slot: Slot) -> str:
        """Return the identifier that a slot is assigned to."""
        if slot not in self.names:
            self.names[slot] = self.identifiers.unique(self.labels.get(slot, "value"))
        return self.names[slot]

    def read(self, slot: Slot) -> str:
        """Return the code that reads the value of a slot."""
        if slot == ABSENT:
            return "None"
        if slot not in self.names and slot in self.plan.constant:
            value = self.plan.constant[slot]
            name = self.new(slot)
            if value is not NOT_KEPT and not fits_in_code(value):
                self.weights[name] = stored(value)
            self.constants.append(
                CodeLine(f"{name} = {array_text(name, value)}", self.addresses.get(slot, ""))
            )
        return self.new(slot)

    def operand_texts(self, instruction: Instruction) -> list[str]:
        """Return the operands of an expression.

        Small constants become plain numbers if another operand determines their type.
        """
        operand_types = {
            self.types.get(slot) for slot in instruction.inputs if slot not in self.plan.constant
        }
        texts: list[str] = []
        for slot in instruction.inputs:
            literal = (
                inline_text(self.plan.constant[slot])
                if slot in self.plan.constant and self.types.get(slot) in operand_types
                else ""
            )
            texts.append(literal or self.read(slot))
        return texts

    def attribute(self, value: Any) -> str:
        """Return the code for an attribute; a large tensor becomes a weight."""
        if not isinstance(value, np.ndarray) or fits_in_code(value):
            return attribute_text(value)
        name = self.identifiers.unique("value")
        self.weights[name] = stored(value)
        return array_text(name, value)

    def zero(self, program: Program, layer: LayerId) -> str:
        """Return the code for a value that was never computed.

        The array is not allocated, because a file may declare any shape.
        """
        element_type, shape = self.defaults.known_result(program.address, layer)
        return zeros_text(element_type or ElementType.F32, shape.lengths_or_zeros())


_MAX_INLINE_ELEMENTS = 64
_LITERAL_DTYPES = frozenset(
    np.dtype(name)
    for name in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
)
_STORABLE_DTYPES = _LITERAL_DTYPES | {np.dtype("c8"), np.dtype("c16")}
"""Types that a weights file stores unchanged."""
_INLINE_DTYPES = frozenset(np.dtype(name) for name in ("b1", "i4", "i8", "f4", "f8"))


def fits_in_code(value: Any) -> bool:
    """Return True if a value is small enough, and of a plain type, to be written out."""
    return (
        value is not NOT_KEPT
        and np.size(value) <= _MAX_INLINE_ELEMENTS
        and np.asarray(value).dtype in _LITERAL_DTYPES
    )


def array_text(name: str, value: Any) -> str:
    """Return an expression for a value; large values are read as ``WEIGHTS[name]``.

    >>> array_text("", np.float32([0.1, 2])), array_text("", np.zeros((0, 2), np.int64))
    ('np.array([0.1, 2.0], np.float32)', 'np.zeros((0, 2), np.int64)')
    >>> array_text("", np.bool_(True))
    'np.bool_(True)'
    >>> array_text("w", NOT_KEPT)
    "WEIGHTS['w']  # not kept: the run was saved without weights"
    """
    if value is NOT_KEPT:
        return f"WEIGHTS[{name!r}]  # not kept: the run was saved without weights"
    array = np.asarray(value)
    kind = _type_text(array.dtype)
    if (
        array.dtype.kind in "biuf"
        and not np.count_nonzero(array)
        and array.ndim
        and not np.signbit(array.astype(np.float64)).any()
    ):
        return f"np.zeros({array.shape!r}, {kind})"
    if not fits_in_code(value):
        return f"WEIGHTS[{name!r}]{_conversion_after_load(array.dtype)}"
    items = [_number(item) for item in array.reshape(-1)]
    if not array.ndim:
        return f"{kind}({items[0]})"
    text = f"np.array([{', '.join(items)}], {kind})"
    return text if array.ndim == 1 else f"{text}.reshape{array.shape!r}"


def zeros_text(element_type: ElementType, lengths: Sequence[int]) -> str:
    """Return an expression for zeros (or empty texts) of a type and shape.

    A tensor without dimensions becomes a scalar, as in runs.

    >>> zeros_text(ElementType.F32, (2, 3)), zeros_text(ElementType.I64, ())
    ('np.zeros((2, 3), np.float32)', 'np.int64(0)')
    >>> zeros_text(ElementType.STRING, (2,))
    "np.full((2,), '', object)"
    >>> zeros_text(ElementType.BF16, ())
    "np.zeros((), ElementType('bf16').dtype)[()]"
    """
    shape, dtype = tuple(lengths), element_type.dtype
    if element_type is ElementType.STRING:
        return f"np.full({shape!r}, '', object)"
    if dtype not in _LITERAL_DTYPES:
        scalar = "" if shape else "[()]"
        return f"np.zeros({shape!r}, ElementType({element_type.value!r}).dtype){scalar}"
    return f"np.zeros({shape!r}, {_type_text(dtype)})" if shape else array_text("", dtype.type())


def stored(value: Any) -> np.ndarray:
    """Return a value as an array of a type that a weights file can store.

    >>> value = np.zeros((2, 0), np.complex128)
    >>> stored(value).dtype, array_text("w", value)
    (dtype('complex128'), "WEIGHTS['w']")
    """
    array = np.asarray(value)
    if array.dtype == object:
        return array.astype(str)
    return array if array.dtype in _STORABLE_DTYPES else array.view(f"u{array.dtype.itemsize}")


def _conversion_after_load(dtype: np.dtype) -> str:
    if dtype.kind == "O":
        return ".astype(object)"
    if dtype in _STORABLE_DTYPES:
        return ""
    try:
        return f".view(ElementType({ElementType.of_dtype(dtype).value!r}).dtype)"
    except KeyError:  # a type that only ONNX has
        return f".view(np.dtype({dtype.name!r}))"


def inline_text(value: Any) -> str:
    """Return a scalar as a literal whose type follows from the other operand; empty if not
    possible.
    """
    if value is NOT_KEPT:
        return ""
    array = np.asarray(value)
    if (
        array.ndim
        or array.dtype not in _INLINE_DTYPES
        or (array.dtype.kind == "f" and not np.isfinite(array))
    ):
        return ""
    return _number(array[()])


def attribute_text(value: Any) -> str:
    """Return an operation's attribute as Python text; every text from the model is quoted."""
    match value:
        case ElementType():
            return f"ElementType({value.value!r})"
        case PartialShape():
            return repr(tuple(value.lengths_or_zeros()))
        case float():
            return repr(value)
        case bool() | int() | str() | None:
            return repr(value)
        case tuple() | list():
            return "(" + "".join(f"{attribute_text(item)}, " for item in value).rstrip() + ")"
        case _:
            return array_text("", value)


def _number(item: Any) -> str:
    """Return the shortest text that restores the number in its type."""
    if item.dtype.kind == "f":
        return repr(float(str(item)))
    return repr(item.item())


def _type_text(dtype: np.dtype) -> str:
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"

"""All operations of the engine, looked up by the type and opset of a layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from loopscope.ir.recorded_rows import RECORDED_OPSET
from loopscope.ops import (
    activation,
    along_axes,
    arithmetic,
    convolution,
    detection,
    image,
    infrastructure,
    logical,
    matrix,
    movement,
    normalization,
    own_operations,
    pooling,
    quantization,
    random_numbers,
    regular_tensors,
    searches,
    sequence,
    shape,
    signals,
    sort,
    sparse,
    strings,
)
from loopscope.ops import casting as conversion
from loopscope.ops.declare import Operation
from loopscope.ops.own_operations import RECORDED_VALUE
from loopscope.ops.port_meanings import with_meanings

_DECLARED: Mapping[str, tuple[Operation, ...]] = {
    "activation": (*activation.SMOOTH, *activation.RECTIFIERS, *activation.SOFTMAX),
    "arithmetic": (
        *arithmetic.UNARY,
        *arithmetic.BINARY,
        *along_axes.CUMULATIVE_SUMS,
        *along_axes.SEGMENTS,
    ),
    "bitwise": logical.BITWISE,
    "comparison": logical.COMPARISONS,
    "condition": logical.CONDITIONS,
    "convolution": convolution.OPERATIONS,
    "detection": detection.OPERATIONS,
    "effects": own_operations.OPERATIONS,
    "generation": (
        *regular_tensors.EYE,
        *random_numbers.MULTINOMIAL,
        *random_numbers.UNIFORM,
        *regular_tensors.RANGES,
    ),
    "image": image.OPERATIONS,
    "infrastructure": infrastructure.OPERATIONS,
    "logical": logical.OPERATIONS,
    "matrix": matrix.OPERATIONS,
    "movement": movement.OPERATIONS,
    "narrowing": quantization.NARROWING,
    "normalization": normalization.OPERATIONS,
    "pooling": pooling.OPERATIONS,
    "quantization": quantization.OPERATIONS,
    "reduction": along_axes.REDUCTIONS,
    "searches": searches.OPERATIONS,
    "sequence": sequence.OPERATIONS,
    "shape": shape.OPERATIONS,
    "signals": signals.OPERATIONS,
    "sort": sort.OPERATIONS,
    "sparse": sparse.OPERATIONS,
    "string": strings.OPERATIONS,
    "type": conversion.OPERATIONS,
}
CATEGORIES: Mapping[str, tuple[Operation, ...]] = {
    category: tuple(map(with_meanings, operations)) for category, operations in _DECLARED.items()
}

_OPSET = re.compile(r"opset([1-9]\d{0,3})")


@dataclass(eq=False, repr=False)
class Catalogue:
    """A collection of operations by name."""

    categories: Mapping[str, tuple[Operation, ...]]

    @property
    def dialect(self) -> Literal["openvino", "onnx"]:
        """Dialect of the models that are built with the catalogue."""
        return "openvino"

    def __repr__(self) -> str:
        """Return a short text, because it appears in the signatures of functions that take a
        catalogue.
        """
        return (
            f"<{type(self).__name__} of {sum(map(len, self.categories.values()))} "
            "operation versions>"
        )

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[Operation, ...]]:
        versions_by_name: dict[str, list[Operation]] = {}
        for operation in self:
            versions_by_name.setdefault(operation.name.lower(), []).append(operation)
        return {name: tuple(versions) for name, versions in versions_by_name.items()}

    def __iter__(self) -> Iterator[Operation]:
        for operations in self.categories.values():
            yield from operations

    def versions(self, type: str) -> tuple[Operation, ...]:
        """Return all versions of an operation type (any case, as in OpenVINO's reader); empty if
        unknown.
        """
        return self._by_name.get(type.lower(), ())

    def elsewhere(self, type: str, opset: str) -> tuple[Operation, ...]:
        """Return the versions in other opsets, for a type that this opset does not contain."""
        return self.versions(type)

    def find(self, type: str, opset: str) -> Operation | None:
        """Return the version of an operation in an opset, such as ``("ShapeOf", "opset8")``; None
        if unknown.
        """
        if opset == RECORDED_OPSET:
            return RECORDED_VALUE if type == RECORDED_VALUE.name else None
        match = _OPSET.fullmatch(opset)
        number = int(match[1]) if match else 0
        for operation in self.versions(type):
            if (
                opset == operation.opset
                if operation.opset
                else operation.opsets[0] <= number <= operation.opsets[1]
            ):
                return operation
        return None

    def category_of(self, operation: Operation) -> str:
        """Return the category whose table contains the operation."""
        return self._category_by_title[operation.title]

    @cached_property
    def _category_by_title(self) -> Mapping[str, str]:
        return {
            operation.title: category
            for category, operations in self.categories.items()
            for operation in operations
        }

    def is_foreign(self, operation: Operation) -> bool:
        """Return True if a user has added the operation: only a run calls its kernel."""
        added = self.categories.get("custom")
        return added is not None and any(item is operation for item in added)

    def with_operations(
        self, operations: Iterable[Operation], *, replace: bool = False
    ) -> Catalogue:
        """Return this catalogue with more operations.

        Raise ``ValueError`` if a name and version exists and ``replace`` is not set.
        """
        added = tuple(operations)
        titles = {operation.title.lower() for operation in added}
        clash = next((operation for operation in self if operation.title.lower() in titles), None)
        if clash is not None and not replace:
            raise ValueError(
                f"operation {clash.title} exists already: give it another name, or "
                "install it with replace=True"
            )
        categories = {
            name: tuple(row for row in rows if row.title.lower() not in titles)
            for name, rows in self.categories.items()
        }
        categories["custom"] = categories.get("custom", ()) + added
        return Catalogue(categories)

    def install(self, operations: Iterable[Operation], *, replace: bool = False) -> None:
        """Add operations to this catalogue in place, as ``with_operations`` does to a copy."""
        self.categories = self.with_operations(operations, replace=replace).categories
        for cached in ("_by_name", "_category_by_title"):
            self.__dict__.pop(cached, None)


CATALOGUE = Catalogue(CATEGORIES)

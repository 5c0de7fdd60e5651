"""All operations that the engine knows, looked up by the type and opset that a layer carries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from loopscope.ops import (
    activation,
    arithmetic,
    bitwise,
    comparison,
    condition,
    convolution,
    detection,
    effects,
    generation,
    image,
    infrastructure,
    logical,
    matrix,
    movement,
    narrowing,
    normalization,
    pooling,
    quantization,
    reduction,
    searches,
    sequence,
    shape,
    signals,
    sort,
    sparse,
    string,
)
from loopscope.ops import type as conversion
from loopscope.ops.declare import Operation
from loopscope.ops.port_meanings import with_meanings

_DECLARED: Mapping[str, tuple[Operation, ...]] = {
    "activation": activation.OPERATIONS,
    "arithmetic": arithmetic.OPERATIONS,
    "bitwise": bitwise.OPERATIONS,
    "comparison": comparison.OPERATIONS,
    "condition": condition.OPERATIONS,
    "convolution": convolution.OPERATIONS,
    "detection": detection.OPERATIONS,
    "effects": effects.OPERATIONS,
    "generation": generation.OPERATIONS,
    "image": image.OPERATIONS,
    "infrastructure": infrastructure.OPERATIONS,
    "logical": logical.OPERATIONS,
    "matrix": matrix.OPERATIONS,
    "movement": movement.OPERATIONS,
    "narrowing": narrowing.OPERATIONS,
    "normalization": normalization.OPERATIONS,
    "pooling": pooling.OPERATIONS,
    "quantization": quantization.OPERATIONS,
    "reduction": reduction.OPERATIONS,
    "searches": searches.OPERATIONS,
    "sequence": sequence.OPERATIONS,
    "shape": shape.OPERATIONS,
    "signals": signals.OPERATIONS,
    "sort": sort.OPERATIONS,
    "sparse": sparse.OPERATIONS,
    "string": string.OPERATIONS,
    "type": conversion.OPERATIONS,
}
CATEGORIES: Mapping[str, tuple[Operation, ...]] = {
    category: tuple(map(with_meanings, operations)) for category, operations in _DECLARED.items()
}

_OPSET = re.compile(r"opset([1-9]\d{0,3})")


@dataclass(eq=False, repr=False)
class Catalogue:
    """Operations by name."""

    categories: Mapping[str, tuple[Operation, ...]]

    @property
    def dialect(self) -> Literal["openvino", "onnx"]:
        """Of the models that are built with it."""
        return "openvino"

    def __repr__(self) -> str:
        """Short: it stands in the signatures of what takes a catalogue."""
        return f"<{type(self).__name__} of {sum(map(len, self.categories.values()))} operation versions>"

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[Operation, ...]]:
        found: dict[str, list[Operation]] = {}
        for operation in self:
            found.setdefault(operation.name.lower(), []).append(operation)
        return {name: tuple(versions) for name, versions in found.items()}

    def __iter__(self) -> Iterator[Operation]:
        for operations in self.categories.values():
            yield from operations

    def versions(self, type: str) -> tuple[Operation, ...]:
        """All versions of an operation type (any case, as OpenVINO's reader), or none."""
        return self._by_name.get(type.lower(), ())

    def elsewhere(self, type: str, opset: str) -> tuple[Operation, ...]:
        """The versions that other opsets hold, of a type that this opset does not hold."""
        return self.versions(type)

    def find(self, type: str, opset: str) -> Operation | None:
        """The version of an operation that an opset holds, such as ``("ShapeOf", "opset8")``;
        None when it is unknown.
        """
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
        """The category whose table holds the operation."""
        return self._category_by_title[operation.title]

    @cached_property
    def _category_by_title(self) -> Mapping[str, str]:
        return {
            operation.title: category
            for category, operations in self.categories.items()
            for operation in operations
        }

    def is_foreign(self, operation: Operation) -> bool:
        """Return whether a user has added the operation: only a run calls its kernel."""
        return any(one is operation for one in self.categories.get("custom", ()))

    def with_operations(
        self, operations: Iterable[Operation], *, replace: bool = False
    ) -> Catalogue:
        """This catalogue and some more; ``ValueError`` when a name and version exists and
        ``replace`` is not asked for.
        """
        added = tuple(operations)
        titles = {operation.title.lower() for operation in added}
        clash = next((operation for operation in self if operation.title.lower() in titles), None)
        if clash is not None and not replace:
            raise ValueError(
                f"operation {clash.title} exists already: give it another name, or ask for it to be replaced"
            )
        kept = {
            name: tuple(one for one in rows if one.title.lower() not in titles)
            for name, rows in self.categories.items()
        }
        kept["custom"] = kept.get("custom", ()) + added
        return Catalogue(kept)

    def install(self, operations: Iterable[Operation], *, replace: bool = False) -> None:
        """Adds operations to this very catalogue; as ``with_operations``."""
        self.categories = self.with_operations(operations, replace=replace).categories
        for cached in ("_by_name", "_category_by_title"):
            self.__dict__.pop(cached, None)


CATALOGUE = Catalogue(CATEGORIES)

"""Exact correlations of 8-bit integers with filters of 8-bit integers, both less their zero points: sums in i32, which wrap around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from engine.ops.bounds import check_elements
from engine.ops.convolution.dense import placed_windows
from engine.ops.declare import Array
from engine.ops.onnx.byte_products import ByteMatrix, Bytes, threads
from engine.ops.onnx.windows import convolved, window_of
from engine.ops.window import Lengths, span

_BLOCK_BYTES = 1 << 18
"""Windows are copied and multiplied in blocks of about so many bytes for each processor, which stay in its cache."""
_FROM_TERMS = 24
"""From so many terms of a sum on, copying windows as bytes costs less than the products of floats do."""
_EXACT = 1 << 24
"""Up to here f32 holds every integer, and so every sum of integers whose magnitudes come to no more, in any order."""


class ByteFilters:
    """Filters ``[O, C / group, kernel...]`` less their zero points, of which there is one, or one for each filter; ready for data."""

    def __init__(self, filters: Bytes) -> None:
        self._filters = filters

    @classmethod
    def of(cls, filters: Array, zero: Array | None, /) -> Self:
        """Of i8 or u8. ``ValueError`` for zero points that do not fit."""
        return cls(Bytes.of(filters, by_filter(zero, filters, "zero points")))

    @staticmethod
    def most_bytes(shape: Sequence[int]) -> int:
        """What filters of such a shape keep, with all that goes with them."""
        return 5 * prod(shape) + 16 * shape[0]

    @cached_property
    def _matrix(self) -> ByteMatrix:
        """A column for each filter: of all places of its kernel, the channels."""
        numbers, zero = self._filters
        return ByteMatrix(Bytes(np.moveaxis(numbers, 1, -1).reshape(len(numbers), prod(numbers.shape[1:])).T, zero.reshape(-1)))

    @cached_property
    def _floats(self) -> tuple[Array, float]:
        """The filters in f32, and the greatest sum of magnitudes of any."""
        numbers, zero = self._filters
        centred = np.subtract(numbers, zero, dtype=np.float32)
        return centred, float(np.abs(centred).sum(axis=tuple(range(1, centred.ndim)), dtype=np.float64).max(initial=0))

    def sums(self, data: Bytes, attributes: Mapping[str, Any]) -> Array:
        """``[N, C, lengths...] -> [N, O, places...]`` with the attributes of Conv; padding lies at the zero point of the data, a number."""
        shape, given = self._filters.numbers.shape, data.numbers.shape
        in_one = int(attributes.get("group", 1)) == 1 and 2 < len(shape) == len(given) <= 5 and shape[1] == given[1]
        if in_one and prod(shape[1:]) >= _FROM_TERMS:
            return self._by_bytes(data, attributes)
        filters, greatest = self._floats
        numbers = np.subtract(data.numbers, data.zero, dtype=np.float32)
        most = max(127 - int(data.zero[0]), int(data.zero[0]) + 128)
        if greatest * most > _EXACT:
            # No sum of so few products reaches 2^53: f64 is exact.
            whole = convolved(numbers.astype(np.float64), filters.astype(np.float64), attributes)
            return whole.astype(np.int64).astype(np.int32)
        return convolved(numbers, filters, attributes).astype(np.int32)

    def _by_bytes(self, data: Bytes, attributes: Mapping[str, Any]) -> Array:
        """One product of windows, whose channels lie together, with all filters, for each block of places along the first axis."""
        outputs, _, *kernel = self._filters.numbers.shape
        view, counts = _windows(data, tuple(kernel), window_of(attributes, len(kernel)))
        check_elements(len(view) * outputs * prod(counts), "the result of the convolution")
        result = np.empty((len(view), outputs, *counts), np.int32)
        lines = max(1, threads() * _BLOCK_BYTES // max(1, prod(counts[1:]) * self._matrix.shape[0]))
        for image, made in zip(view, result, strict=True):
            for top in range(0, counts[0], lines):
                block = image[top : top + lines]
                rows = np.ascontiguousarray(block).reshape(prod(block.shape[: len(counts)]), self._matrix.shape[0])
                sums = self._matrix.sums(Bytes(rows, data.zero))
                made[:, top : top + lines] = sums.T.reshape(outputs, *block.shape[: len(counts)])
        return result


def _windows(data: Bytes, kernel: Lengths, window: Mapping[str, Any]) -> tuple[Array, Lengths]:
    """A view ``[N, places..., kernel..., C]`` of padded data, and how many places there are on each axis."""
    numbers, zero = data
    placed = placed_windows(numbers.shape[2:], kernel, **window)
    last = np.moveaxis(numbers, 1, -1)
    around = [(0, 0), *zip(placed.begin, placed.end, strict=True), (0, 0)]
    check_elements(prod(length + sum(both) for length, both in zip(last.shape, around, strict=True)), "the padded data")
    padded = np.pad(last, around, constant_values=zero[0]) if any(map(any, around)) else np.ascontiguousarray(last)
    axes = tuple(range(1, 1 + len(kernel)))
    spans = tuple(map(span, kernel, placed.dilations))
    view = sliding_window_view(padded, spans, axes)
    every = (slice(None), *(slice(None, None, step) for step in placed.strides), slice(None))
    view = view[(*every, *(slice(None, None, step) for step in placed.dilations))]
    return np.moveaxis(view, 1 + len(kernel), -1), placed.counts


def by_filter(numbers: Array | None, filters: Array, what: str) -> Array | None:
    """A number for each filter along the filters' axis; one number for all as it is."""
    if numbers is None or numbers.size == 1:
        return None if numbers is None else numbers.reshape(())
    if numbers.shape != filters.shape[:1]:
        raise ValueError(f"the {what} of the filters have shape {list(numbers.shape)}, expected one number or {len(filters)}")
    return numbers.reshape(-1, *[1] * (filters.ndim - 1))

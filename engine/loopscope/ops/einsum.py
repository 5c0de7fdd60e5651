"""Einsum: equations are parsed here, and pairs of operands are contracted by matrix products."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import broadcast_shapes, common_type
from loopscope.ops.kernel_arithmetic import computable, multiplicable, rounded
from loopscope.ops.kernel_checks import check_elements

_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_MAX_CHARACTERS = 1000


def einsum(*operands: Array, equation: str) -> Array:
    """Sum products over labelled axes, such as ``bij,bjk->bik``.

    Spec: matrix/einsum-7.
    """
    labels, result = _cached_subscripts(equation, tuple([operand.ndim for operand in operands]))
    dtype = operands[0].dtype
    sizes = _sizes(labels, operands)
    check_elements(_count(result, sizes), "the result of Einsum")
    arrays = [
        _diagonal(computable(operand), names)
        for operand, names in zip(operands, labels, strict=True)
    ]
    terms = [
        (array, "".join(dict.fromkeys(names))) for array, names in zip(arrays, labels, strict=True)
    ]
    for pair in _order(
        tuple([names for _, names in terms]), tuple([array.shape for array, _ in terms]), result
    ):
        pair_terms = [terms[index] for index in pair]
        terms = [item for index, item in enumerate(terms) if index not in pair]
        needed = set(result).union(*(names for _, names in terms))
        terms.append(_contract(pair_terms[0], pair_terms[1], needed))
    array, names = terms[0]
    total = _sum_away(array, names, set(result))
    remaining = [label for label in names if label in result]
    return rounded(np.asarray(total).transpose([remaining.index(label) for label in result]), dtype)


@lru_cache(maxsize=256)
def _cached_subscripts(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the labels of ``subscripts``, cached for repeated executions."""
    labels, result = subscripts(equation, ranks)
    return tuple(labels), result


def subscripts(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the result; ellipses become letters that the
    equation does not use.

    >>> subscripts("a...b,b...->a...", [4, 2])
    (['aABb', 'bB'], 'aAB')
    """
    text = equation.replace(" ", "")
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"the equation has {len(text)} characters, more than {_MAX_CHARACTERS}")
    left, arrow, result = text.partition("->")
    operands = left.split(",")
    for operand in [*operands, *([result] if arrow else [])]:
        if operand.count("...") > 1 or not set(operand.replace("...", "", 1)) <= set(_LETTERS):
            raise ValueError(
                f"equation {equation!r}: {operand!r} is not letters with at most one ellipsis"
            )
    if len(operands) != len(ranks):
        raise ValueError(
            f"equation {equation!r} is for {len(operands)} inputs, there are {len(ranks)}"
        )
    free = "".join(letter for letter in _LETTERS if letter not in text)
    covered = [
        rank - len(operand.replace("...", ""))
        for operand, rank in zip(operands, ranks, strict=True)
    ]
    for operand, rank, rest in zip(operands, ranks, covered, strict=True):
        if rest < 0 or (rest and "..." not in operand):
            raise ValueError(
                f"equation {equation!r}: {operand!r} does not fit an input of rank {rank}"
            )
    longest = max(
        [rest for operand, rest in zip(operands, covered, strict=True) if "..." in operand],
        default=0,
    )
    if longest > len(free):
        raise ValueError(f"equation {equation!r} needs more than {len(_LETTERS)} labels")
    ellipsis = free[:longest]
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        result = ("..." if "..." in left else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    spelt = [
        operand.replace("...", ellipsis[longest - rest :])
        for operand, rest in zip(operands, covered, strict=True)
    ]
    result = result.replace("...", ellipsis)
    if len(set(result)) != len(result) or not set(result) <= set("".join(spelt)):
        raise ValueError(
            f"equation {equation!r}: the result's labels must be different ones of the inputs'"
        )
    return spelt, result


def _sizes(labels: Sequence[str], operands: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for names, operand in zip(labels, operands, strict=True):
        for label, length in zip(names, operand.shape, strict=True):
            known = sizes.get(label, 1)
            if known != 1 and length not in (1, known):
                raise ValueError(f"label {label!r} stands for lengths {known} and {length}")
            sizes[label] = known if length == 1 else length
    return sizes


def _count(labels: str, sizes: Mapping[str, int]) -> int:
    count = 1
    for label in labels:
        count *= sizes[label]
    return count


def _diagonal(array: Array, labels: str) -> Array:
    """Replace the axes of each repeated label by their diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if array.shape[first] != array.shape[second]:
                raise ValueError(
                    f"label {label!r} stands for lengths {array.shape[first]} and "
                    f"{array.shape[second]} of one input"
                )
            array = array.diagonal(axis1=first, axis2=second)
            if first < array.ndim - 1:
                array = np.moveaxis(array, -1, first)
            labels = labels[:second] + labels[second + 1 :]
    return array


@lru_cache(maxsize=256)
def _order(
    labels: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], result: str
) -> Sequence[tuple[int, int]]:
    """Return the pairs to contract in order, the cheapest first; cached, as finding them takes
    longer than small products.
    """
    if len(labels) < 3:
        return [(0, 1)] if len(labels) == 2 else []
    equation = ",".join(labels) + "->" + result
    path = np.einsum_path(
        equation, *(np.broadcast_to(np.float32(0), shape) for shape in shapes), optimize="greedy"
    )[0][1:]
    pairs: list[tuple[int, int]] = []
    for step in path:
        pairs.append((step[0], step[1]))
        # A step of more than two operands stands for a chain of pairs, because each result is
        # appended to the list.
        pairs.extend((0, len(labels) - len(pairs) - 1) for _ in step[2:])
    return pairs


def _sum_away(array: Array, labels: str, needed: set[str]) -> Array:
    axes = tuple(axis for axis, label in enumerate(labels) if label not in needed)
    return array.sum(axis=axes, dtype=array.dtype) if axes else array


def _contract(
    first: tuple[Array, str], second: tuple[Array, str], needed: set[str]
) -> tuple[Array, str]:
    """Multiply two operands, summed over the labels that no later operand and not the output
    needs.
    """
    (a, in_a), (b, in_b) = first, second
    # Labels of one operand only, or those that one operand only repeats (length 1), are summed
    # before the product.
    a, in_a = _prepare(a, in_a, b, in_b, needed)
    b, in_b = _prepare(b, in_b, a, in_a, needed)
    both = [label for label in in_a if label in in_b]
    batch = [label for label in both if label in needed]
    inner = [label for label in both if label not in needed]
    rows = [label for label in in_a if label not in in_b]
    columns = [label for label in in_b if label not in in_a]
    lengths: dict[str, int] = {}
    for label, length in [*zip(in_a, a.shape, strict=True), *zip(in_b, b.shape, strict=True)]:
        known = lengths.get(label, 1)
        lengths[label] = length if known == 1 else known
    check_elements(_count("".join([*batch, *rows, *columns]), lengths), "a product within Einsum")
    left = a.transpose([in_a.index(label) for label in [*batch, *rows, *inner]])
    right = b.transpose([in_b.index(label) for label in [*batch, *inner, *columns]])
    left = left.reshape(*left.shape[: len(batch)], _length(rows, lengths), _length(inner, lengths))
    right = right.reshape(
        *right.shape[: len(batch)], _length(inner, lengths), _length(columns, lengths)
    )
    dtype = left.dtype
    left, right = multiplicable(left, right, _length(inner, lengths))
    product = rounded(
        left * right
        if not inner and (left.size == 0 or left.shape[-1] == 1)
        else np.matmul(left, right),
        dtype,
    )
    labels = [*batch, *rows, *columns]
    return product.reshape([lengths[label] for label in labels]), "".join(labels)


def _length(labels: Sequence[str], lengths: Mapping[str, int]) -> int:
    return _count("".join(labels), lengths)


def _prepare(
    array: Array, labels: str, other: Array, in_other: str, needed: set[str]
) -> tuple[Array, str]:
    """Sum an operand over axes that the product does not need.

    These are labels that only this operand has, axes of length 1 where the other operand is longer,
    and axes where the other operand has length 1. A label that is needed later stays in
    one operand.
    """
    dropped = []
    for axis, label in enumerate(labels):
        length = array.shape[axis]
        other_length = other.shape[in_other.index(label)] if label in in_other else None
        if (
            (other_length is None and label not in needed)
            or (other_length not in (None, length) and length == 1)
            or (other_length == 1 and length != 1 and label not in needed)
        ):
            dropped.append(axis)
    remaining = "".join(label for axis, label in enumerate(labels) if axis not in dropped)
    return (
        (array.sum(axis=tuple(dropped), dtype=array.dtype), remaining)
        if dropped
        else (array, labels)
    )


def infer_einsum(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the lengths of the result's labels, broadcast over the inputs that have them."""
    element_type = common_type(inputs)
    dimensions = [known.shape.dimensions for known in inputs]
    if any(names is None for names in dimensions):
        return (Known(element_type),)
    known_dimensions = [names for names in dimensions if names is not None]
    labels, result = subscripts(attributes["equation"], [len(names) for names in known_dimensions])
    lengths: dict[str, Dimension] = {}
    for names, shape in zip(labels, known_dimensions, strict=True):
        for label, dimension in zip(names, shape, strict=True):
            joined = broadcast_shapes(
                PartialShape((lengths.get(label, static(1)),)), PartialShape((dimension,))
            )
            lengths[label] = joined.at(0)
    return (Known(element_type, PartialShape(tuple(lengths[label] for label in result))),)
